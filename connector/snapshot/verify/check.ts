import type { JsonSchema } from '../../cdk'
import type { Column } from '../store/columns'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { listStreamTables } from '../store/tables'

/**
 * A question to the file whose answer should be empty: `sql` gives one row, with one text column `what`, for each thing that
 * is wrong. No `sql`: there is nothing to ask of this file.
 */
export type Check = {
  readonly name: string
  /** What must hold, and what to do where it does not. */
  readonly explain: string
  readonly sql: string | undefined
  /** Worth knowing, but nothing is wrong. */
  readonly note?: true
}

export type CheckResult = Check & {
  readonly ok: boolean
  readonly failures: number
  /** The first few, in alphabetical order; ids and times, no text of a review. */
  readonly examples: ReadonlyArray<string>
}

const maxExamples = 5

/** Asks one question. */
export const runCheck = async (db: Database, check: Check, shown = maxExamples): Promise<CheckResult> => {
  if (check.sql === undefined) return { ...check, ok: true, failures: 0, examples: [] }
  const [answer] = await db.query(`SELECT count(*) AS failures, min(what, ${shown}) AS examples FROM (${check.sql})`)
  const failures = Number(answer?.failures)
  const examples = Array.isArray(answer?.examples) ? answer.examples.map(String) : []
  return { ...check, ok: failures === 0 || check.note === true, failures, examples }
}

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
export const failureTextSql = (stream: string, words: string): string =>
  `${quoteLiteral(`${stream}: `)} || ${words} AS what`

/** The row's key as people write it: `id 5`. */
export const keyTextSql = (key: ReadonlyArray<string>, of = ''): string =>
  key
    .map((name) => `${quoteLiteral(`${name} `)} || coalesce(${of}${quoteIdentifier(name)}::VARCHAR, 'null')`)
    .join(` || ' ' || `)

export const hasColumns = (stream: SnapshotStream, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => stream.columns.some((column) => column.name === name))
