import * as E from 'fp-ts/Either'
import type { InputFeed, InputMessage } from '../../connector/cdk/write/input'

/** What lines mean; a failure is an item, a state is its answer after one accepted and no rejected record. */
export const meant = async (
  read: (input: AsyncIterable<Uint8Array>) => InputFeed,
  lines: ReadonlyArray<unknown>,
): Promise<ReadonlyArray<unknown>> => {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const said: Array<unknown> = []
  const input = (async function* () {
    yield Buffer.from(text)
  })()
  for await (const told of read(input)) said.push(...(E.isLeft(told) ? [told.left.message] : told.right.map(shown)))
  return said
}

const shown = (arrival: InputMessage): unknown => {
  switch (arrival._tag) {
    case 'Opened':
      return ['opened', arrival.inlet.id, arrival.inlet.objectName, arrival.inlet.key, arrival.inlet.isDeletion]
    case 'Record':
      return [arrival.inlet, Buffer.from(arrival.json()).toString()]
    case 'State':
      return ['state', arrival.inlet, arrival.answer({ accepted: 1, rejected: 0 })]
    case 'Completed':
      return ['completed', arrival.inlet, arrival.whole]
    case 'Broken':
      return ['broken', arrival.inlet]
    case 'Skipped':
      return ['skipped', arrival.message]
  }
}
