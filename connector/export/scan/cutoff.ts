import * as O from 'fp-ts/Option'
import { toInstant } from '../../api'
import type { LogLevel } from '../../cdk'

const second = 1000

/** The start of the second that a time lies in; milliseconds. */
export const floorToSecond = (time: number): number => Math.floor(time / second) * second

/** The first whole second at or after a time; milliseconds. */
export const ceilToSecond = (time: number): number => Math.ceil(time / second) * second

/**
 * The `modifiedTimeFrom` of a run, milliseconds: `lookback` before the cursor but not before the start date, and one second
 * earlier, so that a service that compares with `>` serves the same rows as one that compares with `>=`.
 */
export const filterFrom = (startDate: number, cursor: O.Option<number>, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : Math.max(startDate, cursor.value - lookback)) - second

/** The cursor after a complete scan whose newest row has the time `reached`: never earlier than before, the same if nothing was read. */
export const nextCursor = (cursor: O.Option<number>, reached: O.Option<number>): O.Option<number> => {
  if (O.isNone(cursor)) return reached
  return O.isNone(reached) ? cursor : O.some(Math.max(cursor.value, reached.value))
}

/**
 * How much further than the lookback the next run must read back, milliseconds. A row that changes during a long pass can move the
 * cursor past other rows that changed behind the reader, where `Date` is ahead of the clock that stamps rows. The lookback is for
 * rows that become visible late and stays whole, so none of this is taken out of it. Where nothing is certain, it reaches to the start
 * date: a single row, which may be dated in the future, does not tell how far the clock is that stamps rows.
 */
export const cursorSlack = (cursor: O.Option<number>, certain: O.Option<number>, startDate: number): number =>
  O.isSome(cursor) ? Math.max(0, cursor.value - O.getOrElse(() => startDate)(certain)) : 0

export type RunNote = { readonly level: LogLevel; readonly message: string }

export const warningNote = (message: string): RunNote => ({ level: 'warn', message })
export const infoNote = (message: string): RunNote => ({ level: 'info', message })

const cutoffMargin = 5_000
const cutoffMarginWithoutDate = 300_000
const maxClockSkew = 60_000

/** The time up to which a run reads: from the `Date` of the first answer (milliseconds), from the local clock only without one. */
export const chooseCutoff = (
  servedAt: number | undefined,
  now: number,
): readonly [time: number, notes: readonly RunNote[]] => {
  if (servedAt === undefined)
    return [
      now - cutoffMarginWithoutDate,
      [
        warningNote(
          'The service does not tell its time (no Date header): changes of the last 5 minutes are left for the next run.',
        ),
      ],
    ]
  const skew = now - servedAt
  return [
    servedAt - cutoffMargin,
    Math.abs(skew) <= maxClockSkew
      ? []
      : [
          warningNote(
            `The clock here is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'} the service's (${toInstant(servedAt)}). The service's is used; set the clock of this machine.`,
          ),
        ],
  ]
}
