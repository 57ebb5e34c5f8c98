import { quoteIdentifier, quoteLiteral } from '../store/database'
import { reviewsTableName } from '../store/tables'
import { failureTextSql } from './check'
import { savedCursorSql } from './states'

/** The newest cursor that a stream's loads received. Later rows may be missing. */
export const lastCursorSql = (stream: string): string =>
  `(SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream = ${quoteLiteral(stream)})`

/** Where in a review the rows of a stream come from. */
type ChildSource = {
  readonly stream: string
  readonly attribute: string
  /** Selects the review's columns and one row for each element. */
  readonly elements: string
  /** The key of a row besides `reviewId`: the SQL value of each column. */
  readonly keys: Readonly<Record<string, string>>
}

/** The contents of each review, with the given members. DuckDB unnests typed values far faster than JSON texts. */
const contentElements = (members: string): string => `
          SELECT * EXCLUDE (contents), unnest(from_json(contents, '[{"id":"VARCHAR"${members}}]')) AS content
          FROM ${reviewsTableName}`

const contentMembers = (list: string, id: string): string => `
        SELECT *, unnest(content.${list}) AS element
        FROM (${contentElements(`,"${list}":[{"${id}":"VARCHAR"}]`)})`

export const childSources: ReadonlyArray<ChildSource> = [
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
export const expectedChildrenSql = ({ stream, elements, keys }: ChildSource): string => {
  const name = quoteLiteral(stream)
  const columns = Object.keys(keys).map(quoteIdentifier)
  const values = Object.entries(keys).map(([key, value]) => `TRY_CAST(${value} AS BIGINT) AS ${quoteIdentifier(key)}`)
  const conditions = [
    `time >= coalesce((SELECT min(cursor_from::TIMESTAMPTZ) FROM _loads WHERE stream = ${name}), '-infinity')`,
    `time <= coalesce(${savedCursorSql(stream)}, ${lastCursorSql(stream)})`,
    `read <= (SELECT max(ended) FROM _loads WHERE stream = ${name} AND status = 'complete')`,
    ...columns.map((column) => `${column} IS NOT NULL`),
  ]
  return `
      SELECT ${['review_id', ...columns, 'time'].join(', ')}
      FROM (
        SELECT ${['id AS review_id', '"modifiedTime" AS time', '_airbyte_extracted_at AS read', ...values].join(', ')}
        FROM (${elements}))
      WHERE ${conditions.join('\n        AND ')}`
}

export const missingChildrenSql = (source: ChildSource): string => {
  const keys = Object.keys(source.keys)
  const columns = ['review_id', ...keys.map(quoteIdentifier)]
  const text = ['reviewId', ...keys].map((key, i) => `${quoteLiteral(` ${key} `)} || ${columns[i]}`).join(' || ')
  const pairs = ['reviewId', ...keys].map((key, i) => `child.${quoteIdentifier(key)} = expected.${columns[i]}`)
  return `
      SELECT DISTINCT ${failureTextSql(source.stream, `ltrim(${text}) || ' is missing'`)}
      FROM (${expectedChildrenSql(source)}) AS expected
      WHERE NOT EXISTS (
        SELECT 1 FROM ${quoteIdentifier(source.stream)} AS child
        WHERE ${pairs.join(' AND ')})`
}
