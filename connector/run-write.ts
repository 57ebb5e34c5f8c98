import type { ClientOptions } from './api/client'
import type { Io } from './cdk/cli'
import { redactFailure } from './cdk/redact'
import type { OpenSink } from './cdk/sink'
import { type Written, write } from './cdk/write'
import type { Arrivals } from './cdk/write/arrivals'
import { deadLetterFile, noDeadLetters } from './cdk/write/dead-letters'
import { until } from './cdk/write/until'
import type { DestinationConfig } from './destination-config'
import { smallOldHeap } from './heap'
import { runOrStop } from './load'
import { sinks } from './sinks'
import { onReject, type WiredDestination, wireDestination } from './wire-destination'

/** The most bytes of records in one batch. */
const batchBytes = 1_000_000

export type Log = (level: 'info' | 'warn', message: string) => void

const after = (millis: number, callback: () => void): (() => void) => {
  const timer = setTimeout(callback, millis)
  return () => clearTimeout(timer)
}

const openSinks = async ({ target }: WiredDestination): Promise<ReadonlyMap<string, OpenSink<unknown>>> => {
  const open = new Map<string, OpenSink<unknown>>()
  for (const sink of sinks) open.set(sink.name, await runOrStop(sink.open(target)))
  return open
}

/** Writes what `arrivals` makes of stdin and prints each state that is answered; a dry run sends and answers nothing. */
export const runWrite = async (
  io: Io,
  config: DestinationConfig,
  arrivals: (input: AsyncIterable<Uint8Array>) => Arrivals,
  plainly: Log,
  options: ClientOptions = {},
): Promise<Written> => {
  const log: Log = (level, message) => plainly(level, io.clean(message))
  const wired = await runOrStop(wireDestination(config, (message) => log('warn', message), options))
  const { dry_run, dead_letter_path, batch_size, max_batch_age_seconds, rate_limit } = config
  const quiet = wired.onWait((time) => log('info', `The service makes us wait until ${new Date(time).toISOString()}.`))
  // More than a read may have: what is under way is short-lived, and would be looked through again and again.
  smallOldHeap(200)
  try {
    const written = await write({
      arrivals: (halt) => arrivals(until(halt, io.stdin)),
      sinks: await openSinks(wired),
      policy: { onReject: onReject(config), maxPercent: config.max_rejects_percent },
      batch: { count: batch_size, bytes: batchBytes, millis: max_batch_age_seconds * 1000 },
      inFlight: rate_limit.max_concurrency,
      deadLetters: dead_letter_path === undefined || dry_run ? noDeadLetters : deadLetterFile(dead_letter_path),
      answer: dry_run ? async () => undefined : io.print,
      log,
      now: Date.now,
      after,
      stop: io.stop,
    })
    for (const [stream, { received, accepted, rejected }] of written.tallies)
      log(
        'info',
        `${stream}: ${received} received, ${accepted} ${dry_run ? 'would be sent' : 'accepted'}, ${rejected} rejected.`,
      )
    return { ...written, failures: written.failures.map((failure) => redactFailure(io.clean, failure)) }
  } finally {
    quiet()
    await wired.close()
  }
}
