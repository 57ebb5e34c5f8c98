import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../api/model/scalar'
import type { ScanItem } from '../api/scan'
import { filterFrom, nextCursor, slackBehind } from '../api/scan/cursor'
import { type Marker, toMarker } from '../api/scan/marker'
import { Recent } from '../api/scan/recent'
import { configFailure, type Failure } from '../cdk/failure'
import { decode } from '../cdk/json'

/** State of an export stream (design.md, State): the cursor, what was filtered, what was sent, where a scan stands. */
const ExportState = t.intersection([
  t.type({ modifiedTimeFrom: Instant }),
  t.partial({ slack: t.number, filters: t.string, recent: Recent, scan: t.unknown }),
])
type ExportState = t.TypeOf<typeof ExportState>

/** Where a stream stood; times in milliseconds. */
export type Standing = {
  /** None: everything from the start date on is wanted. */
  readonly cursor: O.Option<number>
  /** How much further than the lookback is to be read back. */
  readonly slack: number
  readonly filters: O.Option<string>
  readonly recent: Recent
  readonly marker: O.Option<Marker>
}

export const fresh: Standing = { cursor: O.none, slack: 0, filters: O.none, recent: [], marker: O.none }

/** Reads a stream's state; a failure names the stream and the key path. */
export const standingOf = (stream: string, state: O.Option<unknown>): E.Either<Failure, Standing> =>
  // A stream that was looked up until now (lookups.ts) has a state, but none of an export.
  O.isNone(state) || (t.UnknownRecord.is(state.value) && 'readAt' in state.value)
    ? E.right(fresh)
    : pipe(
        decode(ExportState, state.value),
        E.bimap(
          (wrong) =>
            configFailure(
              `The state of ${stream} is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}. Give the state as it was printed, or none to read everything.`,
            ),
          ({ modifiedTimeFrom, slack = 0, filters, recent = [], scan }) => ({
            cursor: O.some(toMillis(modifiedTimeFrom)),
            slack: Math.max(0, slack),
            filters: O.fromNullable(filters),
            recent,
            marker: scan === undefined ? O.none : toMarker(scan),
          }),
        ),
      )

/** Where a stream stands once a scan is complete; times in milliseconds. */
export const completed = (
  standing: Standing,
  { startDate, lookback }: { readonly startDate: number; readonly lookback: number },
  last: NonNullable<ScanItem['last']>,
): Standing => {
  const cursor = nextCursor(standing.cursor, last.newest)
  const slack = slackBehind(cursor, nextCursor(standing.cursor, last.certain), lookback)
  return {
    ...standing,
    cursor,
    slack,
    recent: last.recent(filterFrom(startDate, cursor, lookback + slack)),
    marker: O.none,
  }
}

/** The state while a scan is under way: the cursor has not moved. `startDate` in milliseconds. */
export const underWay = (standing: Standing, startDate: number, filters: string, scan: Marker): ExportState => ({
  ...settled(standing, startDate, filters),
  scan,
})

/** The state where no scan is under way. */
export const settled = ({ cursor, slack, recent }: Standing, startDate: number, filters: string): ExportState => ({
  modifiedTimeFrom: toInstant(cursorOf(cursor, startDate)),
  ...(slack === 0 ? {} : { slack }),
  filters,
  ...(recent.length === 0 ? {} : { recent }),
})

const cursorOf = (cursor: O.Option<number>, startDate: number): number => (O.isSome(cursor) ? cursor.value : startDate)
