/** A row in one version: an id and the time of its last change, milliseconds. */
export type RowVersion = { readonly id: string; readonly modifiedTime: number }

/** A row that was read: its position among the rows of its pass, and the number of the page that brought it. */
export type HistoryRow = RowVersion & { readonly position: number; readonly page: number }

/** Some rows of a pass with their positions: enough to find the place again after a restart. */
export type SampledRows = ReadonlyArray<readonly [id: string, modifiedTime: number, position: number]>

/** The rows of the last 32 pages and the position of each in its pass. Changed in place, because it is large. */
export type RowHistory = {
  /** The last row read with this id, in any pass. */
  readonly findRow: (id: string) => HistoryRow | undefined
  /** The position of `row`, if `found` (what `findRow` gives for its id) is the same version and was read in this pass. */
  readonly findPosition: (row: RowVersion, found: HistoryRow | undefined) => number | undefined
  /** Whether these are, row for row, the rows of the last page of this pass. */
  readonly isLastPage: (rows: ReadonlyArray<RowVersion>) => boolean
  /** The highest position in this pass, -1 before its first row. */
  readonly lastPosition: () => number
  readonly addPage: (rows: ReadonlyArray<RowVersion>, positions: ReadonlyArray<number>) => void
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
  readonly ids: ReadonlyArray<string>
  readonly times: Float64Array
  readonly positions: Float64Array
}

const historyRowAt = ({ page, ids, times, positions }: PageColumns, i: number): HistoryRow => ({
  id: ids[i] ?? '',
  modifiedTime: times[i] ?? Number.NaN,
  position: positions[i] ?? Number.NaN,
  page,
})

/** The distance between two sampled rows of a page. */
const sampleStep = ({ ids }: PageColumns): number => Math.max(1, Math.floor(ids.length / 7))

/** `samples`: the rows that a resume token holds of the pass that goes on. */
export const createRowHistory = (samples: SampledRows): RowHistory => {
  /** For each id the number of its last row. */
  const rowNumbers = new Map<string, number>()
  const pages: PageColumns[] = []
  let pageCount = 0
  let passStart = 0
  let rowCount = 0
  let lastPosition = -1

  const addPage: RowHistory['addPage'] = (rows, positions) => {
    const columns: PageColumns = {
      page: pageCount,
      firstRow: rowCount,
      ids: rows.map(({ id }) => id),
      times: new Float64Array(rows.length),
      positions: Float64Array.from(positions),
    }
    rows.forEach(({ id, modifiedTime }, i) => {
      columns.times[i] = modifiedTime
      rowNumbers.set(id, rowCount + i)
      lastPosition = Math.max(lastPosition, columns.positions[i] ?? lastPosition)
    })
    pageCount += 1
    rowCount += rows.length
    pages.push(columns)
    if (pages.length > maxHistoryPages) dropPage(pages.shift())
  }
  const dropPage = (columns: PageColumns | undefined): void =>
    columns?.ids.forEach((id, i) => {
      if (rowNumbers.get(id) === columns.firstRow + i) rowNumbers.delete(id)
    })
  const findRow = (id: string): HistoryRow | undefined => {
    const number = rowNumbers.get(id)
    if (number === undefined) return undefined
    const columns = pages.findLast(({ firstRow }) => firstRow <= number)
    return columns && historyRowAt(columns, number - columns.firstRow)
  }

  if (samples.length > 0)
    addPage(
      samples.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      samples.map(([, , position]) => position),
    )

  return {
    findRow,
    findPosition: ({ modifiedTime }, found) =>
      found?.modifiedTime === modifiedTime && found.page >= passStart ? found.position : undefined,
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
    addPage,
    startPass: () => {
      passStart = pageCount
      lastPosition = -1
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
 * in front of a known one stand between their neighbours. `start`: the position of the first row if none is known.
 */
export const assignPositions = (
  known: ReadonlyArray<number | undefined>,
  lastPosition: number,
  start: number,
): ReadonlyArray<number> => {
  const positions: number[] = []
  const lastKnown = known.findLastIndex((position) => position !== undefined)
  const firstKnown = known.findIndex((position) => position !== undefined)
  known.forEach((position, i) => {
    if (position !== undefined) positions.push(position)
    else if (lastKnown < 0) positions.push(start + i)
    else if (i > lastKnown) positions.push(lastPosition + i - lastKnown)
    else if (i < firstKnown) positions.push((known[firstKnown] ?? 0) - (firstKnown - i))
    else {
      const next = known.slice(i).find((other) => other !== undefined) ?? lastPosition
      const previous = positions[i - 1] ?? next
      positions.push(previous + (next - previous) / 2)
    }
  })
  return positions
}
