import type { State } from '../cdk/catalog'
import { writeState } from './books'
import type { Snapshot } from './snapshot'

export type StateText = { readonly stream: string; readonly state: string }

/** Each stream's state as JSON text, by the stream's name. */
export const stateTexts = async ({ db }: Snapshot): Promise<ReadonlyArray<StateText>> =>
  (await db.query('SELECT stream, state FROM _state ORDER BY stream')).map(({ stream, state }) => ({
    stream: String(stream),
    state: String(state),
  }))

/** The states that cover the file's rows, for a run that goes on from here. */
export const readState = async (snapshot: Snapshot): Promise<State> =>
  Object.fromEntries((await stateTexts(snapshot)).map(({ stream, state }) => [stream, JSON.parse(state)]))

/** Puts these states in place of those of the same streams; the others stay. `now`: milliseconds since 1970. */
export const importState = ({ db }: Snapshot, state: State, now: number): Promise<void> =>
  db.transaction(async () => {
    for (const [stream, value] of Object.entries(state)) await writeState(db, stream, JSON.stringify(value), now)
  })
