/** A row in one version: an id and the time of its last change, milliseconds. */
export type RowVersion = { readonly id: string; readonly modifiedTime: number }

/** A row that was read. */
export type HistoryRow = RowVersion & {
  /** Among the rows of its pass. */
  readonly position: number
  /** Its place in the service's list when it was read: the offset of its page and its place there. */
  readonly index: number
  /** The number of the page that brought it. */
  readonly page: number
  /** It comes from a resume token: other rows that were read near it may be unknown. */
  readonly isSampled: boolean
}

/**
 * The rows, with the newest version of each id last: many a target keeps the record that comes last. They are in the order of their
 * times where a page has an older version behind a newer one, and else as they were.
 */
export const putNewestLast = <A extends RowVersion>(rows: ReadonlyArray<A>): ReadonlyArray<A> => {
  const times = new Map<string, number>()
  const hasOlderBehind = rows.some(({ id, modifiedTime }) => {
    const isOlder = modifiedTime < (times.get(id) ?? modifiedTime)
    times.set(id, modifiedTime)
    return isOlder
  })
  return hasOlderBehind ? [...rows].sort((a, b) => a.modifiedTime - b.modifiedTime) : rows
}

/** Some rows of a pass with their positions: enough to find the place again after a restart. */
export type SampledRows = ReadonlyArray<readonly [id: string, modifiedTime: number, position: number]>

/** The rows of the last 32 pages and the position of each in its pass. Changed in place, because it is large. */
export type RowHistory = {
  /** The last row read with this id, in any pass. */
  readonly findRow: (id: string) => HistoryRow | undefined
  /**
   * The modifiedTime of the newest version read with the id of `found`, which need not be the last one read. A version after the
   * cutoff counts only if no other was read: it has not left.
   */
  readonly newestTime: (found: HistoryRow | undefined) => number | undefined
  /** The position of `row`, if `found` (what `findRow` gives for its id) is the same version and was read in this pass. */
  readonly findPosition: (row: RowVersion, found: HistoryRow | undefined) => number | undefined
  /** Whether `found` was read in this pass, in whatever version. */
  readonly isOfPass: (found: HistoryRow | undefined) => boolean
  /** Whether these are, row for row, the rows of the last page of this pass. */
  readonly isLastPage: (rows: ReadonlyArray<RowVersion>) => boolean
  /** The highest position in this pass, -1 before its first row. */
  readonly lastPosition: () => number
  /** The highest position of a sample in this pass: up to there rows were read that are unknown now. -1 without samples. */
  readonly sampledUntil: () => number
  /** How many rows each of the last `count` pages of this pass had, the last one first. */
  readonly lastLengths: (count: number) => ReadonlyArray<number>
  /** `offset`: the page's; without one the rows are samples. `cutoff`: later versions do not leave. */
  readonly addPage: (
    rows: ReadonlyArray<RowVersion>,
    positions: ReadonlyArray<number>,
    offset?: number,
    cutoff?: number,
  ) => void
  /** A new pass begins: positions start again at 0, rows of earlier passes stay known as read. */
  readonly startPass: () => void
  /** A copy of every row among the last `overlap` positions and, of older pages of this pass, of about seven rows each. */
  readonly sampleRows: (overlap: number) => SampledRows
}

const maxHistoryPages = 32

/** The rows of a page in columns: 30,000 rows as objects would be most of what the garbage collector has to visit. */
type PageColumns = {
  readonly page: number
  /** The number of its first row, counted over all rows read. */
  readonly firstRow: number
  readonly offset: number | undefined
  readonly ids: ReadonlyArray<string>
  readonly times: Float64Array
  readonly positions: Float64Array
}

const historyRowAt = ({ page, offset, ids, times, positions }: PageColumns, i: number): HistoryRow => ({
  id: ids[i] ?? '',
  modifiedTime: times[i] ?? Number.NaN,
  position: positions[i] ?? Number.NaN,
  // While nothing changes, the position of a row is its place in the list.
  index: offset === undefined ? (positions[i] ?? Number.NaN) : offset + i,
  page,
  isSampled: offset === undefined,
})

/** The distance between two sampled rows of a page. */
const sampleStep = ({ ids }: PageColumns): number => Math.max(1, Math.floor(ids.length / 7))

/** `samples`: the rows that a resume token holds of the pass that goes on. */
export const createRowHistory = (samples: SampledRows): RowHistory => {
  /** For each id the number of its last row. */
  const rowNumbers = new Map<string, number>()
  /** The newest time of each id whose last row has another one. */
  const newestTimes = new Map<string, number>()
  const pages: PageColumns[] = []
  let pageCount = 0
  let passStart = 0
  let rowCount = 0
  let lastPosition = -1

  const addPage: RowHistory['addPage'] = (rows, positions, offset, cutoff = Number.POSITIVE_INFINITY) => {
    const columns: PageColumns = {
      page: pageCount,
      firstRow: rowCount,
      offset,
      ids: rows.map(({ id }) => id),
      times: new Float64Array(rows.length),
      positions: Float64Array.from(positions),
    }
    pages.push(columns)
    rows.forEach(({ id, modifiedTime }, i) => {
      const newest = newestTime(findRow(id))
      if (newest !== undefined && newest <= cutoff && (newest > modifiedTime || modifiedTime > cutoff))
        newestTimes.set(id, newest)
      else newestTimes.delete(id)
      columns.times[i] = modifiedTime
      rowNumbers.set(id, rowCount + i)
      lastPosition = Math.max(lastPosition, columns.positions[i] ?? lastPosition)
    })
    pageCount += 1
    rowCount += rows.length
    if (pages.length > maxHistoryPages) dropPage(pages.shift())
  }
  const dropPage = (columns: PageColumns | undefined): void =>
    columns?.ids.forEach((id, i) => {
      if (rowNumbers.get(id) !== columns.firstRow + i) return
      rowNumbers.delete(id)
      newestTimes.delete(id)
    })
  const findRow = (id: string): HistoryRow | undefined => {
    const number = rowNumbers.get(id)
    if (number === undefined) return undefined
    const columns = pages.findLast(({ firstRow }) => firstRow <= number)
    return columns && historyRowAt(columns, number - columns.firstRow)
  }
  const newestTime: RowHistory['newestTime'] = (found) => found && (newestTimes.get(found.id) ?? found.modifiedTime)

  if (samples.length > 0)
    addPage(
      samples.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      samples.map(([, , position]) => position),
    )
  let sampledUntil = lastPosition

  return {
    findRow,
    newestTime,
    findPosition: ({ modifiedTime }, found) =>
      found?.modifiedTime === modifiedTime && found.page >= passStart ? found.position : undefined,
    isOfPass: (found) => found !== undefined && found.page >= passStart,
    lastLengths: (count) =>
      pages
        .filter(({ page, offset }) => page >= passStart && offset !== undefined)
        .slice(-count)
        .map(({ ids }) => ids.length)
        .reverse(),
    isLastPage: (rows) => {
      const columns = pages.at(-1)
      return (
        columns !== undefined &&
        pageCount > passStart &&
        columns.ids.length === rows.length &&
        columns.ids.every((id, i) => rows[i]?.id === id && rows[i]?.modifiedTime === columns.times[i])
      )
    },
    lastPosition: () => lastPosition,
    sampledUntil: () => sampledUntil,
    addPage,
    startPass: () => {
      passStart = pageCount
      lastPosition = -1
      sampledUntil = -1
    },
    sampleRows: (overlap) => {
      const rows: Array<SampledRows[number]> = []
      const addSample = ({ firstRow, ids, times, positions }: PageColumns, i: number): void => {
        const id = ids[i] ?? ''
        if (rowNumbers.get(id) === firstRow + i) rows.push([id, times[i] ?? Number.NaN, positions[i] ?? Number.NaN])
      }
      pages.forEach((columns, n) => {
        if (columns.page < passStart) return
        const step = sampleStep(columns)
        // Only the last four pages can hold rows of the overlap.
        const isRecent = n >= pages.length - 4
        for (let i = 0; i < columns.ids.length; i += isRecent ? 1 : step)
          if (i % step === 0 || (columns.positions[i] ?? lastPosition) > lastPosition - overlap) addSample(columns, i)
      })
      return rows.sort(([, , a], [, , b]) => a - b)
    },
  }
}

/**
 * The positions of a page's rows. Known rows keep theirs, rows behind the last known one follow `lastPosition`, and rows
 * in front of a known one stand between their neighbours. `start`: the position of the first row if none is known. Up to
 * `sampledUntil` only samples of what was read are known, so rows follow the last known one itself.
 */
export const assignPositions = (
  known: ReadonlyArray<number | undefined>,
  lastPosition: number,
  start: number,
  sampledUntil = -1,
): ReadonlyArray<number> => {
  const positions: number[] = []
  const lastKnown = known.findLastIndex((position) => position !== undefined)
  const lastKnownPosition = known[lastKnown] ?? lastPosition
  const follows = lastKnownPosition < sampledUntil ? lastKnownPosition : lastPosition
  const firstKnown = known.findIndex((position) => position !== undefined)
  known.forEach((position, i) => {
    if (position !== undefined) positions.push(position)
    else if (lastKnown < 0) positions.push(start + i)
    else if (i > lastKnown) positions.push(follows + i - lastKnown)
    else if (i < firstKnown) positions.push((known[firstKnown] ?? 0) - (firstKnown - i))
    else {
      const next = known.slice(i).find((other) => other !== undefined) ?? lastPosition
      const previous = positions[i - 1] ?? next
      positions.push(previous + (next - previous) / 2)
    }
  })
  return positions
}

/** A page, row for row beside what the history knows of its rows. */
export type ComparedPage = {
  readonly offset: number
  readonly rows: ReadonlyArray<RowVersion>
  readonly found: ReadonlyArray<HistoryRow | undefined>
  /** The positions of the rows that this pass has read in this version. */
  readonly known: ReadonlyArray<number | undefined>
  readonly isOfPass: RowHistory['isOfPass']
  /** Rows with a later modifiedTime may have changed or become visible since the row before them was read; milliseconds. */
  readonly youngFrom: number
  /** Rows with a later modifiedTime belong to the next run: new rows may come in front of them; milliseconds. */
  readonly cutoff: number
}

/** What a page says about the order of the rows behind its known ones. */
export type OrderCheck = {
  /** A row that was not read stands in front of one that was, and nothing explains it. */
  readonly hasUnreadRow: boolean
  /** How many rows have come in front of known rows since those were read, without an explanation. */
  readonly insertedRows: number
  /** The known rows stand at the start of the page, each at the place where it was read. */
  readonly isInPlace: boolean
}

/**
 * Compares the place of every known row with the place where it was read. While rows keep their order, a row that was not read can
 * stand in front of a known one only if it changed or became visible meanwhile, and then it is young; and a known row moves towards
 * the end of the list only if such a row came in front of it. Whatever else does this has changed places with rows that were read,
 * and may itself be missing. Equal times are common only where many rows changed at once, so a young row does not explain itself if
 * a known row has its time.
 */
export const checkOrder = ({ offset, rows, found, known, isOfPass, youngFrom, cutoff }: ComparedPage): OrderCheck => {
  const isKnown = (_: RowVersion, i: number): boolean => known[i] !== undefined
  const knownTimes = new Set(rows.filter(isKnown).map(({ modifiedTime }) => modifiedTime))
  const lastKnown = known.findLastIndex((position) => position !== undefined)
  let isUnread = false
  let hasUnreadRow = false
  let explained = 0
  let insertedRows = 0
  rows.slice(0, lastKnown + 1).forEach((row, i) => {
    const earlier = found[i]
    const isYoung = row.modifiedTime > youngFrom
    if (known[i] === undefined) {
      // Another version of a row that was read has taken its place.
      if (isOfPass(earlier)) return
      if (isYoung && !knownTimes.has(row.modifiedTime)) explained += 1
      else isUnread = true
      return
    }
    if (earlier === undefined || row.modifiedTime > cutoff) return
    hasUnreadRow ||= isUnread && !earlier.isSampled
    isUnread = false
    if (!(isYoung && knownTimes.size > 1)) insertedRows = Math.max(insertedRows, offset + i - explained - earlier.index)
  })
  const isInPlace =
    lastKnown >= 0 && rows.every((_, i) => i > lastKnown || (known[i] !== undefined && found[i]?.index === offset + i))
  return { hasUnreadRow, insertedRows: Math.ceil(insertedRows), isInPlace }
}

/** Whether the newest rows come first, as far as the rows up to and with this page show; `before`: as the pages before it show. */
export const findDirection = (before: boolean | undefined, rows: ReadonlyArray<RowVersion>): boolean | undefined => {
  const steps = rows.map(({ modifiedTime }, i) => modifiedTime - (rows[i - 1]?.modifiedTime ?? modifiedTime))
  if (steps.some((step) => step > 0)) return false
  return before ?? (steps.some((step) => step < 0) ? true : undefined)
}
