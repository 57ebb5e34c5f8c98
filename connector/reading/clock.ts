import * as O from 'fp-ts/Option'
import { type LogLevel, toInstant } from '../cdk'

const second = 1000

/** The start of the second that a time lies in; milliseconds. */
export const floorToSecond = (time: number): number => Math.floor(time / second) * second

/** The first whole second at or after a time; milliseconds. */
export const ceilToSecond = (time: number): number => Math.ceil(time / second) * second

/**
 * The `modifiedTimeFrom` of a run, milliseconds: `lookback` before the cursor but not before the start date, and one
 * second earlier, so that a service that compares with `>` serves the same rows as one that compares with `>=`.
 */
export const filterFrom = (startDate: number, cursor: O.Option<number>, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : Math.max(startDate, cursor.value - lookback)) - second

/**
 * The cursor after a complete read whose newest row has the time `reached`: never earlier than before, the same if
 * nothing was read.
 */
export const nextCursor = (cursor: O.Option<number>, reached: O.Option<number>): O.Option<number> => {
  if (O.isNone(cursor)) return reached
  return O.isNone(reached) ? cursor : O.some(Math.max(cursor.value, reached.value))
}

/**
 * How much further than the lookback the next run must read back, milliseconds. A row that changes during a long read
 * can move the cursor past other rows that changed behind the reader, where `Date` is ahead of the clock that stamps
 * rows. The lookback is for rows that become visible late and stays whole, so none of this is taken out of it. Where
 * nothing is certain, it reaches to the start date: a single row, which may be dated in the future, does not tell how
 * far the clock is that stamps rows.
 */
export const cursorSlack = (cursor: O.Option<number>, certain: O.Option<number>, startDate: number): number =>
  O.isSome(cursor) ? Math.max(0, cursor.value - O.getOrElse(() => startDate)(certain)) : 0

export type RunNote = { readonly level: LogLevel; readonly message: string }

export const warningNote = (message: string): RunNote => ({ level: 'warn', message })
export const infoNote = (message: string): RunNote => ({ level: 'info', message })

const cutoffMargin = 5_000
const cutoffMarginWithoutDate = 300_000
const maxClockSkew = 60_000

/**
 * The time up to which a run reads: from the `Date` of the first answer (milliseconds), without one from the local
 * clock.
 */
export const chooseCutoff = (
  servedAt: number | undefined,
  now: number,
): readonly [time: number, notes: readonly RunNote[]] => {
  if (servedAt === undefined)
    return [
      now - cutoffMarginWithoutDate,
      [
        warningNote(
          'The service does not tell its time (no Date header): ' +
            'changes of the last 5 minutes are left for the next run.',
        ),
      ],
    ]
  const skew = now - servedAt
  const difference = `${Math.round(Math.abs(skew) / second)} s ${skew > 0 ? 'ahead of' : 'behind'}`
  return [
    servedAt - cutoffMargin,
    Math.abs(skew) <= maxClockSkew
      ? []
      : [
          warningNote(
            `The clock here is ${difference} the service's (${toInstant(servedAt)}). ` +
              `The service's is used; set the clock of this machine.`,
          ),
        ],
  ]
}

/**
 * A time that the clock which stamps rows has reached: the newest modifiedTime of a page but one, up to `latest`, the
 * time of the answer; -Infinity with fewer than two rows. One row that is dated in the future says nothing about that
 * clock.
 */
export const confirmedTime = (rows: ReadonlyArray<{ readonly modifiedTime: number }>, latest: number): number => {
  let newest = Number.NEGATIVE_INFINITY
  let second = Number.NEGATIVE_INFINITY
  for (const { modifiedTime } of rows) {
    if (modifiedTime > latest) continue
    second = Math.max(second, Math.min(newest, modifiedTime))
    newest = Math.max(newest, modifiedTime)
  }
  return second
}
