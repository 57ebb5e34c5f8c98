import { ask, type Check, type CheckResult } from './check'
import { readContext } from './checks/context'
import { feedbackChecks } from './checks/feedback'
import { loadChecks } from './checks/loads'
import { relationChecks } from './checks/relations'
import { rowChecks } from './checks/rows'
import { stateChecks } from './checks/states'
import type { Snapshot } from './snapshot'

export type { CheckResult } from './check'

/** Every check that fits the file's streams. */
export const checksOf = async ({ db }: Snapshot): Promise<ReadonlyArray<Check>> => {
  const streams = await readContext(db)
  return [loadChecks, rowChecks, relationChecks, feedbackChecks, stateChecks].flatMap((checks) => checks(streams))
}

/** Asks the file everything we know to ask, one question after the other. */
export const verify = async (snapshot: Snapshot): Promise<ReadonlyArray<CheckResult>> => {
  const results: Array<CheckResult> = []
  for (const check of await checksOf(snapshot)) results.push(await ask(snapshot.db, check))
  return results
}
