import type { JsonSchema } from '../../cdk/schema'
import type { Column } from '../column'
import { type Database, quoteIdentifier, quoteLiteral } from '../database'
import { listStreamTables } from '../table'

/** A stream as the file declares it, and its table as it stands. */
export type SnapshotStream = {
  readonly name: string
  readonly schema: JsonSchema
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  /** None: the table is gone. */
  readonly columns: ReadonlyArray<Column>
}

export type SnapshotStreams = ReadonlyArray<SnapshotStream>

export const readSnapshotStreams = async (db: Database): Promise<SnapshotStreams> => {
  const tables = new Map((await listStreamTables(db)).map(({ name, columns }) => [name, columns]))
  return (await db.query('SELECT stream, schema, primary_key, cursor FROM _streams ORDER BY stream')).map((row) => ({
    name: String(row.stream),
    schema: JSON.parse(String(row.schema)),
    key: Array.isArray(row.primary_key) ? row.primary_key.map(String) : [],
    cursor: row.cursor === null ? undefined : String(row.cursor),
    columns: tables.get(String(row.stream)) ?? [],
  }))
}

/** The answers of all that have something to ask; undefined if none has. */
export const unionSql = (parts: ReadonlyArray<string>): string | undefined =>
  parts.length === 0 ? undefined : parts.join('\n  UNION ALL ')

/** The stream's name in front of what is wrong with it. */
export const findingSql = (stream: string, words: string): string =>
  `${quoteLiteral(`${stream}: `)} || ${words} AS what`

/** The row's key as people write it: `id 5`. */
export const keyTextSql = (key: ReadonlyArray<string>, of = ''): string =>
  key
    .map((name) => `${quoteLiteral(`${name} `)} || coalesce(${of}${quoteIdentifier(name)}::VARCHAR, 'null')`)
    .join(` || ' ' || `)

export const hasColumns = (stream: SnapshotStream, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => stream.columns.some((column) => column.name === name))
