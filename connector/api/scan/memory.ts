/** A row as it stood at one time. */
export type Version = { readonly id: string; readonly modifiedTime: number }

/** A row that was read: its place among the rows of its pass, and the page it came with. */
export type Entry = Version & { readonly place: number; readonly page: number }

/** A few rows of a pass with their places, enough to find them again after a restart. */
export type Trail = ReadonlyArray<readonly [id: string, modifiedTime: number, place: number]>

/** The rows of the last 32 pages and where each stood in the order of the pass. Changed in place: it is large. */
export type Memory = {
  /** What is remembered of this id, of whichever pass. */
  readonly last: (id: string) => Entry | undefined
  /** Where the row stood, if what is remembered of it is this version and this pass has read it. */
  readonly place: (row: Version, entry: Entry | undefined) => number | undefined
  /** Whether these are, row for row, those of the last page of this pass. */
  readonly isLast: (rows: ReadonlyArray<Version>) => boolean
  /** The place of the last row of this pass, -1 before the first. */
  readonly end: () => number
  readonly add: (rows: ReadonlyArray<Version>, places: ReadonlyArray<number>) => void
  /** Another pass begins: places start anew, what was sent is still known. */
  readonly restart: () => void
  /** Seven rows of each page and all of the last `tail`, as a copy. */
  readonly trail: (tail: number) => Trail
}

const depth = 32

/** A page in columns: thirty thousand rows as objects would be most of what the collector has to look after. */
type Columns = {
  readonly page: number
  /** The number of its first row among all rows read. */
  readonly first: number
  readonly ids: ReadonlyArray<string>
  readonly times: Float64Array
  readonly places: Float64Array
}

const entryAt = ({ page, ids, times, places }: Columns, i: number): Entry => ({
  id: ids[i] ?? '',
  modifiedTime: times[i] ?? Number.NaN,
  place: places[i] ?? Number.NaN,
  page,
})

/** Every so many rows of a page are a part of the trail. */
const stepOf = ({ ids }: Columns): number => Math.max(1, Math.floor(ids.length / 7))

export const remember = (trail: Trail): Memory => {
  /** The number of the last row of this id. */
  const byId = new Map<string, number>()
  const pages: Columns[] = []
  let count = 0
  let since = 0
  let read = 0
  let end = -1

  const add: Memory['add'] = (rows, places) => {
    const columns: Columns = {
      page: count,
      first: read,
      ids: rows.map(({ id }) => id),
      times: new Float64Array(rows.length),
      places: Float64Array.from(places),
    }
    rows.forEach(({ id, modifiedTime }, i) => {
      columns.times[i] = modifiedTime
      byId.set(id, read + i)
      end = Math.max(end, columns.places[i] ?? end)
    })
    count += 1
    read += rows.length
    pages.push(columns)
    if (pages.length > depth) forget(pages.shift())
  }
  const forget = (columns: Columns | undefined): void =>
    columns?.ids.forEach((id, i) => {
      if (byId.get(id) === columns.first + i) byId.delete(id)
    })
  const last = (id: string): Entry | undefined => {
    const number = byId.get(id)
    if (number === undefined) return undefined
    const columns = pages.findLast(({ first }) => first <= number)
    return columns && entryAt(columns, number - columns.first)
  }

  if (trail.length > 0)
    add(
      trail.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      trail.map(([, , place]) => place),
    )

  return {
    last,
    place: ({ modifiedTime }, entry) =>
      entry?.modifiedTime === modifiedTime && entry.page >= since ? entry.place : undefined,
    isLast: (rows) => {
      const columns = pages.at(-1)
      return (
        columns !== undefined &&
        count > since &&
        columns.ids.length === rows.length &&
        columns.ids.every((id, i) => rows[i]?.id === id && rows[i]?.modifiedTime === columns.times[i])
      )
    },
    end: () => end,
    add,
    restart: () => {
      since = count
      end = -1
    },
    trail: (tail) => {
      const rows: Array<Trail[number]> = []
      const take = (columns: Columns, i: number): void => {
        const { first, ids, times, places } = columns
        const id = ids[i] ?? ''
        if (byId.get(id) === first + i) rows.push([id, times[i] ?? Number.NaN, places[i] ?? Number.NaN])
      }
      pages.forEach((columns, n) => {
        if (columns.page < since) return
        const step = stepOf(columns)
        const whole = n >= pages.length - 4
        for (let i = 0; i < columns.ids.length; i += whole ? 1 : step)
          if (i % step === 0 || (columns.places[i] ?? end) > end - tail) take(columns, i)
      })
      return rows.sort(([, , a], [, , b]) => a - b)
    },
  }
}

/**
 * Places for the rows of a page: the known keep theirs, rows after the last known follow `end`, rows before one stand
 * between their neighbours. `start`: the place of the first row where none is known.
 */
export const placesOf = (
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
