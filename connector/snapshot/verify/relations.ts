import { quoteIdentifier, quoteLiteral } from '../store/database'
import { forgottenRowsSql, forgottenTableName, toPersonRows } from '../store/forgotten'
import { deletionsTableName, hasTombstonesSql, historyTableName, reviewsTableName } from '../store/tables'
import {
  type Check,
  failureTextSql,
  hasColumns,
  hasTypedColumn,
  keyTextSql,
  type SnapshotStream,
  type SnapshotStreams,
} from './check'
import { savedCursorSql } from './loads'

/** The newest cursor that a stream's loads received; later rows may be missing. */
const lastCursorSql = (stream: string) =>
  `(SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream = ${quoteLiteral(stream)})`

/** Whether a stream's last state is that of a lookup: the service lists what it likes, whatever the reviews name. */
const isLookedUpSql = (stream: string) =>
  `EXISTS (SELECT 1 FROM _state WHERE stream = ${quoteLiteral(stream)} AND (state->>'$.readAt') IS NOT NULL)`

/** The stream that lists the distinct values of a review's attribute. */
const lookupStreamsByAttribute = [
  ['location', 'locations'],
  ['provider', 'providers'],
  ['source', 'sources'],
] as const

/** The checks between reviews, their deletions, their children and their lookups. */
export const relationChecks = (streams: SnapshotStreams): ReadonlyArray<Check> => {
  const find = (name: string) => streams.find((stream) => stream.name === name && hasColumns(stream, 'id'))
  const reviews = find(reviewsTableName)
  const children = streams.filter((stream) => hasColumns(stream, 'reviewId', 'reviewModifiedTime'))
  const reviewChildren = reviews === undefined ? [] : children
  const lookups = lookupStreamsByAttribute.filter(([attribute, list]) => {
    const stream = find(list)
    return (
      reviews !== undefined &&
      hasTypedColumn(reviews, attribute, 'JSON') &&
      stream !== undefined &&
      hasTypedColumn(stream, 'id', 'BIGINT')
    )
  })
  const expectedChildren = childSources.filter(
    ({ stream, attribute, keys }) =>
      reviews !== undefined &&
      hasTypedColumn(reviews, attribute, 'JSON') &&
      reviewChildren.some(
        (child) =>
          child.name === stream &&
          ['reviewId', ...Object.keys(keys)].every((key) => hasTypedColumn(child, key, 'BIGINT')),
      ),
  )
  return [
    {
      name: 'deletions are applied',
      explain: 'No review is in the file that is older than its deletion.',
      queries: reviews !== undefined && find(deletionsTableName) !== undefined ? [unappliedDeletionsSql()] : [],
      subjects: [deletionsTableName],
    },
    {
      name: 'tombstones are applied',
      explain: 'No tombstone is among the reviews.',
      queries: reviews === undefined ? [] : tombstonesSql(reviews),
      subjects: [reviewsTableName],
    },
    {
      name: 'children have their review',
      explain: 'Every row with a reviewId has its review, up to the time to which reviews were read.',
      queries: reviewChildren.map(
        ({ name, key }) => `
      SELECT ${failureTextSql(name, keyTextSql(key))} FROM ${quoteIdentifier(name)} AS child
      WHERE NOT EXISTS (SELECT 1 FROM ${reviewsTableName} AS review WHERE review.id = child."reviewId")
        AND child."reviewModifiedTime" <= ${lastCursorSql(reviewsTableName)}`,
      ),
      subjects: reviewChildren.map(({ name }) => quoteIdentifier(name)),
    },
    {
      name: "children match their review's version",
      explain: 'No row with a reviewId belongs to an older version of its review.',
      queries: reviewChildren.map(
        ({ name, key }) => `
      SELECT ${failureTextSql(name, keyTextSql(key, 'child.'))} FROM ${quoteIdentifier(name)} AS child JOIN ${reviewsTableName} AS review ON review.id = child."reviewId"
      WHERE child."reviewModifiedTime" < review."modifiedTime"`,
      ),
      subjects: reviewChildren.map(({ name }) => quoteIdentifier(name)),
    },
    {
      name: 'children are complete',
      explain:
        'Every content, sentiment, liability, task and engagement of a review is in its own table, up ' +
        'to the state of that table. If not, read that stream again with --select and --full-refresh.',
      queries: expectedChildren.map(missingChildrenSql),
      subjects: expectedChildren.map((child) => `(${expectedChildrenSql(child)})`),
    },
    {
      name: 'lookups are complete',
      explain:
        'The location, provider and source of each review are in their own tables, up to the ' +
        'time to which these were read. Sources that the service listed itself may be others.',
      queries: lookups.map(
        ([attribute, list]) => `
      SELECT DISTINCT ${failureTextSql(list, `'id ' || id || ' is missing'`)}
      FROM (SELECT TRY_CAST(${quoteIdentifier(attribute)}->>'$.id' AS BIGINT) AS id, "modifiedTime" AS time FROM ${reviewsTableName})
      WHERE id NOT IN (SELECT id FROM ${quoteIdentifier(list)} WHERE id IS NOT NULL) AND time <= ${lastCursorSql(list)}
        AND NOT ${isLookedUpSql(list)}`,
      ),
      subjects: lookups.map(
        ([attribute]) => `(FROM ${reviewsTableName} WHERE ${quoteIdentifier(attribute)} IS NOT NULL)`,
      ),
    },
  ]
}

/** The check that what was erased on request has stayed away. The file has tombstones. */
export const forgottenCheck = (streams: SnapshotStreams): Check => ({
  name: 'what was forgotten is gone',
  explain:
    'No row, and no older version of one, is of someone whom feedback forget has ' +
    'erased. If one is, it was written by hand: run feedback forget again with the id.',
  queries: streams.flatMap(({ name, columns, history, versions }) => {
    const where = forgottenRowsSql(toPersonRows(name, columns))
    return where === undefined
      ? []
      : [versions ?? name, ...(history ? [historyTableName(name)] : [])].map(
          (table) =>
            `SELECT ${failureTextSql(table, `count(*) || ' rows'`)} FROM ${quoteIdentifier(table)} AS t WHERE ${where} HAVING count(*) > 0`,
        )
  }),
  subjects: [forgottenTableName],
})

/** Where the rows of a stream come from within a review. */
type ChildSource = {
  readonly stream: string
  readonly attribute: string
  /** Selects the review's columns and one row for each element. */
  readonly elements: string
  /** The key of a row beside `reviewId`: for each column its value in SQL. */
  readonly keys: Readonly<Record<string, string>>
}

/**
 * The contents of each review, as much of them as `members` says: DuckDB unnests values of a type far faster than JSON
 * texts.
 */
const contentElements = (members: string): string =>
  `SELECT * EXCLUDE (contents), unnest(from_json(contents, '[{"id":"VARCHAR"${members}}]')) AS content FROM ${reviewsTableName}`

const contentMembers = (list: string, id: string) =>
  `SELECT *, unnest(content.${list}) AS element FROM (${contentElements(`,"${list}":[{"${id}":"VARCHAR"}]`)})`

const childSources: ReadonlyArray<ChildSource> = [
  { stream: 'review_contents', attribute: 'contents', elements: contentElements(''), keys: { id: 'content.id' } },
  {
    stream: 'review_sentiments',
    attribute: 'contents',
    elements: contentMembers('sentiments', 'id'),
    keys: { contentId: 'content.id', id: 'element.id' },
  },
  {
    stream: 'review_liabilities',
    attribute: 'contents',
    elements: contentMembers('liabilities', 'liabilityId'),
    keys: { contentId: 'content.id', liabilityId: 'element.liabilityId' },
  },
  {
    stream: 'review_tasks',
    attribute: 'taskDetails',
    elements: `FROM ${reviewsTableName} WHERE json_type("taskDetails") = 'OBJECT'`,
    keys: {},
  },
  {
    stream: 'review_engagements',
    attribute: 'engagements',
    elements: `SELECT *, unnest(range(json_array_length(engagements)::BIGINT)) AS place FROM ${reviewsTableName}`,
    keys: { position: 'place' },
  },
]

/**
 * The keys that the rows of a child stream must have, from the reviews that the stream has certainly read: not older
 * than its first record, not newer than its state, and in the file when its last complete load ended.
 */
const expectedChildrenSql = ({ stream, elements, keys }: ChildSource): string => {
  const name = quoteLiteral(stream)
  return `SELECT review_id, ${Object.keys(keys)
    .map((key) => `${quoteIdentifier(key)}, `)
    .join('')}time
      FROM (
        SELECT id AS review_id, "modifiedTime" AS time, _airbyte_extracted_at AS read${Object.entries(keys)
          .map(([key, value]) => `, TRY_CAST(${value} AS BIGINT) AS ${quoteIdentifier(key)}`)
          .join('')}
        FROM (${elements}))
      WHERE time >= coalesce((SELECT min(cursor_from::TIMESTAMPTZ) FROM _loads WHERE stream = ${name}), '-infinity')
        AND time <= coalesce(${savedCursorSql(stream)}, ${lastCursorSql(stream)})
        AND read <= (SELECT max(ended) FROM _loads WHERE stream = ${name} AND status = 'complete')${Object.keys(keys)
          .map((key) => ` AND ${quoteIdentifier(key)} IS NOT NULL`)
          .join('')}`
}

const missingChildrenSql = (source: ChildSource): string => {
  const keys = Object.keys(source.keys).map(quoteIdentifier)
  const text = ['review_id', ...keys].map(
    (key) => `${quoteLiteral(` ${key.replaceAll('"', '').replace('review_id', 'reviewId')} `)} || ${key}`,
  )
  return `
      SELECT DISTINCT ${failureTextSql(source.stream, `ltrim(${text.join(' || ')}) || ' is missing'`)}
      FROM (${expectedChildrenSql(source)}) AS expected
      WHERE NOT EXISTS (
        SELECT 1 FROM ${quoteIdentifier(source.stream)} AS child
        WHERE child."reviewId" = expected.review_id${keys.map((key) => ` AND child.${key} = expected.${key}`).join('')})`
}

const unappliedDeletionsSql = (): string => `
      SELECT ${failureTextSql(reviewsTableName, `'id ' || review.id || ' was deleted at ' || deletion."modifiedTime"`)}
      FROM ${reviewsTableName} AS review JOIN ${deletionsTableName} AS deletion ON deletion.id = review.id
      WHERE review."modifiedTime" < deletion."modifiedTime"`

const tombstonesSql = (reviews: SnapshotStream): ReadonlyArray<string> => {
  const tombstone = hasTombstonesSql(reviews, 'review')
  return tombstone === undefined
    ? []
    : [
        `
      SELECT ${failureTextSql(reviewsTableName, `'id ' || id`)} FROM ${reviewsTableName} AS review WHERE ${tombstone}`,
      ]
}
