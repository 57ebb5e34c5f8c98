import {
  type Catalog,
  type CommandIo,
  type Message,
  readStreams,
  redactMessage,
  type SourceState,
  type Stream,
} from '../cdk'
import type { SourceEnv } from '../streams'
import { limitHeap } from './heap'
import type { ConfiguredSource } from './source'

/** Takes each message in turn; the run waits for it. */
export type MessageConsumer = (message: Message) => Promise<void>

/** How a run ended: every stream finished, one failed, or a signal stopped it. */
export type ReadOutcome = 'complete' | 'failed' | 'stopped'

/** A state at least every so many records or milliseconds: a killed run loses no more than that. */
const checkpointCadence = { records: 5_000, millis: 30_000 }

/** Reads what `catalog` selects, in this order of streams, and hands each message to each consumer. */
export const runRead = async (
  io: CommandIo,
  wired: ConfiguredSource,
  {
    catalog,
    state,
    order = wired.streams,
  }: { readonly catalog: Catalog; readonly state: SourceState; readonly order?: ReadonlyArray<Stream<SourceEnv>> },
  consumers: ReadonlyArray<MessageConsumer>,
): Promise<ReadOutcome> => {
  let failed = false
  const { source, onWait } = wired
  const keepSmall = limitHeap()
  for await (const message of readStreams({
    streams: order,
    env: source,
    catalog,
    state,
    now: Date.now,
    checkpointInterval: checkpointCadence,
    stop: io.stop,
    onWait,
  })) {
    keepSmall()
    failed = failed || message._tag === 'Failed'
    const told = redactMessage(io.redactText, message)
    for (const consume of consumers) await consume(told)
  }
  return io.stop.aborted ? 'stopped' : failed ? 'failed' : 'complete'
}
