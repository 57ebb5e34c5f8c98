import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../api'
import { configFailure, decodeValue, type Failure, type SourceState } from '../cdk'
import {
  cursorSlack,
  decodeResumeToken,
  filterFrom,
  nextCursor,
  type ResumeToken,
  type ScanItem,
  SentRows,
} from '../export'

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

/** Most rows a state remembers as sent, as in the scan's own states. */
const maxMergedRows = 1000

/**
 * The one state from which an ordinary connection goes on after a backfill that was shared: per stream the earliest cursor, and
 * what any of the processes has sent since. A stream that one of them has not finished is refused. Streams that are not
 * shared were read whole by each process: there the first state stands for all.
 */
export const mergeStates = (states: ReadonlyArray<SourceState>): E.Either<Failure, SourceState> => {
  const names = [...new Set(states.flatMap((state) => Object.keys(state)))]
  return pipe(
    names,
    E.traverseArray((name) =>
      pipe(
        states.some((state) => isExportState(state[name]))
          ? pipe(
              states,
              E.traverseArrayWithIndex((i, state: SourceState) => requireComplete(name, i, state[name])),
              E.map(mergeExportStates),
            )
          : E.right(states.map((state) => state[name]).find(t.UnknownRecord.is) ?? {}),
        E.map((one) => [name, one] as const),
      ),
    ),
    E.map((entries) => Object.fromEntries(entries)),
  )
}

const isExportState = (state: unknown): boolean =>
  t.UnknownRecord.is(state) && (state.scan !== undefined || state.modifiedTimeFrom !== undefined)

type CompleteState = Readonly<Record<string, unknown>> & { readonly modifiedTimeFrom: string }

const requireComplete = (name: string, i: number, state: unknown): E.Either<Failure, CompleteState> => {
  const wrong = (problem: string) => E.left(configFailure(`State ${i + 1}: ${name} ${problem}.`))
  if (!t.UnknownRecord.is(state)) return wrong('is missing: its process has not read it. Run it to its end first')
  if (state.scan !== undefined) return wrong('is still being read. Run its process to its end first')
  return typeof state.modifiedTimeFrom === 'string'
    ? E.right({ ...state, modifiedTimeFrom: state.modifiedTimeFrom })
    : wrong('has no modifiedTimeFrom: it is no state of this stream')
}

const mergeExportStates = (states: ReadonlyArray<CompleteState>): unknown => {
  const [first = { modifiedTimeFrom: '' }] = states
  const earliest = states.reduce((a, b) => (toMillis(b.modifiedTimeFrom) < toMillis(a.modifiedTimeFrom) ? b : a), first)
  const slack = Math.max(...states.map((state) => Number(state.slack ?? 0)))
  const recent = states.flatMap((state) => (Array.isArray(state.recent) ? state.recent : []))
  const distinct = [...new Map(recent.map((row) => [JSON.stringify(row), row])).values()]
  return {
    ...earliest,
    ...(slack === 0 ? {} : { slack }),
    recent: distinct.length > maxMergedRows ? [] : distinct,
  }
}
