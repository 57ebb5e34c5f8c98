/** A row as it stood at one time. */
export type RowVersion = { readonly id: string; readonly modifiedTime: number }

/** A row that was read: its place among the rows of its pass, and the page it came with. */
export type HistoryRow = RowVersion & { readonly position: number; readonly page: number }

/** A few rows of a pass with their places, enough to find them again after a restart. */
export type SampledRows = ReadonlyArray<readonly [id: string, modifiedTime: number, place: number]>

/** The rows of the last 32 pages and where each stood in the order of the pass. Changed in place: it is large. */
export type RowHistory = {
  /** What is remembered of this id, of whichever pass. */
  readonly findRow: (id: string) => HistoryRow | undefined
  /** Where the row stood, if what is remembered of it is this version and this pass has read it. */
  readonly positionOf: (row: RowVersion, entry: HistoryRow | undefined) => number | undefined
  /** Whether these are, row for row, those of the last page of this pass. */
  readonly isLastPage: (rows: ReadonlyArray<RowVersion>) => boolean
  /** The place of the last row of this pass, -1 before the first. */
  readonly lastPosition: () => number
  readonly addPage: (rows: ReadonlyArray<RowVersion>, places: ReadonlyArray<number>) => void
  /** Another pass begins: places start anew, what was sent is still known. */
  readonly startPass: () => void
  /** Seven rows of each page and all of the last `tail`, as a copy. */
  readonly sampleRows: (tail: number) => SampledRows
}

const maxHistoryPages = 32

/** A page in columns: thirty thousand rows as objects would be most of what the collector has to look after. */
type PageColumns = {
  readonly page: number
  /** The number of its first row among all rows read. */
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

/** Every so many rows of a page are a part of the trail. */
const sampleStep = ({ ids }: PageColumns): number => Math.max(1, Math.floor(ids.length / 7))

export const createRowHistory = (trail: SampledRows): RowHistory => {
  /** The number of the last row of this id. */
  const byId = new Map<string, number>()
  const pages: PageColumns[] = []
  let count = 0
  let since = 0
  let read = 0
  let end = -1

  const add: RowHistory['addPage'] = (rows, places) => {
    const columns: PageColumns = {
      page: count,
      firstRow: read,
      ids: rows.map(({ id }) => id),
      times: new Float64Array(rows.length),
      positions: Float64Array.from(places),
    }
    rows.forEach(({ id, modifiedTime }, i) => {
      columns.times[i] = modifiedTime
      byId.set(id, read + i)
      end = Math.max(end, columns.positions[i] ?? end)
    })
    count += 1
    read += rows.length
    pages.push(columns)
    if (pages.length > maxHistoryPages) forget(pages.shift())
  }
  const forget = (columns: PageColumns | undefined): void =>
    columns?.ids.forEach((id, i) => {
      if (byId.get(id) === columns.firstRow + i) byId.delete(id)
    })
  const last = (id: string): HistoryRow | undefined => {
    const number = byId.get(id)
    if (number === undefined) return undefined
    const columns = pages.findLast(({ firstRow }) => firstRow <= number)
    return columns && historyRowAt(columns, number - columns.firstRow)
  }

  if (trail.length > 0)
    add(
      trail.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      trail.map(([, , place]) => place),
    )

  return {
    findRow: last,
    positionOf: ({ modifiedTime }, entry) =>
      entry?.modifiedTime === modifiedTime && entry.page >= since ? entry.position : undefined,
    isLastPage: (rows) => {
      const columns = pages.at(-1)
      return (
        columns !== undefined &&
        count > since &&
        columns.ids.length === rows.length &&
        columns.ids.every((id, i) => rows[i]?.id === id && rows[i]?.modifiedTime === columns.times[i])
      )
    },
    lastPosition: () => end,
    addPage: add,
    startPass: () => {
      since = count
      end = -1
    },
    sampleRows: (tail) => {
      const rows: Array<SampledRows[number]> = []
      const take = (columns: PageColumns, i: number): void => {
        const { firstRow, ids, times, positions } = columns
        const id = ids[i] ?? ''
        if (byId.get(id) === firstRow + i) rows.push([id, times[i] ?? Number.NaN, positions[i] ?? Number.NaN])
      }
      pages.forEach((columns, n) => {
        if (columns.page < since) return
        const step = sampleStep(columns)
        const whole = n >= pages.length - 4
        for (let i = 0; i < columns.ids.length; i += whole ? 1 : step)
          if (i % step === 0 || (columns.positions[i] ?? end) > end - tail) take(columns, i)
      })
      return rows.sort(([, , a], [, , b]) => a - b)
    },
  }
}

/**
 * Places for the rows of a page: the known keep theirs, rows after the last known follow `end`, rows before one stand
 * between their neighbours. `start`: the place of the first row where none is known.
 */
export const assignPositions = (
  known: ReadonlyArray<number | undefined>,
  end: number,
  start: number,
): ReadonlyArray<number> => {
  const places: number[] = []
  const lastKnown = known.findLastIndex((place) => place !== undefined)
  const firstKnown = known.findIndex((place) => place !== undefined)
  known.forEach((place, i) => {
    if (place !== undefined) places.push(place)
    else if (lastKnown < 0) places.push(start + i)
    else if (i > lastKnown) places.push(end + i - lastKnown)
    else if (i < firstKnown) places.push((known[firstKnown] ?? 0) - (firstKnown - i))
    else {
      const next = known.slice(i).find((other) => other !== undefined) ?? end
      const before = places[i - 1] ?? next
      places.push(before + (next - before) / 2)
    }
  })
  return places
}
