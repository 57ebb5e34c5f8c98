import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import type { Catalog, SourceState } from './catalog'
import type { ConfigFormat } from './config/format'
import { configFailure, type Failure } from './failure'
import type { Message } from './message'
import type { CommandIo } from './program/command'
import { limitHeap } from './program/heap'
import type { CommandOption } from './program/options'
import { type ReadRun, readStreams } from './read'
import { redactFailure } from './redact'
import { defined } from './schema'
import type { HoldsRows, Stream } from './stream'

/** A request that was answered, for the log: its operation, HTTP status and duration in milliseconds. */
type RequestReport = { readonly operation: string; readonly status: number; readonly millis: number }

export type ConnectOptions = {
  /** Aborted when the run is stopped. */
  readonly stop: AbortSignal
  /** The environment variables, which may name proxies. */
  readonly variables: CommandIo['env']
  readonly onRequest?: (report: RequestReport) => void
  /** Receives what a person should know about the connection. */
  readonly onNotice: (message: string) => void
}

/** Whose data a source reads. Each state carries the fingerprint, so that it is not given to another service. */
export type ServiceIdentity = {
  /** For people. */
  readonly address: string
  /** A hash of the address; with a dot and a second hash where an account is known by its name. Holds no secret. */
  readonly fingerprint: string
}

const hashText = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/**
 * The identity of the service at a URL. The case of the host, a default port and slashes at the end make no difference.
 * `account`: a name, no secret.
 */
export const identifyService = (url: string, account: string | undefined): ServiceIdentity => {
  const { protocol, hostname, port, pathname } = new URL(url)
  const host = `${hostname.replace(/\.$/, '')}${port === '' ? '' : `:${port}`}`
  const address = `${protocol}//${host}${pathname.replace(/\/+$/, '')}`
  return {
    address,
    fingerprint: account === undefined ? hashText(address) : `${hashText(address)}.${hashText(account)}`,
  }
}

/** Whether two fingerprints are of one service; accounts differ only where both are known. */
export const isSameService = (a: string, b: string): boolean => {
  const [[addressA, accountA], [addressB, accountB]] = [a.split('.'), b.split('.')]
  return addressA === addressB && (accountA === undefined || accountB === undefined || accountA === accountB)
}

/** The fingerprint that a state carries; undefined for a state of an older version. */
export const serviceOfState = (state: unknown): string | undefined =>
  t.UnknownRecord.is(state) && typeof state.service === 'string' ? state.service : undefined

const removeService = (state: unknown): unknown => {
  if (serviceOfState(state) === undefined || !t.UnknownRecord.is(state)) return state
  const { service: _, ...rest } = state
  return rest
}

const addService = (message: Message, fingerprint: string | undefined): Message =>
  fingerprint !== undefined && message._tag === 'Checkpoint' && t.UnknownRecord.is(message.state)
    ? { ...message, state: { ...message.state, service: fingerprint } }
    : message

const isForeignState = (state: unknown, service: ServiceIdentity | undefined): boolean => {
  const fingerprint = serviceOfState(state)
  return service !== undefined && fingerprint !== undefined && !isSameService(fingerprint, service.fingerprint)
}

/** The states, or a failure that names the first stream whose state is of another service. */
export const checkStateServices = (
  states: SourceState,
  service: ServiceIdentity | undefined,
): E.Either<Failure, SourceState> => {
  const [foreign] = Object.keys(states).filter((name) => isForeignState(states[name], service))
  return foreign === undefined || service === undefined
    ? E.right(states)
    : E.left(foreignStateFailure(foreign, service.address))
}

const foreignStateFailure = (stream: string, address: string) =>
  configFailure(
    `The state of ${stream} is of another service, or of another application, than ${address}. ` +
      'To read this service from the beginning, reset the stream or give no state. If only the ' +
      'address of the same service has changed, remove the key service from the state.',
  )

/** A source that is connected to its service. */
export type OpenSource<Env> = Partial<Pick<ReadRun<Env>, 'onWait'>> & {
  /** In the order in which they are read. */
  readonly streams: ReadonlyArray<Stream<Env>>
  readonly env: Env
  /** Without it, states are taken from anywhere. */
  readonly service?: ServiceIdentity
  readonly close?: () => Promise<void>
}

/** Receives each message of a run; the run goes on when it resolves. */
export type MessageConsumer = (message: Message) => Promise<void>

/** What a check found that succeeded. Each is a sentence; a warning is also printed by itself. */
type SourceCheckReport = { readonly warnings: ReadonlyArray<string>; readonly findings: ReadonlyArray<string> }

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
  /** Resolves if the config works. */
  readonly check: (config: Config, stop: AbortSignal, variables: CommandIo['env']) => Promise<SourceCheckReport>
  /** Whether a full refresh ends with a message that all other rows are gone (Singer's ACTIVATE_VERSION). */
  readonly sendsTableVersions?: (config: Config) => boolean
  /**
   * What to write into the config so that an attribute inside an object does not leave; undefined where nothing helps.
   */
  readonly explainWithholding?: (stream: string, path: ReadonlyArray<string>) => Promise<string | undefined>
  /** A second consumer of the messages of a read. */
  readonly openCopy?: (config: Config) => Promise<MessageCopy | undefined>
}

/** A second consumer of the messages of a read, and whether it holds rows of a stream. */
export type MessageCopy = {
  readonly write: MessageConsumer
  readonly finish: () => Promise<unknown>
  readonly holdsRows?: HoldsRows
}

/** How a run ended: every stream finished, at least one failed, or a signal stopped the run. */
export type ReadOutcome = 'complete' | 'failed' | 'stopped'

/** The state that a read is given, over both protocols. */
export const stateOption = {
  type: 'string',
  value: 'FILE',
  help: 'The state to continue from; everything is read if left out',
} as const satisfies CommandOption

/** What a run reads, and from where it goes on. `order`: the streams in another order than the source's. */
type ReadSelection<Env> = Pick<ReadRun<Env>, 'catalog' | 'state' | 'previous' | 'holdsRows' | 'derives'> & {
  readonly order?: ReadonlyArray<Stream<Env>>
}

/**
 * The most records of a stream, on average of those that are read together, or milliseconds between two states: a
 * killed run loses no more than that.
 */
const checkpointInterval = { records: 5_000, millis: 30_000 }

const neverWait = (): (() => void) => () => undefined

/** The streams that the catalog wants incrementally and that can only be read in full. */
const listFullOnly = <Env>(streams: ReadonlyArray<Stream<Env>>, catalog: Catalog): ReadonlyArray<string> =>
  catalog.flatMap(({ name, syncMode }) => {
    const stream = streams.find((each) => each.name === name)
    return stream === undefined || stream.syncModes.includes(syncMode) ? [] : [name]
  })

/**
 * Reads the selected streams and passes each message, without secrets, to each consumer. A stream with the state of
 * another service fails.
 */
export const consumeMessages = async <Env>(
  io: Pick<CommandIo, 'stop' | 'redactText'>,
  { streams, env, service, onWait = neverWait }: OpenSource<Env>,
  { catalog, state, previous, holdsRows, derives, order = streams }: ReadSelection<Env>,
  consumers: ReadonlyArray<MessageConsumer>,
): Promise<ReadOutcome> => {
  let failed = false
  const limitYoungHeap = limitHeap()
  const consumeMessage = async (message: Message): Promise<void> => {
    failed = failed || message._tag === 'Failed'
    const redacted = redactMessage(io.redactText, addService(message, service?.fingerprint))
    for (const consume of consumers) await consume(redacted)
  }
  const isForeign = (stream: string): boolean => isForeignState(state[stream], service)
  for (const { name } of catalog)
    if (service !== undefined && isForeign(name))
      await consumeMessage({ _tag: 'Failed', stream: name, failure: foreignStateFailure(name, service.address) })
  const run = {
    streams: order,
    env,
    catalog: catalog.filter(({ name }) => !isForeign(name)),
    state: Object.fromEntries(Object.entries(state).map(([name, value]) => [name, removeService(value)])),
    ...defined({ previous, holdsRows, derives }),
    now: Date.now,
    checkpointInterval,
    stop: io.stop,
    onWait,
  }
  const messages = async function* (): AsyncGenerator<Message> {
    for (const name of listFullOnly(order, run.catalog))
      yield { _tag: 'Log', level: 'info', message: `${name} has no cursor: every run reads it in full.` }
    yield* readStreams(run)
  }
  for await (const message of messages()) {
    limitYoungHeap()
    await consumeMessage(message)
  }
  return io.stop.aborted ? 'stopped' : failed ? 'failed' : 'complete'
}

/** The message with its texts redacted; records and states are data and stay as they are. */
const redactMessage = (redact: (text: string) => string, message: Message): Message => {
  if (message._tag === 'Failed') return { ...message, failure: redactFailure(redact, message.failure) }
  return message._tag === 'Log' ? { ...message, message: redact(message.message) } : message
}
