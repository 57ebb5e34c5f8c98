import { defined } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import type { CheckedFile } from './checked-file'

/** A check: what must hold, and SQL that finds violations. */
export type Check = {
  readonly name: string
  /** What must hold, and what to do if it does not. */
  readonly explain: string
  /**
   * Each returns one row, with one text column `what`, for each failure. They run one after the other, since all at
   * once would need the memory of each. Without queries, the file has nothing to check.
   */
  readonly queries: (file: CheckedFile) => ReadonlyArray<string>
  /** What the check examines: queries, such as table names. If all are empty, there is nothing to check. */
  readonly subjects: (file: CheckedFile) => ReadonlyArray<string>
  /** Failures are worth knowing, but nothing is wrong. */
  readonly note?: true
  /** What must exist besides the file: rows erased on request, or the tables that `compareReviews` creates. */
  readonly needs?: 'erased' | 'comparison'
  /** Why the check cannot be run on this file; undefined if it can. */
  readonly obstacle?: (file: CheckedFile) => string | undefined
}

/** The result of a check. `unanswered`: it could not be run, and `problem` says why. */
type CheckOutcome = 'holds' | 'note' | 'failed' | 'nothing to check' | 'unanswered'

export type CheckResult = Pick<Check, 'name' | 'explain' | 'note'> & {
  /** All queries combined; undefined if there are none. */
  readonly sql: string | undefined
  readonly outcome: CheckOutcome
  /** Nothing is known to be wrong; false also for a check that could not be run. */
  readonly ok: boolean
  readonly failures: number
  /** The first failures in alphabetical order: ids and times, never the text of a review. */
  readonly examples: ReadonlyArray<string>
  readonly problem?: string
}

const maxExamples = 5

/** Runs one check. `limit`: how many examples to return. Rejects only if the file itself cannot be read. */
export const runCheck = async (
  db: Database,
  file: CheckedFile,
  check: Check,
  limit = maxExamples,
): Promise<CheckResult> => {
  const { name, explain, note } = check
  const queries = check.queries(file)
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
  const obstacle = check.obstacle?.(file)
  if (obstacle !== undefined) return unanswered(obstacle)
  try {
    const { failures, examples } = await findFailures(db, name, queries, limit)
    const outcome =
      failures === 0 ? await chooseEmptyOutcome(db, queries, check.subjects(file)) : note ? 'note' : 'failed'
    return { ...described, outcome, ok: outcome !== 'failed', failures, examples }
  } catch (error) {
    const problem = explainQueryError(error)
    if (problem === undefined) throw error
    return unanswered(problem)
  }
}

const findFailures = async (
  db: Database,
  name: string,
  queries: ReadonlyArray<string>,
  limit: number,
): Promise<Pick<CheckResult, 'failures' | 'examples'>> => {
  let failures = 0
  const found: string[] = []
  for (const query of queries) {
    const [row] = await db.withMemory(`the check "${name}"`, () =>
      db.query(`SELECT count(*) AS failures, min(what, ${limit}) AS examples FROM (${query})`),
    )
    failures += Number(row?.failures)
    if (Array.isArray(row?.examples)) found.push(...row.examples.map(String))
  }
  const examples = found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).slice(0, limit)
  return { failures, examples }
}

/** The outcome of a check without failures. One row of a subject is enough; `EXISTS` would read all of them. */
const chooseEmptyOutcome = async (
  db: Database,
  queries: ReadonlyArray<string>,
  subjects: ReadonlyArray<string>,
): Promise<CheckOutcome> => {
  if (queries.length > 0)
    for (const subject of subjects)
      if ((await db.scalar(`SELECT true FROM ${subject} LIMIT 1`)) === true) return 'holds'
  return 'nothing to check'
}

/**
 * Why a check's query failed on a table that was changed after it was written, without the value that DuckDB may quote.
 * Undefined for an error that concerns the whole file.
 */
const explainQueryError = (error: unknown): string | undefined => {
  const [kind] = /^(?:Binder|Catalog|Conversion|Invalid Input|Out of Range|Mismatch Type|Parser)(?= Error)/.exec(
    error instanceof Error ? error.message : '',
  ) ?? [undefined]
  if (kind === undefined) return undefined
  return kind === 'Catalog'
    ? 'A table or column that it needs is missing; see the check "column types".'
    : 'The type or values of a column that it needs have changed since it was written; see the check "column types".'
}

/** The column `what`: the stream's name and a text, given in SQL. */
export const failureTextSql = (stream: string, text: string): string =>
  `${quoteLiteral(`${stream}: `)} || ${text} AS what`

/** The row's key as text for the user, such as `id 5`. `prefix`: the table's alias with a dot. */
export const keyTextSql = (key: ReadonlyArray<string>, prefix = ''): string =>
  key.length === 0
    ? `'row ' || ${prefix}_airbyte_raw_id`
    : key
        .map((name) => `${quoteLiteral(`${name} `)} || coalesce(${prefix}${quoteIdentifier(name)}::VARCHAR, 'null')`)
        .join(` || ' ' || `)
