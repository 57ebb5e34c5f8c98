import type { Catalog, State } from './cdk/catalog'
import type { Io } from './cdk/cli'
import type { Message } from './cdk/message'
import { read } from './cdk/read'
import { redactMessage } from './cdk/redact'
import type { Stream } from './cdk/stream'
import { smallHeap } from './heap'
import type { Source } from './streams/source'
import type { Wired } from './wire'

/** Takes each message in turn; the run waits for it. */
export type Consumer = (message: Message) => Promise<void>

/** How a run ended: every stream finished, one failed, or a signal stopped it. */
export type Ending = 'complete' | 'failed' | 'stopped'

/** A state at least every so many records or milliseconds: a killed run loses no more than that. */
const cadence = { records: 5_000, millis: 30_000 }

/** Reads what `catalog` selects, in this order of streams, and hands each message to each consumer. */
export const runRead = async (
  io: Io,
  wired: Wired,
  {
    catalog,
    state,
    order = wired.streams,
  }: { readonly catalog: Catalog; readonly state: State; readonly order?: ReadonlyArray<Stream<Source>> },
  consumers: ReadonlyArray<Consumer>,
): Promise<Ending> => {
  let failed = false
  const { source, onWait } = wired
  const keepSmall = smallHeap()
  for await (const message of read({
    streams: order,
    env: source,
    catalog,
    state,
    now: Date.now,
    cadence,
    stop: io.stop,
    onWait,
  })) {
    keepSmall()
    failed = failed || message._tag === 'Failed'
    const told = redactMessage(io.clean, message)
    for (const consume of consumers) await consume(told)
  }
  return io.stop.aborted ? 'stopped' : failed ? 'failed' : 'complete'
}
