import { expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'
import { declaredStreams as streams } from '../../connector/streams/streams'
import { addSyncAudit, createAuditLedger } from '../../connector/streams/sync-audit'
import { codeBlocks } from '../support/doc-blocks'
import { createSourceEnv, locationsFromReviews, readAll } from '../support/in-process'
import { openMemorySnapshot } from '../support/snapshot-messages'
import { formatStreamDoc } from '../support/streams-doc'

const sharedCosts = 'no requests of its own: all selected streams that are made of reviews share those of `reviews`'

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
      'Sources that reviews came from. With `lookups.sources: true` the sources that the service ' +
      'lists, at each run, with the same key and cursor (`reviewModifiedTime` is then the time of the ' +
      'lookup) and all other fields in one object `record`; where the service refuses the lookup, a ' +
      'warning says so and they come from reviews. With an operation of its own in `lookups.sources`, ' +
      'the answer of that: full refresh, the configured key as text, and all other fields in `record`.',
    costs: `${sharedCosts}; one request with a lookup, or those of its pages`,
  },
  categories: {
    what:
      'Categories and sub-categories of the sentiments in reviews. With ' +
      '`lookups.categories` in the config, a lookup as in `sources`.',
    costs: `${sharedCosts}; one request with a lookup, or those of its pages`,
  },
  questions: {
    what:
      'Questions that reviews answer. The key is the question code, or without one the question and its type. A run ' +
      'sends each wording of a question once; the one read last stays.',
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
      'one or two requests for up to 50 entities if their comments since ' +
      'feedback_lookback_days before their cursor fit one page, in a first read ' +
      'up to three; one or two more for each page of an entity that has more',
  },
  transparency_reviews: {
    what: 'Reviews of persons, locations and roll-up entities as the public sees them (operation 1).',
    costs:
      'one request for each entity without reviews since feedback_lookback_days before ' +
      'its cursor, two if these fit one page; one or two more for each further page',
  },
  entity_ratings: {
    what:
      'The summary of each entity: overall rating, ratings by category and their distribution ' +
      '(operations 2 and 3). Several blocks of one id in an answer are one row, with the ratings ' +
      'of all of them; a member that an answer lists beside its roll-up has a row under its own id.',
    costs: 'one request for up to 50 entities',
  },
  managed_locations: {
    what:
      'The locations that the service manages, active ones only, as `lookups.locations` lists them; the stream is ' +
      'there only with that. A location without a code has its id as `code`, with the `codeType` id; one with the ' +
      'code and type of another too, and a warning says so. One with a code and no type has the `codeType` none.',
    costs:
      'one or two requests for up to 100 locations; one for each further 100, all of them twice or, while ' +
      'the list changes, up to five times, since a location that is removed meanwhile shifts the others',
  },
  sync_audit: {
    what:
      'What each run has sent: a record for each stream that it has read to its end, by ' +
      'which a warehouse can tell that all of it has arrived ([proof.md](proof.md)). The ' +
      'stream is there only with `audit: true`, and is read last.',
    costs: 'no requests',
  },
}

const intro = `# Streams

Every stream that the source reads. A test generates this page from the codecs. Types are those of the JSON schemas in
[catalog/](../catalog); every attribute except keys and cursor may be null or absent. Times are in UTC.

A child record has the \`reviewModifiedTime\` of the version of its review that it was read from. When a review changes,
the children that it no longer has are not sent again, and a warehouse still has them. This query gives only the current
ones:

\`\`\`sql
SELECT child.*
FROM "review_sentiments" AS child
JOIN "reviews" AS review
  ON review."id" = child."reviewId" AND review."modifiedTime" = child."reviewModifiedTime"
LEFT JOIN "deleted_reviews" AS deletion
  ON deletion."id" = review."id" AND deletion."modifiedTime" > review."modifiedTime"
WHERE deletion."id" IS NULL
\`\`\`

The names are quoted, since PostgreSQL and others fold unquoted ones. Where a loader has stored them in lower case, as
PyAirbyte and some targets do, write them in lower case unless the database is DuckDB, which minds neither. BigQuery
quotes with backticks.

The later of a review and its deletion counts. At the same millisecond the review wins, since the service serves only
reviews that are not deleted: it has been restored. Tombstones (\`deletes: tombstones\`) and the snapshot follow the
same rule.

\`feedback snapshot\` and \`feedback sync\` do this themselves.

\`comments\`, \`transparency_reviews\` and \`entity_ratings\` are read by entity: the persons, locations and roll-ups
that \`entities\` in the config names, and with \`entities.from_reviews\` those that reviews name (if no selected stream
is made of reviews, the source searches them once, and later only the new ones).

1. Each entity has its own cursor, and each run goes back \`feedback_lookback_days\` from it (at least a day), because a
   late response does not change the time of a row; the rows are sent only if one of them is new or has changed.
2. Up to 50 entities are asked for together, and those that one answer does not have completely are read one by one, in
   steps of time that fit a page; only a service that ignores \`fromDate\` and \`toDate\` is read page by page, by
   \`scrollKey\` or \`page\`, until two readings agree.
3. We promise every row that is there during the whole run, if the service applies the dates, or if its keys or pages
   lead to the end.
4. Where that cannot be shown, a warning names the entity and what was seen, its state stays where it is, the other
   entities are read, and the next run asks again; a full refresh ends INCOMPLETE then, since it would delete the
   entity's rows.
5. We don't promise deletions, of which the service does not tell here (a deleted comment stays in the warehouse until
   the stream is refreshed), and rows older than the days in which a service answers, which a warning tells.
`

it('docs/streams.md shows every stream with its attributes and an example', async () => {
  const until = Date.parse('2026-01-01T00:00:00Z')
  const sandbox = await startSandbox({ reviews: 200, until, now: () => until + 3_600_000 })
  onTestFinished(() => sandbox.close())
  const source = createSourceEnv(sandbox.api, { now: () => until + 3_600_000, entities: locationsFromReviews })
  const audited = addSyncAudit(streams.filter(({ name }) => name !== 'sync_audit'))
  const { records } = await readAll({ ...source, auditLedger: createAuditLedger() }, audited)
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
