import { resolve } from 'node:path'
import * as E from 'fp-ts/Either'
import type { ClientOptions } from '../api'
import {
  type CommandIo,
  type ConfiguredCatalog,
  configFailure,
  countReasons,
  decodeInput,
  type Failure,
  findStreamById,
  hasOnlyRejections,
  type LogEntry,
  type LogLevel,
  type Message,
  noDeadLetters,
  type OpenSink,
  openDeadLetterFile,
  openResend,
  type Protocol,
  redactFailure,
  rejectionRemedy,
  runOrThrow,
  setHeapGrowth,
  takeUntilAbort,
  toInputStream,
  type WriteResult,
  type WriteRun,
  writeToSinks,
} from '../cdk'
import { type DestinationConfig, rejectAction } from '../config'
import { sinks } from '../sinks'
import { type ConfiguredDestination, openDestination } from './destination'

/** The most bytes of records in one batch. */
const maxBatchBytes = 1_000_000

/** The calling program: its protocol, its configured streams, and where log entries go. */
type WriteCaller = {
  readonly protocol: Protocol
  readonly catalog: ConfiguredCatalog
  readonly log?: (entry: LogEntry) => void
  /** A file of dead letters to send again instead of the records on stdin. */
  readonly resend?: string | undefined
}

const scheduleCallback = (millis: number, callback: () => void): (() => void) => {
  const timer = setTimeout(callback, millis)
  return () => clearTimeout(timer)
}

const openSinks = async ({ target }: ConfiguredDestination): Promise<ReadonlyMap<string, OpenSink<unknown>>> => {
  const openByName = new Map<string, OpenSink<unknown>>()
  for (const sink of sinks) openByName.set(sink.name, await runOrThrow(sink.open(target)))
  return openByName
}

type Log = (level: LogLevel, message: string) => void

/** Where a run gets its records, and where it keeps rejected ones. */
type WriteInput = Pick<WriteRun, 'input' | 'streams' | 'saysEndings' | 'policy' | 'deadLetters'> & {
  /** The file of `deadLetters`; undefined if they are not kept. */
  readonly letterPath: string | undefined
  /** Finishes the input after a run. Resolves to reasons why the run failed after all. */
  readonly end: (result: WriteResult) => Promise<ReadonlyArray<Failure>>
  readonly close: () => Promise<void>
}

const openStdin = ({ stdin }: CommandIo, config: DestinationConfig, { protocol, catalog }: WriteCaller): WriteInput => {
  const decode = decodeInput(protocol, { purpose: 'deliver', now: Date.now, findStream: findStreamById(catalog) })
  const letterPath = config.dry_run ? undefined : config.dead_letter_path
  return {
    input: (halt) => decode(takeUntilAbort(halt, stdin)),
    streams: catalog.map(toInputStream),
    saysEndings: catalog.some(({ generation }) => generation !== undefined),
    policy: { onReject: rejectAction(config), maxPercent: config.max_rejects_percent },
    deadLetters: letterPath === undefined ? noDeadLetters : openDeadLetterFile(letterPath),
    letterPath,
    end: async () => [],
    close: async () => undefined,
  }
}

/**
 * Rejections never end such a run. If it fails or is stopped, the file stays as it is, since everything may be sent
 * again.
 */
const openLetters = async (
  path: string,
  { dry_run }: DestinationConfig,
  stop: AbortSignal,
  log: Log,
): Promise<WriteInput> => {
  const objects = sinks.map(({ name }) => name)
  const { streams, unreadable, input, deadLetters, replaceFile, close } = await runOrThrow(openResend(path, objects))
  if (unreadable > 0) log('warn', `${path}: ${unreadable} lines cannot be read as dead letters, and stay in it.`)
  if (streams.length === 0) log('info', `${path} has no dead letter, so there is nothing to send.`)
  return {
    input,
    streams,
    saysEndings: false,
    policy: { onReject: 'continue', maxPercent: 100, mayRejectAll: true },
    deadLetters: dry_run ? noDeadLetters : deadLetters,
    letterPath: dry_run ? undefined : path,
    end: async ({ failures, inputFailures, countsByStream }) => {
      const isWhole = failures.length === 0 && inputFailures.length === 0 && !stop.aborted
      if (!isWhole) log('warn', `${path} is left as it was. Run again: what was sent is not counted twice.`)
      if (!isWhole) return []
      const replaced = dry_run ? E.right(undefined) : await replaceFile()
      const counts = [...countsByStream.values()]
      const isAllRejected = counts.length > 0 && counts.every(hasOnlyRejections)
      return [
        ...(E.isLeft(replaced) ? [replaced.left] : []),
        ...(isAllRejected ? [configFailure(`${path}: all records were rejected again. ${rejectionRemedy}.`)] : []),
      ]
    },
    close,
  }
}

/** Reports what became of each stream's records, and why some were rejected. */
const reportCounts = (
  { countsByStream }: WriteResult,
  summaries: ReadonlyArray<string>,
  { letterPath }: WriteInput,
  { dry_run }: DestinationConfig,
  log: Log,
): void => {
  const verb = dry_run ? 'would be sent' : 'accepted'
  for (const [stream, { received, accepted, rejected }] of countsByStream)
    log(
      'info',
      received === 0
        ? `${stream}: no records arrived, so nothing changes at the service.`
        : `${stream}: ${received} received, ${accepted} ${verb}, ${rejected} rejected.`,
    )
  const advice =
    letterPath !== undefined
      ? ` See ${resolve(letterPath)}, and send them again with --resend.`
      : dry_run
        ? ''
        : ' Their records are not kept, since dead_letter_path is not set.'
  for (const summary of summaries) log('warn', `${summary}${advice}`)
}

/** Prints the messages of a run: `emit` those that the protocol has a line for, `log` those for the user. */
const createOutput = (io: CommandIo, { protocol, log: writeLogEntry = () => undefined }: WriteCaller) => {
  const encoder = protocol.createEncoder({ now: Date.now })
  const emit = async (message: Message): Promise<void> => {
    const { lines, log: entries } = encoder.encode(message)
    entries.forEach(writeLogEntry)
    for (const text of lines) await io.print(text)
  }
  const log: Log = (level, message) => {
    // A broken output surfaces when a state or a failure is printed.
    emit({ _tag: 'Log', level, message: io.redactText(message) }).catch(() => undefined)
  }
  return { emit, log }
}

/**
 * Writes the records of stdin and prints each acknowledged state and, at the end, each failure. A dry run sends nothing
 * and prints no state.
 */
export const runWrite = async (
  io: CommandIo,
  config: DestinationConfig,
  caller: WriteCaller,
  options: ClientOptions = {},
): Promise<WriteResult> => {
  const { emit, log } = createOutput(io, caller)
  const destination = await runOrThrow(
    openDestination(
      config,
      (message) => log('warn', message),
      { proxyVariables: io.env, ...options },
      (message) => log('info', message),
    ),
  )
  const { dry_run, batch_size, max_batch_age_seconds, rate_limit } = config
  const unsubscribe = destination.onWait((time) =>
    log('info', `The service makes us wait until ${new Date(time).toISOString()}.`),
  )
  let input: WriteInput | undefined
  // More than for reading: the batches in flight are short-lived, and a small heap would be collected over and over.
  setHeapGrowth(200)
  try {
    input =
      caller.resend === undefined
        ? openStdin(io, config, caller)
        : await openLetters(caller.resend, config, io.stop, log)
    const { deadLetters, summaries } = countReasons(input.deadLetters)
    const result = await writeToSinks({
      ...input,
      deadLetters,
      objectNames: config.streams,
      sinks: await openSinks(destination),
      batch: { count: batch_size, bytes: maxBatchBytes, millis: max_batch_age_seconds * 1000 },
      inFlight: rate_limit.max_concurrency,
      emit: dry_run ? async () => undefined : emit,
      log,
      now: Date.now,
      setTimer: scheduleCallback,
      stop: io.stop,
    })
    const endFailures = await input.end(result)
    reportCounts(result, summaries(), input, config, log)
    for (const { message } of result.inputFailures) log('error', message)
    const failures = [...result.failures, ...endFailures].map((failure) => redactFailure(io.redactText, failure))
    for (const failure of failures) await emit({ _tag: 'Failed', failure })
    return { ...result, failures }
  } finally {
    await input?.close()
    unsubscribe()
    await destination.close()
  }
}
