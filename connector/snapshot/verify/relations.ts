import { quoteIdentifier, quoteLiteral } from '../store/database'
import { deletionsTableName, hasTombstonesSql, reviewsTableName } from '../store/tables'
import { type Check, failureTextSql, keyTextSql } from './check'
import {
  type CheckedFile,
  hasColumns,
  hasTypedColumn,
  type SnapshotStream,
  type SnapshotStreams,
  tablesOf,
} from './checked-file'
import { childSources, expectedChildrenSql, lastCursorSql, missingChildrenSql } from './children'

/** The checks between reviews, their deletions, their children and their lookups. */
export const relationChecks: ReadonlyArray<Check> = [
  {
    name: 'deletions are applied',
    explain: 'No review is in the file that is older than its deletion.',
    queries: (file) =>
      findReviews(file) !== undefined && findStream(file, deletionsTableName) !== undefined
        ? [unappliedDeletionsSql]
        : [],
    subjects: () => [deletionsTableName],
  },
  {
    name: 'tombstones are applied',
    explain: 'No tombstone is among the reviews.',
    queries: (file) => tombstonesSql(findReviews(file)),
    subjects: () => [reviewsTableName],
  },
  {
    name: 'children have their review',
    explain: 'Every row with a reviewId has its review, up to the time to which reviews were read.',
    queries: (file) => listChildren(file).map(orphansSql),
    subjects: (file) => tablesOf(listChildren(file)),
  },
  {
    name: "children match their review's version",
    explain: 'No row with a reviewId belongs to an older version of its review.',
    queries: (file) => listChildren(file).map(oldChildrenSql),
    subjects: (file) => tablesOf(listChildren(file)),
  },
  {
    name: 'children are complete',
    explain:
      'Every content, sentiment, liability, task and engagement of a review is in its own table, up ' +
      'to the state of that table. If not, read that stream again with --select and --full-refresh.',
    queries: (file) => listExpectedChildren(file).map(missingChildrenSql),
    subjects: (file) => listExpectedChildren(file).map((child) => `(${expectedChildrenSql(child)})`),
  },
  {
    name: 'lookups are complete',
    explain:
      'The location, provider and source of each review are in their own tables, up to the ' +
      'time to which these were read. Sources that the service listed itself may be others.',
    queries: (file) => listLookups(file).map(missingLookupsSql),
    subjects: (file) =>
      listLookups(file).map(
        ([attribute]) => `(FROM ${reviewsTableName} WHERE ${quoteIdentifier(attribute)} IS NOT NULL)`,
      ),
  },
]

const findStream = ({ streams }: CheckedFile, name: string): SnapshotStream | undefined =>
  streams.find((stream) => stream.name === name && hasColumns(stream, 'id'))

const findReviews = (file: CheckedFile): SnapshotStream | undefined => findStream(file, reviewsTableName)

const unappliedDeletionsSql = `
      SELECT ${failureTextSql(reviewsTableName, `'id ' || review.id || ' was deleted at ' || deletion."modifiedTime"`)}
      FROM ${reviewsTableName} AS review JOIN ${deletionsTableName} AS deletion ON deletion.id = review.id
      WHERE review."modifiedTime" < deletion."modifiedTime"`

const tombstonesSql = (reviews: SnapshotStream | undefined): ReadonlyArray<string> => {
  const tombstone = reviews && hasTombstonesSql(reviews, 'review')
  return tombstone === undefined
    ? []
    : [
        `
      SELECT ${failureTextSql(reviewsTableName, `'id ' || id`)} FROM ${reviewsTableName} AS review WHERE ${tombstone}`,
      ]
}

/** The streams of parts of a review; none in a file without reviews. */
const listChildren = (file: CheckedFile): SnapshotStreams =>
  findReviews(file) === undefined
    ? []
    : file.streams.filter((stream) => hasColumns(stream, 'reviewId', 'reviewModifiedTime'))

const orphansSql = ({ name, key }: SnapshotStream): string => `
      SELECT ${failureTextSql(name, keyTextSql(key))}
      FROM ${quoteIdentifier(name)} AS child
      WHERE NOT EXISTS (SELECT 1 FROM ${reviewsTableName} AS review WHERE review.id = child."reviewId")
        AND child."reviewModifiedTime" <= ${lastCursorSql(reviewsTableName)}`

const oldChildrenSql = ({ name, key }: SnapshotStream): string => `
      SELECT ${failureTextSql(name, keyTextSql(key, 'child.'))}
      FROM ${quoteIdentifier(name)} AS child JOIN ${reviewsTableName} AS review ON review.id = child."reviewId"
      WHERE child."reviewModifiedTime" < review."modifiedTime"`

const listExpectedChildren = (file: CheckedFile): typeof childSources => {
  const reviews = findReviews(file)
  return childSources.filter(({ stream, attribute, keys }) => {
    const child = listChildren(file).find(({ name }) => name === stream)
    return (
      reviews !== undefined &&
      child !== undefined &&
      hasTypedColumn(reviews, attribute, 'JSON') &&
      ['reviewId', ...Object.keys(keys)].every((key) => hasTypedColumn(child, key, 'BIGINT'))
    )
  })
}

/** An attribute of a review, and the stream that lists its distinct values. */
type Lookup = readonly [attribute: string, list: string]

const lookupStreams: ReadonlyArray<Lookup> = [
  ['location', 'locations'],
  ['provider', 'providers'],
  ['source', 'sources'],
]

const listLookups = (file: CheckedFile): ReadonlyArray<Lookup> => {
  const reviews = findReviews(file)
  return lookupStreams.filter(([attribute, list]) => {
    const stream = findStream(file, list)
    return (
      reviews !== undefined &&
      stream !== undefined &&
      hasTypedColumn(reviews, attribute, 'JSON') &&
      hasTypedColumn(stream, 'id', 'BIGINT')
    )
  })
}

/** A list from the service has nothing missing: the service may list anything, whatever the reviews name. */
const missingLookupsSql = ([attribute, list]: Lookup): string => `
      SELECT DISTINCT ${failureTextSql(list, `'id ' || id || ' is missing'`)}
      FROM (
        SELECT TRY_CAST(${quoteIdentifier(attribute)}->>'$.id' AS BIGINT) AS id, "modifiedTime" AS time
        FROM ${reviewsTableName})
      WHERE id NOT IN (SELECT id FROM ${quoteIdentifier(list)} WHERE id IS NOT NULL)
        AND time <= ${lastCursorSql(list)}
        AND NOT EXISTS (
          SELECT 1 FROM _state WHERE stream = ${quoteLiteral(list)} AND (state->>'$.readAt') IS NOT NULL)`
