import * as TE from 'fp-ts/TaskEither'
import type { CommentsResponse, ReviewsResponse } from '../../connector/api/envelopes'
import type { ApiError } from '../../connector/api/error'
import type { CommentsForm, ReviewsRequest } from '../../connector/api/model/entity'
import type { Api } from '../../connector/api/routes'
import { toInstant, toMillis } from '../../connector/cdk/scalar'
import { random } from './random'

/** How a service behaves where its specification says nothing. */
export type FeedbackTraits = {
  readonly seed: number
  /** The most rows on a page, whatever perPage is requested. */
  readonly maxPageSize: number
  /** The perPage of the echo: the applied one, the requested one, or none. */
  readonly echo: 'applied' | 'requested' | 'none'
  /** Pages are counted for each entity, or over all entities of an answer. */
  readonly paging: 'entity' | 'answer'
  /** The reported page count. */
  readonly totals: 'right' | 'zero' | 'huge' | 'one' | 'none'
  /** Rows at exactly fromDate, and at exactly toDate, are in the window. */
  readonly bounds: { readonly from: boolean; readonly to: boolean }
  /**
   * Scattered: in no order of time, but always the same; shuffled: another order at every request; tied: newest first,
   * with rows of the same time in an order that depends on the page and its size; hidden: each page returns the same
   * row twice instead of another.
   */
  readonly order: 'newest' | 'oldest' | 'scattered' | 'shuffled' | 'tied' | 'hidden'
  /** The most identifiers of a request. */
  readonly maxIdentifiers: number
  /** An answer lists entities under the requested ids, or under the service's own ids. */
  readonly ids: 'requested' | 'own'
  /** fromDate and toDate take effect; otherwise the days decide. */
  readonly appliesWindow: boolean
  /** How many changes a request sees, on average. */
  readonly changesPerRequest: number
  /** How likely a row of a page is deleted once the page has been served. */
  readonly deletions: number
  /** The share of rows that the service leaves out of a page after it has cut it. */
  readonly filters: number
  /** The entities for which it answers with `closedStatus`, as `kind id`. */
  readonly closed: ReadonlyArray<string>
  readonly closedStatus: number
}

export const defaultTraits: FeedbackTraits = {
  seed: 1,
  maxPageSize: 100,
  echo: 'applied',
  paging: 'entity',
  totals: 'right',
  bounds: { from: true, to: true },
  order: 'newest',
  maxIdentifiers: 50,
  ids: 'requested',
  appliesWindow: true,
  changesPerRequest: 0,
  deletions: 0,
  filters: 0,
  closed: [],
  closedStatus: 404,
}

export type Kind = 'person' | 'location' | 'entity'
export type CommentRow = { readonly id: bigint; readonly mention: number; text: string; answer: string | null }

const day = 86_400_000

/** Operations 1 to 3 over comments that arrive late, are answered even later, and move between pages meanwhile. */
export const simulateFeedback = (traits: FeedbackTraits, start: number) => {
  const nextRandom = random(traits.seed)
  const randomInteger = (sides: number): number => Math.floor(nextRandom() * sides)
  const comments = new Map<string, CommentRow[]>()
  const requests: Array<{ readonly operation: string; readonly ids: number }> = []
  let clock = start
  let { changesPerRequest, deletions } = traits
  const deleted = new Set<string>()
  let refusals = 0
  let serial = 9_007_199_254_740_993n

  const addComment = (key: string, mention: number): void => {
    serial += 2n
    comments.set(key, [...(comments.get(key) ?? []), { id: serial, mention, text: `${key} ${serial}`, answer: null }])
  }

  const change = (): void => {
    const keys = [...comments.keys()]
    const key = keys[randomInteger(keys.length)] ?? ''
    const rows = comments.get(key) ?? []
    const recent = rows.filter(({ mention }) => mention > clock - 20 * day)
    const [chosen] = recent.slice(randomInteger(Math.max(1, recent.length)))
    const chance = nextRandom()
    if (chance < 0.4) addComment(key, clock)
    else if (chance < 0.6) addComment(key, clock - randomInteger(20 * day))
    else if (chance < 0.7)
      for (let n = randomInteger(6); n >= 0; n -= 1) addComment(key, Math.floor(clock / 1000) * 1000)
    else if (chosen !== undefined) chosen.answer = `answered at ${clock}`
  }

  /** Deletes one of the rows that a page had, so that later ones move up. */
  const deleteServed = (
    kind: Kind,
    entities: ReadonlyArray<{ readonly id: string; readonly rows: ReadonlyArray<CommentRow> }>,
  ): void => {
    const served = entities.flatMap(({ id, rows }) => rows.map((row) => [`${kind} ${id}`, row] as const))
    const [key, row] = served[randomInteger(served.length)] ?? []
    if (key === undefined) return
    comments.set(
      key,
      (comments.get(key) ?? []).filter((other) => other !== row),
    )
    deleted.add(`${key} ${row?.id}`)
  }

  const isShown = ({ id }: CommentRow): boolean => Number((id * 2_654_435_761n) % 1000n) >= traits.filters * 1000

  const sortRows = (rows: ReadonlyArray<CommentRow>, page: number, size: number): ReadonlyArray<CommentRow> => {
    const tieKey = ({ id }: CommentRow): number => random(Number(id % 7919n) * 31 + page * 1009 + size)()
    const sortKey = ({ id, mention }: CommentRow): number =>
      ({
        newest: -mention,
        oldest: mention,
        scattered: Number(id % 7919n),
        shuffled: nextRandom(),
        tied: -mention,
        hidden: -mention,
      })[traits.order]
    return rows
      .map((row) => [sortKey(row), traits.order === 'tied' ? tieKey(row) : 0, row] as const)
      .sort(([a, tieA], [b, tieB]) => a - b || tieA - tieB)
      .map(([, , row]) => row)
  }

  const countPages = (count: number, size: number): number | undefined =>
    ({ right: Math.ceil(count / size), zero: 0, huge: 1000, one: 1, none: undefined })[traits.totals]

  type PageRequest = Pick<CommentsForm, 'page' | 'perPage' | 'showComments' | 'days'> & {
    readonly fromDate?: string | null
    readonly toDate?: string | null
  }

  /** The rows listed under each requested entity that exists. */
  const listRows = (
    operation: string,
    kind: Kind,
    ids: ReadonlyArray<string>,
    request: PageRequest,
    firstPage: number,
  ) => {
    requests.push({ operation, ids: ids.length })
    if (requests.length > 20_000) throw new Error('a reading that does not end')
    clock += 50 + randomInteger(400)
    for (let n = changesPerRequest; n > nextRandom(); n -= 1) change()
    const { fromDate, toDate, days = 365 } = request
    const isDated = typeof fromDate === 'string' && typeof toDate === 'string'
    if (!isDated && (typeof fromDate === 'string' || typeof toDate === 'string'))
      throw new Error('fromDate and toDate go together')
    for (const time of isDated ? [fromDate, toDate] : [])
      if (!/T\d\d:\d\d:\d\dZ$/.test(time)) throw new Error('fromDate and toDate have whole seconds')
    const [from, to] =
      traits.appliesWindow && isDated ? [toMillis(fromDate), toMillis(toDate)] : [clock - days * day, clock]
    if (from > to) throw new Error('a window that ends before it begins')
    const size = Math.min(request.perPage ?? 20, traits.maxPageSize)
    const pageIndex = (request.page ?? firstPage) - firstPage
    let rowsBefore = 0
    const entities = ids.flatMap((id) => {
      const rowsOfEntity = comments.get(`${kind} ${id}`)
      if (rowsOfEntity === undefined) return []
      const inWindow = rowsOfEntity.filter(
        ({ mention }) =>
          (traits.bounds.from ? mention >= from : mention > from) && (traits.bounds.to ? mention <= to : mention < to),
      )
      const first = traits.paging === 'entity' || ids.length === 1 ? 0 : rowsBefore
      rowsBefore += inWindow.length
      const page = sortRows(inWindow, pageIndex, size).filter((_, n) => Math.floor((first + n) / size) === pageIndex)
      const repeated =
        traits.order === 'hidden' && inWindow.length > 5
          ? page.map((row) => (row.id % 10n === 3n ? (page[0] ?? row) : row))
          : page
      const rows = repeated.filter(isShown)
      const pages = countPages(inWindow.length, size)
      return [{ id, name: `The ${kind} ${id}`, rows, pages }]
    })
    if (deletions > 0 && nextRandom() < deletions) deleteServed(kind, entities)
    const perPage = { applied: size, requested: request.perPage ?? 20, none: null }[traits.echo]
    const listed = entities.map((entity) => (traits.ids === 'own' ? { ...entity, id: `own-${entity.id}` } : entity))
    return { entities: listed, filter: { perPage }, servedAt: clock }
  }

  const status = { code: 200, message: 'SUCCESS' }
  const toAttributes = ({ mention, text, answer }: CommentRow) => ({
    mentionTime: toInstant(mention),
    response: answer === null ? null : { responseText: answer },
    source: text,
  })
  const notFound: ApiError = { _tag: 'Application', code: '7', message: 'Entity not found' }
  const tooMany: ApiError = { _tag: 'Http', status: 413, message: 'too many identifiers' }

  const closedError: ApiError = { _tag: 'Http', status: traits.closedStatus, message: 'closed' }
  const closedKeys = new Set(traits.closed)
  const isClosed = (kind: Kind, ids: ReadonlyArray<string>): boolean =>
    ids.some((id) => closedKeys.has(`${kind} ${id}`))

  const commentsOf =
    (operation: string, kind: Kind, ids: ReadonlyArray<string>, request: PageRequest) =>
    (): TE.TaskEither<ApiError, CommentsResponse> => {
      if (ids.length > traits.maxIdentifiers) {
        refusals += 1
        return TE.left(tooMany)
      }
      if (isClosed(kind, ids)) {
        requests.push({ operation, ids: ids.length })
        return TE.left(closedError)
      }
      const { entities, filter, servedAt } = listRows(operation, kind, ids, request, 1)
      if (entities.length === 0) return TE.left(notFound)
      return TE.right({
        status,
        servedAt,
        data: {
          filter,
          entities: entities.map(({ rows, pages, ...entity }) => ({
            ...entity,
            ...(pages === undefined ? {} : { totalPages: pages }),
            comments: rows.map((row) => ({ id: row.id, ...toAttributes(row) })),
          })),
        },
      })
    }

  const requestedEntity = ({ personId, locationId, entityId }: ReviewsRequest): readonly [Kind, string] =>
    personId !== undefined
      ? ['person', personId]
      : locationId !== undefined
        ? ['location', locationId]
        : ['entity', entityId ?? '']

  const requestedEntities = ({
    personId,
    locationId,
    entityId,
  }: CommentsForm): readonly [Kind, ReadonlyArray<string>] =>
    personId !== undefined
      ? ['person', personId]
      : locationId !== undefined
        ? ['location', locationId]
        : ['entity', entityId ?? []]

  const countFamilies = (request: ReviewsRequest | CommentsForm): number =>
    [request.personId, request.locationId, request.entityId].filter((ids) => ids !== undefined).length

  const api: Pick<Api, 'retrieveReviews' | 'retrieveComments' | 'retrieveCommentsByForm'> = {
    retrieveComments: (request) => async () => {
      if (countFamilies(request) !== 1) throw new Error('one identifier family a request')
      const [kind, id] = requestedEntity(request as ReviewsRequest)
      return commentsOf('comments', kind, [id], request)()()
    },
    retrieveCommentsByForm: (request) => async () => {
      if (countFamilies(request) !== 1) throw new Error('one identifier family a request')
      return commentsOf('form', ...requestedEntities(request), request)()()
    },
    retrieveReviews: (request) => async () => {
      if (countFamilies(request) !== 1) throw new Error('one identifier family a request')
      const [kind, id] = requestedEntity(request)
      if (isClosed(kind, [id])) return TE.left<ApiError, ReviewsResponse>(closedError)()
      const { entities, filter, servedAt } = listRows('reviews', kind, [id], request, 0)
      if (entities.length === 0) return TE.left<ApiError, ReviewsResponse>(notFound)()
      return TE.right<ApiError, ReviewsResponse>({
        status,
        servedAt,
        data: {
          filter,
          entities: entities.map(({ rows, pages: _, ...entity }) => ({
            ...entity,
            reviews: rows.map((row) => ({ documentId: row.id, ...toAttributes(row) })),
          })),
        },
      })()
    },
  }

  return {
    api,
    requests,
    addComment,
    /** Makes an entity exist, if only without comments. */
    addEntity: (key: string): void => {
      comments.set(key, comments.get(key) ?? [])
    },
    /** Answers the first comment on an entity. */
    answer: (key: string): void => {
      for (const row of comments.get(key)?.slice(0, 1) ?? []) row.answer = `answered at ${clock}`
    },
    /** How many rows the service ever shows. */
    shown: (): number => [...comments.values()].flat().filter(isShown).length,
    /** How often a request had too many identifiers. */
    refusals: (): number => refusals,
    now: (): number => clock,
    advanceClock: (millis: number): void => {
      clock += millis
    },
    stopChanges: (): void => {
      changesPerRequest = 0
      deletions = 0
    },
    /** The rows that it had once, by entity and id. */
    deleted: (): ReadonlySet<string> => deleted,
    randomInteger,
    /** What a destination must contain: the newest text of every row, by entity and id. */
    truth: (): ReadonlyMap<string, string> =>
      new Map(
        [...comments].flatMap(([key, rows]) =>
          rows.map(({ id, text, answer }) => [`${key} ${id}`, `${text} ${answer}`] as const),
        ),
      ),
  }
}
export type FeedbackSimulation = ReturnType<typeof simulateFeedback>
