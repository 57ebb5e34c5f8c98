import type { State } from '../cdk/catalog'
import { writeState } from './books'
import type { Snapshot } from './snapshot'

/** Each stream's state as text, by the stream's name. */
const stateTexts = async ({ db }: Snapshot): Promise<ReadonlyArray<readonly [stream: string, text: string]>> =>
  (await db.query('SELECT stream, state FROM _state ORDER BY stream')).map(({ stream, state }) => [
    String(stream),
    String(state),
  ])

/** The states that cover the file's rows, for a run that goes on from here. */
export const readState = async (snapshot: Snapshot): Promise<State> =>
  Object.fromEntries((await stateTexts(snapshot)).map(([stream, text]) => [stream, JSON.parse(text)]))

/** A JSON array of Airbyte state messages, which source-feedback --state reads; one message a line. */
export const exportState = async (snapshot: Snapshot): Promise<string> => {
  const messages = (await stateTexts(snapshot)).map(
    ([stream, text]) =>
      `{"type":"STREAM","stream":{"stream_descriptor":${JSON.stringify({ name: stream })},"stream_state":${text}}}`,
  )
  return messages.length === 0 ? '[]\n' : `[\n${messages.join(',\n')}\n]\n`
}

/** Puts these states in place of those of the same streams; the others stay. `now`: milliseconds since 1970. */
export const importState = ({ db }: Snapshot, state: State, now: number): Promise<void> =>
  db.transaction(async () => {
    for (const [stream, value] of Object.entries(state)) await writeState(db, stream, JSON.stringify(value), now)
  })
