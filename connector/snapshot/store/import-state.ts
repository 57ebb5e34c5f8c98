import { type SourceState, serviceOfState } from '../../cdk'
import { checkStateService } from './claim'
import type { Snapshot } from './database'
import { saveStreamStatesSql } from './metadata'

/** Replaces the states of these streams; those of other streams stay. `now`: milliseconds since 1970. */
export const importState = ({ db }: Snapshot, state: SourceState, now: number): Promise<void> =>
  db.transaction(async () => {
    for (const [stream, value] of Object.entries(state)) {
      const service = serviceOfState(value)
      if (service !== undefined) await checkStateService(db, stream, service)
      const text = JSON.stringify(value)
      if (db.lake === undefined) await db.run(saveStreamStatesSql([{ stream, state: text }], now))
      else await db.lake.saveStates([[stream, text]], now)
    }
  })
