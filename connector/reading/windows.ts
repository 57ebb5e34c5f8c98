import { defined } from '../cdk'
import { Breach, ignoredOffset, incompleteForNow } from './assumptions'
import { checkBounds } from './bounds'
import { floorToSecond } from './clock'
import { isEmptyWindow } from './empty'
import { listLength, probeCount } from './end'
import { type ReadItem, toItem } from './item'
import { type Bounds, describeWindow, keysOf, type ListPage, type ListRow, type RowVersion, type Window } from './list'
import { readPages } from './pages'
import { readRounds } from './rounds'
import { type Session, startWindow } from './session'

/** How many windows are counted together. */
const groupSize = 16

/** How often a single window is read and counted before it is given up. */
const maxCounts = 16

/** Into how many windows one is divided at most. */
const mostParts = 32

/** More windows at a time come only of windows that do not have fewer rows. */
const maxWindows = 4096

const second = 1000

/** A window that was read in one answer. */
type ReadWindow = { readonly window: Window; readonly ids: ReadonlySet<string> }

/**
 * Reads the windows in front that are to be halved. A window whose answer is shorter than the limit is complete by that
 * one answer, so no order is needed; any other is divided. Windows are counted in groups, since an answer may be cut or
 * empty.
 */
export async function* readHalves<R extends ListRow>(session: Session<R>): AsyncGenerator<ReadItem<R>> {
  const { progress, env } = session
  const others = progress.windows.slice(progress.windows.findLastIndex(({ by }) => by === 'halves') + 1)
  let left = progress.windows.slice(0, progress.windows.length - others.length)
  let group: ReadonlyArray<ReadWindow> = []
  let rowCount = others[0]?.rows ?? 0
  /**
   * How many rows the window had that was divided last. The first page shows what its order begins with, perhaps not
   * the rest.
   */
  let estimate = Number.POSITIVE_INFINITY
  let isSampled = true

  /** Windows stay in the token until they are counted. */
  const setWindows = (): void => {
    const [first, ...rest] = others
    const last = first?.unmentioned ? [{ ...first, rows: rowCount }, ...rest] : others
    progress.windows = [...group.map(({ window }) => window), ...left, ...last]
  }
  const sendPage = async function* ({ rows, release }: ListPage<R>): AsyncGenerator<ReadItem<R>> {
    const sent = session.send(rows)
    session.known.add(rows, 0, progress.cutoff ?? 0)
    setWindows()
    yield toItem(session, sent)
    release?.()
  }
  const askWindow = async (window: Window): Promise<ListPage<R>> => {
    const page = await session.ask(window, { offset: 0 })
    checkBounds(session, window, page.rows)
    return page
  }
  /** Divides a window of which an answer was full; false: it is as small as windows become. */
  const divideWindow = async (window: Window, { rows, release }: ListPage<R>): Promise<boolean> => {
    const times = rows.flatMap((row) => env.list.mentionTime?.(row) ?? [])
    release?.()
    session.remember(times)
    if (isSampled) {
      const before = estimate
      estimate = await estimateLength(session, window, rows.length)
      isSampled = estimate < before / 2
    }
    const parts = isSampled ? Math.min(mostParts, Math.ceil(estimate / (0.7 * rows.length))) : 2
    const windows = (parts > 2 ? divide(window, times, parts) : undefined) ?? halve(window, times)
    if (windows === undefined) return false
    left = [...windows, ...left]
    if (left.length > maxWindows) throw new Breach('A4', 'windows of mention time do not have fewer rows')
    return true
  }
  const readCrowded = async function* (window: Window): AsyncGenerator<ReadItem<R>> {
    yield* readSecond(session, window)
    rowCount += (await listLength(session, window, session.longest())) ?? 0
  }
  const countGroup = async function* (windows: ReadonlyArray<ReadWindow>): AsyncGenerator<ReadItem<R>> {
    const [only, ...more] = windows
    if (only === undefined) return
    if (await isCounted(session, windows)) {
      rowCount += countIds(windows)
      return
    }
    if (more.length === 0) return yield* countAgain(only.window)
    const middle = Math.ceil(windows.length / 2)
    yield* countGroup(windows.slice(0, middle))
    yield* countGroup(windows.slice(middle))
  }
  /** Reads and counts a single window until both agree. */
  const countAgain = async function* (window: Window): AsyncGenerator<ReadItem<R>> {
    for (let tries = 0; tries < maxCounts; tries += 1) {
      const page = await askWindow(window)
      if (session.isFull(page)) {
        if (await divideWindow(window, page)) return
        return yield* readCrowded(window)
      }
      const read = [{ window, ids: idsOf(page.rows) }]
      yield* sendPage(page)
      if (await isCounted(session, read, tries > 0)) {
        rowCount += countIds(read)
        return
      }
    }
    const what =
      `${env.list.name}: an answer with ${describeWindow(window)} ` +
      'never has as many rows as the service counts there'
    throw incompleteForNow('A1', what)
  }

  while (left.length > 0 || group.length > 0) {
    const [window, ...rest] = left
    const end = group.at(-1)?.window.before
    const isNeighbour = window !== undefined && (group.length === 0 || (end !== undefined && end === startOf(window)))
    if (window === undefined || group.length >= groupSize || !isNeighbour) {
      yield* countGroup(group)
      group = []
      setWindows()
      continue
    }
    session.prefetch(left.slice(0, env.concurrency).map((one) => [one, { offset: 0 }]))
    const page = await askWindow(window)
    if (!session.isFull(page)) {
      left = rest
      group = [...group, { window, ids: idsOf(page.rows) }]
      yield* sendPage(page)
      continue
    }
    left = rest
    if (!(await divideWindow(window, page))) {
      yield* countGroup(group)
      group = []
      progress.windows = [{ ...window, by: 'rounds' }, ...left, ...others]
      yield* readCrowded(window)
    }
    setWindows()
  }
}

/** More rows than a page holds have one second: they are read by pages, or in rounds where they keep no order. */
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

/** Bounds are sent a millisecond wider, because it is not known whether they are inclusive. */
const startOf = ({ after }: Bounds): number | undefined => (after === undefined ? undefined : after + 1)

/**
 * Whether the list of the common bounds of these windows ends exactly where their ids end, with rows of theirs.
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
  const isRead = !others.some(session.isDue)
  if (isWhole && isRead && page.rows.length > 0 && end === ids.size) return true
  if (page.rows.length === 0 && page.isRefused !== true) await session.pause(0)
  const [only, ...more] = windows
  // More rows than can stand there, and the very ones that the window begins with.
  const offset = end - page.rows.length
  const isStart = keys.every((key, i) => [...ids][i] === key)
  if (more.length === 0 && offset > 0 && end > ids.size && isStart) throw ignoredOffset(session)
  // Later changes lengthen a list, and its answers are not cut; but the next answer has them.
  const isCut = end - (isRead && !isAgain ? others.length : 0) > ids.size
  if (isCut && more.length === 0 && only !== undefined) session.learnShort(only.ids.size)
  return false
}

/** About how many rows a window has, half as many or twice at most: looks at offsets that double. */
const estimateLength = async <R extends ListRow>(
  session: Session<R>,
  window: Window,
  least: number,
): Promise<number> => {
  for (let at = 2 * least; ; at *= 2) {
    const { rows, release } = await session.ask(window, { offset: at, limit: 1 })
    release?.()
    if (rows.length === 0 || at > 2 ** 40) return 0.75 * at
  }
}

/**
 * Windows that together cover this one, each with about as many rows of the sample; undefined if they are too narrow.
 */
const divide = (window: Window, times: ReadonlyArray<number>, parts: number): ReadonlyArray<Window> | undefined => {
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = window
  const sorted = [...times].sort((a, b) => a - b)
  const boundaries: number[] = []
  for (let part = 1; part < parts; part += 1) {
    const time = sorted[Math.floor((part * sorted.length) / parts)] ?? Number.NaN
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
 * The narrowest window that can be halved, milliseconds: each half must be wider than the second that bounds may be
 * rounded to.
 */
export const narrowest = 6 * second

/**
 * Two windows that together cover this one, with a boundary on a whole second and about half of the sample on each
 * side; undefined if it is too narrow. Bounds may be inclusive or not, so the halves share a millisecond. Beside a
 * second that holds more than a twentieth of the sample the boundary leaves that second alone: halving would never end
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
