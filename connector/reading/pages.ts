import { Breach, incompleteForNow, missingRows } from './assumptions'
import { checkBounds } from './bounds'
import { infoNote } from './clock'
import { certainUntil, isRead, sendRows } from './due-rows'
import { isBelieved, isEmptyWindow } from './empty'
import { expectedProbe, findEnd, patience } from './end'
import { type ReadItem, toItem } from './item'
import { addRows, findRow, hasId } from './known-rows'
import { isBounded, type ListPage, type ListRow, type Window, watchRepeats } from './list'
import { askPage, isFullPage, isPrefetched, pauseBefore, prefetchPages, type Where } from './requests'
import { type Session, startWindow } from './session'

/** Six rows keep their order by chance once in 720 times. A single row always does, so it proves nothing. */
const witnesses = 6

/** How many times in a row to step back for a page that overlaps: 1, 2, 4, 8 and 16 pages. */
const maxStepsBack = 5

/** How often a presumed end may turn out wrong before new rows arrive. */
const maxEnds = 16

/** How many pages in a row may contain only later changes; more in a long list. */
const maxIdlePages = 100

/**
 * Number of rows that two successive pages share: 10 or a fiftieth of the page, whichever is more, at most half a page.
 */
export const overlapSize = (length: number): number =>
  Math.min(Math.floor(length / 2), Math.max(10, Math.floor(length / 50)))

/** A pass over one window. */
type Pass = {
  pages: number
  /** Rows of the longest page. */
  longest: number
  /** How many rows the next page shares with the last one. */
  overlap: number
  /** How often the overlap was doubled because more rows had moved than it covers. */
  doublings: number
  /** Steps back in a row, and in total. */
  stepsInARow: number
  steps: number
  /** How often an empty answer was requested again. */
  waits: number
  /** How often the list did not end where it seemed to. */
  ends: number
  /** How often only later changes followed the page. */
  nearEnds: number
  /** Pages in a row with nothing but later changes. */
  idle: number
  /** How often the next page was requested again because its order had changed. */
  doubts: number
}

const newPass = (): Pass => ({
  pages: 0,
  longest: 0,
  overlap: 0,
  doublings: 0,
  stepsInARow: 0,
  steps: 0,
  waits: 0,
  ends: 0,
  nearEnds: 0,
  idle: 0,
  doubts: 0,
})

/**
 * Reads a window page by page; each page starts with rows of the one before. Rows that nobody touches keep their order,
 * so nothing is missing between two pages with a row in common. Throws a Breach if the order changes.
 */
export async function* readPages<R extends ListRow>(
  session: Session<R>,
  window: Window,
  isResumed: boolean,
  filter?: (row: R) => boolean,
): AsyncGenerator<ReadItem<R>> {
  const { progress, known } = session
  const pass = newPass()
  const comesAgain = watchRepeats()
  let behind: ReadonlyArray<R> = []
  for (;;) {
    const { offset } = progress
    const isAhead = isPrefetched(session, window, { offset })
    const page = await askPage(session, window, { offset })
    const { rows } = page
    checkBounds(session, window, rows)
    if (rows.length === 0 && known.lastPosition < 0) {
      page.release?.()
      if (await isEmptyList(session, window, pass.waits)) return
      pass.waits += 1
      continue
    }
    if (comesAgain(offset, rows)) throw new Breach('A3', 'the same rows come again and again')
    const order = compareOrder(session, rows, offset)
    const isJoined =
      rows.length > 0 && (offset === 0 || order.knownRows >= Math.min(witnesses, pass.overlap || witnesses))
    if (order.problem !== undefined || !isJoined) {
      page.release?.()
      // A prefetched page may be older than the page before it.
      if (isAhead) prefetchPages(session, [])
      else if (order.problem !== undefined) doubtOrder(pass, order.problem)
      else if (isResumed && pass.pages === 0 && pass.stepsInARow === maxStepsBack) beginAnew(session)
      else await stepBack(session, pass, page)
      continue
    }

    const isFull = isFullPage(session, page)
    accept(session, pass, rows.length, order)
    const sent = sendRows(session, rows, filter)
    addRows(known, rows, offset, progress.cutoff ?? 0)
    progress.offset = Math.max(0, offset + rows.length - pass.overlap)
    prefetchPages(
      session,
      isFull ? pagesAhead(session, window, rows.length - pass.overlap) : [[window, expectedProbe({ offset, rows })]],
    )
    yield toItem(session, sent, pass.overlap)
    page.release?.()
    if (!isFull) {
      const found = await findEnd(session, window, { offset, rows }, pass.overlap, pass.ends)
      if (found._tag === 'End') {
        progress.inserted += found.inserted
        behind = found.rows
        break
      }
      if (found._tag === 'Nothing') await stepBack(session, pass, found.page)
      else {
        progress.offset = found.offset
        if (isEndByItself(session, pass, found.isNear)) break
      }
    }
    if (pass.overlap === 0) throw new Breach('A2', 'pages of a single row cannot overlap')
  }
  // Some of the inserted rows may have disappeared again.
  if (progress.inserted > 0 && (await countChanged(session, window, behind)) < progress.inserted * 0.75)
    throw new Breach('A3', 'rows that were not read came in front of rows that were')
}

/** Decides if a list without rows is really empty. Rows that this read has already seen must show up. */
const isEmptyList = async <R extends ListRow>(session: Session<R>, window: Window, waits: number): Promise<boolean> => {
  if (isBounded(window) && waits > 0) return isEmptyWindow(session, window)
  if (session.limits.longest() === 0) return isBelieved(session, waits)
  if (!(await pauseBefore(session, waits))) throw missingRows(session)
  return false
}

/** Requests a page whose order has changed once more: a replica that lacks a change may have answered. */
const doubtOrder = (pass: Pass, problem: string): void => {
  if (pass.doubts > 0) throw new Breach('A3', problem)
  pass.doubts += 1
}

/**
 * Counts a wrong presumed end. In a list that grows with each request, a short page that overlaps is accepted as the
 * end (A2).
 */
const isEndByItself = <R extends ListRow>({ limits }: Session<R>, pass: Pass, isNear: boolean): boolean => {
  pass.ends += 1
  if (isNear) pass.nearEnds += 1
  if (pass.nearEnds > patience && !limits.cutsPages()) return true
  if (pass.ends > maxEnds) throw new Breach('A3', 'the end of the list does not come to rest')
  return false
}

/** Records a page that overlaps. */
const accept = <R extends ListRow>(
  { progress, env }: Session<R>,
  pass: Pass,
  length: number,
  { isIdle, inserted }: PageOrder,
): void => {
  progress.inserted += inserted
  pass.pages += 1
  pass.longest = Math.max(pass.longest, length)
  const wanted = overlapSize(pass.longest) * 2 ** pass.doublings
  pass.overlap = Math.min(Math.floor(length / 2), wanted < length ? wanted : overlapSize(length))
  pass.stepsInARow = 0
  pass.doubts = 0
  pass.idle = isIdle ? pass.idle + 1 : 0
  if (pass.idle > maxIdlePages + 2 * (pass.pages - pass.idle))
    throw incompleteForNow('A3', `${env.list.name}: ${pass.idle} pages in a row brought nothing but later changes`)
  if (isIdle) return
  pass.waits = 0
  pass.ends = 0
  pass.nearEnds = 0
}

/** Steps back to a page that may overlap. Waits first after an empty answer that was not a refusal. */
const stepBack = async <R extends ListRow>(
  session: Session<R>,
  pass: Pass,
  { rows, isRefused = false }: ListPage<R>,
): Promise<void> => {
  const { progress } = session
  const isEmpty = rows.length === 0 && !isRefused
  if (isEmpty && !(await pauseBefore(session, pass.waits++))) throw missingRows(session)
  const most = 10 + pass.pages / 10
  if (pass.stepsInARow >= maxStepsBack || pass.steps >= most)
    throw new Breach('A3', isRefused ? `the service refuses offset ${progress.offset}` : 'the pages no longer join')
  const pages = 2 ** pass.stepsInARow
  progress.offset = Math.max(0, progress.offset - pages * Math.max(1, pass.longest || progress.limit))
  pass.stepsInARow += 1
  if (isEmpty) return
  pass.steps += 1
  pass.doublings += 1
}

/** Starts over: everything the stopped run had read may have changed. */
const beginAnew = <R extends ListRow>(session: Session<R>): void => {
  startWindow(session)
  session.notes.push(
    infoNote(
      `${session.env.list.name}: none of the rows that the stopped run ` +
        'read are where they were; reading starts over from the beginning.',
    ),
  )
}

/** The next pages, assuming each begins `step` rows after the one before. */
const pagesAhead = <R extends ListRow>(
  { env: { concurrency }, progress: { offset } }: Session<R>,
  window: Window,
  step: number,
): ReadonlyArray<readonly [Window, Where]> =>
  Array.from({ length: concurrency }, (_, i) => [window, { offset: offset + i * step }])

/** What a page shows about the order of the list. */
type PageOrder = {
  /** Number of rows that this pass has already read. */
  readonly knownRows: number
  /** Evidence that rows changed places. */
  readonly problem: string | undefined
  /** How many places known rows have moved towards the end without a visible reason. */
  readonly inserted: number
  /** Every unread row was added or changed after the read began. */
  readonly isIdle: boolean
}

/**
 * Compares a page with the rows already read. While rows keep their order, an unread row can stand before a known one
 * only if it changed or became visible during the read, so it is young. Equal times are common only where many rows
 * changed at once, so a young row with the time of a known row does not explain itself.
 */
const compareOrder = <R extends ListRow>(session: Session<R>, rows: ReadonlyArray<R>, offset: number): PageOrder => {
  const { known, progress, origin } = session
  const found = rows.map((row) => findRow(known, row))
  const knownTimes = new Set(rows.filter((_, i) => found[i] !== undefined).map(({ modifiedTime }) => modifiedTime))
  const youngFrom = (progress.cutoff ?? 0) - origin.lookback
  let last = Number.NEGATIVE_INFINITY
  let [knownRows, inserted, explained] = [0, 0, 0]
  let isUnread = false
  let isIdle = true
  let problem: string | undefined
  rows.forEach(({ id, modifiedTime }, i) => {
    const row = found[i]
    if (row === undefined) {
      if (modifiedTime <= (progress.cutoff ?? 0)) isIdle = false
      // A row that was read has been replaced by another version.
      if (hasId(known, id)) return
      if (modifiedTime > youngFrom && !knownTimes.has(modifiedTime)) explained += 1
      else isUnread = true
      return
    }
    knownRows += 1
    if (row.position < last) problem = 'rows that were read come in another order'
    last = row.position
    if (modifiedTime > (progress.cutoff ?? 0)) return
    if (isUnread && !row.isTail) problem = 'rows that were not read stand in front of rows that were'
    isUnread = false
    // A young row may have moved itself, unless all known rows have its time.
    if (!(modifiedTime > youngFrom && knownTimes.size > 1))
      inserted = Math.max(inserted, Math.ceil(offset + i - explained - row.index))
  })
  return { knownRows, problem, inserted, isIdle }
}

/**
 * How many rows changed or became visible since the read began and are still unread; Infinity if too many to count.
 * `behind`: rows after those that were read, which cannot have moved them.
 */
export const countChanged = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  behind: ReadonlyArray<R> = [],
): Promise<number> => {
  const ids = new Set(behind.map(({ id }) => id))
  const from = Math.max(session.from, certainUntil(session) - session.origin.lookback)
  const page = await askPage(session, window, { offset: 0, from })
  page.release?.()
  if (isFullPage(session, page)) return Number.POSITIVE_INFINITY
  return page.rows.filter((row) => !isRead(session, row) && !ids.has(row.id)).length
}
