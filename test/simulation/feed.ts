import type { Chance } from './random'

/** The streams of a feed; the config names the object of each. */
export type FeedStream = 'visits' | 'places'
export const feedStreams: ReadonlyArray<FeedStream> = ['visits', 'places']

/**
 * What has to become of a record. incomplete, old, deleted: the connector refuses it. error, refused: the service
 * refuses it, in its answer or together with its batch. poison: the service fails on every batch with it.
 */
export type Fate = 'good' | 'incomplete' | 'old' | 'deleted' | 'error' | 'refused' | 'poison'

/** A record of a feed. */
export type Entry = {
  readonly stream: FeedStream
  /** Counted from 1 within its stream. */
  readonly position: number
  /** What the service knows it by: the e-mail address of a visit, the code of a location and its `city`. */
  readonly key: string
  /** The text by which a dead letter is recognized; a visit that comes twice has one. */
  readonly mark: string
  readonly fate: Fate
  readonly code: string
  /** Of a location. */
  readonly isActive: boolean
  readonly record: Readonly<Record<string, unknown>>
}

/** What is fed; rates from 0 to 1. */
export type FeedTraits = {
  /** The most records of the first run, and of each later one. */
  readonly first: number
  readonly more: number
  /** How many records are refused. */
  readonly badRate: number
  /** How many visits have an id. */
  readonly idRate: number
  readonly hasPoison: boolean
  /** The locations of each run are the whole list that the platform has. */
  readonly list?: ListTraits
}

/** How a list of locations changes from run to run; rates from 0 to 1. */
export type ListTraits = {
  /** How many leave it, how many of those come back, and how many change. */
  readonly goneRate: number
  readonly backRate: number
  /** How often half of it is missing. */
  readonly cutRate: number
  /** Locations have types, which change. */
  readonly hasTypes: boolean
}

const day = 86_400_000
const fates: Readonly<Record<FeedStream, ReadonlyArray<Fate>>> = {
  visits: ['incomplete', 'old', 'deleted', 'error', 'refused', 'poison'],
  places: ['incomplete', 'error', 'refused'],
}
/**
 * How a record tells the simulated service what to do with it: by the npi of a visit, or a word in the city of a
 * location.
 */
export const npiOf: Readonly<Record<Fate, string>> = {
  good: '1234567893',
  incomplete: '1234567893',
  old: '1234567893',
  deleted: '1234567893',
  error: '0000000001',
  refused: '0000000002',
  poison: '0000000003',
}

/** Records that grow from run to run, each drawn once. */
export type Feed = {
  /** All of them, in the order in which they come. */
  readonly entries: ReadonlyArray<Entry>
  /** Adds the records of another run; of a quiet one, good records of both streams are among them. */
  readonly grow: (isFirst: boolean, isQuiet: boolean) => void
  /** The locations that the list of this run begins with, before what was added for it. */
  readonly standing: () => ReadonlyArray<Entry>
  /** The newest good record of each location that is on the list. */
  readonly listed: () => ReadonlyArray<Entry>
}

/** `words` receives the names and addresses of patients. */
export const createFeed = (traits: FeedTraits, now: () => number, chance: Chance, words: string[]): Feed => {
  const entries: Entry[] = []
  const counts = { visits: 0, places: 0 }
  /** The codes of good locations. */
  let codes: string[] = []
  const { list } = traits
  const drawing = chance.split('list')
  const listed = new Map<string, Entry>()
  const gone = new Map<string, Entry>()
  let standing: ReadonlyArray<Entry> = []

  /** Makes locations leave the list and return to it. */
  const changeList = ({ goneRate, backRate, cutRate }: ListTraits): void => {
    const back = [...gone].filter(() => drawing.happens(backRate))
    const rate = drawing.happens(cutRate) ? 0.5 : goneRate
    for (const [code, entry] of [...listed].filter(() => drawing.happens(rate))) {
      listed.delete(code)
      gone.set(code, entry)
      codes = codes.filter((each) => each !== code)
    }
    for (const [code, entry] of back) {
      gone.delete(code)
      listed.set(code, entry)
      codes.push(code)
    }
  }
  /** The list with what was added to it from this entry on. A wrong record takes the place of the right one. */
  const updateList = (from: number): void => {
    const added = entries.slice(from).filter(({ stream }) => stream === 'places')
    const wrong = new Set(added.filter(({ fate }) => fate === 'incomplete').map(({ code }) => code))
    standing = [...listed.values()]
      .filter(({ code }) => !wrong.has(code))
      .map((entry) => ({ entry, rank: drawing.next() }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ entry }) => entry)
    for (const entry of added)
      if (entry.fate === 'good') {
        gone.delete(entry.code)
        listed.set(entry.code, entry)
      }
  }

  const addPlace = (fate: Fate, isNew: boolean): void => {
    counts.places += 1
    const position = counts.places
    const code = isNew || codes.length === 0 ? `W${position}` : chance.pick(codes)
    const isActive = isNew || chance.happens(0.8)
    const city = `at ${position}${fate === 'good' ? '' : ` ${fate}`}`
    const mark = `places ${position}`
    if (fate === 'good' && !codes.includes(code)) codes.push(code)
    const how = isActive ? chance.pick([{}, { active: true }]) : chance.pick([{ active: false }, deletedNow(now())])
    /** A wrong record may have a code that can be read. */
    const isKnown = list !== undefined && fate === 'incomplete' && codes.includes(code) && drawing.happens(0.7)
    entries.push({
      stream: 'places',
      position,
      key: `${code} ${city}`,
      mark,
      fate,
      code,
      isActive,
      record: {
        ...(fate !== 'incomplete' ? { code } : isKnown ? { code, active: 'perhaps' } : {}),
        name: `Größe ${position} 漢`,
        city,
        row: mark,
        ...(list?.hasTypes ? { codeType: drawing.pick(['STORE', 'CLINIC', null]) } : {}),
        ...(isKnown ? {} : how),
      },
    })
  }
  const addVisit = (fate: Fate): void => {
    counts.visits += 1
    const position = counts.visits
    const earlier = entries.filter((entry) => entry.stream === 'visits' && entry.fate === 'good')
    if (fate === 'good' && earlier.length > 0 && chance.happens(0.05))
      return void entries.push({ ...chance.pick(earlier), position })
    const drawEmail = (): string => `zoë.${chance.between(1e8, 1e9)}@example.com`
    let email = drawEmail()
    while (words.includes(email)) email = drawEmail()
    const firstName = `Zoë🙂${chance.between(1e8, 1e9)}`
    words.push(email, firstName)
    const code = chance.pick(codes)
    const mark = `visits ${position}`
    const age = fate === 'old' ? 60 * day : chance.between(0, 3 * day)
    entries.push({
      stream: 'visits',
      position,
      key: email,
      mark,
      fate,
      code,
      isActive: true,
      record: {
        id: position,
        ...(chance.happens(traits.idRate) ? { visitRecordId: `visit-${position}` } : {}),
        firstName,
        lastName: 'Nuñez',
        ...(fate === 'incomplete' ? { mail: email } : { email }),
        locationCode: code,
        npi: npiOf[fate],
        visitTime: new Date(now() - age).toISOString(),
        row: mark,
        ...(fate === 'deleted' ? deletedNow(now()) : {}),
      },
    })
  }
  const drawFate = (stream: FeedStream): Fate =>
    chance.happens(traits.badRate)
      ? chance.pick(fates[stream].filter((fate) => fate !== 'poison' || traits.hasPoison))
      : 'good'
  return {
    entries,
    grow: (isFirst, isQuiet) => {
      const from = entries.length
      if (list !== undefined) changeList(list)
      // Visits to locations whose fate was changed by a failing service are refused.
      if (isQuiet) codes = []
      if (codes.length === 0) for (let i = 0; i < 2; i += 1) addPlace('good', true)
      if (isQuiet) for (let i = 0; i < 3; i += 1) addVisit('good')
      for (let i = chance.between(0, isFirst ? traits.first : traits.more); i > 0; i -= 1)
        // A record without a code keeps a list from being complete.
        if (chance.happens(0.3))
          addPlace(list !== undefined && isQuiet ? 'good' : drawFate('places'), chance.happens(0.3))
        else addVisit(drawFate('visits'))
      if (list !== undefined) updateList(from)
    },
    standing: () => standing,
    listed: () => [...listed.values()],
  }
}

const deletedNow = (now: number) => ({ _ab_cdc_deleted_at: new Date(now).toISOString() })
