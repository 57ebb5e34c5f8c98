import type { ClientOptions } from '../api'
import {
  type CommandIo,
  type ConfiguredCatalog,
  decodeInput,
  findStreamById,
  type LogEntry,
  type LogLevel,
  type Message,
  noDeadLetters,
  type OpenSink,
  openDeadLetterFile,
  type Protocol,
  redactFailure,
  runOrThrow,
  setHeapGrowth,
  takeUntilAbort,
  toInputStream,
  type WriteResult,
  writeToSinks,
} from '../cdk'
import type { DestinationConfig } from '../config'
import { sinks } from '../sinks'
import { type ConfiguredDestination, openDestination, rejectAction } from './destination'

/** The most bytes of records in one batch. */
const maxBatchBytes = 1_000_000

/** The program that is written for: its protocol, the streams it configured, and where entries of the log go. */
export type WriteCaller = {
  readonly protocol: Protocol
  readonly catalog: ConfiguredCatalog
  readonly log?: (entry: LogEntry) => void
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

/** Writes the records of stdin and prints each acknowledged state and, at the end, each failure. A dry run sends nothing and prints no state. */
export const runWrite = async (
  io: CommandIo,
  config: DestinationConfig,
  { protocol, catalog, log: writeLogEntry = () => undefined }: WriteCaller,
  options: ClientOptions = {},
): Promise<WriteResult> => {
  const encoder = protocol.createEncoder({ now: Date.now })
  const emit = async (message: Message): Promise<void> => {
    const { lines, log: entries } = encoder.encode(message)
    entries.forEach(writeLogEntry)
    for (const text of lines) await io.print(text)
  }
  const log = (level: LogLevel, message: string): void => {
    // A broken output shows itself where a state or a failure is printed.
    emit({ _tag: 'Log', level, message: io.redactText(message) }).catch(() => undefined)
  }
  const decode = decodeInput(protocol, { purpose: 'deliver', now: Date.now, findStream: findStreamById(catalog) })
  const destination = await runOrThrow(
    openDestination(
      config,
      (message) => log('warn', message),
      options,
      (message) => log('info', message),
    ),
  )
  const { dry_run, dead_letter_path, batch_size, max_batch_age_seconds, rate_limit } = config
  const unsubscribe = destination.onWait((time) =>
    log('info', `The service makes us wait until ${new Date(time).toISOString()}.`),
  )
  // More than a read has: the batches in flight are short-lived, and a small heap would be collected over and over.
  setHeapGrowth(200)
  try {
    const result = await writeToSinks({
      input: (halt) => decode(takeUntilAbort(halt, io.stdin)),
      streams: catalog.map(toInputStream),
      objectNames: config.streams,
      sinks: await openSinks(destination),
      policy: { onReject: rejectAction(config), maxPercent: config.max_rejects_percent },
      batch: { count: batch_size, bytes: maxBatchBytes, millis: max_batch_age_seconds * 1000 },
      inFlight: rate_limit.max_concurrency,
      deadLetters: dead_letter_path === undefined || dry_run ? noDeadLetters : openDeadLetterFile(dead_letter_path),
      emit: dry_run ? async () => undefined : emit,
      log,
      now: Date.now,
      setTimer: scheduleCallback,
      stop: io.stop,
    })
    for (const [stream, { received, accepted, rejected }] of result.countsByStream)
      log(
        'info',
        `${stream}: ${received} received, ${accepted} ${dry_run ? 'would be sent' : 'accepted'}, ${rejected} rejected.`,
      )
    const failures = result.failures.map((failure) => redactFailure(io.redactText, failure))
    for (const failure of failures) await emit({ _tag: 'Failed', failure })
    return { ...result, failures }
  } finally {
    unsubscribe()
    await destination.close()
  }
}
