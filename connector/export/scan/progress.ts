import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { configFailure, type Failure, transientFailure } from '../../cdk'
import type { ExportPage } from '../fetch-page'
import { infoNote, type RunNote, warningNote } from './cutoff'
import type { RowHistory } from './history'
import type { Accepted } from './pass'
import {
  areRowsCounted,
  countStableRounds,
  type ExactRounds,
  lacksRows,
  newPass,
  type ScanContext,
  type ScanState,
} from './state'
import {
  containsMention,
  ignoresBounds,
  isExact,
  readMentionTime,
  type ScanWindow,
  splitWindow,
  toExactWindows,
  wholeWindow,
} from './window'

type AdvanceResult = E.Either<Failure, readonly [ScanState, ReadonlyArray<RunNote>]>

/** The state after a page that was accepted: the next page of the pass, the next window, the parts of this one, or a failure. */
export const advanceScan = (
  context: ScanContext,
  history: RowHistory,
  state: ScanState,
  page: ExportPage,
  verdict: Accepted,
): AdvanceResult => {
  switch (verdict._tag) {
    case 'Done':
      return pipe(
        finishWindow(context, history, state),
        E.map(([next, notes]) => [
          next,
          verdict.isOffsetIgnored ? [...notes, repeatedPageWarning(context, page)] : notes,
        ]),
      )
    case 'Next':
      return E.right([{ ...state, pass: verdict.pass }, []])
    case 'Uncertified':
      return advanceUncertified(context, history, state, page, verdict)
  }
}

/** A part is split, and a sweep is read in rounds. A window that is read in rounds goes on, since it is complete by its rounds. */
const advanceUncertified = (
  context: ScanContext,
  history: RowHistory,
  state: ScanState,
  page: ExportPage,
  verdict: Extract<Accepted, { readonly _tag: 'Uncertified' }>,
): AdvanceResult => {
  const kind = state.windows[0]?.kind
  if (kind === 'part')
    return context.rules.halving
      ? splitCurrentWindow(context, history, state, page, verdict.reason)
      : finishWindow(context, history, state)
  if (kind === 'sweep' && !verdict.isOffsetIgnored)
    return E.right(
      startRounds(
        context,
        history,
        state,
        state.windows.map((window, n) => (n === 0 ? { ...window, kind: 'exactSweep', hasRows: true } : window)),
        verdict.reason,
      ),
    )
  if (verdict.isOffsetIgnored && isExact(state.windows[0])) return E.left(ignoredOffsetFailure(context))
  const uncertified = { ...state, isUncertified: true }
  if (verdict.isOffsetIgnored)
    return pipe(
      finishWindow(context, history, uncertified),
      E.map(([next, notes]) => [next, [...notes, unreachableRowsWarning(context)]]),
    )
  return verdict.pass === undefined
    ? finishWindow(context, history, uncertified)
    : E.right([{ ...uncertified, pass: verdict.pass }, []])
}

const repeatedPageWarning = ({ operation }: ScanContext, { rows }: ExportPage): RunNote =>
  warningNote(
    `${operation}: the same ${rows.length} rows come at every offset. They are fewer than a page may hold, so they are taken for all rows there are.`,
  )

const unreachableRowsWarning = ({ operation }: ScanContext): RunNote =>
  warningNote(
    `${operation}: from some offset on the same rows come again and again, so reviews without a mention time that come later cannot be read. Compare with \`feedback verify --config\`.`,
  )

const ignoredOffsetFailure = ({ operation }: ScanContext): Failure =>
  configFailure(
    `${operation}: the service ignores offset: the same rows come at further offsets, and the export cannot be split into smaller parts. It is not certain that everything was read, so the cursor of the stream did not move; ask the service's operator.`,
  )

/** Goes on with the next window, or reads an `exact` one again if it has to be. */
const finishWindow = (context: ScanContext, history: RowHistory, state: ScanState): AdvanceResult => {
  history.startPass()
  const next: ScanState = {
    ...state,
    windows: state.windows.slice(1),
    pass: newPass(state.from),
    isUncertified: false,
    exactRounds: undefined,
  }
  const window = state.windows[0]
  if (isExact(window) && state.exactRounds !== undefined)
    return repeatExactRound(context, state, state.exactRounds, next)
  return E.right([next, []])
}

const doublesWarning = ({ operation }: ScanContext, count: number): RunNote =>
  warningNote(
    `${operation}: ${count} rows of the list are rows that it shows in another place too. Each row was read once; tell the service's operator.`,
  )

const maxExactRounds = 10
const minEmptyRounds = 3
/** For a list that keeps its length and hardly brings a new row: another round is cheaper than a new scan. */
const maxQuietRounds = 30

/**
 * Ends an `exact` window after three rounds in a row that brought nothing new, if as many rows were read as the list has. In a random
 * order a page leaves out each row with the same probability: a round of a long list misses one in 50, four rounds one in ten
 * million. A round that brought far fewer rows than the one before says nothing. A list that stays as it is may be longer than its
 * rows: it shows some of them twice. `next`: the state behind the window.
 */
const repeatExactRound = (
  context: ScanContext,
  state: ScanState,
  rounds: ExactRounds,
  next: ScanState,
): AdvanceResult => {
  const { round, rowCount, listLength, firstLength = listLength, versions, readIn, places } = rounds
  const isWhole = rowCount >= rounds.rowsBefore * 0.8
  const emptyRounds = rounds.newRows > 0 ? 0 : rounds.emptyRounds + (isWhole ? 1 : 0)
  const stableRounds = countStableRounds(rounds)
  const isLonger = lacksRows(rounds)
  // Pages that overlap by three quarters, and three rounds of them, show the same row in each place: no row is hidden, some stand twice.
  const isLacking = isLonger && stableRounds < minEmptyRounds
  // If all rows of the list were read and none is one of a sweep's, there is none.
  const isNothingFound = state.windows[0]?.kind === 'exactSweep' && versions.size === 0 && areRowsCounted(rounds)
  if (emptyRounds >= (isNothingFound ? 1 : minEmptyRounds) && !isLacking)
    return E.right([
      next,
      [
        infoNote(`${context.operation}: ${readIn.size} ids were held in memory to read a part that keeps no order.`),
        ...(isLonger ? [doublesWarning(context, listLength - readIn.size)] : []),
      ],
    ])
  // A list that grows by half is longer with each round, so it would not come to an end.
  const isGrowing = listLength > firstLength * 1.5 + 4 * state.longestPage
  const isQuiet = listLength === firstLength && rounds.newRows <= rowCount / 50
  return isGrowing || round >= (isQuiet ? maxQuietRounds : maxExactRounds)
    ? E.left(
        transientFailure(
          `${context.operation}: the service's rows changed place faster than they could be read, in ${round} attempts. The cursor of the stream did not move: run again, at a quieter time if possible.`,
        ),
      )
    : E.right([
        {
          ...state,
          pass: newPass(state.from),
          isUncertified: false,
          exactRounds: {
            ...rounds,
            round: round + 1,
            emptyRounds,
            newRows: 0,
            rowCount: 0,
            lateRows: 0,
            rowsBefore: rowCount,
            listLength: 0,
            firstLength,
            places: places.slice(0, listLength),
            isStable: true,
            stableRounds,
          },
        },
        [],
      ])
}

/** The most rows that one request may ask for (the service's specification, Limits). A window without order is best read in one page. */
const maxPageRows = 1000

/** More windows at a time come only of windows that do not become smaller. */
const maxWindows = 64

/** Goes on with windows that are read in rounds. */
const startRounds = (
  { operation }: ScanContext,
  history: RowHistory,
  state: ScanState,
  windows: ReadonlyArray<ScanWindow>,
  reason: string,
): readonly [ScanState, ReadonlyArray<RunNote>] => {
  history.startPass()
  return [
    {
      ...state,
      limit: Math.max(state.limit, maxPageRows),
      windows,
      pass: newPass(state.from),
      isUncertified: false,
    },
    [warningNote(`${operation}: ${reason}; everything is read in rounds until nothing new comes, some rows twice.`)],
  ]
}

/** Replaces the current window by smaller ones. Only the first split of the whole export is worth a warning. */
const splitCurrentWindow = (
  context: ScanContext,
  history: RowHistory,
  state: ScanState,
  page: ExportPage,
  reason: string,
): AdvanceResult => {
  const [window, ...others] = state.windows
  if (window === undefined) return E.right([state, []])
  const times = context.hasMentionTime ? page.rows.map(readMentionTime) : []
  // Without this, windows could be split without end: they would all have the same rows.
  if (ignoresBounds(window, times) || state.windows.length > maxWindows + (context.windows ?? []).length)
    return E.right(
      startRounds(
        context,
        history,
        state,
        toExactWindows(context.windows ?? [wholeWindow], state.windows).map((one) => ({ ...one, hasRows: true })),
        'the service does not keep to the filters by mention time',
      ),
    )
  history.startPass()
  const mentionTimes = times.filter((time) => time !== undefined)
  const parts = splitWindow(context.filters, window, {
    mentionTimes: context.hasMentionTime ? mentionTimes : undefined,
    cutoff: state.cutoff ?? 0,
  }).map(
    (part): ScanWindow => ({
      ...part,
      hasRows:
        part.sources === window.sources &&
        (part.kind !== 'part' ? page.rows.length > 0 : containsMention(part, mentionTimes)),
    }),
  )
  const limit = parts[0]?.kind === 'exact' ? Math.max(state.limit, maxPageRows) : state.limit
  const isFirstSplit = state.windows.length === 1 && Object.keys({ ...window, hasRows: 0 }).length === 2
  const message = `${context.operation}: ${reason}; the rest is read in smaller parts, some rows twice.`
  return E.right([
    { ...state, limit, windows: [...parts, ...others], pass: newPass(state.from), isUncertified: false },
    [isFirstSplit ? warningNote(message) : { level: 'debug', message }],
  ])
}
