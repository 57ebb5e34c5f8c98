import { quoteIdentifier } from '../store/database'
import {
  type Check,
  failureTextSql,
  hasColumns,
  hasTypedColumn,
  keyTextSql,
  type SnapshotStream,
  type SnapshotStreams,
} from './check'

const isEntityStream = (stream: SnapshotStream): boolean => hasColumns(stream, 'entityType', 'entityId')
const entityTextSql = `'entity ' || "entityType" || ' ' || "entityId"`

/** The JSON paths of the ratings in each attribute that has ratings. */
const ratingPaths = [
  ['overallRating', ['$.value', '$.questionRatings[*].value']],
  ['ratings', ['$[*].value', '$[*].questionRatings[*].value']],
] as const

/** The list of numbers at a path. A value that `privacy` has hashed is not a number and becomes null. */
const numbersAtPathSql = (column: string, path: string): string =>
  `list_transform(${path.includes('*') ? `json_extract(${quoteIdentifier(column)}, '${path}')` : `[json_extract(${quoteIdentifier(column)}, '${path}')]`}, lambda value: TRY_CAST(value AS DOUBLE))`

/** The checks of the feedback on persons, locations and roll-up entities. */
export const feedbackChecks = (all: SnapshotStreams): ReadonlyArray<Check> => {
  const streams = all.filter(isEntityStream)
  const find = (name: string) => streams.find((stream) => stream.name === name)
  const [comments, ratings] = [find('comments'), find('entity_ratings')]
  const tablesOf = (some: SnapshotStreams) => some.map(({ name }) => quoteIdentifier(name))
  const rated = streams.flatMap((stream) =>
    ratingPaths.flatMap(([column, paths]) =>
      hasTypedColumn(stream, column, 'JSON') ? [{ stream, column, paths }] : [],
    ),
  )
  const named = streams.filter((stream) => hasColumns(stream, 'entityName'))
  return [
    {
      name: 'ratings of feedback',
      explain: 'Every rating of a comment, of a public review and of an entity is from 0 to 5.',
      queries: rated.flatMap(({ stream, column, paths }) =>
        paths.map(
          (path) => `
      SELECT ${failureTextSql(stream.name, `${keyTextSql(stream.key)} || ' has a rating ' || value`)}
      FROM (SELECT *, unnest(${numbersAtPathSql(column, path)}) AS value FROM ${quoteIdentifier(stream.name)}) WHERE NOT value BETWEEN 0 AND 5`,
        ),
      ),
      subjects: rated.map(
        ({ stream, column }) => `(FROM ${quoteIdentifier(stream.name)} WHERE ${quoteIdentifier(column)} IS NOT NULL)`,
      ),
    },
    {
      name: 'entities have names',
      explain:
        'The service has a name for every entity. An entity without one may not exist: check its id under entities in the config.',
      queries: named.map(
        ({ name }) => `
      SELECT DISTINCT ${failureTextSql(name, entityTextSql)} FROM ${quoteIdentifier(name)} WHERE coalesce("entityName", '') = ''`,
      ),
      subjects: tablesOf(named),
      obstacle: named
        .filter((stream) => !hasTypedColumn(stream, 'entityName', 'VARCHAR'))
        .map(({ name }) => `${name}.entityName is no text, so names cannot be looked for in it.`)
        .at(0),
    },
    {
      name: 'entities with feedback have ratings',
      explain:
        'Every entity with comments or public reviews has a row in entity_ratings, unless the config no longer lists the entity.',
      note: true,
      queries:
        ratings === undefined
          ? []
          : streams
              .filter((stream) => stream !== ratings)
              .map(
                ({ name }) => `
      SELECT DISTINCT ${failureTextSql(name, entityTextSql)} FROM ${quoteIdentifier(name)} ANTI JOIN entity_ratings USING ("entityType", "entityId")`,
              ),
      subjects: tablesOf(streams.filter((stream) => stream !== ratings)),
    },
    {
      name: 'entities with ratings have comments',
      explain:
        'Every entity for which the service counts comments has comments here, unless they are older than start_date or feedback_filters leaves them out.',
      note: true,
      queries:
        comments === undefined || ratings === undefined || !hasColumns(ratings, 'totalCommentCount')
          ? []
          : [
              `
      SELECT ${failureTextSql('entity_ratings', `${entityTextSql} || ' counts ' || "totalCommentCount" || ' comments, none is here'`)}
      FROM entity_ratings ANTI JOIN comments USING ("entityType", "entityId") WHERE "totalCommentCount" > 0`,
            ],
      subjects: [`(FROM entity_ratings WHERE "totalCommentCount" > 0)`],
    },
  ]
}
