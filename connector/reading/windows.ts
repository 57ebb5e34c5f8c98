import { defined } from '../cdk'
import { Breach, ignoredOffset, incompleteForNow } from './assumptions'
import { checkBounds } from './bounds'
import { floorToSecond } from './clock'
import { isDue, sendRows } from './due-rows'
import { isEmptyWindow, rememberTimes } from './empty'
import { listLength, probeCount } from './end'
import { type ReadItem, toItem } from './item'
import { addRows } from './known-rows'
import { type Bounds, describeWindow, keysOf, type ListPage, type ListRow, type RowVersion, type Window } from './list'
import { readPages } from './pages'
import { askPage, isFullPage, pauseBefore, prefetchPages } from './requests'
import { readRounds } from './rounds'
import { type Session, startWindow } from './session'

/** How many windows are counted together. */
const groupSize = 16

/** How often a single window is read and counted before it is given up. */
const maxCounts = 16

/** The most parts into which one window is divided. */
const mostWindows = 32

/** More windows than this arise only if narrower windows do not have fewer rows. */
const maxWindows = 4096

const second = 1000

/** A window that was read in one answer. */
type ReadWindow = { readonly window: Window; readonly ids: ReadonlySet<string> }

/** A read of windows that are halved. Its members change in place. */
type Halving<R extends ListRow> = {
  readonly session: Session<R>
  /** Still to be read. */
  left: ReadonlyArray<Window>
  /** Neighbours that were read but not counted yet. */
  group: ReadonlyArray<ReadWindow>
  /** Windows to read after all of these, in another way. */
  readonly others: ReadonlyArray<Window>
  /** Number of rows in the windows that are counted. */
  rowCount: number
  /** About how many rows the last divided window had. */
  estimate: number
  /**
   * Windows are divided by their estimated length. The first page shows how the order begins, but maybe not the rest.
   */
  isSampled: boolean
}

const startHalving = <R extends ListRow>(session: Session<R>): Halving<R> => {
  const { windows } = session.progress
  const count = windows.findLastIndex(({ by }) => by === 'halves') + 1
  const others = windows.slice(count)
  return {
    session,
    left: windows.slice(0, count),
    group: [],
    others,
    rowCount: others[0]?.rows ?? 0,
    estimate: Number.POSITIVE_INFINITY,
    isSampled: true,
  }
}

/**
 * Reads the leading windows that are to be halved. A window whose answer is shorter than the limit is complete with
 * that one answer, so no order is needed; any other is divided. Windows are counted in groups, since an answer may be
 * cut off or empty.
 */
export async function* readHalves<R extends ListRow>(session: Session<R>): AsyncGenerator<ReadItem<R>> {
  const halving = startHalving(session)
  while (halving.left.length > 0 || halving.group.length > 0) {
    const [window, ...rest] = halving.left
    if (window === undefined || !fitsGroup(halving.group, window)) {
      yield* countGroup(halving, halving.group)
      halving.group = []
      keepWindows(halving)
      continue
    }
    prefetchPages(
      session,
      halving.left.slice(0, session.env.concurrency).map((one) => [one, { offset: 0 }]),
    )
    const page = await askWindow(session, window)
    halving.left = rest
    if (!isFullPage(session, page)) {
      halving.group = [...halving.group, { window, ids: idsOf(page.rows) }]
      yield* sendPage(halving, page)
      continue
    }
    if (!(await divideWindow(halving, window, page))) {
      yield* countGroup(halving, halving.group)
      halving.group = []
      session.progress.windows = [{ ...window, by: 'rounds' }, ...halving.left, ...halving.others]
      yield* readCrowded(halving, window)
    }
    keepWindows(halving)
  }
}

/** A window can join a group only if it is the neighbour of the last one. */
const fitsGroup = (group: ReadonlyArray<ReadWindow>, window: Window): boolean => {
  const end = group.at(-1)?.window.before
  return group.length < groupSize && (group.length === 0 || (end !== undefined && end === startOf(window)))
}

/** Windows stay in the token until they are counted. */
const keepWindows = <R extends ListRow>({ session, left, group, others, rowCount }: Halving<R>): void => {
  const [first, ...rest] = others
  const last = first?.unmentioned ? [{ ...first, rows: rowCount }, ...rest] : others
  session.progress.windows = [...group.map(({ window }) => window), ...left, ...last]
}

const askWindow = async <R extends ListRow>(session: Session<R>, window: Window): Promise<ListPage<R>> => {
  const page = await askPage(session, window, { offset: 0 })
  checkBounds(session, window, page.rows)
  return page
}

async function* sendPage<R extends ListRow>(
  halving: Halving<R>,
  { rows, release }: ListPage<R>,
): AsyncGenerator<ReadItem<R>> {
  const { session } = halving
  const sent = sendRows(session, rows)
  addRows(session.known, rows, 0, session.progress.cutoff ?? 0)
  keepWindows(halving)
  yield toItem(session, sent)
  release?.()
}

/** Divides a window whose answer was full; false: it cannot get any narrower. */
const divideWindow = async <R extends ListRow>(
  halving: Halving<R>,
  window: Window,
  { rows, release }: ListPage<R>,
): Promise<boolean> => {
  const { session } = halving
  const times = rows.flatMap((row) => session.env.list.mentionTime?.(row) ?? [])
  release?.()
  rememberTimes(session, times)
  if (halving.isSampled) {
    const before = halving.estimate
    halving.estimate = await estimateLength(session, window, rows.length)
    halving.isSampled = halving.estimate < before / 2
  }
  const count = halving.isSampled ? Math.min(mostWindows, Math.ceil(halving.estimate / (0.7 * rows.length))) : 2
  const windows = (count > 2 ? divide(window, times, count) : undefined) ?? halve(window, times)
  if (windows === undefined) return false
  halving.left = [...windows, ...halving.left]
  if (halving.left.length > maxWindows) throw new Breach('A4', 'windows of mention time do not have fewer rows')
  return true
}

async function* readCrowded<R extends ListRow>(halving: Halving<R>, window: Window): AsyncGenerator<ReadItem<R>> {
  const { session } = halving
  yield* readSecond(session, window)
  halving.rowCount += (await listLength(session, window, session.limits.longest())) ?? 0
}

/** Counts a group; if that fails, its halves, and finally single windows. */
async function* countGroup<R extends ListRow>(
  halving: Halving<R>,
  windows: ReadonlyArray<ReadWindow>,
): AsyncGenerator<ReadItem<R>> {
  const [only, ...more] = windows
  if (only === undefined) return
  if (await isCounted(halving.session, windows)) {
    halving.rowCount += countIds(windows)
    return
  }
  if (more.length === 0) return yield* countAgain(halving, only.window)
  const middle = Math.ceil(windows.length / 2)
  yield* countGroup(halving, windows.slice(0, middle))
  yield* countGroup(halving, windows.slice(middle))
}

/** Reads and counts a single window until both agree. */
async function* countAgain<R extends ListRow>(halving: Halving<R>, window: Window): AsyncGenerator<ReadItem<R>> {
  const { session } = halving
  for (let tries = 0; tries < maxCounts; tries += 1) {
    const page = await askWindow(session, window)
    if (isFullPage(session, page)) {
      if (await divideWindow(halving, window, page)) return
      return yield* readCrowded(halving, window)
    }
    const read = [{ window, ids: idsOf(page.rows) }]
    yield* sendPage(halving, page)
    if (await isCounted(session, read, tries > 0)) {
      halving.rowCount += countIds(read)
      return
    }
  }
  const seen = `${session.env.list.name}: an answer with ${describeWindow(window)} `
  throw incompleteForNow('A1', `${seen}never has as many rows as the service counts there`)
}

/** Reads a single second with more rows than a page: by pages, or in rounds if the rows keep no order. */
async function* readSecond<R extends ListRow>(session: Session<R>, window: Window): AsyncGenerator<ReadItem<R>> {
  startWindow(session)
  try {
    yield* readPages(session, window, false)
  } catch (error) {
    if (!(error instanceof Breach) || error.assumption === 'A4') throw error
    startWindow(session)
    yield* readRounds(session, window)
  }
  startWindow(session)
}

const idsOf = (rows: ReadonlyArray<RowVersion>): ReadonlySet<string> => new Set(keysOf(rows))

const countIds = (windows: ReadonlyArray<ReadWindow>): number => new Set(windows.flatMap(({ ids }) => [...ids])).size

/** Bounds are sent a millisecond wider, because it is unknown if they are inclusive. */
const startOf = ({ after }: Bounds): number | undefined => (after === undefined ? undefined : after + 1)

/**
 * True if the list with the combined bounds of these windows ends exactly where their ids end, with their rows.
 * `isAgain`: it did not when they were read before.
 */
const isCounted = async <R extends ListRow>(
  session: Session<R>,
  windows: ReadonlyArray<ReadWindow>,
  isAgain = false,
): Promise<boolean> => {
  const bounds: Bounds = defined({ after: windows[0]?.window.after, before: windows.at(-1)?.window.before })
  const ids = new Set(windows.flatMap((one) => [...one.ids]))
  if (ids.size === 0) return isEmptyWindow(session, bounds)
  const { page, end, isWhole } = await probeCount(session, bounds, ids.size)
  const keys = keysOf(page.rows)
  const others = page.rows.filter(({ id }, i) => !ids.has(keys[i] ?? id))
  const isRead = !others.some((row) => isDue(session, row))
  if (isWhole && isRead && page.rows.length > 0 && end === ids.size) return true
  if (page.rows.length === 0 && page.isRefused !== true) await pauseBefore(session, 0)
  const [only, ...more] = windows
  // There are more rows than can stand there, and they are the ones that the window begins with.
  const offset = end - page.rows.length
  const isStart = keys.every((key, i) => [...ids][i] === key)
  if (more.length === 0 && offset > 0 && end > ids.size && isStart) throw ignoredOffset(session)
  // Later changes lengthen a list without cutting its answers off; the next answer includes them.
  const isCut = end - (isRead && !isAgain ? others.length : 0) > ids.size
  if (isCut && more.length === 0 && only !== undefined) session.limits.learnShort(only.ids.size)
  return false
}

/** Estimates how many rows a window has, within a factor of two, by trying offsets that double. */
const estimateLength = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  least: number,
): Promise<number> => {
  for (let at = 2 * least; ; at *= 2) {
    const { rows, release } = await askPage(session, window, { offset: at, limit: 1 })
    release?.()
    if (rows.length === 0 || at > 2 ** 40) return 0.75 * at
  }
}

/**
 * Windows that together cover this one, with about equally many rows of the sample each; undefined if they would be too
 * narrow.
 */
const divide = (window: Window, times: ReadonlyArray<number>, count: number): ReadonlyArray<Window> | undefined => {
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = window
  const sorted = [...times].sort((a, b) => a - b)
  const boundaries: number[] = []
  for (let n = 1; n < count; n += 1) {
    const time = sorted[Math.floor((n * sorted.length) / count)] ?? Number.NaN
    const boundary = floorToSecond(time)
    const last = boundaries.at(-1) ?? after
    if (boundary > last + narrowest && boundary < before - narrowest) boundaries.push(boundary)
  }
  if (boundaries.length < 2) return undefined
  return [undefined, ...boundaries].map((start, i) => {
    const end = boundaries[i]
    const from = start === undefined ? window : { ...window, after: start - 1 }
    return end === undefined ? from : { ...from, before: end }
  })
}

/**
 * The narrowest window that can be halved, milliseconds. Each half must be wider than the second to which bounds may be
 * rounded.
 */
export const narrowest = 6 * second

/**
 * Two windows that together cover this one. Their boundary is a whole second with about half of the sample on each
 * side; undefined if the window is too narrow. Bounds may be inclusive or not, so the halves share a millisecond. If
 * one second holds more than a twentieth of the sample, the boundary isolates that second: halving would never end
 * there.
 */
export const halve = (window: Window, times: ReadonlyArray<number>): readonly [Window, Window] | undefined => {
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = window
  const sorted = [...times].sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)]
  if (median === undefined || before - after < narrowest) return undefined
  const start = floorToSecond(median)
  const isCrowded = sorted.filter((time) => time >= start && time < start + second).length > sorted.length / 20
  const choices = isCrowded ? [start - second, start + 2 * second] : [start, start + second]
  const boundary = choices.find((time) => time > after + 2 * second && time < before - 2 * second)
  if (boundary === undefined) return undefined
  return [
    { ...window, before: boundary },
    { ...window, after: boundary - 1 },
  ]
}
