import * as E from 'fp-ts/Either'
import type { Failure } from '../../../connector/cdk/failure'
import type { Feed } from '../../../connector/cdk/feed'
import type { Arrival } from '../../../connector/cdk/write/arrival'

/** What lines mean; a failure is an item, a state is its answer after one accepted and no rejected record. */
export const meant = async (
  read: (input: AsyncIterable<Uint8Array>) => Feed<Failure, Arrival>,
  lines: ReadonlyArray<unknown>,
): Promise<ReadonlyArray<unknown>> => {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const said: Array<unknown> = []
  const input = (async function* () {
    yield Buffer.from(text)
  })()
  for await (const arrival of read(input)) said.push(E.isLeft(arrival) ? arrival.left.message : shown(arrival.right))
  return said
}

const shown = (arrival: Arrival): unknown => {
  switch (arrival._tag) {
    case 'Opened':
      return ['opened', arrival.inlet.id, arrival.inlet.object, arrival.inlet.key, arrival.inlet.deletes]
    case 'Record':
      return [arrival.inlet, Buffer.from(arrival.json).toString()]
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
