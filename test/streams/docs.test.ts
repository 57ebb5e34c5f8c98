import { expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'
import { declaredStreams as streams } from '../../connector/streams/streams'
import { addSyncAudit, createRunSummary } from '../../connector/streams/sync-audit'
import { codeBlocks } from '../support/doc-blocks'
import { createSourceEnv, locationsFromReviews, readAll } from '../support/in-process'
import { openMemorySnapshot } from '../support/snapshot-messages'
import { formatStreamDoc } from '../support/streams-doc'

const sharedCosts = 'no requests of its own: all streams made from reviews share those of `reviews`'

const descriptions: Readonly<Record<string, { readonly what: string; readonly costs: string }>> = {
  deleted_reviews: {
    what: 'Deletions of reviews, by the id under which the review was exported (operation 7).',
    costs: 'one request for each page of deletions since the cursor',
  },
  reviews: {
    what:
      'Reviews that arrived or changed, each with its contents, ' +
      'sentiments, liabilities, task and engagements (operation 6).',
    costs: 'one request for each page of reviews since the cursor; successive pages share some rows',
  },
  locations: { what: 'Locations that reviews name.', costs: sharedCosts },
  providers: { what: 'Providers (physicians) that reviews name.', costs: sharedCosts },
  sources: {
    what:
      'Sources that reviews came from. With `lookups.sources: true`, each run reads the list of the service instead: ' +
      'same key and cursor (`reviewModifiedTime` is the time of ' +
      'the lookup), all other fields in one object `record`. ' +
      'If the service refuses, a warning says so and they come from reviews. With another operation in ' +
      '`lookups.sources`, the stream is a full refresh with the ' +
      'configured key as text and all other fields in `record`.',
    costs: `${sharedCosts}; with a lookup, one request for each of its pages`,
  },
  categories: {
    what:
      'Categories and sub-categories of the sentiments in reviews. With ' +
      '`lookups.categories` in the config, they are looked up as in `sources`.',
    costs: `${sharedCosts}; with a lookup, one request for each of its pages`,
  },
  questions: {
    what:
      'Questions that reviews answer. The key is the question code or, without one, the question and its type. A run ' +
      'sends each question once, in the words of the first review it reads.',
    costs: sharedCosts,
  },
  review_contents: { what: 'Questions and responses of reviews, one row for each.', costs: sharedCosts },
  review_sentiments: { what: 'Sentiments found in the responses, one row for each.', costs: sharedCosts },
  review_liabilities: { what: 'Liabilities found in the responses, one row for each.', costs: sharedCosts },
  review_tasks: { what: 'Closing-the-loop tasks of reviews.', costs: sharedCosts },
  review_engagements: { what: 'Messages sent to reviewers, in their order.', costs: sharedCosts },
  comments: {
    what: 'Comments on persons, locations and roll-up entities, with the responses to them (operations 2 and 3).',
    costs:
      'one or two requests for up to 50 entities if their comments since feedback_lookback_days before their cursor ' +
      'fit one page (up to three in a first read); one or two more for each further page of an entity',
  },
  transparency_reviews: {
    what: 'Reviews of persons, locations and roll-up entities as the public sees them (operation 1).',
    costs:
      'for each entity, one request if it has no reviews since feedback_lookback_days before its cursor, two if they ' +
      'fit one page, and one or two more for each further page',
  },
  entity_ratings: {
    what:
      'The summary of each entity: overall rating, ratings by category and their distribution ' +
      '(operations 2 and 3). If a response has several blocks for one id, they become one row with the ratings ' +
      'of all; a member listed beside its roll-up has a row of its own.',
    costs: 'one request for up to 50 entities',
  },
  managed_locations: {
    what:
      'The active locations that the service manages; the stream exists only with `lookups.locations`. A location ' +
      'without a code has its id as `code` and `id` as `codeType`; ' +
      'so has one that shares code and type with another, ' +
      'with a warning. A code without a type has the `codeType` `none`.',
    costs:
      'one or two requests for up to 100 locations, one for each further 100; a longer list is read twice, or up to ' +
      'five times while it changes, since a removed location shifts the others',
  },
  sync_audit: {
    what:
      'What each run sent: a record for each stream that it finished, so that a warehouse can check that everything ' +
      'has arrived ([proof.md](proof.md)). The stream exists only with `audit: true`, and comes last.',
    costs: 'no requests',
  },
}

const intro = `# Streams

Every stream that the source reads, with its attributes, key, cursor and cost. A test generates this page from the code;
the JSON schemas are in [catalog/](../catalog). Any attribute except keys and cursor may be null or absent. Times
are in UTC.

> **Most people need only this.** Select all streams and sync them incrementally: each run sends only what has changed.
> \`feedback sync\` needs none of the SQL below.

A child record carries the \`reviewModifiedTime\` of the version of its review. When a review changes, the children that
it lost are not sent again and stay in a warehouse. This query gives the current ones:

\`\`\`sql
SELECT child.*
FROM "review_sentiments" AS child
JOIN "reviews" AS review
  ON review."id" = child."reviewId" AND review."modifiedTime" = child."reviewModifiedTime"
LEFT JOIN "deleted_reviews" AS deletion
  ON deletion."id" = review."id" AND deletion."modifiedTime" > review."modifiedTime"
WHERE deletion."id" IS NULL
\`\`\`

The quotes keep the case of the names. If your loader wrote them in lower case, as PyAirbyte and some targets do, write
them in lower case (DuckDB accepts both). BigQuery quotes with backticks.

Of a review and its deletion, the later counts. At the same millisecond the review does: it has been restored, since the
service serves only reviews that are not deleted. Tombstones (\`deletes: tombstones\`) and the snapshot follow the same
rule, and \`feedback snapshot\` and \`feedback sync\` apply it for you.

## Streams by entity

\`comments\`, \`transparency_reviews\` and \`entity_ratings\` are read for each person, location and roll-up that
\`entities\` in the config names, and with \`entities.from_reviews\` for those that reviews name. If no selected stream
comes from reviews, the source searches all reviews for them once, and later only the new ones.

- Each entity has its own cursor. Each run starts \`feedback_lookback_days\` before it (at least a day), because a late
  response does not change the time of a row. An entity's rows are sent only if one of them is new or changed.
- One request asks for up to 50 entities. Entities whose rows did not all fit are read one by one, in time ranges that
  fit a page. If the service ignores \`fromDate\` and \`toDate\`, they are read page by page, by
  \`scrollKey\` or \`page\`, until two readings agree.
- No row is missing that was there during the whole run, provided that the service applies the dates, or that its
  keys or pages lead to the end.
- If this cannot be shown, a warning names the entity and what was seen. Its state stays, the other entities are read,
  and the next run asks again. A full refresh ends INCOMPLETE, since it would delete the entity's rows.
- The service reports no deletions here: a deleted comment stays in the warehouse until you refresh the stream. Rows
  older than the service's own limit in days are not read; a warning says so.
`

it('docs/streams.md shows every stream with its attributes and an example', async () => {
  const until = Date.parse('2026-01-01T00:00:00Z')
  const sandbox = await startSandbox({ reviews: 200, until, now: () => until + 3_600_000 })
  onTestFinished(() => sandbox.close())
  const source = createSourceEnv(sandbox.api, { now: () => until + 3_600_000, entities: locationsFromReviews })
  const audited = addSyncAudit(streams.filter(({ name }) => name !== 'sync_audit'))
  const { records } = await readAll({ ...source, runSummary: createRunSummary() }, audited)
  const pages = streams.map((stream) => {
    const description = descriptions[stream.name]
    if (description === undefined) throw new Error(`docs/streams.md does not say what ${stream.name} is`)
    return formatStreamDoc(stream as never, description, shortestExample(records[stream.name] ?? []))
  })
  await expect(`${intro}${pages.join('\n')}`).toMatchFileSnapshot('../../docs/streams.md')
})

it('the SQL of docs/streams.md quotes its names and gives the parts of reviews that are there now', async () => {
  const [sql = ''] = codeBlocks('streams.md', 'sql')
  expect(sql.replace(/"[^"]*"/g, '')).not.toMatch(/[a-z][A-Z]|_/)
  const snapshot = await openMemorySnapshot()
  onTestFinished(() => snapshot.db.close())
  const statements = [
    'CREATE TABLE other.reviews("id" BIGINT, "modifiedTime" TIMESTAMPTZ)',
    'CREATE TABLE other.review_sentiments("reviewId" BIGINT, "id" BIGINT, "reviewModifiedTime" TIMESTAMPTZ)',
    'CREATE TABLE other.deleted_reviews("id" BIGINT, "modifiedTime" TIMESTAMPTZ)',
    "INSERT INTO other.reviews VALUES (1, '2024-01-02'), (2, '2024-01-02')",
    "INSERT INTO other.review_sentiments VALUES (1, 11, '2024-01-01'), (1, 12, '2024-01-02'), (2, 13, '2024-01-02')",
    "INSERT INTO other.deleted_reviews VALUES (2, '2024-01-03')",
  ]
  for (const statement of ['CREATE SCHEMA other', ...statements, 'SET schema = other'])
    await snapshot.db.query(statement)
  expect((await snapshot.db.query(sql)).map(({ id }) => Number(id))).toEqual([12])
})

/** The shortest of the records that have the most attributes. */
const shortestExample = (records: ReadonlyArray<Record<string, unknown>>): unknown => {
  const countAttributes = (record: Record<string, unknown>) => Object.keys(record).length
  const most = Math.max(0, ...records.map(countAttributes))
  const textLength = (record: Record<string, unknown>) =>
    JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? 0 : value)).length
  return records.filter((record) => countAttributes(record) === most).sort((a, b) => textLength(a) - textLength(b))[0]
}
