import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { configFailure, type Failure, transientFailure } from '../../cdk'
import type { CutRecord, ExportPage } from '../export-page'
import { floorToSecond, infoNote, type RunNote, warningNote } from './cutoff'
import type { RowHistory } from './history'
import { newPass, type PageVerdict } from './pass'
import { type ExactRounds, isUpToCutoff, type ScanContext, type ScanState } from './state'
import { readMentionTime, splitWindow } from './window'

type AdvanceResult = E.Either<Failure, readonly [ScanState, ReadonlyArray<RunNote>]>

/** The state after a page that was accepted: the next page of the pass, the next window, the parts of this one, or a failure. */
export const advanceScan = (
  context: ScanContext,
  history: RowHistory,
  state: ScanState,
  page: ExportPage,
  verdict: Exclude<PageVerdict, { readonly _tag: 'Rewind' }>,
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
      return state.isSorted && state.windows[0]?.kind === 'part'
        ? advanceSortedPass(context, history, { ...state, pass: verdict.pass }, page.rows)
        : E.right([{ ...state, pass: verdict.pass }, []])
    case 'Uncertified':
      return advanceUncertified(context, history, state, page, verdict)
  }
}

/** A part is split. A sweep goes on without certificate, as does an `exact` window, which is complete by its rounds. */
const advanceUncertified = (
  context: ScanContext,
  history: RowHistory,
  state: ScanState,
  page: ExportPage,
  verdict: Extract<PageVerdict, { readonly _tag: 'Uncertified' }>,
): AdvanceResult => {
  const kind = state.windows[0]?.kind
  if (kind === 'part')
    return context.rules.halving
      ? splitCurrentWindow(context, history, state, page, verdict.reason)
      : finishWindow(context, history, state)
  if (verdict.isOffsetIgnored && kind === 'exact') return E.left(ignoredOffsetFailure(context))
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
  if (window?.kind === 'exact' && state.exactRounds !== undefined)
    return repeatExactRound(context, state, state.exactRounds, next)
  if (window?.kind === 'sweep' && state.isUncertified && state.rowsWithoutMention > 0)
    return E.right([
      next,
      [
        warningNote(
          `${context.operation}: ${state.rowsWithoutMention} reviews without a mention time were read; the service changed too fast, or keeps too little order, to be sure that these are all. Compare with \`feedback verify --config\`.`,
        ),
      ],
    ])
  return E.right([next, []])
}

const maxExactRounds = 8
const minEmptyRounds = 2

/** Ends an `exact` window after two rounds in a row that brought nothing new. `next`: the state behind the window. */
const repeatExactRound = (
  context: ScanContext,
  state: ScanState,
  rounds: ExactRounds,
  next: ScanState,
): AdvanceResult => {
  const emptyRounds = rounds.newRows === 0 ? rounds.emptyRounds + 1 : 0
  if (emptyRounds >= minEmptyRounds)
    return E.right([
      next,
      [
        infoNote(
          `${context.operation}: ${rounds.versions.size} ids were held in memory to read a part that keeps no order.`,
        ),
      ],
    ])
  return rounds.round >= maxExactRounds
    ? E.left(
        transientFailure(
          `${context.operation}: the service's rows changed place faster than they could be read, in ${maxExactRounds} attempts. The cursor of the stream did not move: run again, at a quieter time if possible.`,
        ),
      )
    : E.right([
        {
          ...state,
          pass: newPass(state.from),
          isUncertified: false,
          exactRounds: { ...rounds, round: rounds.round + 1, emptyRounds, newRows: 0 },
        },
        [],
      ])
}

/** The most rows that one request may ask for (the service's specification, Limits). A window without order is best read in one page. */
const maxPageRows = 1000

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
  history.startPass()
  const parts = splitWindow(context.filters, window, {
    mentionTimes: context.hasMentionTime
      ? page.rows.map(readMentionTime).filter((time) => time !== undefined)
      : undefined,
    cutoff: state.cutoff ?? 0,
  })
  const limit = parts[0]?.kind === 'exact' ? Math.max(state.limit, maxPageRows) : state.limit
  const isFirstSplit = state.windows.length === 1 && Object.keys(window).length === 1
  const message = `${context.operation}: ${reason}; the rest is read in smaller parts, some rows twice.`
  return E.right([
    { ...state, limit, windows: [...parts, ...others], pass: newPass(state.from), isUncertified: false },
    [isFirstSplit ? warningNote(message) : { level: 'debug', message }],
  ])
}

/**
 * In the order of modifiedTime a new pass starts at the second of the last row, so that offsets stay small, and the first row after
 * the cutoff ends the window. A page that is not in this order starts the window again without this shortcut.
 */
const advanceSortedPass = (
  context: ScanContext,
  history: RowHistory,
  state: ScanState,
  rows: ReadonlyArray<CutRecord>,
): AdvanceResult => {
  const last = rows[rows.length - 1]
  if (rows.some(({ modifiedTime }, i) => modifiedTime < (rows[i - 1]?.modifiedTime ?? modifiedTime))) {
    history.startPass()
    return E.right([
      { ...state, isSorted: false, pass: newPass(state.from) },
      [
        warningNote(
          `${context.operation}: the rows do not come in the order of modifiedTime. They are read again without relying on an order; set export_order to unspecified.`,
        ),
      ],
    ])
  }
  if (last === undefined) return E.right([state, []])
  if (!isUpToCutoff(state)(last)) return finishWindow(context, history, state)
  const from = floorToSecond(last.modifiedTime) - 1
  if (state.pass.isConfirmingEnd || from <= state.pass.from) return E.right([state, []])
  history.startPass()
  return E.right([{ ...state, pass: { ...newPass(from), latePages: state.pass.latePages } }, []])
}
