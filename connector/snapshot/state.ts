import type { SourceState } from '../cdk/catalog'
import { saveStreamState } from './books'
import type { Snapshot } from './snapshot'

export type StreamStateText = { readonly stream: string; readonly state: string }

/** Each stream's state as JSON text, by the stream's name. */
export const listStateTexts = async ({ db }: Snapshot): Promise<ReadonlyArray<StreamStateText>> =>
  (await db.query('SELECT stream, state FROM _state ORDER BY stream')).map(({ stream, state }) => ({
    stream: String(stream),
    state: String(state),
  }))

/** The states that cover the file's rows, for a run that goes on from here. */
export const readSnapshotState = async (snapshot: Snapshot): Promise<SourceState> =>
  Object.fromEntries((await listStateTexts(snapshot)).map(({ stream, state }) => [stream, JSON.parse(state)]))

/** Puts these states in place of those of the same streams; the others stay. `now`: milliseconds since 1970. */
export const importState = ({ db }: Snapshot, state: SourceState, now: number): Promise<void> =>
  db.transaction(async () => {
    for (const [stream, value] of Object.entries(state)) await saveStreamState(db, stream, JSON.stringify(value), now)
  })
