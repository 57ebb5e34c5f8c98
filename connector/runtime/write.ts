import type { ClientOptions } from '../api'
import {
  type CommandIo,
  type InputFeed,
  noDeadLetters,
  type OpenSink,
  openDeadLetterFile,
  redactFailure,
  takeUntilAbort,
  type WriteResult,
  writeToSinks,
} from '../cdk'
import { type DestinationConfig, runOrThrow } from '../config'
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
  const open = new Map<string, OpenSink<unknown>>()
  for (const sink of sinks) open.set(sink.name, await runOrThrow(sink.open(target)))
  return open
}

/** Writes what `arrivals` makes of stdin and prints each state that is answered; a dry run sends and answers nothing. */
export const runWrite = async (
  io: CommandIo,
  config: DestinationConfig,
  arrivals: (input: AsyncIterable<Uint8Array>) => InputFeed,
  plainly: WriteLog,
  options: ClientOptions = {},
): Promise<WriteResult> => {
  const log: WriteLog = (level, message) => plainly(level, io.redactText(message))
  const wired = await runOrThrow(openDestination(config, (message) => log('warn', message), options))
  const { dry_run, dead_letter_path, batch_size, max_batch_age_seconds, rate_limit } = config
  const quiet = wired.onWait((time) => log('info', `The service makes us wait until ${new Date(time).toISOString()}.`))
  // More than a read may have: what is under way is short-lived, and would be looked through again and again.
  setHeapGrowth(200)
  try {
    const written = await writeToSinks({
      input: (halt) => arrivals(takeUntilAbort(halt, io.stdin)),
      sinks: await openSinks(wired),
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
    for (const [stream, { received, accepted, rejected }] of written.countsByStream)
      log(
        'info',
        `${stream}: ${received} received, ${accepted} ${dry_run ? 'would be sent' : 'accepted'}, ${rejected} rejected.`,
      )
    return { ...written, failures: written.failures.map((failure) => redactFailure(io.redactText, failure)) }
  } finally {
    quiet()
    await wired.close()
  }
}
