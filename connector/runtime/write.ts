import type { ClientOptions } from '../api'
import {
  type CommandIo,
  type InputFeed,
  noDeadLetters,
  type OpenSink,
  openDeadLetterFile,
  redactFailure,
  runOrThrow,
  takeUntilAbort,
  type WriteResult,
  writeToSinks,
} from '../cdk'
import type { DestinationConfig } from '../config'
import { sinks } from '../sinks'
import { type ConfiguredDestination, openDestination, rejectAction } from './destination'
import { setHeapGrowth } from './heap'

/** The most bytes of records in one batch. */
const maxBatchBytes = 1_000_000

export type WriteLog = (level: 'info' | 'warn', message: string) => void

const scheduleCallback = (millis: number, callback: () => void): (() => void) => {
  const timer = setTimeout(callback, millis)
  return () => clearTimeout(timer)
}

const openSinks = async ({ target }: ConfiguredDestination): Promise<ReadonlyMap<string, OpenSink<unknown>>> => {
  const openByName = new Map<string, OpenSink<unknown>>()
  for (const sink of sinks) openByName.set(sink.name, await runOrThrow(sink.open(target)))
  return openByName
}

/** Writes the records of stdin, as `decode` reads them, and prints each acknowledged state. A dry run sends and prints nothing. */
export const runWrite = async (
  io: CommandIo,
  config: DestinationConfig,
  decode: (input: AsyncIterable<Uint8Array>) => InputFeed,
  writeLog: WriteLog,
  options: ClientOptions = {},
): Promise<WriteResult> => {
  const log: WriteLog = (level, message) => writeLog(level, io.redactText(message))
  const destination = await runOrThrow(openDestination(config, (message) => log('warn', message), options))
  const { dry_run, dead_letter_path, batch_size, max_batch_age_seconds, rate_limit } = config
  const unsubscribe = destination.onWait((time) =>
    log('info', `The service makes us wait until ${new Date(time).toISOString()}.`),
  )
  // More than a read has: the batches in flight are short-lived, and a small heap would be collected over and over.
  setHeapGrowth(200)
  try {
    const result = await writeToSinks({
      input: (halt) => decode(takeUntilAbort(halt, io.stdin)),
      sinks: await openSinks(destination),
      policy: { onReject: rejectAction(config), maxPercent: config.max_rejects_percent },
      batch: { count: batch_size, bytes: maxBatchBytes, millis: max_batch_age_seconds * 1000 },
      inFlight: rate_limit.max_concurrency,
      deadLetters: dead_letter_path === undefined || dry_run ? noDeadLetters : openDeadLetterFile(dead_letter_path),
      acknowledge: dry_run ? async () => undefined : io.print,
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
    return { ...result, failures: result.failures.map((failure) => redactFailure(io.redactText, failure)) }
  } finally {
    unsubscribe()
    await destination.close()
  }
}
