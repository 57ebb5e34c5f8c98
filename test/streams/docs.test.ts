import { expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'
import { streams } from '../../connector/streams/streams'
import { createSourceEnv, locationsFromReviews, readAll } from '../support/in-process'
import { formatStreamDoc } from '../support/streams-doc'

const sharedCosts =
  'nothing of its own: every selection of streams that are made of reviews costs the requests of `reviews` alone'

const descriptions: Readonly<Record<string, { readonly what: string; readonly costs: string }>> = {
  deleted_reviews: {
    what: 'Reviews that were deleted, by the id they were exported under (operation 7).',
    costs: 'a request a page of deletions since the cursor',
  },
  reviews: {
    what: 'Reviews that arrived or changed, each with its contents, sentiments, liabilities, task and engagements (operation 6).',
    costs: 'a request a page of reviews since the cursor, less the rows that pages share',
  },
  locations: { what: 'Locations that reviews name.', costs: sharedCosts },
  providers: { what: 'Providers (physicians) that reviews name.', costs: sharedCosts },
  sources: {
    what: 'Sources that reviews came from. With `lookups.sources` in the config it is what that operation answers instead: full refresh, its configured key as text and all else in one object `record`.',
    costs: `${sharedCosts}; one request if it is looked up`,
  },
  categories: {
    what: 'Categories and sub-categories of the sentiments in reviews. With `lookups.categories` in the config as `sources`.',
    costs: `${sharedCosts}; one request if it is looked up`,
  },
  review_contents: { what: 'Questions and responses of reviews, a row each.', costs: sharedCosts },
  review_sentiments: { what: 'Sentiments found in the responses, a row each.', costs: sharedCosts },
  review_liabilities: { what: 'Liabilities found in the responses, a row each.', costs: sharedCosts },
  review_tasks: { what: 'Closing-the-loop tasks of reviews.', costs: sharedCosts },
  review_engagements: { what: 'Messages sent to reviewers, in their order.', costs: sharedCosts },
  comments: {
    what: 'Comments under persons, locations and roll-up entities, with the answers given to them (operations 2 and 3).',
    costs:
      'one request for up to 50 entities whose comments since their cursor, less feedback_lookback_days, fit one page; two more for each time a window must be cut',
  },
  transparency_reviews: {
    what: 'Reviews under persons, locations and roll-up entities as the public sees them (operation 1).',
    costs:
      'one request an entity whose reviews since its cursor, less feedback_lookback_days, fit one page; two more a cut',
  },
  entity_ratings: {
    what: 'The summary of each entity: overall rating, ratings by category and how they are spread (operations 2 and 3).',
    costs: 'one request for up to 50 entities',
  },
}

const intro = `# Streams

Every stream that the source reads. This page is made from the codecs and held by a test. Types are those of the JSON
schemas in [catalog/](../catalog); every attribute but keys and cursor may be null or absent. Times are in UTC.

A child record carries the \`reviewModifiedTime\` of the version of its review that it was read from. When a review
changes, parts it no longer has are not sent again, and a warehouse still holds them. This leaves only the current ones:

\`\`\`sql
SELECT part.*
FROM review_sentiments AS part
JOIN reviews AS review ON review.id = part.reviewId AND review.modifiedTime = part.reviewModifiedTime
LEFT JOIN deleted_reviews AS gone ON gone.id = review.id AND gone.modifiedTime >= review.modifiedTime
WHERE gone.id IS NULL
\`\`\`

\`feedback snapshot\` and \`feedback sync\` do this themselves.

Whose feedback \`comments\`, \`transparency_reviews\` and \`entity_ratings\` read is said by \`entities\` in the config: ids of
persons, locations and roll-up entities, and with \`entities.from_reviews\` those that reviews name. If no selected stream is
made of reviews, these are searched once, and later only for what is new. Each entity has a cursor of its own in the state.
Rows up to \`feedback_lookback_days\` old are read again, since a response comes late and changes no time: where nothing
changed nothing is sent, else the entity's rows of that window are sent again, by their key. The service tells of no
deletions here: a comment that was taken away stays in the warehouse until the stream is refreshed.

`

it('docs/streams.md shows every stream with its attributes and an example', async () => {
  const until = Date.parse('2026-01-01T00:00:00Z')
  const sandbox = await startSandbox({ reviews: 200, until, now: () => until + 3_600_000 })
  onTestFinished(() => sandbox.close())
  const source = createSourceEnv(sandbox.api, { now: () => until + 3_600_000, entities: locationsFromReviews })
  const { records } = await readAll(source, streams)
  const pages = streams.map((stream) => {
    const description = descriptions[stream.name]
    if (description === undefined) throw new Error(`docs/streams.md does not say what ${stream.name} is`)
    return formatStreamDoc(stream as never, description, shortestExample(records[stream.name] ?? []))
  })
  await expect(`${intro}${pages.join('\n')}`).toMatchFileSnapshot('../../docs/streams.md')
})

/** The shortest of the records that have the most attributes. */
const shortestExample = (records: ReadonlyArray<Record<string, unknown>>): unknown => {
  const countAttributes = (record: Record<string, unknown>) => Object.keys(record).length
  const most = Math.max(0, ...records.map(countAttributes))
  const textLength = (record: Record<string, unknown>) =>
    JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? 0 : value)).length
  return records.filter((record) => countAttributes(record) === most).sort((a, b) => textLength(a) - textLength(b))[0]
}
