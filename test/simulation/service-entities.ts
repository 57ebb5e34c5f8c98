import { createFront, type FrontTraits, type ServiceAnswer, type ServiceRequest } from './front'
import type { Chance } from './random'
import type { Change } from './rows'
import type { SimulatedService } from './service'
import { createManagedList, type ListTraits, type ListWatch, listPath } from './service-lists'

/** How a service shows the feedback on its entities where its specification says nothing. */
export type EntityTraits = {
  /** The most rows on a page, whatever was requested. */
  readonly clamp: number
  /** The perPage in an answer: the applied one, the requested one, or none. */
  readonly echo: 'applied' | 'requested' | 'none'
  /** Pages are counted for each entity, or over all entities of an answer. */
  readonly paging: 'entity' | 'answer'
  /** The reported page count. */
  readonly totals: 'right' | 'zero' | 'huge' | 'none'
  /** Rows at exactly fromDate, and at exactly toDate, are in the window. */
  readonly bounds: { readonly from: boolean; readonly to: boolean }
  /** Scattered: in no order of time, but always the same. */
  readonly order: 'newest' | 'oldest' | 'scattered'
  readonly maxIdentifiers: number
  /** Entities have the service's own ids in an answer. */
  readonly hasOwnIds: boolean
  /** The most rows of an entity at first, and in one second. */
  readonly rows: number
  readonly burst: number
  /** How likely it is that rows change with a request, and the longest time until a new row shows. */
  readonly churn: number
  readonly lag: number
  /** How likely a row of a page is deleted once the page has been served, so that later rows move up. */
  readonly deletions: number
  /** The list of locations that it manages; undefined: there is none, and no ratings of entities are read. */
  readonly list?: ListTraits
}

export const entityIds = { person: ['1', '2'], location: ['10'], entity: ['20'] } as const
type Kind = keyof typeof entityIds
const kinds: ReadonlyArray<Kind> = ['person', 'location', 'entity']

type FeedbackRow = {
  readonly id: number
  readonly mention: number
  readonly visible: number
  readonly text: string
  answer: string | null
}

export type EntityService = SimulatedService & {
  /** What a destination has to hold: text and answer of each row, by the kind and id of its entity and its own id. */
  readonly truth: () => ReadonlyMap<string, string>
  /** The rows that it has silently deleted, by the same keys. */
  readonly deleted: () => ReadonlySet<string>
  /** Begins to follow the list of locations. */
  readonly watchList: () => ListWatch | undefined
  /** The numbers of comments reported for each entity since the last call, by kind and id. */
  readonly takeTold: () => ReadonlyMap<string, ReadonlySet<number>>
}

const day = 86_400_000
/** A row that is older neither comes nor changes: a run reads less than the default of feedback_lookback_days again. */
const reach = 20 * day

const reviewsPath = '/api/external/bsr/v2/reviews'
const commentsPath = '/api/bsr/comments'

type Query = {
  readonly ids: Readonly<Record<Kind, ReadonlyArray<string>>>
  readonly page: number
  readonly perPage: number
  readonly fromDate: string | undefined
  readonly toDate: string | undefined
  readonly days: number
}

const parseQuery = (text: string, firstPage: number): Query => {
  const query = new URLSearchParams(text)
  const number = (name: string, otherwise: number): number => Number(query.get(name) ?? otherwise)
  return {
    ids: { person: query.getAll('personId'), location: query.getAll('locationId'), entity: query.getAll('entityId') },
    page: number('page', firstPage) - firstPage,
    perPage: number('perPage', 20),
    fromDate: query.get('fromDate') ?? undefined,
    toDate: query.get('toDate') ?? undefined,
    days: number('days', 365),
  }
}

/** The body of operation 1 as the query of the others. */
const toQueryText = (body: string): string =>
  new URLSearchParams(
    Object.entries(JSON.parse(body) as Readonly<Record<string, unknown>>).flatMap(
      ([name, value]): [string, string][] => (value === null || value === undefined ? [] : [[name, String(value)]]),
    ),
  ).toString()

/** Comments and transparency reviews of a few entities; the same rows in both. */
export const createEntityService = (
  front: FrontTraits,
  traits: EntityTraits,
  now: () => number,
  chance: Chance,
): EntityService => {
  const words: string[] = []
  const rowsOf = new Map<string, FeedbackRow[]>(
    kinds.flatMap((kind) => entityIds[kind].map((id): [string, FeedbackRow[]] => [`${kind} ${id}`, []])),
  )
  const keys = [...rowsOf.keys()]
  const deleted = new Set<string>()
  const deleting = chance.split('deletions')
  let lastId = 1_000
  let churnLeft = 0
  let told = new Map<string, Set<number>>()
  const tellCount = (key: string, count: number): object => {
    if (traits.list === undefined) return {}
    told.set(key, (told.get(key) ?? new Set()).add(count))
    return { totalCommentCount: count }
  }

  const addRow = (key: string, mention: number, late: number): void => {
    lastId += 7
    const text = `My doctor said ${chance.next()}`
    words.push(text)
    rowsOf.get(key)?.push({ id: lastId, mention, visible: now() + late, text, answer: null })
  }
  const change = (kind: Change, count: number): void => {
    for (let i = 0; i < count; i += 1) {
      list?.change()
      const key = chance.pick(keys)
      const late = isCalm() ? 0 : Math.floor(chance.next() * traits.lag)
      const recent = (rowsOf.get(key) ?? []).filter(({ mention }) => mention > now() - reach)
      if (kind === 'add') addRow(key, chance.happens(0.6) ? now() : now() - chance.between(0, reach), late)
      else if (kind === 'restore')
        for (let n = chance.between(1, 6); n > 0; n -= 1) addRow(key, Math.floor(now() / 1000) * 1000, late)
      else if (recent.length > 0) chance.pick(recent).answer = `We are sorry ${chance.next()}`
    }
  }
  const deleteServed = (served: ReadonlyArray<readonly [key: string, row: FeedbackRow]>): void => {
    if (isCalm() || served.length === 0 || !deleting.happens(traits.deletions)) return
    const [key, row] = deleting.pick(served)
    rowsOf.set(
      key,
      (rowsOf.get(key) ?? []).filter((other) => other !== row),
    )
    deleted.add(`${key} ${row.id}`)
  }
  for (const key of keys)
    for (let n = chance.between(0, chance.pick([0, 12, traits.rows])); n > 0; n -= 1)
      addRow(key, now() - chance.between(0, 300 * day), 0)
  const second = Math.floor((now() - 50 * day) / 1000) * 1000
  for (let n = chance.between(0, traits.burst); n > 0; n -= 1) addRow('person 1', second + chance.between(0, 999), 0)

  const sortKey = ({ id, mention }: FeedbackRow): number =>
    ({ newest: -mention, oldest: mention, scattered: (id * 7919) % 1009 })[traits.order]
  const countPages = (count: number, size: number): number | undefined =>
    ({ right: Math.ceil(count / size), zero: 0, huge: 1000, none: undefined })[traits.totals]

  const serve = (query: Query, toRows: (rows: ReadonlyArray<FeedbackRow>) => object): ServiceAnswer => {
    const { fromDate, toDate, days, page, perPage } = query
    const asked = kinds.flatMap((kind) => query.ids[kind].map((id) => ({ key: `${kind} ${id}`, id })))
    if (asked.length > traits.maxIdentifiers) return { status: 413, body: refuse(413, 'too many identifiers') }
    if (!isCalm() && churnLeft > 0 && chance.happens(traits.churn)) {
      churnLeft -= 1
      change(chance.pick(['change', 'change', 'add', 'restore'] as const), chance.between(1, 2))
    }
    const isDated = fromDate !== undefined && toDate !== undefined
    const [from, to] = isDated ? [Date.parse(fromDate), Date.parse(toDate)] : [now() - days * day, now()]
    const size = Math.min(perPage, traits.clamp)
    let before = 0
    const served: Array<readonly [key: string, row: FeedbackRow]> = []
    const entities = asked.flatMap(({ key, id }) => {
      const held = rowsOf.get(key)
      if (held === undefined) return []
      const inWindow = held.filter(
        ({ mention, visible }) =>
          visible <= now() &&
          (traits.bounds.from ? mention >= from : mention > from) &&
          (traits.bounds.to ? mention <= to : mention < to),
      )
      const first = traits.paging === 'entity' ? 0 : before
      before += inWindow.length
      const rows = inWindow
        .sort((a, b) => sortKey(a) - sortKey(b) || a.id - b.id)
        .filter((_, n) => Math.floor((first + n) / size) === page)
      for (const row of rows) served.push([key, row])
      const totalPages = countPages(inWindow.length, size)
      const entity = { id: traits.hasOwnIds ? `own-${id}` : id, name: `The ${key}`, totalPages }
      return [{ ...entity, ...tellCount(key, held.length), ...toRows(rows) }]
    })
    deleteServed(served)
    if (entities.length === 0) return { status: 200, body: refuse(7, 'Entity not found') }
    const echoed = { applied: size, requested: perPage, none: null }[traits.echo]
    const status = { code: 200, message: 'SUCCESS' }
    return {
      status: 200,
      body: JSON.stringify({ status, data: { client: 'c', filter: { perPage: echoed }, entities } }),
    }
  }
  const toAttributes = ({ mention, answer }: FeedbackRow) => ({
    mentionTime: new Date(mention).toISOString(),
    response: answer === null ? null : { responseText: answer },
  })
  const toComments = (rows: ReadonlyArray<FeedbackRow>) => ({
    comments: rows.map((row) => ({ id: row.id, ...toAttributes(row), comment: row.text })),
  })
  const toReviews = (rows: ReadonlyArray<FeedbackRow>) => ({
    reviews: rows.map((row) => ({ documentId: row.id, ...toAttributes(row), comment: { comment: row.text } })),
  })

  const respond = ({ path, body }: ServiceRequest): ServiceAnswer | undefined => {
    const [operation, query = ''] = path.split('?')
    switch (operation) {
      case commentsPath:
        return serve(parseQuery(query === '' ? body : query, 1), toComments)
      case reviewsPath:
        return serve(parseQuery(toQueryText(body), 0), toReviews)
      case listPath:
        return list?.respond(query, isCalm())
      default:
        return undefined
    }
  }
  const { isCalm, refuse, ...shared } = createFront(front, now, chance, { words, respond })
  const list = traits.list && createManagedList(traits.list, chance.split('list'), refuse)
  return {
    ...shared,
    change,
    allowChurn: (requests) => {
      churnLeft = requests
      list?.allowChurn(requests)
    },
    words: () => words,
    deleted: () => deleted,
    watchList: () => list?.watch(),
    takeTold: () => {
      const taken = told
      told = new Map()
      return taken
    },
    truth: () =>
      new Map(
        [...rowsOf].flatMap(([key, rows]) =>
          rows.map(({ id, text, answer }): [string, string] => [`${key} ${id}`, `${text} ${answer}`]),
        ),
      ),
  }
}
