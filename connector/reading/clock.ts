import * as O from 'fp-ts/Option'
import { type LogLevel, toInstant } from '../cdk'

const second = 1000

/** The start of the second that a time lies in; milliseconds. */
export const floorToSecond = (time: number): number => Math.floor(time / second) * second

/** The first whole second at or after a time; milliseconds. */
export const ceilToSecond = (time: number): number => Math.ceil(time / second) * second

/**
 * The `modifiedTimeFrom` of a run, in milliseconds: `lookback` before the cursor, but not before the start date, and
 * one second earlier still, so that a service that compares with `>` returns the same rows as one with `>=`.
 */
export const filterFrom = (startDate: number, cursor: O.Option<number>, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : Math.max(startDate, cursor.value - lookback)) - second

/**
 * The cursor after a complete read whose newest row has the time `reached`. Never moves back; stays if nothing was
 * read.
 */
export const nextCursor = (cursor: O.Option<number>, reached: O.Option<number>): O.Option<number> => {
  if (O.isNone(cursor)) return reached
  return O.isNone(reached) ? cursor : O.some(Math.max(cursor.value, reached.value))
}

/**
 * How much further back than the lookback the next run must read, in milliseconds. If `Date` is ahead of the clock that
 * stamps rows, a row that changes during a long read can move the cursor past rows that changed behind the reader. The
 * lookback itself is reserved for rows that become visible late. If no time is certain, the slack reaches back to the
 * start date: a single row may be dated in the future, so it says nothing about the clock that stamps rows.
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
 * The time up to which a run reads, in milliseconds: the `Date` of the first answer, or the local clock if it has none.
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
          'The service does not send its time (no Date header): ' +
            'the next run reads the changes of the last 5 minutes.',
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
              `The run uses the service's clock; set the clock of this machine.`,
          ),
        ],
  ]
}

/**
 * A time that the clock that stamps rows has surely reached: the second-newest modifiedTime of a page, at most `latest`
 * (the time of the answer). -Infinity with fewer than two rows, since a single row may be dated in the future.
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
