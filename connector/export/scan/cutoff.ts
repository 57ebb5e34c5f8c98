import * as O from 'fp-ts/Option'
import { toInstant } from '../../api'
import type { LogLevel } from '../../cdk'

const second = 1000

/** The second a time lies in; milliseconds. */
export const floorToSecond = (time: number): number => Math.floor(time / second) * second

/**
 * The `modifiedTimeFrom` of a run, in milliseconds: `lookback` behind the cursor, not before the start date, and one
 * second earlier, so that a service that means `>` and one that means `>=` serve the same rows.
 */
export const filterFrom = (startDate: number, cursor: O.Option<number>, lookback: number): number =>
  floorToSecond(O.isNone(cursor) ? startDate : Math.max(startDate, cursor.value - lookback)) - second

/** The cursor after a complete scan that `reached` so far: never backwards, unchanged where nothing was read. */
export const nextCursor = (cursor: O.Option<number>, reached: O.Option<number>): O.Option<number> => {
  if (O.isNone(cursor)) return reached
  return O.isNone(reached) ? cursor : O.some(Math.max(cursor.value, reached.value))
}

/**
 * How much further than `lookback` the next run must read back, milliseconds: a row that changed while a long pass was under
 * way may have taken the cursor past others that changed behind it, where the rows' clock is not the one in `Date`. A tenth
 * of the lookback makes up for short passes.
 */
export const cursorSlack = (cursor: O.Option<number>, certain: O.Option<number>, lookback: number): number => {
  const slack = O.isSome(cursor) && O.isSome(certain) ? Math.max(0, cursor.value - certain.value) : 0
  return slack <= lookback / 10 ? 0 : slack
}

export type RunNote = { readonly level: LogLevel; readonly message: string }

export const warningNote = (message: string): RunNote => ({ level: 'warn', message })
export const infoNote = (message: string): RunNote => ({ level: 'info', message })

const cutoffMargin = 5_000
const cutoffMarginWithoutClock = 300_000
const maxClockSkew = 60_000

/** The time a run reads up to, from the first answer's clock (milliseconds); the local clock only where there is none. */
export const chooseCutoff = (
  servedAt: number | undefined,
  now: number,
): readonly [time: number, notes: readonly RunNote[]] => {
  if (servedAt === undefined)
    return [
      now - cutoffMarginWithoutClock,
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
