import type { Chance } from './random'

/** The rows of a service and how it lists them; times in milliseconds. */
export type RowTraits = {
  readonly reviews: number
  /** The order of an export; rows with one time keep no order among `ties`, and none do among `random`. */
  readonly order: 'ascending' | 'descending' | 'id' | 'ties' | 'random'
  /** How many reviews have the same modification time at first. */
  readonly rowsPerTime: number
  /** The longest time until a version, or a deletion, shows. */
  readonly lag: number
  /** The share of reviews that have no mention time. */
  readonly unmentioned: number
  /** What filters by mention time do: reviews without one match none, match any, or all reviews match. */
  readonly mentionFilter: 'kept' | 'lenient' | 'ignored'
  /** The bounds of filters are inclusive. */
  readonly isInclusive: boolean
  /** How far in the future the one misdated review is dated; undefined: there is none. */
  readonly futureDate: number | undefined
  /**
   * A version may have different contents, or none, and another name of its location than the previous one; default
   * false. A name never comes back, since a run does not repeat a name that it has sent with an older version.
   */
  readonly hasParts?: boolean
  /**
   * Reviews have a provider, a task, engagements, sentiments and liabilities, which come and go with their versions.
   */
  readonly hasFamily?: boolean
  /** How many characters a review has beside the others; none if left out. */
  readonly padding?: number
}

/** What the rows of a service do. */
export type Change = 'change' | 'delete' | 'add' | 'restore'
export const changes: ReadonlyArray<Change> = ['change', 'change', 'delete', 'add', 'restore']

type Version = {
  readonly modified: number
  readonly visible: number
  readonly text: string
  readonly isDeleted: boolean
}
type Review = {
  readonly id: number
  readonly mention: number | undefined
  readonly source: number
  readonly versions: Version[]
}
type Deletion = { readonly id: number; readonly modified: number; readonly visible: number; readonly source: number }

/** What a service holds: the newest version of each review, and each deletion, as `id time`. */
export type Truth = {
  readonly reviews: ReadonlyArray<readonly [string, number]>
  readonly deleted: ReadonlyArray<string>
}

/** What a request for a page asks for. */
export type RowFilter = {
  readonly modifiedTimeFrom: string
  readonly mentionTimeAfter?: string
  readonly mentionTimeBefore?: string
  readonly sources?: ReadonlyArray<number>
}

/** A row of an export. */
export type ExportRow = { readonly id: number; readonly modified: number; readonly text: string }

export type Rows = {
  /** `near`: the ids among which every second change happens. */
  readonly change: (kind: Change, count: number, near?: ReadonlyArray<number>) => void
  /** What is changed from now on shows at once. */
  readonly calm: () => void
  readonly listReviews: (filter: RowFilter) => ReadonlyArray<ExportRow>
  readonly listDeletions: (filter: RowFilter) => ReadonlyArray<ExportRow>
  /**
   * What the service shows of everything that happened and was visible up to a time. Leaves out reviews that changed
   * since.
   */
  readonly truth: (until: number) => Truth
  /** The newest version of each review that is there and was to be seen up to a time. */
  readonly newest: (until: number) => ReadonlyArray<ExportRow>
  /** Texts of patients. */
  readonly words: ReadonlyArray<string>
  /** Those in all versions of a review. */
  readonly wordsOf: (id: string) => ReadonlyArray<string>
}

/** The id of the first review; each other is 7 more. */
export const firstReviewId = 1_000

const year = 365 * 86_400_000

const toInstant = (millis: number): string => new Date(millis).toISOString()

/** The last deletion of each review. */
const lastOf = (deletions: ReadonlyArray<Deletion>): ReadonlyArray<Deletion> => [
  ...new Map(deletions.map((deletion) => [deletion.id, deletion])).values(),
]

/** The sources of reviews. */
export const sourceIds: ReadonlyArray<number> = [101, 102, 103]

/** What was found in a content: none, or some, by its version. */
const createContentParts = (review: number, version: number) => ({
  sentiments: Array.from({ length: version % 3 }, (_, i) => ({
    id: review * 100 + ((version + i) % 7),
    category: `Category ${(review + i) % 6}`,
    feature: 'staff',
    opinion: `Opinion ${version} ${i}`,
    tonality: 'neutral',
  })),
  liabilities: Array.from({ length: version % 2 }, () => ({
    liabilityId: review * 100 + (version % 5),
    categoryName: `Liability ${version}`,
  })),
})

/** What else a version of a review has. The name of a provider never comes back. */
const createFamily = (review: number, version: number) => ({
  provider: { id: 1 + (review % 4), name: `Provider ${review % 4} of hour ${Math.floor(version / 3_600_000)}` },
  ...(version % 3 === 0 ? {} : { taskDetails: { id: review * 10, status: `Status ${version}` } }),
  engagements: Array.from({ length: version % 3 }, (_, i) => ({
    engagement: `Engagement ${version} ${i}`,
    engagementTime: toInstant(version),
  })),
})

/** Reviews and deletions, drawn from a seed. */
export const createRows = (traits: RowTraits, now: () => number, chance: Chance): Rows => {
  const reviews: Review[] = []
  const deletions: Deletion[] = []
  const words: string[] = []
  const { hasParts = false, hasFamily = false, padding = 0 } = traits
  let isCalm = false

  const createVersion = ({ id, mention, source }: Review, modified: number, visible: number): Version => {
    const text = `My doctor told me ${chance.next()}`
    words.push(text)
    const json = {
      id,
      location: {
        id: 1 + (id % 5),
        name: `Location ${id % 5}${hasParts ? ` of hour ${Math.floor(modified / 3_600_000)}` : ''}`,
      },
      source: { id: source, name: `Source ${source}` },
      ...(mention === undefined ? {} : { mentionTime: toInstant(mention) }),
      modifiedTime: toInstant(modified),
      rating: 1 + (id % 5),
      ...(padding > 0 ? { surveyBarCode: '-'.repeat(padding) } : {}),
      contents: Array.from({ length: hasParts ? modified % 4 : 1 }, (_, i) => ({
        id: id * 10 + ((modified + i) % 10),
        question: 'Review',
        response: i === 0 ? text : `${text} ${i}`,
        questionCode: 'COMMENT',
        ...(hasFamily ? createContentParts(id, modified + i) : {}),
      })),
      ...(hasFamily ? createFamily(id, modified) : {}),
    }
    return { modified, visible, text: JSON.stringify(json), isDeleted: false }
  }
  const addReview = (modified: number, visible: number): void => {
    const review: Review = {
      id: firstReviewId + reviews.length * 7,
      mention: chance.happens(traits.unmentioned) ? undefined : begin + Math.floor(chance.next() * year),
      source: chance.pick(sourceIds),
      versions: [],
    }
    review.versions.push(createVersion(review, modified, visible))
    reviews.push(review)
  }
  const begin = now() - year
  for (let i = 0; i < traits.reviews; i += 1) {
    const modified = begin + Math.floor(((i - (i % traits.rowsPerTime)) / traits.reviews) * year * 0.99)
    addReview(modified, modified)
  }
  const { futureDate } = traits
  if (futureDate !== undefined) addReview(now() + futureDate, now())

  const newest = ({ versions }: Review): Version => versions.at(-1) as Version
  const select = (isDeleted: boolean, near: ReadonlyArray<number>): Review | undefined => {
    const found = reviews.filter((review) => newest(review).isDeleted === isDeleted && newest(review).modified <= now())
    const neighbours = found.filter(({ id }) => near.includes(id))
    const chosen = neighbours.length > 0 && chance.happens(0.5) ? neighbours : found
    return chosen.length === 0 ? undefined : chance.pick(chosen)
  }
  const listNewest: Rows['newest'] = (until) =>
    reviews.flatMap((review) => {
      const { isDeleted, modified, visible, text } = newest(review)
      return isDeleted || modified > until || visible > until ? [] : [{ id: review.id, modified, text }]
    })
  const draw = (): number => (isCalm || traits.lag === 0 ? 0 : Math.floor(chance.next() * traits.lag))

  /** Returns a test that is true for rows inside a filter. */
  const createRowTest = ({ modifiedTimeFrom, mentionTimeAfter, mentionTimeBefore, sources }: RowFilter) => {
    const from = Date.parse(modifiedTimeFrom)
    const [after, before] = [mentionTimeAfter, mentionTimeBefore].map((time) =>
      time === undefined ? undefined : Date.parse(time),
    )
    const isFrom = (time: number, start: number): boolean => (traits.isInclusive ? time >= start : time > start)
    return (modified: number, mention: number | undefined, source: number): boolean => {
      if (!isFrom(modified, from) || sources?.includes(source) === false) return false
      if (traits.mentionFilter === 'ignored' || (after ?? before) === undefined) return true
      if (mention === undefined) return traits.mentionFilter === 'lenient'
      return (after === undefined || isFrom(mention, after)) && (before === undefined || mention < before)
    }
  }
  const sort = (rows: ReadonlyArray<ExportRow>): ReadonlyArray<ExportRow> => {
    if (traits.order === 'ascending') return [...rows].sort((a, b) => a.modified - b.modified || a.id - b.id)
    if (traits.order === 'descending') return [...rows].sort((a, b) => b.modified - a.modified || b.id - a.id)
    if (traits.order === 'id') return [...rows].sort((a, b) => a.id - b.id)
    const keyed = rows.map((row) => ({ row, key: chance.next() }))
    const isTies = traits.order === 'ties'
    return keyed.sort((a, b) => (isTies ? a.row.modified - b.row.modified : 0) || a.key - b.key).map(({ row }) => row)
  }

  return {
    change: (kind, count, near = []) => {
      for (let i = 0; i < count; i += 1) {
        if (kind === 'add') {
          addReview(now(), now() + draw())
          continue
        }
        const review = select(kind === 'restore', near)
        if (review === undefined) continue
        // Versions of one review keep their order.
        const modified = Math.max(now(), newest(review).modified + 1)
        if (kind === 'delete') {
          review.versions.push({ ...newest(review), modified, visible: modified, isDeleted: true })
          deletions.push({ id: review.id, modified, visible: modified + draw(), source: review.source })
        } else review.versions.push(createVersion(review, modified, modified + draw()))
      }
    },
    calm: () => {
      isCalm = true
    },
    listReviews: (filter) => {
      const isInside = createRowTest(filter)
      return sort(
        reviews.flatMap(({ id, mention, source, versions }) => {
          const version = versions.findLast(({ visible }) => visible <= now())
          const isListed = version?.isDeleted === false && isInside(version.modified, mention, source)
          return isListed ? [{ id, modified: version.modified, text: version.text }] : []
        }),
      )
    },
    listDeletions: (filter) => {
      const isInside = createRowTest(filter)
      return sort(
        lastOf(deletions.filter(({ visible }) => visible <= now()))
          .filter(({ modified, source }) => isInside(modified, undefined, source))
          .map(({ id, modified }) => ({
            id,
            modified,
            text: `{"id":${id},"modifiedTime":"${toInstant(modified)}"}`,
          })),
      )
    },
    truth: (until) => ({
      reviews: listNewest(until).map(({ id, modified }) => [String(id), modified]),
      deleted: lastOf(deletions)
        .filter(({ modified, visible }) => modified <= until && visible <= until)
        .map(({ id, modified }) => `${id} ${modified}`),
    }),
    newest: listNewest,
    words,
    wordsOf: (id) => {
      const texts = reviews.find((review) => String(review.id) === id)?.versions.map(({ text }) => text) ?? []
      return texts.flatMap((text) => words.filter((word) => text.includes(`"${word}"`)))
    },
  }
}
