import type { Database, Snapshot } from '../store/database'
import { hasForgottenTable } from '../store/forgotten'
import { type Check, type CheckResult, runCheck } from './check'
import { readSnapshotStreams } from './checked-file'
import { checks } from './checks'
import { type FindStateProblem, listStateProblems } from './states'

/** Called before each step with its description, such as `Check 8 of 25: keys are unique`. */
export type OnStep = (text: string) => void

type RunOptions = {
  /** Supplied by the reader of states, which alone knows. */
  readonly findStateProblem?: FindStateProblem | undefined
  readonly onStep?: OnStep | undefined
  /** The most examples in a result. */
  readonly limit?: number
}

/** Runs the checks that need one of these, one after the other. */
export const runChecks = async (
  db: Database,
  needs: ReadonlyArray<Check['needs']>,
  { findStateProblem = () => undefined, onStep = () => undefined, limit }: RunOptions = {},
): Promise<ReadonlyArray<CheckResult>> => {
  const streams = await readSnapshotStreams(db)
  const stateProblems = await listStateProblems(db, findStateProblem)
  const file = { declared: streams, streams: streams.filter(({ columns }) => columns.length > 0), stateProblems }
  const chosen = checks.filter((check) => needs.includes(check.needs))
  const results: CheckResult[] = []
  for (const [i, check] of chosen.entries()) {
    onStep(`Check ${i + 1} of ${chosen.length}: ${check.name}`)
    results.push(await runCheck(db, file, check, limit))
  }
  return results
}

/** Runs every check of the file itself. */
export const verifySnapshot = async (
  { db }: Snapshot,
  findStateProblem?: FindStateProblem,
  onStep?: OnStep,
): Promise<ReadonlyArray<CheckResult>> => {
  await db.lake?.freeze()
  return runChecks(db, [undefined, ...((await hasForgottenTable(db)) ? (['erased'] as const) : [])], {
    findStateProblem,
    onStep,
  })
}

/** The results of all checks in numbers. */
type CheckCounts = {
  readonly hold: number
  readonly failed: number
  readonly unanswered: number
  /** How many had something to check. */
  readonly checked: number
  readonly nothing: number
}

/**
 * Counts the checks. A note that found something counts as a check that holds: there was something to check, and
 * nothing is wrong.
 */
export const countChecks = (results: ReadonlyArray<CheckResult>): CheckCounts => {
  const count = (...outcomes: ReadonlyArray<CheckResult['outcome']>) =>
    results.filter(({ outcome }) => outcomes.includes(outcome)).length
  const nothing = count('nothing to check')
  return {
    hold: count('holds', 'note'),
    failed: count('failed'),
    unanswered: count('unanswered'),
    checked: results.length - nothing,
    nothing,
  }
}
