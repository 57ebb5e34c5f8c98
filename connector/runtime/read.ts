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

/** Receives each message of a run; the run goes on when it resolves. */
export type MessageConsumer = (message: Message) => Promise<void>

/** How a run ended: every stream finished, at least one failed, or a signal stopped the run. */
export type ReadOutcome = 'complete' | 'failed' | 'stopped'

/** The most records or milliseconds between two states of a stream: a killed run loses no more than that. */
const checkpointInterval = { records: 5_000, millis: 30_000 }

/** Reads the streams that `catalog` selects, in the order of `order`, and passes each message to each consumer. */
export const readSource = async (
  io: CommandIo,
  configured: ConfiguredSource,
  {
    catalog,
    state,
    order = configured.streams,
  }: { readonly catalog: Catalog; readonly state: SourceState; readonly order?: ReadonlyArray<Stream<SourceEnv>> },
  consumers: ReadonlyArray<MessageConsumer>,
): Promise<ReadOutcome> => {
  let failed = false
  const { source, onWait } = configured
  const limitYoungHeap = limitHeap()
  for await (const message of readStreams({
    streams: order,
    env: source,
    catalog,
    state,
    now: Date.now,
    checkpointInterval,
    stop: io.stop,
    onWait,
  })) {
    limitYoungHeap()
    failed = failed || message._tag === 'Failed'
    const redacted = redactMessage(io.redactText, message)
    for (const consume of consumers) await consume(redacted)
  }
  return io.stop.aborted ? 'stopped' : failed ? 'failed' : 'complete'
}
