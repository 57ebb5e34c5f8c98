import * as O from 'fp-ts/Option'

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
