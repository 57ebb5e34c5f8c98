import type { Snapshot } from '../store/database'
import { type Check, type CheckResult, readSnapshotStreams, runCheck } from './check'
import { feedbackChecks } from './feedback'
import { type FindStateProblem, listStateProblems, loadChecks, stateChecks } from './loads'
import { relationChecks } from './relations'
import { rowChecks } from './rows'

/** The checks of the file itself, for the streams it has. `findStateProblem`: what only the reader of a state can tell. */
export const listChecks = async (
  { db }: Snapshot,
  findStateProblem: FindStateProblem = () => undefined,
): Promise<ReadonlyArray<Check>> => {
  const streams = await readSnapshotStreams(db)
  return [
    ...[loadChecks, rowChecks, relationChecks, feedbackChecks].flatMap((checks) => checks(streams)),
    ...stateChecks(streams, await listStateProblems(db, findStateProblem)),
  ]
}

/** A step of work in words, such as `Check 8 of 25: keys are unique`; called before it. */
export type OnStep = (text: string) => void

/** Runs every check of `listChecks`, one after the other. */
export const verifySnapshot = async (
  snapshot: Snapshot,
  findStateProblem?: FindStateProblem,
  onStep: OnStep = () => undefined,
): Promise<ReadonlyArray<CheckResult>> => {
  const results: Array<CheckResult> = []
  const checks = await listChecks(snapshot, findStateProblem)
  for (const [i, check] of checks.entries()) {
    onStep(`Check ${i + 1} of ${checks.length}: ${check.name}`)
    results.push(await runCheck(snapshot.db, check))
  }
  return results
}

/** The results of all checks in numbers. */
export type CheckCounts = {
  readonly hold: number
  readonly failed: number
  readonly unanswered: number
  /** How many had something to check. */
  readonly checked: number
  readonly nothing: number
}

/** Counts the checks. A note that found something had something to check, and nothing is wrong: it holds. */
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
