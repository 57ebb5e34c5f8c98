import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../api/model/scalar'
import type { ScanItem } from '../api/scan'
import { cursorSlack, filterFrom, nextCursor } from '../api/scan/cursor'
import { decodeResumeToken, type ResumeToken } from '../api/scan/marker'
import { SentRows } from '../api/scan/recent'
import { configFailure, type Failure } from '../cdk/failure'
import { decodeValue } from '../cdk/json'

/** State of an export stream (design.md, State): the cursor, what was filtered, what was sent, where a scan stands. */
const ExportState = t.intersection([
  t.type({ modifiedTimeFrom: Instant }),
  t.partial({ slack: t.number, filters: t.string, recent: SentRows, scan: t.unknown }),
])
type ExportState = t.TypeOf<typeof ExportState>

/** Where a stream stood; times in milliseconds. */
export type ExportStreamState = {
  /** None: everything from the start date on is wanted. */
  readonly cursor: O.Option<number>
  /** How much further than the lookback is to be read back. */
  readonly slack: number
  readonly filtersDigest: O.Option<string>
  readonly sentRows: SentRows
  readonly resumeToken: O.Option<ResumeToken>
}

export const emptyExportState: ExportStreamState = {
  cursor: O.none,
  slack: 0,
  filtersDigest: O.none,
  sentRows: [],
  resumeToken: O.none,
}

/** Reads a stream's state; a failure names the stream and the key path. */
export const decodeExportState = (stream: string, state: O.Option<unknown>): E.Either<Failure, ExportStreamState> =>
  // A stream that was looked up until now (lookups.ts) has a state, but none of an export.
  O.isNone(state) || (t.UnknownRecord.is(state.value) && 'readAt' in state.value)
    ? E.right(emptyExportState)
    : pipe(
        decodeValue(ExportState, state.value),
        E.bimap(
          (wrong) =>
            configFailure(
              `The state of ${stream} is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}. Give the state as it was printed, or none to read everything.`,
            ),
          ({ modifiedTimeFrom, slack = 0, filters, recent = [], scan }) => ({
            cursor: O.some(toMillis(modifiedTimeFrom)),
            slack: Math.max(0, slack),
            filtersDigest: O.fromNullable(filters),
            sentRows: recent,
            resumeToken: scan === undefined ? O.none : decodeResumeToken(scan),
          }),
        ),
      )

/** Where a stream stands once a scan is complete; times in milliseconds. */
export const completeExportState = (
  standing: ExportStreamState,
  { startDate, lookback }: { readonly startDate: number; readonly lookback: number },
  last: NonNullable<ScanItem['completion']>,
): ExportStreamState => {
  const cursor = nextCursor(standing.cursor, last.newest)
  const slack = cursorSlack(cursor, nextCursor(standing.cursor, last.certain), lookback)
  return {
    ...standing,
    cursor,
    slack,
    sentRows: last.recent(filterFrom(startDate, cursor, lookback + slack)),
    resumeToken: O.none,
  }
}

/** The state while a scan is under way: the cursor has not moved. `startDate` in milliseconds. */
export const encodeOpenScan = (
  standing: ExportStreamState,
  startDate: number,
  filters: string,
  scan: ResumeToken,
): ExportState => ({
  ...encodeExportState(standing, startDate, filters),
  scan,
})

/** The state where no scan is under way. */
export const encodeExportState = (
  { cursor, slack, sentRows }: ExportStreamState,
  startDate: number,
  filters: string,
): ExportState => ({
  modifiedTimeFrom: toInstant(cursorOrStartDate(cursor, startDate)),
  ...(slack === 0 ? {} : { slack }),
  filters: filters,
  ...(sentRows.length === 0 ? {} : { recent: sentRows }),
})

const cursorOrStartDate = (cursor: O.Option<number>, startDate: number): number =>
  O.isSome(cursor) ? cursor.value : startDate
