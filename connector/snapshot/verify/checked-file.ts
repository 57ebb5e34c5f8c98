import type { JsonSchema } from '../../cdk'
import { type Database, quoteIdentifier } from '../store/database'
import { type Column, type ColumnType, columnsFromSchema, listStreamTables, versionsTableName } from '../store/tables'

/** What the checks of a file examine. */
export type CheckedFile = {
  /** Every stream that the file declares. */
  readonly declared: SnapshotStreams
  /** The declared streams that have a table. */
  readonly streams: SnapshotStreams
  readonly stateProblems: ReadonlyArray<StateProblem>
}

/** A saved state from which its stream could not continue, and why. */
export type StateProblem = { readonly stream: string; readonly problem: string }

/** A stream as the file declares it, with its table's columns. */
export type SnapshotStream = {
  readonly name: string
  readonly schema: JsonSchema
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  /** Empty if the table is missing. */
  readonly columns: ReadonlyArray<Column>
  /** Older versions of its rows are kept in a separate table. */
  readonly history: boolean
  /** For a lake: the table with all versions of its rows. */
  readonly versions: string | undefined
}

export type SnapshotStreams = ReadonlyArray<SnapshotStream>

export const readSnapshotStreams = async (db: Database): Promise<SnapshotStreams> => {
  const tables = new Map((await listStreamTables(db)).map((table) => [table.name, table]))
  return (await db.query('SELECT stream, schema, primary_key, cursor FROM _streams ORDER BY stream')).map((row) => ({
    name: String(row.stream),
    schema: JSON.parse(String(row.schema)),
    key: Array.isArray(row.primary_key) ? row.primary_key.map(String) : [],
    cursor: row.cursor === null ? undefined : String(row.cursor),
    columns: tables.get(String(row.stream))?.columns ?? [],
    history: db.lake === undefined && tables.get(String(row.stream))?.history === true,
    versions: db.lake === undefined ? undefined : versionsTableName(String(row.stream)),
  }))
}

export const hasColumns = (stream: SnapshotStream, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => stream.columns.some((column) => column.name === name))

export const hasTypedColumn = (stream: SnapshotStream, name: string, type: ColumnType): boolean =>
  stream.columns.some((column) => column.name === name && column.type === type)

/** What prevents checks of a stream's cursor: its column does not have the declared type. */
export const findCursorObstacle = ({ streams }: CheckedFile): string | undefined =>
  streams
    .flatMap(({ name, schema, cursor, columns }) => {
      const declared = columnsFromSchema(schema).find((column) => column.name === cursor)
      const actual = columns.find((column) => column.name === cursor)
      return declared !== undefined && actual !== undefined && declared.type !== actual.type
        ? [`${name}.${declared.name}, the cursor, is ${actual.type} and must be ${declared.type}.`]
        : []
    })
    .at(0)

export const tablesOf = (streams: SnapshotStreams): ReadonlyArray<string> =>
  streams.map(({ name }) => quoteIdentifier(name))
