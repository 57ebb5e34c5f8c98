import type { JsonSchema } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { type Column, listStreamTables } from '../store/tables'

/**
 * A check of the file: `sql` returns one row, with one text column `what`, for each failure. Without `sql` the file has nothing
 * to check.
 */
export type Check = {
  readonly name: string
  /** What must hold, and what to do if it does not. */
  readonly explain: string
  readonly sql: string | undefined
  /** Failures are worth knowing, but nothing is wrong. */
  readonly note?: true
}

export type CheckResult = Check & {
  readonly ok: boolean
  readonly failures: number
  /** The first failures in alphabetical order: ids and times, never the text of a review. */
  readonly examples: ReadonlyArray<string>
}

const maxExamples = 5

/** Runs one check. `limit`: how many examples to return. */
export const runCheck = async (db: Database, check: Check, limit = maxExamples): Promise<CheckResult> => {
  if (check.sql === undefined) return { ...check, ok: true, failures: 0, examples: [] }
  const [row] = await db.query(`SELECT count(*) AS failures, min(what, ${limit}) AS examples FROM (${check.sql})`)
  const failures = Number(row?.failures)
  const examples = Array.isArray(row?.examples) ? row.examples.map(String) : []
  return { ...check, ok: failures === 0 || check.note === true, failures, examples }
}

/** A stream as the file declares it, with its table's columns. */
export type SnapshotStream = {
  readonly name: string
  readonly schema: JsonSchema
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  /** Empty if the table is missing. */
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

/** All rows of these queries; undefined for no query. */
export const unionSql = (queries: ReadonlyArray<string>): string | undefined =>
  queries.length === 0 ? undefined : queries.join('\n  UNION ALL ')

/** The column `what`: the stream's name and a text, given in SQL. */
export const failureTextSql = (stream: string, text: string): string =>
  `${quoteLiteral(`${stream}: `)} || ${text} AS what`

/** The row's key as text for people, such as `id 5`. `prefix`: the table's alias with a dot. */
export const keyTextSql = (key: ReadonlyArray<string>, prefix = ''): string =>
  key
    .map((name) => `${quoteLiteral(`${name} `)} || coalesce(${prefix}${quoteIdentifier(name)}::VARCHAR, 'null')`)
    .join(` || ' ' || `)

export const hasColumns = (stream: SnapshotStream, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => stream.columns.some((column) => column.name === name))
