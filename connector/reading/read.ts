import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Failure, Feed } from '../cdk'
import { Breach, Incomplete, incompleteForGood } from './assumptions'
import { warningNote } from './clock'
import { type ReadItem, toItem } from './item'
import { describeWindow, isBounded, type ListRow, type Window } from './list'
import { readPages } from './pages'
import { fromResumeToken, type ResumeToken } from './resume-token'
import { readRounds } from './rounds'
import { createRowsSent, hasSameRows, type SentRange, sentRowsSince } from './sent-rows'
import {
  certainTime,
  createSession,
  type Origin,
  type Progress,
  type ReadEnv,
  type Session,
  startWindow,
} from './session'
import { readUnmentioned } from './unmentioned'
import { narrowest, readHalves } from './windows'

export type ReadStart = {
  readonly origin: Origin
  /** A digest of the other parameters of the list's requests. */
  readonly scope: string
  /** The windows to read instead of everything, for a share of a backfill. */
  readonly windows?: ReadonlyArray<Window>
  /** Where to continue; the caller has checked it with `isResumable`. */
  readonly resumeToken: O.Option<ResumeToken>
}

/**
 * Reads a list as it was at the cutoff, without loss, although the service promises no order and the list changes
 * meanwhile (docs/how-reading-works.md). Reads overlapping pages; if they do not overlap, windows of mention time; if
 * no filter divides the list, rounds. After a failure nothing is certain, so the cursor must not move.
 */
export const read = <R extends ListRow>(env: ReadEnv<R>) =>
  async function* (start: ReadStart): Feed<Failure, ReadItem<R>> {
    const token = O.toUndefined(start.resumeToken)
    const progress = token === undefined ? newProgress(env, start) : fromResumeToken(token)
    const session = createSession(env, start.origin, start.scope, progress, token?.tail ?? [])
    let isFirst = true
    try {
      while (progress.windows.length > 0) {
        for await (const item of readWindow(session, start, isFirst)) yield E.right(item)
        isFirst = false
      }
      yield E.right({ ...toItem(session, []), completion: toCompletion(session) })
    } catch (error) {
      if (!(error instanceof Incomplete)) throw error
      yield E.right(toItem(session, []))
      yield E.left(error.failure)
    }
  }

const newProgress = <R extends ListRow>(env: ReadEnv<R>, start: ReadStart): Progress => ({
  startedAt: env.now(),
  cutoff: undefined,
  rowClock: undefined,
  newest: undefined,
  sent: createRowsSent(),
  limit: env.limit,
  pages: 0,
  windows: start.windows ?? [{}],
  offset: 0,
  inserted: 0,
})

/** If this run saw no row, the cursor stays: the list may be empty only for a moment. */
const toCompletion = <R extends ListRow>({ progress, limits }: Session<R>) => ({
  newestRowTime: limits.longest() === 0 ? O.none : O.fromNullable(progress.newest),
  certainTime: certainTime(progress),
  cutoff: progress.cutoff ?? 0,
  sentRowsSince: (from: number) => sentRowsSince(progress.sent, from),
  hasSameRows: (range: SentRange) => hasSameRows(progress.sent, range),
})

/** Reads the first window, or decides how else to read it. */
async function* readWindow<R extends ListRow>(
  session: Session<R>,
  start: ReadStart,
  isFirst: boolean,
): AsyncGenerator<ReadItem<R>> {
  const { progress } = session
  const [window = {}] = progress.windows
  const isResumed = isFirst && O.isSome(start.resumeToken)
  try {
    if (window.by === 'halves') yield* readHalves(session)
    else {
      if (window.unmentioned) yield* readUnmentioned(session, window)
      else if (window.by === 'rounds') yield* readRounds(session, window)
      else yield* readPages(session, window, isResumed)
      progress.windows = progress.windows.slice(1)
    }
    startWindow(session)
  } catch (error) {
    if (!(error instanceof Breach)) throw error
    fallBack(session, start, window, error)
  }
}

/** If pages do not overlap: windows of mention time. If no filter divides the list: rounds. */
const fallBack = <R extends ListRow>(
  session: Session<R>,
  start: ReadStart,
  window: Window,
  { assumption, seen }: Breach,
): void => {
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = window
  const { list } = session.env
  const { progress, notes } = session
  startWindow(session)
  if (assumption === 'A4') {
    if (start.windows !== undefined)
      throw incompleteForGood('A4', `${list.name}: ${seen}`, 'A share of a backfill needs them: remove partition.')
    notes.push(
      warningNote(`${list.name}: ${seen}; everything is read in rounds until nothing new comes, some rows twice.`),
    )
    progress.windows = [window.by === undefined && isBounded(window) ? {} : { by: 'rounds' }]
    return
  }
  const [, ...others] = progress.windows
  if (assumption === 'A3' && list.mentionTime !== undefined && before - after > narrowest) {
    notes.push(
      warningNote(`${list.name}: ${seen}; ${describeWindow(window)} is read in smaller windows, some rows twice.`),
    )
    const unmentioned: ReadonlyArray<Window> = isBounded(window) ? [] : [{ unmentioned: true, rows: 0 }]
    progress.windows = [{ ...window, by: 'halves' }, ...unmentioned, ...others]
    return
  }
  notes.push(warningNote(`${list.name}: ${seen}; ${describeWindow(window)} is read in rounds until nothing new comes.`))
  progress.windows = [{ ...window, by: 'rounds' }, ...others]
}
