import type { ServiceAnswer } from './front'
import type { Chance } from './random'

/** The operation that lists locations. */
export const listPath = '/api/v2/entity/locations'

/** How a service pages its list of locations if the specification does not say. */
export type PageTraits = {
  /** The most rows on a page, whatever was requested. */
  readonly clamp: number
  /** The reported page count: of its own pages, of pages of the requested size, or none. */
  readonly totals: 'applied' | 'requested' | 'none'
  /** A page after the last one is refused instead of empty. */
  readonly refusesEnd: boolean
}

type Refuse = (code: number, message: string) => string

/** The page of a list that a query asks for. */
export const answerPage = (
  text: string,
  list: ReadonlyArray<object>,
  { clamp, totals, refusesEnd }: PageTraits,
  refuse: Refuse,
): ServiceAnswer => {
  const query = new URLSearchParams(text)
  const [page, asked] = [Number(query.get('page') ?? 1), Number(query.get('size') ?? 20)]
  const size = Math.min(asked, clamp)
  const data = list.slice((page - 1) * size, page * size)
  if (data.length === 0 && page > 1 && refusesEnd) return { status: 404, body: refuse(404, 'no such page') }
  const totalPages = Math.ceil(list.length / (totals === 'applied' ? size : asked))
  return { status: 200, body: JSON.stringify({ data, ...(totals === 'none' ? {} : { totalPages }) }) }
}

/** How a list changes that a source reads. */
export type ListTraits = PageTraits & {
  /** How many locations there are at first. */
  readonly locations: number
  /** How likely it is that the list changes with a request. */
  readonly churn: number
}

type ManagedLocation = { readonly id: number; readonly code: string | null; name: string }

/** The locations that a service manages, in the order of their ids. */
export type ManagedList = {
  readonly respond: (query: string, isCalm: boolean) => ServiceAnswer
  /** Adds a location, removes one or gives one another name. */
  readonly change: () => void
  /** Begins to follow what the list shows while a run reads it. */
  readonly watch: () => ListWatch
  /** Lets the list change within the given number of requests from now on. */
  readonly allowChurn: (requests: number) => void
}

export type ListWatch = {
  /** The locations that were on the list all the time, and all names that each has had, by id. */
  readonly stayed: () => ReadonlySet<number>
  readonly names: ReadonlyMap<number, ReadonlySet<string>>
}

/** The list of its locations, drawn from a seed. */
export const createManagedList = (traits: ListTraits, chance: Chance, refuse: Refuse): ManagedList => {
  let locations: ManagedLocation[] = []
  let churnLeft = 0
  let left = new Set<number>()
  let names = new Map<number, Set<string>>()
  const noteName = (location: ManagedLocation): void => {
    names.set(location.id, (names.get(location.id) ?? new Set()).add(location.name))
  }
  const add = (): void => {
    const id = chance.between(1, 100_000)
    if (locations.some((other) => other.id === id)) return
    // Some have no code, and some the code of another.
    const code = chance.happens(0.1) ? null : chance.happens(0.1) ? 'SHARED' : `L-${id}`
    const location = { id, code, name: `Clinic ${chance.next()}` }
    locations = [...locations, location].sort((a, b) => a.id - b.id)
    noteName(location)
  }
  for (let i = 0; i < traits.locations; i += 1) add()

  const change = (): void => {
    const kind = chance.pick(['add', 'remove', 'remove', 'rename'] as const)
    if (kind === 'add' || locations.length === 0) {
      add()
      return
    }
    const location = chance.pick(locations)
    if (kind === 'remove') {
      locations = locations.filter((other) => other !== location)
      left.add(location.id)
    } else {
      location.name = `Clinic ${chance.next()}`
      noteName(location)
    }
  }
  return {
    change,
    allowChurn: (requests) => {
      churnLeft = requests
    },
    respond: (text, isCalm) => {
      if (!isCalm && churnLeft > 0 && chance.happens(traits.churn)) {
        churnLeft -= 1
        change()
      }
      const list = locations.map(({ id, code, name }) => ({
        ...{ id, displayName: name, code },
        codeType: code && 'INTERNAL',
      }))
      return answerPage(text, list, traits, refuse)
    },
    watch: () => {
      left = new Set()
      names = new Map()
      for (const location of locations) noteName(location)
      const present = locations.map(({ id }) => id)
      const [leftSince, namesSince] = [left, names]
      return { stayed: () => new Set(present.filter((id) => !leftSince.has(id))), names: namesSince }
    },
  }
}
