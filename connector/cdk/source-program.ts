import type { Catalog, SourceState } from './catalog'
import type { CommandIo } from './command'
import type { ConfigFormat } from './load'
import type { Message } from './message'
import { limitHeap } from './program'
import { type ReadRun, readStreams } from './read'
import { redactMessage } from './redact'
import type { Stream } from './stream'

/** A request that was answered, for the log: its operation, HTTP status and duration in milliseconds. */
export type RequestReport = { readonly operation: string; readonly status: number; readonly millis: number }

export type ConnectOptions = {
  /** Aborted when the run is stopped. */
  readonly stop: AbortSignal
  readonly onRequest?: (report: RequestReport) => void
}

/** A source that is connected to its service. */
export type OpenSource<Env> = Partial<Pick<ReadRun<Env>, 'onWait'>> & {
  /** In the order in which they are read. */
  readonly streams: ReadonlyArray<Stream<Env>>
  readonly env: Env
  readonly close?: () => Promise<void>
}

/** Receives each message of a run; the run goes on when it resolves. */
export type MessageConsumer = (message: Message) => Promise<void>

/** A source as the commands of both protocols run it. Each function may throw a `CommandError`. */
export type SourceProgram<Config, Env> = {
  /** Its programs are `source-NAME` and `tap-NAME`. */
  readonly name: string
  /** What it reads, as in "Airbyte source for WHAT". */
  readonly subject: string
  readonly version: () => string
  readonly format: ConfigFormat<Config>
  /** The streams with the settings of a config; without a config, with the default settings. */
  readonly listStreams: (
    protocol: 'airbyte' | 'singer',
    config: Config | undefined,
  ) => Promise<ReadonlyArray<Stream<Env>>>
  readonly connect: (
    protocol: 'airbyte' | 'singer',
    config: Config,
    options: ConnectOptions,
  ) => Promise<OpenSource<Env>>
  /** Resolves if the config works, with warnings. */
  readonly check: (config: Config, stop: AbortSignal) => Promise<ReadonlyArray<string>>
  /** Whether a Singer target is told at the end of a full refresh that all other rows are gone (ACTIVATE_VERSION). */
  readonly sendsTableVersions?: (config: Config) => boolean
  /** What to write into the config so that an attribute inside an object does not leave; undefined where nothing helps. */
  readonly explainWithholding?: (stream: string, path: ReadonlyArray<string>) => Promise<string | undefined>
  /** A second consumer of the messages of a read. */
  readonly openCopy?: (
    config: Config,
  ) => Promise<{ readonly write: MessageConsumer; readonly finish: () => Promise<unknown> } | undefined>
}

/** How a run ended: every stream finished, at least one failed, or a signal stopped the run. */
export type ReadOutcome = 'complete' | 'failed' | 'stopped'

/** What a run reads, and from where it goes on. `order`: the streams in another order than the source's. */
export type ReadSelection<Env> = {
  readonly catalog: Catalog
  readonly state: SourceState
  readonly order?: ReadonlyArray<Stream<Env>>
}

/** The most records or milliseconds between two states of a stream: a killed run loses no more than that. */
const checkpointInterval = { records: 5_000, millis: 30_000 }

const neverWait = (): (() => void) => () => undefined

/** The streams that the catalog wants incrementally and that can only be read in full. */
const listFullOnly = <Env>(streams: ReadonlyArray<Stream<Env>>, catalog: Catalog): ReadonlyArray<string> =>
  catalog.flatMap(({ name, syncMode }) => {
    const stream = streams.find((each) => each.name === name)
    return stream === undefined || stream.syncModes.includes(syncMode) ? [] : [name]
  })

/** Reads the selected streams and passes each message, without secrets, to each consumer. */
export const consumeMessages = async <Env>(
  io: Pick<CommandIo, 'stop' | 'redactText'>,
  { streams, env, onWait = neverWait }: OpenSource<Env>,
  { catalog, state, order = streams }: ReadSelection<Env>,
  consumers: ReadonlyArray<MessageConsumer>,
): Promise<ReadOutcome> => {
  let failed = false
  const limitYoungHeap = limitHeap()
  const run = { streams: order, env, catalog, state, now: Date.now, checkpointInterval, stop: io.stop, onWait }
  const messages = async function* (): AsyncGenerator<Message> {
    for (const name of listFullOnly(order, catalog))
      yield { _tag: 'Log', level: 'info', message: `${name} has no cursor: every run reads it in full.` }
    yield* readStreams(run)
  }
  for await (const message of messages()) {
    limitYoungHeap()
    failed = failed || message._tag === 'Failed'
    const redacted = redactMessage(io.redactText, message)
    for (const consume of consumers) await consume(redacted)
  }
  return io.stop.aborted ? 'stopped' : failed ? 'failed' : 'complete'
}
