import { quoteIdentifier } from '../store/database'
import { type Check, failureTextSql, keyTextSql } from './check'
import {
  type CheckedFile,
  hasColumns,
  hasTypedColumn,
  type SnapshotStream,
  type SnapshotStreams,
  tablesOf,
} from './checked-file'

/** The checks of the feedback on entities: persons, locations and roll-ups. */
export const entityChecks: ReadonlyArray<Check> = [
  {
    name: 'ratings of feedback',
    explain: 'Every rating of a comment, of a public review and of an entity is from 0 to 5.',
    queries: (file) => listRated(file).flatMap(wrongRatingsSql),
    subjects: (file) =>
      listRated(file).map(
        ({ stream, column }) => `(FROM ${quoteIdentifier(stream.name)} WHERE ${quoteIdentifier(column)} IS NOT NULL)`,
      ),
  },
  {
    name: 'entities have names',
    explain:
      'The service has a name for every entity. An entity without ' +
      'one may not exist: check its id under entities in the config.',
    queries: (file) =>
      listNamed(file).map(
        ({ name }) => `
      SELECT DISTINCT ${failureTextSql(name, entityTextSql)}
      FROM ${quoteIdentifier(name)} WHERE coalesce("entityName", '') = ''`,
      ),
    subjects: (file) => tablesOf(listNamed(file)),
    obstacle: (file) =>
      listNamed(file)
        .filter((stream) => !hasTypedColumn(stream, 'entityName', 'VARCHAR'))
        .map(({ name }) => `${name}.entityName is not text, so names cannot be checked.`)
        .at(0),
  },
  {
    name: 'entities with feedback have ratings',
    explain:
      'Every entity with comments or public reviews has a row in ' +
      'entity_ratings, unless the config no longer lists the entity.',
    note: true,
    queries: (file) =>
      findEntityStream(file, 'entity_ratings') === undefined
        ? []
        : listFeedback(file).map(
            ({ name }) => `
      SELECT DISTINCT ${failureTextSql(name, entityTextSql)}
      FROM ${quoteIdentifier(name)} ANTI JOIN entity_ratings USING ("entityType", "entityId")`,
          ),
    subjects: (file) => tablesOf(listFeedback(file)),
  },
  {
    name: 'entities with ratings have comments',
    explain:
      'Every entity for which the service counts comments has comments here, ' +
      'unless they are older than start_date or feedback_filters leaves them out.',
    note: true,
    queries: (file) => {
      const ratings = findEntityStream(file, 'entity_ratings')
      return findEntityStream(file, 'comments') === undefined ||
        ratings === undefined ||
        !hasColumns(ratings, 'totalCommentCount')
        ? []
        : [entitiesWithoutCommentsSql]
    },
    subjects: () => [`(FROM entity_ratings WHERE "totalCommentCount" > 0)`],
  },
]

const listEntityStreams = ({ streams }: CheckedFile): SnapshotStreams =>
  streams.filter((stream) => hasColumns(stream, 'entityType', 'entityId'))

const findEntityStream = (file: CheckedFile, name: string): SnapshotStream | undefined =>
  listEntityStreams(file).find((stream) => stream.name === name)

const listNamed = (file: CheckedFile): SnapshotStreams =>
  listEntityStreams(file).filter((stream) => hasColumns(stream, 'entityName'))

const listFeedback = (file: CheckedFile): SnapshotStreams =>
  listEntityStreams(file).filter(({ name }) => name !== 'entity_ratings')

const entityTextSql = `'entity ' || "entityType" || ' ' || "entityId"`

const entitiesWithoutCommentsSql = `
      SELECT ${failureTextSql(
        'entity_ratings',
        `${entityTextSql} || ' counts ' || "totalCommentCount" || ' comments, none is here'`,
      )}
      FROM entity_ratings ANTI JOIN comments USING ("entityType", "entityId") WHERE "totalCommentCount" > 0`

/** The JSON paths of the ratings in each attribute that has some. */
const ratingPaths: ReadonlyArray<readonly [column: string, paths: ReadonlyArray<string>]> = [
  ['overallRating', ['$.value', '$.questionRatings[*].value']],
  ['ratings', ['$[*].value', '$[*].questionRatings[*].value']],
]

type Rated = { readonly stream: SnapshotStream; readonly column: string; readonly paths: ReadonlyArray<string> }

const listRated = (file: CheckedFile): ReadonlyArray<Rated> =>
  listEntityStreams(file).flatMap((stream) =>
    ratingPaths.flatMap(([column, paths]) =>
      hasTypedColumn(stream, column, 'JSON') ? [{ stream, column, paths }] : [],
    ),
  )

const wrongRatingsSql = ({ stream: { name, key }, column, paths }: Rated): ReadonlyArray<string> =>
  paths.map(
    (path) => `
      SELECT ${failureTextSql(name, `${keyTextSql(key)} || ' has a rating ' || value`)}
      FROM (SELECT *, unnest(${numbersAtPathSql(column, path)}) AS value FROM ${quoteIdentifier(name)})
      WHERE NOT value BETWEEN 0 AND 5`,
  )

/** The list of numbers at a path. A value that `privacy` has hashed is not a number and becomes null. */
const numbersAtPathSql = (column: string, path: string): string => {
  const found = `json_extract(${quoteIdentifier(column)}, '${path}')`
  return `list_transform(${path.includes('*') ? found : `[${found}]`}, lambda value: TRY_CAST(value AS DOUBLE))`
}
