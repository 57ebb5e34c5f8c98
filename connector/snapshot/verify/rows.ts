import type { JsonSchema } from '../../cdk'
import { quoteIdentifier, quoteLiteral } from '../store/database'
import { historyCountName } from '../store/metadata'
import { type Column, columnsFromSchema, fingerprintSql, historyTableName } from '../store/tables'
import {
  type Check,
  failureTextSql,
  findCursorObstacle,
  hasColumns,
  hasTypedColumn,
  keyTextSql,
  type SnapshotStream,
  type SnapshotStreams,
} from './check'

/** The attributes that hold a rating or a score, in whatever stream. */
const scoreColumns: ReadonlyArray<string> = ['rating', 'reviewScore', 'score']

/** The checks of the rows of any stream. */
export const rowChecks = (all: SnapshotStreams): ReadonlyArray<Check> => {
  const streams = all.filter(({ columns }) => columns.length > 0)
  const keyedStreams = streams.filter((stream) => stream.key.length > 0 && hasColumns(stream, ...stream.key))
  const tablesOf = (some: SnapshotStreams) => some.map(({ name }) => quoteIdentifier(name))
  const scores = streams.flatMap(({ name, key, columns }) =>
    columns
      .filter((column) => column.type === 'DOUBLE' && scoreColumns.includes(column.name))
      .map((column) => ({ name, key, column })),
  )
  return [
    {
      name: 'column types',
      explain: 'Every declared attribute has a column of the type that its schema needs.',
      queries: all.flatMap(({ name, schema, columns }) =>
        columnsFromSchema(schema, columns).map(
          (column) => `
      SELECT ${failureTextSql(
        name,
        `${quoteLiteral(`${column.name} is `)} || coalesce(max(data_type), ` +
          `'missing') || ${quoteLiteral(`, not ${column.type}`)}`,
      )}
      FROM duckdb_columns() WHERE database_name = current_database() AND table_name = ${quoteLiteral(name)} AND column_name = ${quoteLiteral(column.name)}
      HAVING coalesce(max(data_type), '') <> ${quoteLiteral(column.type === 'TIMESTAMPTZ' ? 'TIMESTAMP WITH TIME ZONE' : column.type)}`,
        ),
      ),
      subjects: ['_streams'],
    },
    {
      name: 'undeclared attributes',
      explain:
        'Attributes that no schema declares are kept. Ask for a new ' +
        'version of the connector, or declare them in the catalog.',
      note: true,
      queries: streams.flatMap(({ name, schema, columns }) => [
        ...undeclaredColumnsSql(name, schema, columns),
        ...unknownAttributesSql(name, columns),
      ]),
      subjects: tablesOf(streams),
    },
    {
      name: 'keys are not null',
      explain: 'No attribute of a primary key is null.',
      queries: keyedStreams.map(
        ({ name, key }) => `
      SELECT ${failureTextSql(name, keyTextSql(key))} FROM ${quoteIdentifier(name)} WHERE ${key.map((column) => `${quoteIdentifier(column)} IS NULL`).join(' OR ')}`,
      ),
      subjects: tablesOf(keyedStreams),
    },
    {
      name: 'keys are unique',
      explain: 'Each primary key has one row only.',
      queries: keyedStreams.map(
        ({ name, key }) => `
      SELECT ${failureTextSql(name, `${keyTextSql(key)} || ' has ' || count(*) || ' rows'`)}
      FROM ${quoteIdentifier(name)} GROUP BY ${key.map(quoteIdentifier).join(', ')} HAVING count(*) > 1`,
      ),
      subjects: tablesOf(keyedStreams),
    },
    {
      name: 'values are unchanged',
      explain:
        'Each row still has the fingerprint it was written with (_airbyte_raw_id), ' +
        'and in a lake each version of one. If not, a value was changed afterwards.',
      queries: streams.map(
        (stream) => `
      SELECT ${failureTextSql(stream.name, stream.key.length === 0 ? '_airbyte_raw_id::VARCHAR' : keyTextSql(stream.key))}
      FROM ${quoteIdentifier(stream.versions ?? stream.name)} WHERE _airbyte_raw_id IS DISTINCT FROM ${fingerprintSql(stream.columns)}`,
      ),
      subjects: tablesOf(streams),
    },
    {
      name: 'histories are unchanged',
      explain:
        'Each older version of a row still has the fingerprint it was written with and its key, stands there ' +
        'once, and did not end before it began; none was removed. If not, the history was changed afterwards.',
      queries: streams.filter(({ history }) => history).flatMap(damagedHistorySql),
      subjects: streams.filter(({ history }) => history).map(({ name }) => quoteIdentifier(historyTableName(name))),
    },
    {
      name: 'cursors are within their loads',
      explain: 'No cursor is null, earlier than the first or later than the last one that a load received.',
      queries: streams.flatMap(({ name, key, cursor, columns }) => {
        const type = columns.find((column) => column.name === cursor)?.type
        if (cursor === undefined || type === undefined) return []
        const toMillisecondsSql = (value: string) =>
          type === 'TIMESTAMPTZ' ? `date_trunc('millisecond', ${value})` : value
        const cursorSql = `row_.${quoteIdentifier(cursor)}`
        return [
          `
      SELECT ${failureTextSql(
        name,
        `${keyTextSql(key, 'row_.')} || ${quoteLiteral(` has ${cursor} `)} ` +
          `|| coalesce(${cursorSql}::VARCHAR, 'null')`,
      )}
      FROM ${quoteIdentifier(name)} AS row_, (
        SELECT min(cursor_from::${type}) AS first, max(cursor_to::${type}) AS last FROM _loads WHERE stream = ${quoteLiteral(name)}) AS load_
      WHERE ${cursorSql} IS NULL OR ${cursorSql} < ${toMillisecondsSql('load_.first')} OR ${toMillisecondsSql(cursorSql)} > load_.last`,
        ]
      }),
      subjects: tablesOf(streams.filter(({ cursor }) => cursor !== undefined)),
      obstacle: findCursorObstacle(streams),
    },
    {
      name: 'ratings',
      explain: 'Each rating, reviewScore and score of a sentiment is from 0 to 5.',
      queries: scores.map(
        ({ name, key, column }) => `
      SELECT ${failureTextSql(name, `${keyTextSql(key)} || ${quoteLiteral(` has ${column.name} `)} || ${quoteIdentifier(column.name)}`)}
      FROM ${quoteIdentifier(name)} WHERE NOT ${quoteIdentifier(column.name)} BETWEEN 0 AND 5`,
      ),
      subjects: scores.map(
        ({ name, column }) => `(FROM ${quoteIdentifier(name)} WHERE ${quoteIdentifier(column.name)} IS NOT NULL)`,
      ),
    },
  ]
}

/**
 * A version may seem to end this much before its cursor, since the clocks of the service and of this machine may
 * differ.
 */
const historyTolerance = '1 day'

const damagedHistorySql = (stream: SnapshotStream): ReadonlyArray<string> => {
  const { name, key, cursor, columns } = stream
  const history = quoteIdentifier(historyTableName(name))
  const keyText = key.length === 0 ? '_airbyte_raw_id::VARCHAR' : keyTextSql(key)
  const rows = (text: string, where: string) => `
      SELECT ${failureTextSql(name, `${keyText} || ${quoteLiteral(` ${text}`)}`)} FROM ${history} WHERE ${where}`
  return [
    rows('has a changed version', `_airbyte_raw_id IS DISTINCT FROM ${fingerprintSql(columns)}`),
    ...(hasColumns(stream, ...key)
      ? key.map((column) => rows('has a version without its key', `${quoteIdentifier(column)} IS NULL`))
      : []),
    ...(cursor !== undefined && hasTypedColumn(stream, cursor, 'TIMESTAMPTZ')
      ? [
          rows(
            'has a version that ends before it begins',
            `_ended < ${quoteIdentifier(cursor)} - INTERVAL '${historyTolerance}'`,
          ),
        ]
      : []),
    `
      SELECT ${failureTextSql(name, `min(${keyText}) || ' has a version ' || count(*) || ' times'`)}
      FROM ${history} GROUP BY _airbyte_raw_id HAVING count(*) > 1`,
    `
      SELECT ${failureTextSql(name, `n || ' older versions, ' || saved || ' after the last load'`)}
      FROM (SELECT (SELECT count(*) FROM ${history}) AS n, (SELECT value::BIGINT FROM _meta WHERE name = ${quoteLiteral(historyCountName(name))}) AS saved)
      WHERE n <> saved`,
  ]
}

const undeclaredColumnsSql = (
  stream: string,
  schema: JsonSchema,
  columns: ReadonlyArray<Column>,
): ReadonlyArray<string> => {
  const declared = new Set(columnsFromSchema(schema, columns).map(({ name }) => name))
  return columns
    .filter(({ name }) => !declared.has(name))
    .map(
      ({ name }) => `
      SELECT ${quoteLiteral(`${stream}: ${name}`)} AS what`,
    )
}

/** The attributes that our own source collects in `unknown_attributes`. */
const unknownAttributesSql = (stream: string, columns: ReadonlyArray<Column>): ReadonlyArray<string> =>
  columns.some(({ name, type }) => name === 'unknown_attributes' && type === 'JSON')
    ? [
        `
      SELECT DISTINCT ${failureTextSql(stream, 'name')} FROM (SELECT unnest(json_keys(unknown_attributes)) AS name FROM ${quoteIdentifier(stream)})`,
      ]
    : []

const isEntityStream = (stream: SnapshotStream): boolean => hasColumns(stream, 'entityType', 'entityId')
const entityTextSql = `'entity ' || "entityType" || ' ' || "entityId"`

/** The JSON paths of the ratings in each attribute that has ratings. */
const ratingPaths = [
  ['overallRating', ['$.value', '$.questionRatings[*].value']],
  ['ratings', ['$[*].value', '$[*].questionRatings[*].value']],
] as const

/** The list of numbers at a path. A value that `privacy` has hashed is not a number and becomes null. */
const numbersAtPathSql = (column: string, path: string): string =>
  `list_transform(${path.includes('*') ? `json_extract(${quoteIdentifier(column)}, '${path}')` : `[json_extract(${quoteIdentifier(column)}, '${path}')]`}, ` +
  'lambda value: TRY_CAST(value AS DOUBLE))'

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
        'The service has a name for every entity. An entity without ' +
        'one may not exist: check its id under entities in the config.',
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
        'Every entity with comments or public reviews has a row in ' +
        'entity_ratings, unless the config no longer lists the entity.',
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
        'Every entity for which the service counts comments has comments here, ' +
        'unless they are older than start_date or feedback_filters leaves them out.',
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
