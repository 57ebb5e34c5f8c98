import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../api'
import {
  configFailure,
  decodeValue,
  type Failure,
  formatIssues,
  isSameService,
  type SourceState,
  serviceOfState,
} from '../cdk'
import type { ExportFilters } from '../export'
import {
  type Completion,
  createWindowToken,
  cursorSlack,
  decodeResumeToken,
  digestFilters,
  filterFrom,
  nextCursor,
  type ResumeToken,
  SentRange,
  SentRows,
  type Window,
} from '../reading'
import { isStartMovedBack, startAfterRun } from './start-date'

/** The state of an export stream as JSON: cursor, slack, start date, digest of the filters, sent rows, resume token. */
const ExportState = t.intersection([
  t.type({ modifiedTimeFrom: Instant }),
  t.partial({
    startDate: Instant,
    slack: t.number,
    filters: t.string,
    recent: SentRows,
    recentRange: SentRange,
    recentMissing: t.boolean,
    scan: t.unknown,
  }),
])

type ExportState = t.TypeOf<typeof ExportState>

/** The state of an export stream, decoded; times in milliseconds. */
export type ExportStreamState = {
  /** None: reads everything from the start date on. */
  readonly cursor: O.Option<number>
  /** The start date from which it was read (start-date.ts). */
  readonly readSince: O.Option<number>
  /** How much further back than the lookback the next run reads. */
  readonly slack: number
  readonly filtersDigest: O.Option<string>
  readonly sentRows: SentRows
  /** The range of sent rows, if there are too many to list. */
  readonly sentRange: O.Option<SentRange>
  /** None of the sent rows came again in the last run (known-rows.ts). */
  readonly areRowsMissing: boolean
  readonly resumeToken: O.Option<ResumeToken>
}

export const emptyExportState: ExportStreamState = {
  cursor: O.none,
  readSince: O.none,
  slack: 0,
  filtersDigest: O.none,
  sentRows: [],
  sentRange: O.none,
  areRowsMissing: false,
  resumeToken: O.none,
}

/** Decodes a stream's state, or returns an empty one for none. A failure names the stream and the key path. */
export const decodeExportState = (stream: string, state: O.Option<unknown>): E.Either<Failure, ExportStreamState> =>
  // A stream that was read from a lookup until now has a state of lookups.ts, so it starts over.
  O.isNone(state) || (t.UnknownRecord.is(state.value) && 'readAt' in state.value)
    ? E.right(emptyExportState)
    : pipe(
        decodeValue(ExportState, state.value),
        E.bimap(
          (issues) =>
            configFailure(
              `The state of ${stream} is wrong: ${formatIssues(issues)}. ` +
                'Give the state exactly as it was printed, or none to read everything.',
            ),
          ({
            modifiedTimeFrom,
            startDate,
            slack = 0,
            filters,
            recent = [],
            recentRange,
            recentMissing = false,
            scan,
          }) => ({
            cursor: O.some(toMillis(modifiedTimeFrom)),
            readSince: O.map(toMillis)(O.fromNullable(startDate)),
            slack: Math.max(0, slack),
            filtersDigest: O.fromNullable(filters),
            sentRows: recent,
            sentRange: O.fromNullable(recentRange),
            areRowsMissing: recentMissing,
            resumeToken: scan === undefined ? O.none : decodeResumeToken(scan),
          }),
        ),
      )

/**
 * The state from which a run continues: an empty one if start_date (milliseconds) was moved back, since everything is
 * read again.
 */
export const openExportState = (state: ExportStreamState, startDate: number): ExportStreamState =>
  isStartMovedBack(state.readSince, startDate) ? emptyExportState : state

/** From when a state reads, regardless of the start date; milliseconds. Without a cursor it has not read anything. */
export const readsOnFrom = ({ cursor, slack }: ExportStreamState, lookback: number): number =>
  O.isNone(cursor) ? Number.NEGATIVE_INFINITY : cursor.value - lookback - slack

/** The state after a complete scan; times in milliseconds. */
export const completeExportState = (
  state: ExportStreamState,
  { startDate, lookback }: { readonly startDate: number; readonly lookback: number },
  { newestRowTime, certainTime, sentRowsSince }: Completion,
): ExportStreamState => {
  const cursor = nextCursor(state.cursor, newestRowTime)
  const certain = O.map((time: number) => time - state.slack)(state.cursor)
  const slack = cursorSlack(cursor, nextCursor(certain, certainTime), startDate)
  const { rows, range } = sentRowsSince(filterFrom(startDate, cursor, lookback + slack))
  return {
    ...state,
    cursor,
    readSince: O.some(startAfterRun(state.readSince, startDate, readsOnFrom(state, lookback))),
    slack,
    sentRows: rows,
    sentRange: O.fromNullable(range),
    areRowsMissing: false,
    resumeToken: O.none,
  }
}

/** The state during a scan, as JSON; the cursor has not moved. `startDate` in milliseconds. */
export const encodeOpenScan = (
  state: ExportStreamState,
  startDate: number,
  filters: string,
  resumeToken: ResumeToken,
): ExportState => ({
  ...encodeExportState(state, startDate, filters),
  scan: resumeToken,
})

/** The state between scans, as JSON. `startDate` in milliseconds. */
export const encodeExportState = (
  { cursor, readSince, slack, sentRows, sentRange, areRowsMissing }: ExportStreamState,
  startDate: number,
  filters: string,
): ExportState => ({
  modifiedTimeFrom: toInstant(O.getOrElse(() => startDate)(cursor)),
  startDate: toInstant(O.getOrElse(() => startDate)(readSince)),
  ...(slack === 0 ? {} : { slack }),
  filters,
  ...(sentRows.length === 0 ? {} : { recent: sentRows }),
  ...(O.isNone(sentRange) ? {} : { recentRange: sentRange.value }),
  ...(areRowsMissing ? { recentMissing: true } : {}),
})

/** The most sent rows that a merged state remembers, the same as a scan's own state. */
const maxMergedRows = 1000

/**
 * Merges the states of the processes that shared a backfill into one, from which an ordinary connection continues: for
 * each stream the earliest cursor, and the rows that any process has sent since. Refuses a stream that a process has
 * not finished. Every process reads the whole of a stream that cannot be shared, so the first state is used.
 */
export const mergeStates = (states: ReadonlyArray<SourceState>): E.Either<Failure, SourceState> => {
  const services = states.flatMap((state) => Object.values(state)).flatMap((state) => serviceOfState(state) ?? [])
  if (services.some((service) => !isSameService(service, services[0] ?? service)))
    return E.left(configFailure('The states come from different services. Merge those of one service only.'))
  const names = [...new Set(states.flatMap((state) => Object.keys(state)))]
  return pipe(
    names,
    E.traverseArray((name) =>
      pipe(
        states.some((state) => isExportState(state[name]))
          ? pipe(
              states,
              E.traverseArrayWithIndex((index, state: SourceState) => requireComplete(name, index, state[name])),
              E.filterOrElse(haveOneStart, () => differentStartsFailure(name)),
              E.map(mergeExportStates),
            )
          : E.right(states.map((state) => state[name]).find(t.UnknownRecord.is) ?? {}),
        E.map((merged) => [name, merged] as const),
      ),
    ),
    E.map((entries) => Object.fromEntries(entries)),
  )
}

const isExportState = (state: unknown): boolean =>
  t.UnknownRecord.is(state) && (state.scan !== undefined || state.modifiedTimeFrom !== undefined)

type CompleteState = Readonly<Record<string, unknown>> & { readonly modifiedTimeFrom: string }

const requireComplete = (name: string, index: number, state: unknown): E.Either<Failure, CompleteState> => {
  const refuse = (problem: string) => E.left(configFailure(`State ${index + 1}: ${name} ${problem}.`))
  if (!t.UnknownRecord.is(state)) return refuse('is missing: its process has not read it. Run it to its end first')
  if (state.scan !== undefined) return refuse('is still being read. Run its process to its end first')
  return typeof state.modifiedTimeFrom === 'string'
    ? E.right({ ...state, modifiedTimeFrom: state.modifiedTimeFrom })
    : refuse('has no modifiedTimeFrom: it is not a state of this stream')
}

/** Shares are months counted from the start date. With another start date they would be other months. */
const haveOneStart = (states: ReadonlyArray<CompleteState>): boolean =>
  new Set(states.flatMap(({ startDate }) => (typeof startDate === 'string' ? [toMillis(startDate)] : []))).size <= 1

const differentStartsFailure = (stream: string): Failure =>
  configFailure(
    `The states of ${stream} were read from different start dates, so their ` +
      'shares leave gaps. Run every process with the same start_date to its end.',
  )

const mergeExportStates = (states: ReadonlyArray<CompleteState>): unknown => {
  const [first = { modifiedTimeFrom: '' }] = states
  const earliest = states.reduce((a, b) => (toMillis(b.modifiedTimeFrom) < toMillis(a.modifiedTimeFrom) ? b : a), first)
  const slack = Math.max(...states.map((state) => Number(state.slack ?? 0)))
  const recent = states.flatMap((state) => (Array.isArray(state.recent) ? state.recent : []))
  const distinct = [...new Map(recent.map((row) => [JSON.stringify(row), row])).values()]
  // Each range covers the rows of only one share. The first run of all sends them once more, and then knows them.
  const { recentRange: _, recentMissing: __, ...kept } = earliest
  return {
    ...kept,
    ...(slack === 0 ? {} : { slack }),
    recent: distinct.length > maxMergedRows ? [] : distinct,
  }
}

/** The time from which a state continues, for an export or a stream by entity. */
export const readStateCursor = (state: unknown): string | null => {
  const { modifiedTimeFrom, fromDate } = t.UnknownRecord.is(state) ? state : {}
  const cursor = modifiedTimeFrom ?? fromDate
  return typeof cursor === 'string' ? cursor : null
}

/** When the unfinished scan in an export's state began, milliseconds since 1970; undefined without one. */
export const readScanStart = (state: unknown): number | undefined =>
  pipe(
    t.UnknownRecord.is(state) ? decodeResumeToken(state.scan) : O.none,
    O.match(
      () => undefined,
      ({ begun }) => toMillis(begun),
    ),
  )

/** A version of a review that must be sent again, and when it was written, if known; milliseconds. */
type MissedVersion = { readonly modifiedTime: number; readonly mentionTime: number | undefined }

export type Rewind = {
  readonly stream: string
  /** The streams read in the same scan, including itself. */
  readonly together: ReadonlyArray<string>
  readonly versions: ReadonlyArray<MissedVersion>
  /** How many versions the service has since the oldest of them. */
  readonly newer: number
  /** From where the next run reads new rows if a state has no cursor; milliseconds. */
  readonly cutoff: number
}

/**
 * The states from which the next run sends these versions again: the stream's cursor goes back to the oldest of them.
 * If that is less to read, the run first reads only the seconds in which they were written. Such a state is valid for
 * 24 hours.
 */
export const rewindStates = (
  states: SourceState,
  { stream, together, versions, newer, cutoff }: Rewind,
  {
    startDate,
    lookback,
    pageSize,
    now,
    filters,
  }: {
    readonly startDate: number
    readonly lookback: number
    readonly pageSize: number
    readonly now: number
    readonly filters: ExportFilters
  },
): E.Either<Failure, SourceState> => {
  const given = states[stream]
  const oldest = versions.reduce((least, { modifiedTime }) => Math.min(least, modifiedTime), cutoff)
  const {
    recent: _,
    recentRange: __,
    recentMissing: ___,
    slack: ____,
    scan: _____,
    ...kept
  } = t.UnknownRecord.is(given) ? given : {}
  const rewound = { ...kept, modifiedTimeFrom: toInstant(oldest), filters: digestFilters(filters) }
  const windows = toMentionWindows(versions, filters)
  return pipe(
    together.filter((name) => states[name] !== undefined),
    E.traverseArray((name) => decodeExportState(name, O.fromNullable(states[name]))),
    E.map((others) => {
      const isSmaller = windows !== undefined && 2 * windows.length < newer / pageSize
      if (!isSmaller || others.some(({ resumeToken }) => O.isSome(resumeToken))) return { ...states, [stream]: rewound }
      const cursors = others.flatMap(({ cursor }) => (O.isSome(cursor) ? [cursor.value] : []))
      const reached = Math.min(cutoff, ...cursors)
      const [first, ...rest] = others.map(({ sentRows }) => sentRows)
      const areSame = rest.every((rows) => JSON.stringify(rows) === JSON.stringify(first))
      const scan = createWindowToken(
        digestFilters(filters),
        { startDate, cursor: O.some(oldest), lookback },
        {
          windows,
          reached,
          certain: reached - Math.max(0, ...others.map(({ slack }) => slack)),
          recent: areSame ? (first ?? []) : [],
          limit: pageSize,
          now,
        },
      )
      const siblings = together.flatMap((name) => {
        const own = states[name]
        return name !== stream && t.UnknownRecord.is(own) ? [[name, { ...own, scan }] as const] : []
      })
      return { ...states, ...Object.fromEntries(siblings), [stream]: { ...rewound, scan } }
    }),
  )
}

const second = 1000

/**
 * Windows around the seconds in which reviews were written; undefined if one of these times is unknown, or no window is
 * left.
 */
const toMentionWindows = (
  versions: ReadonlyArray<MissedVersion>,
  { mentionTimeAfter, mentionTimeBefore }: ExportFilters,
): ReadonlyArray<Window> | undefined => {
  // A window replaces the filters, so it must not reach beyond them.
  const start = mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(mentionTimeAfter)
  const end = mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(mentionTimeBefore)
  const times = versions.flatMap(({ mentionTime }) => (mentionTime === undefined ? [] : [mentionTime]))
  if (times.length < versions.length || times.length === 0) return undefined
  const spans: Array<{ after: number; before: number }> = []
  for (const time of [...times].sort((a, b) => a - b)) {
    const last = spans.at(-1)
    // Services differ in whether bounds are inclusive or have milliseconds.
    if (last !== undefined && time - second <= last.before) last.before = time + second
    else spans.push({ after: time - second, before: time + second })
  }
  return spans.map(({ after, before }) => ({ after: Math.max(after, start), before: Math.min(before, end) }))
}
