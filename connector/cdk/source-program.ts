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

/** An answered request, for the log: its operation, HTTP status and duration in milliseconds. */
type RequestReport = { readonly operation: string; readonly status: number; readonly millis: number }

export type ConnectOptions = {
  /** Aborted when the run is stopped. */
  readonly stop: AbortSignal
  /** The environment variables, which may configure proxies. */
  readonly variables: CommandIo['env']
  readonly onRequest?: (report: RequestReport) => void
  /** Receives what a person should know about the connection. */
  readonly onNotice: (message: string) => void
}

/**
 * The service, and the account there, whose data a source reads. Each state carries the fingerprint, so that it is not
 * used with another service.
 */
export type ServiceIdentity = {
  /** For people. */
  readonly address: string
  /** A hash of the address, followed by a dot and a second hash if the account's name is known. Holds no secret. */
  readonly fingerprint: string
}

const hashText = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/**
 * The identity of the service at a URL. Ignores the case of the host, a default port and trailing slashes. `account`: a
 * name, not a secret.
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

/** True if two fingerprints are of the same service. Accounts are compared only if both are known. */
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

/** The states, or a failure that names the first stream whose state is from another service. */
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
  /** In reading order. */
  readonly streams: ReadonlyArray<Stream<Env>>
  readonly env: Env
  /** Without it, a state from any service is accepted. */
  readonly service?: ServiceIdentity
  readonly close?: () => Promise<void>
}

/** Receives each message of a run. The run continues when it resolves. */
export type MessageConsumer = (message: Message) => Promise<void>

/** The findings of a successful check, each a sentence. Warnings are also printed separately. */
type SourceCheckReport = { readonly warnings: ReadonlyArray<string>; readonly findings: ReadonlyArray<string> }

/** A source as the commands of both protocols run it. Each function may throw a `CommandError`. */
export type SourceProgram<Config, Env> = {
  /** Its programs are `source-NAME` and `tap-NAME`. */
  readonly name: string
  /** What it reads, as in "Airbyte source for WHAT". */
  readonly subject: string
  readonly version: () => string
  readonly format: ConfigFormat<Config>
  /** The streams under the settings of a config; without a config, under the default settings. */
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
  /** A full refresh ends with a message that all other rows are gone (Singer's ACTIVATE_VERSION). */
  readonly sendsTableVersions?: (config: Config) => boolean
  /** The config setting that leaves out an attribute inside an object; undefined if there is none. */
  readonly explainWithholding?: (stream: string, path: ReadonlyArray<string>) => Promise<string | undefined>
  /** A second consumer of the messages of a read. */
  readonly openCopy?: (config: Config) => Promise<MessageCopy | undefined>
}

/** A second consumer of the messages of a read. It also knows which streams it holds rows of. */
export type MessageCopy = {
  readonly write: MessageConsumer
  readonly finish: () => Promise<unknown>
  readonly holdsRows?: HoldsRows
}

/** How a run ended: every stream finished, at least one failed, or a signal stopped the run. */
export type ReadOutcome = 'complete' | 'failed' | 'stopped'

/** The option `--state`, the same in both protocols. */
export const stateOption = {
  type: 'string',
  value: 'FILE',
  help: 'The state to continue from; everything is read if left out',
} as const satisfies CommandOption

/** What a run reads, and from where it continues. `order`: the streams in a different order than the source's. */
type ReadSelection<Env> = Pick<ReadRun<Env>, 'catalog' | 'state' | 'previous' | 'holdsRows' | 'derives'> & {
  readonly order?: ReadonlyArray<Stream<Env>>
}

/**
 * The maximum between two states: records of a stream (on average over the streams that are read together), and
 * milliseconds. A killed run loses no more than that.
 */
const checkpointInterval = { records: 5_000, millis: 30_000 }

const neverWait = (): (() => void) => () => undefined

/** The streams that the catalog requests incrementally, although they can only be read in full. */
const listFullOnly = <Env>(streams: ReadonlyArray<Stream<Env>>, catalog: Catalog): ReadonlyArray<string> =>
  catalog.flatMap(({ name, syncMode }) => {
    const stream = streams.find((each) => each.name === name)
    return stream === undefined || stream.syncModes.includes(syncMode) ? [] : [name]
  })

/**
 * Reads the selected streams and passes each message, with secrets redacted, to each consumer. A stream whose state is
 * from another service fails.
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

/** The message with its texts redacted. Records and states are data and stay unchanged. */
const redactMessage = (redact: (text: string) => string, message: Message): Message => {
  if (message._tag === 'Failed') return { ...message, failure: redactFailure(redact, message.failure) }
  return message._tag === 'Log' ? { ...message, message: redact(message.message) } : message
}
