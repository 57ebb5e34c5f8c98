import { defined, type JsonSchema } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { type Column, type ColumnType, columnsFromSchema, listStreamTables, versionsTableName } from '../store/tables'

/**
 * A check of the file. Its queries run one after the other, since all at once would need the memory of each; without
 * any, the file has nothing to check.
 */
export type Check = {
  readonly name: string
  /** What must hold, and what to do if it does not. */
  readonly explain: string
  /** Each returns one row, with one text column `what`, for each failure. */
  readonly queries: ReadonlyArray<string>
  /** What the check looks at: queries, such as table names, that may all be empty. Then there is nothing to check. */
  readonly subjects: ReadonlyArray<string>
  /** Failures are worth knowing, but nothing is wrong. */
  readonly note?: true
  /** Why the check cannot be run on this file; undefined if it can. */
  readonly obstacle?: string | undefined
}

/** What became of a check. `unanswered`: it could not be run, and `problem` says why. */
export type CheckOutcome = 'holds' | 'note' | 'failed' | 'nothing to check' | 'unanswered'

export type CheckResult = Pick<Check, 'name' | 'explain' | 'note'> & {
  /** All queries as one; undefined without any. */
  readonly sql: string | undefined
  readonly outcome: CheckOutcome
  /** Whether nothing is known to be wrong; false also for a check that could not be run. */
  readonly ok: boolean
  readonly failures: number
  /** The first failures in alphabetical order: ids and times, never the text of a review. */
  readonly examples: ReadonlyArray<string>
  readonly problem?: string
}

const maxExamples = 5

/** Runs one check. `limit`: how many examples to return. Rejects only if the file itself cannot be read. */
export const runCheck = async (db: Database, check: Check, limit = maxExamples): Promise<CheckResult> => {
  const { name, explain, queries, note, subjects, obstacle } = check
  const sql = queries.length === 0 ? undefined : queries.join('\n  UNION ALL ')
  const described = { name, explain, sql, ...defined({ note }) }
  const unanswered = (problem: string): CheckResult => ({
    ...described,
    outcome: 'unanswered',
    ok: false,
    failures: 0,
    examples: [],
    problem,
  })
  if (obstacle !== undefined) return unanswered(obstacle)
  if (sql === undefined) return { ...described, outcome: 'nothing to check', ok: true, failures: 0, examples: [] }
  try {
    let failures = 0
    const found: Array<string> = []
    for (const query of queries) {
      const [row] = await db.withMemory(`the check "${name}"`, () =>
        db.query(`SELECT count(*) AS failures, min(what, ${limit}) AS examples FROM (${query})`),
      )
      failures += Number(row?.failures)
      if (Array.isArray(row?.examples)) found.push(...row.examples.map(String))
    }
    const examples = found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).slice(0, limit)
    const outcome = failures > 0 ? (note === true ? 'note' : 'failed') : await chooseEmptyOutcome(db, subjects)
    return { ...described, outcome, ok: outcome !== 'failed', failures, examples }
  } catch (error) {
    const problem = explainQueryError(error)
    if (problem === undefined) throw error
    return unanswered(problem)
  }
}

/** The outcome of a check without failures. One row of a subject is enough; `EXISTS` would read all of them. */
const chooseEmptyOutcome = async (db: Database, subjects: ReadonlyArray<string>): Promise<CheckOutcome> => {
  for (const subject of subjects) if ((await db.scalar(`SELECT true FROM ${subject} LIMIT 1`)) === true) return 'holds'
  return 'nothing to check'
}

/**
 * Why a check's query could not be run on a table that is not as it was written, without the value that DuckDB may
 * quote; undefined for an error that concerns the whole file.
 */
const explainQueryError = (error: unknown): string | undefined => {
  const [kind] = /^(?:Binder|Catalog|Conversion|Invalid Input|Out of Range|Mismatch Type|Parser)(?= Error)/.exec(
    error instanceof Error ? error.message : '',
  ) ?? [undefined]
  if (kind === undefined) return undefined
  return kind === 'Catalog'
    ? 'A table or column that it needs is missing; see the check "column types".'
    : 'A column that it needs has another type or other values than when it was written; see the check "column types".'
}

/** A stream as the file declares it, with its table's columns. */
export type SnapshotStream = {
  readonly name: string
  readonly schema: JsonSchema
  readonly key: ReadonlyArray<string>
  readonly cursor: string | undefined
  /** Empty if the table is missing. */
  readonly columns: ReadonlyArray<Column>
  /** Whether older versions of its rows are kept in a table of their own. */
  readonly history: boolean
  /** In a lake: the table that holds all versions of its rows. */
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

/** The column `what`: the stream's name and a text, given in SQL. */
export const failureTextSql = (stream: string, text: string): string =>
  `${quoteLiteral(`${stream}: `)} || ${text} AS what`

/** The row's key as text for people, such as `id 5`. `prefix`: the table's alias with a dot. */
export const keyTextSql = (key: ReadonlyArray<string>, prefix = ''): string =>
  key.length === 0
    ? `'row ' || ${prefix}_airbyte_raw_id`
    : key
        .map((name) => `${quoteLiteral(`${name} `)} || coalesce(${prefix}${quoteIdentifier(name)}::VARCHAR, 'null')`)
        .join(` || ' ' || `)

export const hasColumns = (stream: SnapshotStream, ...names: ReadonlyArray<string>): boolean =>
  names.every((name) => stream.columns.some((column) => column.name === name))

export const hasTypedColumn = (stream: SnapshotStream, name: string, type: ColumnType): boolean =>
  stream.columns.some((column) => column.name === name && column.type === type)

/** What keeps checks of a stream's cursor from being run: its column is not of the declared type. */
export const findCursorObstacle = (streams: SnapshotStreams): string | undefined =>
  streams
    .flatMap(({ name, schema, cursor, columns }) => {
      const declared = columnsFromSchema(schema).find((column) => column.name === cursor)
      const actual = columns.find((column) => column.name === cursor)
      return declared !== undefined && actual !== undefined && declared.type !== actual.type
        ? [`${name}.${declared.name}, the cursor, is ${actual.type} and must be ${declared.type}.`]
        : []
    })
    .at(0)
