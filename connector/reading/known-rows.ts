import type { RowVersion } from './list'

/** A row that was read. */
type KnownRow = RowVersion & {
  /** Its place among the rows of its pass. */
  readonly position: number
  /** Its last known place in the service's list. */
  readonly index: number
  /** It comes from a resume token, so rows read next to it may be unknown. */
  readonly isTail: boolean
}

/** Some rows of a pass with their positions, enough to find the place again after a stop. */
export type Tail = ReadonlyArray<readonly [id: string, modifiedTime: number, position: number]>

const maxPages = 32

/** The rows of a page in columns: 30,000 row objects would dominate garbage collection. */
type Columns = {
  /** The number of its first row, counted over all rows read. */
  readonly firstRow: number
  readonly offset: number
  readonly ids: ReadonlyArray<string>
  readonly times: Float64Array
  readonly positions: Float64Array
}

/** The rows of the last 32 pages and their places in the pass. Large, so it is changed in place. */
export type KnownRows = {
  /** For each id the number of its last row. */
  readonly rowNumbers: Map<string, number>
  /** The version that was sent, for each id whose last row is older than that or later than the cutoff. */
  readonly newestTimes: Map<string, number>
  readonly pages: Columns[]
  /** The number of the first row of this pass. */
  passStart: number
  rowCount: number
  /** The highest position in this pass, -1 before its first row. */
  lastPosition: number
  /** The last position among the rows in the resume token. */
  tailEnd: number
}

/** `tail`: rows from the resume token of the pass to continue. */
export const createKnownRows = (tail: Tail): KnownRows => {
  const known: KnownRows = {
    rowNumbers: new Map(),
    newestTimes: new Map(),
    pages: [],
    passStart: 0,
    rowCount: 0,
    lastPosition: -1,
    tailEnd: -1,
  }
  if (tail.length > 0)
    addColumns(
      known,
      tail.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      tail.map(([, , position]) => position),
      Number.NaN,
      Number.POSITIVE_INFINITY,
    )
  known.tailEnd = known.lastPosition
  return known
}

const locate = ({ rowNumbers, pages }: KnownRows, id: string): readonly [page: Columns, at: number] | undefined => {
  const number = rowNumbers.get(id)
  if (number === undefined) return undefined
  for (let n = pages.length - 1; n >= 0; n -= 1) {
    const page = pages[n]
    if (page !== undefined && page.firstRow <= number) return [page, number - page.firstRow]
  }
  return undefined
}

/** The row with this id and version, if this pass has read it; otherwise undefined. */
export const findRow = (known: KnownRows, { id, modifiedTime }: RowVersion): KnownRow | undefined => {
  const found = locate(known, id)
  if (found === undefined) return undefined
  const [{ firstRow, offset, times, positions }, at] = found
  if (firstRow < known.passStart || times[at] !== modifiedTime) return undefined
  const position = positions[at] ?? Number.NaN
  const isTail = Number.isNaN(offset)
  // While nothing changes, a row's position equals the number of rows before it.
  return { id, modifiedTime, position, index: isTail ? position : offset + at, isTail }
}

/** This pass has read some version of the row. */
export const hasId = ({ rowNumbers, passStart }: KnownRows, id: string): boolean =>
  (rowNumbers.get(id) ?? -1) >= passStart

/**
 * The modifiedTime of the newest version read with this id, in any pass. A version after the cutoff was not sent, so it
 * counts only if no other was read.
 */
export const newestTime = (known: KnownRows, id: string): number | undefined => {
  const found = locate(known, id)
  return found && (known.newestTimes.get(id) ?? found[0].times[found[1]])
}

/** `offset`: that of the page. Rows later than `cutoff` were not sent. */
export const addRows = (known: KnownRows, rows: ReadonlyArray<RowVersion>, offset: number, cutoff: number): void => {
  const positions = rows.map((row) => findRow(known, row)?.position)
  addColumns(known, rows, assignPositions(positions, known.lastPosition, known.tailEnd), offset, cutoff)
}

const addColumns = (
  known: KnownRows,
  rows: ReadonlyArray<RowVersion>,
  positions: ReadonlyArray<number>,
  offset: number,
  cutoff: number,
): void => {
  const { rowNumbers, newestTimes, pages, rowCount } = known
  const columns: Columns = {
    firstRow: rowCount,
    offset,
    ids: rows.map(({ id }) => id),
    times: new Float64Array(rows.length),
    positions: Float64Array.from(positions),
  }
  pages.push(columns)
  rows.forEach(({ id, modifiedTime }, i) => {
    const newest = newestTime(known, id)
    if (newest !== undefined && newest <= cutoff && (newest > modifiedTime || modifiedTime > cutoff))
      newestTimes.set(id, newest)
    else newestTimes.delete(id)
    columns.times[i] = modifiedTime
    rowNumbers.set(id, rowCount + i)
    known.lastPosition = Math.max(known.lastPosition, positions[i] ?? known.lastPosition)
  })
  known.rowCount += rows.length
  const oldest = pages.length > maxPages ? pages.shift() : undefined
  if (oldest !== undefined) forgetPage(known, oldest)
}

const forgetPage = ({ rowNumbers, newestTimes }: KnownRows, { ids, firstRow }: Columns): void =>
  ids.forEach((id, i) => {
    if (rowNumbers.get(id) !== firstRow + i) return
    rowNumbers.delete(id)
    newestTimes.delete(id)
  })

/** Starts a new pass: positions restart at 0, and rows of earlier passes stay known. */
export const startPass = (known: KnownRows): void => {
  known.passStart = known.rowCount
  known.lastPosition = -1
  known.tailEnd = -1
}

/** The last rows of this pass: at least `count`, plus about seven from each older page. */
export const tailOf = ({ pages, passStart, lastPosition, rowNumbers }: KnownRows, count: number): Tail => {
  const rows: Array<Tail[number]> = []
  pages.forEach(({ firstRow, ids, times, positions }, n) => {
    if (firstRow < passStart) return
    const step = Math.max(1, Math.floor(ids.length / 7))
    // Only the last four pages can hold some of the last rows.
    for (let i = 0; i < ids.length; i += n >= pages.length - 4 ? 1 : step) {
      const [id = '', position = 0] = [ids[i], positions[i]]
      const isWanted = i % step === 0 || position > lastPosition - count
      if (isWanted && rowNumbers.get(id) === firstRow + i) rows.push([id, times[i] ?? 0, position])
    }
  })
  return rows.sort(([, , a], [, , b]) => a - b)
}

/**
 * The positions of a page's rows. Known rows keep theirs, rows behind the last known one follow `lastPosition`, and
 * rows in front of a known one stand between their neighbours. Up to `tailEnd` only some of the rows that were read are
 * known, so rows follow the last known one itself.
 */
export const assignPositions = (
  known: ReadonlyArray<number | undefined>,
  lastPosition: number,
  tailEnd = -1,
): ReadonlyArray<number> => {
  const firstKnown = known.findIndex((position) => position !== undefined)
  const lastKnown = known.findLastIndex((position) => position !== undefined)
  const lastKnownPosition = known[lastKnown] ?? lastPosition
  const follows = lastKnownPosition < tailEnd ? lastKnownPosition : lastPosition
  const positions: number[] = []
  known.forEach((position, i) => {
    if (position !== undefined) positions.push(position)
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
