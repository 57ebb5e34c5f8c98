import type { Row } from './consumer'
import type { Violation } from './oracles'
import type { ExportRow } from './rows'

/** A part of a review: the values of its key, and a text by which a stale one is noticed. */
type Part = { readonly key: ReadonlyArray<unknown>; readonly text: string }

/** A review in the simulated service's answers. What depends on `hasFamily` may be missing. */
type ReviewBody = {
  readonly location: Named
  readonly provider?: Named
  readonly source: Named
  readonly contents: ReadonlyArray<{
    readonly id: number
    readonly response: string
    readonly sentiments?: ReadonlyArray<{ readonly id: number; readonly category: string; readonly opinion: string }>
    readonly liabilities?: ReadonlyArray<{ readonly liabilityId: number; readonly categoryName: string }>
  }>
  readonly taskDetails?: { readonly status: string }
  readonly engagements?: ReadonlyArray<{ readonly engagement: string }>
}
type Named = { readonly id: number; readonly name: string }

/**
 * A stream made of parts of reviews, and how its records name the content of `list`. `isShared`: reviews have the same
 * parts.
 */
type PartStream = {
  readonly key: ReadonlyArray<string>
  readonly text: string
  readonly isShared: boolean
  readonly list: (review: ReviewBody, id: number) => ReadonlyArray<Part>
}

const toShared = (findPart: (review: ReviewBody) => Named | undefined): PartStream => ({
  key: ['id'],
  text: 'name',
  isShared: true,
  list: (review) =>
    [findPart(review)].flatMap((part) => (part === undefined ? [] : [{ key: [part.id], text: part.name }])),
})

const streams: Readonly<Record<string, PartStream>> = {
  review_contents: {
    key: ['reviewId', 'id'],
    text: 'response',
    isShared: false,
    list: ({ contents }, review) => contents.map(({ id, response }) => ({ key: [review, id], text: response })),
  },
  locations: toShared(({ location }) => location),
  review_sentiments: {
    key: ['reviewId', 'contentId', 'id'],
    text: 'opinion',
    isShared: false,
    list: ({ contents }, review) =>
      contents.flatMap(({ id: content, sentiments = [] }) =>
        sentiments.map(({ id, opinion }) => ({ key: [review, content, id], text: opinion })),
      ),
  },
  review_liabilities: {
    key: ['reviewId', 'contentId', 'liabilityId'],
    text: 'categoryName',
    isShared: false,
    list: ({ contents }, review) =>
      contents.flatMap(({ id: content, liabilities = [] }) =>
        liabilities.map(({ liabilityId, categoryName }) => ({
          key: [review, content, liabilityId],
          text: categoryName,
        })),
      ),
  },
  review_tasks: {
    key: ['reviewId'],
    text: 'status',
    isShared: false,
    list: ({ taskDetails: task }, review) => (task === undefined ? [] : [{ key: [review], text: task.status }]),
  },
  review_engagements: {
    key: ['reviewId', 'position'],
    text: 'engagement',
    isShared: false,
    list: ({ engagements = [] }, review) =>
      engagements.map(({ engagement }, position) => ({ key: [review, position], text: engagement })),
  },
  providers: toShared(({ provider }) => provider),
  sources: toShared(({ source }) => source),
  categories: {
    key: ['id'],
    text: 'category',
    isShared: true,
    list: ({ contents }) =>
      contents.flatMap(({ sentiments = [] }) =>
        sentiments.map(({ category }) => ({ key: [category], text: category })),
      ),
  },
}

/** The streams that a service without a family has, and all of them. */
export const partStreams: ReadonlyArray<string> = ['review_contents', 'locations']
export const familyStreams: ReadonlyArray<string> = Object.keys(streams)

/** The tables of parts, as a loader holds them that keeps the newest row of each key. */
export type PartTables = {
  readonly keep: (row: Row) => void
  /** A table has all parts of this version of a review, or newer ones. */
  readonly holds: (stream: string, review: ExportRow) => boolean
  /**
   * What differs from the reviews that the service holds. `hasOldParts`: the loader keeps the parts of older versions.
   */
  readonly compare: (
    reviews: ReadonlyArray<ExportRow>,
    options?: { readonly hasOldParts: boolean },
  ) => ReadonlyArray<Violation>
}

type HeldPart = { readonly time: number; readonly text: string }

/** SQL of the rows of a table of parts, as `keep` takes their data. */
export const partRowsSql = (stream: string): string => {
  const { key = [], text = '' } = streams[stream] ?? {}
  const columns = [...new Set([...key, text])].map((name) => `"${name}"::VARCHAR AS "${name}"`)
  return `SELECT ${columns.join(', ')}, epoch_ms("reviewModifiedTime") AS time FROM "${stream}" ORDER BY ALL`
}

/** SQL of the keys that several rows of a table of parts have. */
export const repeatedPartsSql = (stream: string): string => {
  const key = (streams[stream]?.key ?? []).map((name) => `"${name}"`).join(', ')
  return `SELECT concat_ws(' ', ${key}) AS key FROM "${stream}" GROUP BY ${key} HAVING count(*) > 1 ORDER BY ALL`
}

export const isSharedPart = (stream: string): boolean => streams[stream]?.isShared === true

/** `names`: of the streams that are read. */
export const createPartTables = (names: ReadonlyArray<string> = partStreams): PartTables => {
  const tables = new Map(names.map((stream) => [stream, new Map<string, HeldPart>()]))
  const compareTable = (
    stream: string,
    held: ReadonlyMap<string, HeldPart>,
    reviews: ReadonlyArray<ExportRow>,
    hasOldParts: boolean,
  ): ReadonlyArray<Violation> => {
    const { isShared = false, list } = streams[stream] ?? {}
    const violations: Violation[] = []
    const wanted = new Map<string, HeldPart>()
    for (const { id, modified, text } of reviews)
      for (const part of list?.(JSON.parse(text) as ReviewBody, id) ?? []) {
        const key = part.key.join(' ')
        if ((wanted.get(key)?.time ?? 0) <= modified) wanted.set(key, { time: modified, text: part.text })
      }
    for (const [key, part] of wanted) {
      const found = held.get(key)
      // A review that named it later has changed or was deleted since; a name that stays is not sent again.
      const isRight = isShared
        ? found !== undefined && (found.time > part.time || found.text === part.text)
        : found?.time === part.time && found.text === part.text
      const what = `${stream} ${key}: ${JSON.stringify(found)} in place of ${JSON.stringify(part)}`
      if (!isRight) violations.push({ oracle: found === undefined ? 'nothing lost' : 'nothing stale', what })
    }
    const versions = new Map(reviews.map(({ id, modified }) => [String(id), modified]))
    if (!isShared)
      for (const [key, { time }] of held)
        if (!wanted.has(key) && (!hasOldParts || versions.get(key.split(' ')[0] ?? '') === time))
          violations.push({ oracle: 'nothing beyond', what: `${stream} ${key}` })
    return violations
  }
  return {
    keep: ({ stream, data }) => {
      const { key = [], text = '' } = streams[stream] ?? {}
      const name = key.map((attribute) => data[attribute]).join(' ')
      const time = Number(data.time ?? Date.parse(String(data.reviewModifiedTime)))
      const table = tables.get(stream)
      if (time >= (table?.get(name)?.time ?? 0)) table?.set(name, { time, text: String(data[text]) })
    },
    holds: (stream, { id, modified, text }) =>
      (streams[stream]?.list(JSON.parse(text) as ReviewBody, id) ?? []).every(
        ({ key }) => (tables.get(stream)?.get(key.join(' '))?.time ?? 0) >= modified,
      ),
    compare: (reviews, { hasOldParts } = { hasOldParts: true }) =>
      [...tables].flatMap(([stream, held]) => compareTable(stream, held, reviews, hasOldParts)).slice(0, 5),
  }
}
