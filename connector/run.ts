import type { Catalog, SourceState } from './cdk/catalog'
import type { CommandIo } from './cdk/cli'
import type { Message } from './cdk/message'
import { readStreams } from './cdk/read'
import { redactMessage } from './cdk/redact'
import type { Stream } from './cdk/stream'
import { limitHeap } from './heap'
import type { SourceEnv } from './streams/source'
import type { ConfiguredSource } from './wire'

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
