import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import { toInstant } from '../api'
import { configFailure, type Failure, type ReaderEvent } from '../cdk'
import { watchPages } from './watch-pages'

/**
 * What `start_date` means for a stream that already has a state, and what the service's time means for both. All times
 * are in milliseconds since 1970. `readSince`: the start that a state remembers; none in a state that remembers no
 * start, which counts as read from the start of the config that it is first used with.
 */

/**
 * The config's start is earlier than the one from which a state was read. Rows in between are missing, so everything is
 * read again.
 */
export const isStartMovedBack = (readSince: O.Option<number>, startDate: number): boolean =>
  O.isSome(readSince) && startDate < readSince.value

/**
 * The start that a state remembers after a run that continued from `from`. A later start in the config leaves the older
 * rows complete, unless it is after `from`: the run then skipped the time in between.
 */
export const startAfterRun = (readSince: O.Option<number>, startDate: number, from: number): number =>
  O.isSome(readSince) && readSince.value < startDate && startDate <= from ? readSince.value : startDate

/** The message that streams are read again, and what it costs. */
export const movedBackNote = (streams: ReadonlyArray<string>, readSince: number, startDate: number): ReaderEvent => ({
  _tag: 'Note',
  level: 'warn',
  message:
    `${streams.join(', ')}: start_date moved back from ${toInstant(readSince)} to ` +
    `${toInstant(startDate)}, so everything since then is read again. This costs ` +
    'as much as a first sync, and rows that you already have are sent again.',
})

/** A `Date` header has whole seconds. */
const dateError = 1_000

/**
 * Why a run cannot start: no row is as late as `start_date`, and a cursor that far ahead would hide all changes until
 * then.
 */
export const futureStartFailure = (startDate: number, serviceTime: number): Failure | undefined =>
  startDate < serviceTime + dateError
    ? undefined
    : {
        ...configFailure(
          `start_date (${toInstant(startDate)}) lies in the future: it is ${toInstant(serviceTime)} ` +
            'now. Nothing can be read from there; give an earlier start_date.',
        ),
        scope: 'run',
      }

/** How far a cursor may be ahead of the service's time: as much as the cutoff of a run allows for clock differences. */
const clockTolerance = 300_000

/** The next run would start in the future, so it would never see the changes until then. */
export const isAheadOfService = (from: number, serviceTime: number): boolean => from > serviceTime + clockTolerance

export const futureCursorFailure = (cursor: number, serviceTime: number): Failure =>
  configFailure(
    `The state reaches to ${toInstant(cursor)}, and it is ${toInstant(serviceTime)} now: ` +
      'no change before then would ever be read. Read the stream again in full: feedback ' +
      'sync --full-refresh, or Refresh or Clear on the platform, or a run without its state.',
  )

/** Passes pages on and remembers the service's time from the first one: its `Date`, or else the local clock. */
export const watchServiceTime = <Args extends ReadonlyArray<unknown>, Err, Page extends { readonly servedAt?: number }>(
  fetch: (...args: Args) => TaskEither<Err, Page>,
  now: () => number,
): { readonly fetch: (...args: Args) => TaskEither<Err, Page>; readonly serviceTime: () => number | undefined } => {
  let time: number | undefined
  return {
    fetch: watchPages(fetch, ({ servedAt }) => {
      time ??= servedAt ?? now()
    }),
    serviceTime: () => time,
  }
}
