import type { Database } from './database'

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
