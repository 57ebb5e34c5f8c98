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
  /** Seven rows of each page and all of the last `tail`. */
  readonly trail: (tail: number) => Trail
}

const depth = 32

export const remember = (trail: Trail): Memory => {
  const byId = new Map<string, Entry>()
  const pages: Array<ReadonlyArray<Entry>> = []
  let count = 0
  let since = 0
  let end = -1

  const add: Memory['add'] = (rows, places) => {
    const entries = rows.map(({ id, modifiedTime }, i) => ({ id, modifiedTime, place: places[i] ?? end, page: count }))
    for (const entry of entries) {
      byId.set(entry.id, entry)
      if (entry.place > end) end = entry.place
    }
    count += 1
    pages.push(entries)
    if (pages.length <= depth) return
    for (const entry of pages.shift() ?? []) if (byId.get(entry.id) === entry) byId.delete(entry.id)
  }

  if (trail.length > 0)
    add(
      trail.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      trail.map(([, , place]) => place),
    )

  return {
    last: (id) => byId.get(id),
    place: ({ modifiedTime }, entry) =>
      entry?.modifiedTime === modifiedTime && entry.page >= since ? entry.place : undefined,
    isLast: (rows) => {
      const last = pages.at(-1)
      return (
        last !== undefined &&
        count > since &&
        last.length === rows.length &&
        last.every(({ id, modifiedTime }, i) => rows[i]?.id === id && rows[i]?.modifiedTime === modifiedTime)
      )
    },
    end: () => end,
    add,
    restart: () => {
      since = count
      end = -1
    },
    trail: (tail) => {
      const mine = (entry: Entry): boolean => entry.page >= since && byId.get(entry.id) === entry
      const few = pages.flatMap((page) => page.filter((_, i) => i % Math.max(1, Math.floor(page.length / 7)) === 0))
      const last = pages.slice(-4).flatMap((page) => page.filter(({ place }) => place > end - tail))
      return [...new Set([...few, ...last])]
        .filter(mine)
        .sort((a, b) => a.place - b.place)
        .map(({ id, modifiedTime, place }) => [id, modifiedTime, place])
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
