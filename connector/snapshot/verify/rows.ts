import { quoteIdentifier, quoteLiteral } from '../store/database'
import { historyCountName } from '../store/metadata'
import { type Column, columnsFromSchema, fingerprintSql, historyTableName } from '../store/tables'
import { type Check, failureTextSql, keyTextSql } from './check'
import {
  type CheckedFile,
  findCursorObstacle,
  hasColumns,
  hasTypedColumn,
  type SnapshotStream,
  type SnapshotStreams,
  tablesOf,
} from './checked-file'

/** The checks of the rows of any stream. */
export const rowChecks: ReadonlyArray<Check> = [
  {
    name: 'column types',
    explain: 'Every declared attribute has a column of the type that its schema needs.',
    queries: ({ declared }) => declared.flatMap(wrongTypesSql),
    subjects: () => ['_streams'],
  },
  {
    name: 'undeclared attributes',
    explain:
      'Attributes that no schema declares are kept. Ask for a new ' +
      'version of the connector, or declare them in the catalog.',
    note: true,
    queries: ({ streams }) => streams.flatMap((stream) => [...undeclaredSql(stream), ...unknownAttributesSql(stream)]),
    subjects: ({ streams }) => tablesOf(streams),
  },
  {
    name: 'keys are not null',
    explain: 'No attribute of a primary key is null.',
    queries: (file) => listKeyed(file).map(nullKeysSql),
    subjects: (file) => tablesOf(listKeyed(file)),
  },
  {
    name: 'keys are unique',
    explain: 'Each primary key has one row only.',
    queries: (file) => listKeyed(file).map(repeatedKeysSql),
    subjects: (file) => tablesOf(listKeyed(file)),
  },
  {
    name: 'values are unchanged',
    explain:
      'Each row still has the fingerprint it was written with (_airbyte_raw_id), ' +
      'and in a lake each version of one. If not, a value was changed afterwards.',
    queries: ({ streams }) => streams.map(changedValuesSql),
    subjects: ({ streams }) => tablesOf(streams),
  },
  {
    name: 'histories are unchanged',
    explain:
      'Each older version of a row still has the fingerprint it was written with and its key, stands there ' +
      'once, and did not end before it began; none was removed. If not, the history was changed afterwards.',
    queries: ({ streams }) => streams.filter(({ history }) => history).flatMap(damagedHistorySql),
    subjects: ({ streams }) =>
      streams.filter(({ history }) => history).map(({ name }) => quoteIdentifier(historyTableName(name))),
  },
  {
    name: 'cursors are within their loads',
    explain: 'No cursor is null, earlier than the first or later than the last one that a load received.',
    queries: ({ streams }) => streams.flatMap(strayCursorsSql),
    subjects: ({ streams }) => tablesOf(streams.filter(({ cursor }) => cursor !== undefined)),
    obstacle: findCursorObstacle,
  },
  {
    name: 'ratings',
    explain: 'Each rating, reviewScore and score of a sentiment is from 0 to 5.',
    queries: (file) => listScores(file).map(wrongScoresSql),
    subjects: (file) =>
      listScores(file).map(
        ({ name, score }) => `(FROM ${quoteIdentifier(name)} WHERE ${quoteIdentifier(score)} IS NOT NULL)`,
      ),
  },
]

const listKeyed = ({ streams }: CheckedFile): SnapshotStreams =>
  streams.filter((stream) => stream.key.length > 0 && hasColumns(stream, ...stream.key))

const wrongTypesSql = ({ name, schema, columns }: SnapshotStream): ReadonlyArray<string> =>
  columnsFromSchema(schema, columns).map(({ name: column, type }) => {
    const text = `${quoteLiteral(`${column} is `)} || coalesce(max(data_type), 'missing')`
    return `
      SELECT ${failureTextSql(name, `${text} || ${quoteLiteral(`, not ${type}`)}`)}
      FROM duckdb_columns()
      WHERE database_name = current_database()
        AND table_name = ${quoteLiteral(name)} AND column_name = ${quoteLiteral(column)}
      HAVING coalesce(max(data_type), '')
        <> ${quoteLiteral(type === 'TIMESTAMPTZ' ? 'TIMESTAMP WITH TIME ZONE' : type)}`
  })

const undeclaredSql = ({ name: stream, schema, columns }: SnapshotStream): ReadonlyArray<string> => {
  const declared = new Set(columnsFromSchema(schema, columns).map(({ name }) => name))
  return columns
    .filter(({ name }) => !declared.has(name))
    .map(
      ({ name }) => `
      SELECT ${quoteLiteral(`${stream}: ${name}`)} AS what`,
    )
}

/** The attributes that our own source collects in `unknown_attributes`. */
const unknownAttributesSql = (stream: SnapshotStream): ReadonlyArray<string> =>
  hasTypedColumn(stream, 'unknown_attributes', 'JSON')
    ? [
        `
      SELECT DISTINCT ${failureTextSql(stream.name, 'name')}
      FROM (SELECT unnest(json_keys(unknown_attributes)) AS name FROM ${quoteIdentifier(stream.name)})`,
      ]
    : []

const nullKeysSql = ({ name, key }: SnapshotStream): string => `
      SELECT ${failureTextSql(name, keyTextSql(key))}
      FROM ${quoteIdentifier(name)}
      WHERE ${key.map((column) => `${quoteIdentifier(column)} IS NULL`).join(' OR ')}`

const repeatedKeysSql = ({ name, key }: SnapshotStream): string => `
      SELECT ${failureTextSql(name, `${keyTextSql(key)} || ' has ' || count(*) || ' rows'`)}
      FROM ${quoteIdentifier(name)} GROUP BY ${key.map(quoteIdentifier).join(', ')} HAVING count(*) > 1`

/** Describes the row of a stream that may have no key. */
const rowTextSql = ({ key }: SnapshotStream): string =>
  key.length === 0 ? '_airbyte_raw_id::VARCHAR' : keyTextSql(key)

const changedValuesSql = (stream: SnapshotStream): string => `
      SELECT ${failureTextSql(stream.name, rowTextSql(stream))}
      FROM ${quoteIdentifier(stream.versions ?? stream.name)}
      WHERE _airbyte_raw_id IS DISTINCT FROM ${fingerprintSql(stream.columns)}`

/** Compares a cursor as exactly as a load remembers it. */
const strayCursorsSql = ({ name, key, cursor, columns }: SnapshotStream): ReadonlyArray<string> => {
  const type = columns.find((column) => column.name === cursor)?.type
  if (cursor === undefined || type === undefined) return []
  const toMillisecondsSql = (value: string) => (type === 'TIMESTAMPTZ' ? `date_trunc('millisecond', ${value})` : value)
  const cursorSql = `row_.${quoteIdentifier(cursor)}`
  const text = `${quoteLiteral(` has ${cursor} `)} || coalesce(${cursorSql}::VARCHAR, 'null')`
  return [
    `
      SELECT ${failureTextSql(name, `${keyTextSql(key, 'row_.')} || ${text}`)}
      FROM ${quoteIdentifier(name)} AS row_, (
        SELECT min(cursor_from::${type}) AS first, max(cursor_to::${type}) AS last
        FROM _loads WHERE stream = ${quoteLiteral(name)}) AS load_
      WHERE ${cursorSql} IS NULL
        OR ${cursorSql} < ${toMillisecondsSql('load_.first')}
        OR ${toMillisecondsSql(cursorSql)} > load_.last`,
  ]
}

/** The attributes with a rating or a score, in any stream. */
const scoreColumns: ReadonlyArray<string> = ['rating', 'reviewScore', 'score']

const isScore = ({ name, type }: Column): boolean => type === 'DOUBLE' && scoreColumns.includes(name)

type Score = Pick<SnapshotStream, 'name' | 'key'> & { readonly score: string }

const listScores = ({ streams }: CheckedFile): ReadonlyArray<Score> =>
  streams.flatMap(({ name, key, columns }) =>
    columns.filter(isScore).map((column) => ({ name, key, score: column.name })),
  )

const wrongScoresSql = ({ name, key, score }: Score): string => {
  const column = quoteIdentifier(score)
  return `
      SELECT ${failureTextSql(name, `${keyTextSql(key)} || ${quoteLiteral(` has ${score} `)} || ${column}`)}
      FROM ${quoteIdentifier(name)} WHERE NOT ${column} BETWEEN 0 AND 5`
}

/**
 * A version may seem to end up to this long before its cursor, since the clocks of the service and of this machine may
 * differ.
 */
const historyTolerance = '1 day'

const damagedHistorySql = (stream: SnapshotStream): ReadonlyArray<string> => {
  const { name, key, cursor, columns } = stream
  const history = quoteIdentifier(historyTableName(name))
  const rows = (text: string, where: string) => `
      SELECT ${failureTextSql(name, `${rowTextSql(stream)} || ${quoteLiteral(` ${text}`)}`)}
      FROM ${history} WHERE ${where}`
  const ending = 'has a version that ends before it begins'
  return [
    rows('has a changed version', `_airbyte_raw_id IS DISTINCT FROM ${fingerprintSql(columns)}`),
    ...(hasColumns(stream, ...key)
      ? key.map((column) => rows('has a version without its key', `${quoteIdentifier(column)} IS NULL`))
      : []),
    ...(cursor !== undefined && hasTypedColumn(stream, cursor, 'TIMESTAMPTZ')
      ? [rows(ending, `_ended < ${quoteIdentifier(cursor)} - INTERVAL '${historyTolerance}'`)]
      : []),
    `
      SELECT ${failureTextSql(name, `min(${rowTextSql(stream)}) || ' has a version ' || count(*) || ' times'`)}
      FROM ${history} GROUP BY _airbyte_raw_id HAVING count(*) > 1`,
    `
      SELECT ${failureTextSql(name, `n || ' older versions, ' || saved || ' after the last load'`)}
      FROM (
        SELECT (SELECT count(*) FROM ${history}) AS n,
          (SELECT value::BIGINT FROM _meta WHERE name = ${quoteLiteral(historyCountName(name))}) AS saved)
      WHERE n <> saved`,
  ]
}
