import type { Snapshot } from '../store/database'
import { type Check, type CheckResult, readSnapshotStreams, runCheck } from './check'
import { feedbackChecks } from './feedback'
import { loadChecks, stateChecks } from './loads'
import { relationChecks } from './relations'
import { rowChecks } from './rows'

/** The checks of the file itself, for the streams it has. */
export const listChecks = async ({ db }: Snapshot): Promise<ReadonlyArray<Check>> => {
  const streams = await readSnapshotStreams(db)
  return [loadChecks, rowChecks, relationChecks, feedbackChecks, stateChecks].flatMap((checks) => checks(streams))
}

/** Runs every check of `listChecks`, one after the other. */
export const verifySnapshot = async (snapshot: Snapshot): Promise<ReadonlyArray<CheckResult>> => {
  const results: Array<CheckResult> = []
  for (const check of await listChecks(snapshot)) results.push(await runCheck(snapshot.db, check))
  return results
}
