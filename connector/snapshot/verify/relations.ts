import { quoteIdentifier, quoteLiteral } from '../store/database'
import { deletionsTableName, findTombstoneColumn, reviewsTableName } from '../store/tables'
import {
  type Check,
  failureTextSql,
  hasColumns,
  keyTextSql,
  type SnapshotStream,
  type SnapshotStreams,
  unionSql,
} from './check'

/** The newest cursor that a stream's loads received; later rows may be missing. */
const lastCursorSql = (stream: string) =>
  `(SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream = ${quoteLiteral(stream)})`

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
  return [
    {
      name: 'deletions are applied',
      explain: 'No review is in the file that was read before its deletion and is older than it.',
      sql: reviews !== undefined && find(deletionsTableName) !== undefined ? unappliedDeletionsSql() : undefined,
    },
    {
      name: 'tombstones are applied',
      explain: 'No tombstone is among the reviews.',
      sql: reviews === undefined ? undefined : tombstonesSql(reviews),
    },
    {
      name: 'children have their review',
      explain: 'Every row with a reviewId has its review, up to the time to which reviews were read.',
      sql: unionSql(
        reviewChildren.map(
          ({ name, key }) => `
      SELECT ${failureTextSql(name, keyTextSql(key))} FROM ${quoteIdentifier(name)} AS child
      WHERE NOT EXISTS (SELECT 1 FROM ${reviewsTableName} AS review WHERE review.id = child."reviewId")
        AND child."reviewModifiedTime" <= ${lastCursorSql(reviewsTableName)}`,
        ),
      ),
    },
    {
      name: "children match their review's version",
      explain: 'No row with a reviewId belongs to an older version of its review.',
      sql: unionSql(
        reviewChildren.map(
          ({ name, key }) => `
      SELECT ${failureTextSql(name, keyTextSql(key, 'child.'))} FROM ${quoteIdentifier(name)} AS child JOIN ${reviewsTableName} AS review ON review.id = child."reviewId"
      WHERE child."reviewModifiedTime" < review."modifiedTime"`,
        ),
      ),
    },
    {
      name: 'lookups are complete',
      explain:
        'The location, provider and source of each review are in their own tables, up to the time to which these were read.',
      sql: unionSql(
        lookupStreamsByAttribute.flatMap(([attribute, list]) =>
          reviews?.columns.some(({ name, type }) => name === attribute && type === 'JSON') === true &&
          find(list) !== undefined
            ? [
                `
      SELECT DISTINCT ${failureTextSql(list, `'id ' || id || ' is missing'`)}
      FROM (SELECT TRY_CAST(${quoteIdentifier(attribute)}->>'$.id' AS BIGINT) AS id, "modifiedTime" AS time FROM ${reviewsTableName})
      WHERE id NOT IN (SELECT id FROM ${quoteIdentifier(list)} WHERE id IS NOT NULL) AND time <= ${lastCursorSql(list)}`,
              ]
            : [],
        ),
      ),
    },
  ]
}

const unappliedDeletionsSql = (): string => `
      SELECT ${failureTextSql(reviewsTableName, `'id ' || review.id || ' was deleted at ' || deletion."modifiedTime"`)}
      FROM ${reviewsTableName} AS review JOIN ${deletionsTableName} AS deletion ON deletion.id = review.id
      WHERE review."modifiedTime" < deletion."modifiedTime" AND review._airbyte_extracted_at < deletion._airbyte_extracted_at`

const tombstonesSql = (reviews: SnapshotStream): string | undefined => {
  const tombstone = findTombstoneColumn(reviews)
  return tombstone === undefined
    ? undefined
    : `
      SELECT ${failureTextSql(reviewsTableName, `'id ' || id`)} FROM ${reviewsTableName} WHERE ${quoteIdentifier(tombstone)} IS NOT NULL`
}
