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

/** Where a scan goes on after a page that was taken. */
export const advanceScan = (
  subject: ScanContext,
  memory: RowHistory,
  state: ScanState,
  page: ExportPage,
  verdict: Exclude<PageVerdict, { readonly _tag: 'Back' }>,
): AdvanceResult => {
  switch (verdict._tag) {
    case 'Done':
      return pipe(
        finishWindow(subject, memory, state),
        E.map(([next, notes]) => [next, verdict.unmoved ? [...notes, repeatedPageWarning(subject, page)] : notes]),
      )
    case 'Next':
      return state.isSorted && state.windows[0]?.kind === 'part'
        ? anchorPass(subject, memory, { ...state, pass: verdict.pass }, page.rows)
        : E.right([{ ...state, pass: verdict.pass }, []])
    case 'Broken': {
      if (state.windows[0]?.kind === 'part')
        return subject.rules.halving
          ? splitCurrentWindow(subject, memory, state, page, verdict.why)
          : finishWindow(subject, memory, state)
      if (verdict.unmoved && state.windows[0]?.kind === 'exact') return E.left(ignoredOffsetFailure(subject))
      const flawed = { ...state, isUncertifiable: true }
      if (verdict.unmoved)
        return pipe(
          finishWindow(subject, memory, flawed),
          E.map(([next, notes]) => [next, [...notes, unreachableRowsWarning(subject)]]),
        )
      return verdict.pass === undefined
        ? finishWindow(subject, memory, flawed)
        : E.right([{ ...flawed, pass: verdict.pass }, []])
    }
  }
}

const repeatedPageWarning = ({ operation }: ScanContext, { rows }: ExportPage): RunNote =>
  warningNote(
    `${operation}: the same ${rows.length} rows come at every offset. They are fewer than a page may hold, so they are taken for all there are.`,
  )

const unreachableRowsWarning = ({ operation }: ScanContext): RunNote =>
  warningNote(
    `${operation}: from some offset on the same rows come again and again, so reviews without a mention time that stand behind cannot be reached. Compare with \`feedback verify --config\`.`,
  )

const ignoredOffsetFailure = ({ operation }: ScanContext): Failure =>
  configFailure(
    `${operation}: the service does not heed offset: the same rows come at further offsets, and no smaller part could be asked for. Nobody can be sure to have read everything, so the cursor of the stream did not move; ask the service's operator.`,
  )

/** The window under way is done with, or is read once more if it has to be. */
const finishWindow = (subject: ScanContext, memory: RowHistory, state: ScanState): AdvanceResult => {
  memory.startPass()
  const next: ScanState = {
    ...state,
    windows: state.windows.slice(1),
    pass: newPass(state.from),
    isUncertifiable: false,
    exactRounds: undefined,
  }
  const window = state.windows[0]
  if (window?.kind === 'exact' && state.exactRounds !== undefined)
    return repeatExactRound(subject, state, state.exactRounds, next)
  if (window?.kind === 'sweep' && state.isUncertifiable && state.rowsWithoutMention > 0)
    return E.right([
      next,
      [
        warningNote(
          `${subject.operation}: ${state.rowsWithoutMention} reviews without a mention time were read; the service changed too fast, or keeps too little order, to be sure that these are all. Compare with \`feedback verify --config\`.`,
        ),
      ],
    ])
  return E.right([next, []])
}

const maxExactRounds = 8
const maxEmptyRounds = 2

const repeatExactRound = (
  subject: ScanContext,
  state: ScanState,
  exact: ExactRounds,
  next: ScanState,
): AdvanceResult => {
  const barren = exact.newRows === 0 ? exact.emptyRounds + 1 : 0
  if (barren >= maxEmptyRounds)
    return E.right([
      next,
      [
        infoNote(
          `${subject.operation}: ${exact.versions.size} ids were held in memory to read a part that keeps no order.`,
        ),
      ],
    ])
  return exact.round >= maxExactRounds
    ? E.left(
        transientFailure(
          `${subject.operation}: the service's rows changed place faster than they could be read, in ${maxExactRounds} attempts. The cursor of the stream did not move: run again, at a quieter time if possible.`,
        ),
      )
    : E.right([
        {
          ...state,
          pass: newPass(state.from),
          isUncertifiable: false,
          exactRounds: { ...exact, round: exact.round + 1, emptyRounds: barren, newRows: 0 },
        },
        [],
      ])
}

/** The most that one request may ask for (Limits): what keeps no order is best read in one page. */
const maxPageRows = 1000

const splitCurrentWindow = (
  subject: ScanContext,
  memory: RowHistory,
  state: ScanState,
  page: ExportPage,
  why: string,
): AdvanceResult => {
  const [window, ...others] = state.windows
  if (window === undefined) return E.right([state, []])
  memory.startPass()
  const parts = splitWindow(subject.filters, window, {
    mentionTimes: subject.hasMentionTime
      ? page.rows.map(readMentionTime).filter((time) => time !== undefined)
      : undefined,
    cutoff: state.cutoff ?? 0,
  })
  const limit = parts[0]?.kind === 'exact' ? Math.max(state.limit, maxPageRows) : state.limit
  const first = state.windows.length === 1 && Object.keys(window).length === 1
  const message = `${subject.operation}: ${why}; the rest is read in smaller parts, some rows twice.`
  return E.right([
    { ...state, limit, windows: [...parts, ...others], pass: newPass(state.from), isUncertifiable: false },
    [first ? warningNote(message) : { level: 'debug', message }],
  ])
}

/** In the order of modifiedTime: goes on from the second that the last row lies in, and ends at the first row after the signpost. */
const anchorPass = (
  subject: ScanContext,
  memory: RowHistory,
  state: ScanState,
  rows: ReadonlyArray<CutRecord>,
): AdvanceResult => {
  const last = rows[rows.length - 1]
  if (rows.some(({ modifiedTime }, i) => modifiedTime < (rows[i - 1]?.modifiedTime ?? modifiedTime))) {
    memory.startPass()
    return E.right([
      { ...state, isSorted: false, pass: newPass(state.from) },
      [
        warningNote(
          `${subject.operation}: the rows do not come in the order of modifiedTime. They are read anew as if in no order; set export_order to unspecified.`,
        ),
      ],
    ])
  }
  if (last === undefined) return E.right([state, []])
  if (!isUpToCutoff(state)(last)) return finishWindow(subject, memory, state)
  const from = floorToSecond(last.modifiedTime) - 1
  if (state.pass.confirming || from <= state.pass.from) return E.right([state, []])
  memory.startPass()
  return E.right([{ ...state, pass: { ...newPass(from), late: state.pass.late } }, []])
}
