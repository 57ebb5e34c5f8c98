import * as TE from 'fp-ts/TaskEither'
import type { Api } from '../../connector/api/api'
import type { CommentsResponse, ReviewsResponse } from '../../connector/api/envelope'
import type { ApiError } from '../../connector/api/error'
import { toInstant, toMillis } from '../../connector/api/model/scalar'
import type { CommentsForm, ReviewsRequest } from '../../connector/api/model/transparency'
import { random } from './random'

/** What nobody is told about the service. */
export type FeedbackTraits = {
  readonly seed: number
  /** The most rows of a page, whatever is asked. */
  readonly maxPageSize: number
  /** What perPage of the echo tells: what was applied, what was asked, nothing. */
  readonly echo: 'applied' | 'asked' | 'none'
  /** Pages are counted per entity, or over all that an answer holds. */
  readonly paging: 'entity' | 'answer'
  readonly totals: 'right' | 'zero' | 'huge' | 'none'
  /** Whether rows at exactly fromDate and at exactly toDate belong. */
  readonly bounds: { readonly from: boolean; readonly to: boolean }
  /** Scattered: in no order of time, but kept; shuffled: another at every request. */
  readonly order: 'newest' | 'oldest' | 'scattered' | 'shuffled'
  /** The most identifiers of a request. */
  readonly identifiers: number
  /** Whether an answer calls an entity as it was asked for. */
  readonly names: 'asked' | 'own'
  /** Whether rows are picked by fromDate and toDate at all. */
  readonly appliesWindow: boolean
  /** Changes a request, on average. */
  readonly changesPerRequest: number
}

export const defaultTraits: FeedbackTraits = {
  seed: 1,
  maxPageSize: 100,
  echo: 'applied',
  paging: 'entity',
  totals: 'right',
  bounds: { from: true, to: true },
  order: 'newest',
  identifiers: 50,
  names: 'asked',
  appliesWindow: true,
  changesPerRequest: 0,
}

export type Kind = 'person' | 'location' | 'entity'
export type CommentRow = { readonly id: bigint; readonly mention: number; text: string; answer: string | null }

const day = 86_400_000

/** Operations 1 to 3 over comments that arrive late, are answered later still, and move from page to page meanwhile. */
export const simulateFeedback = (behaviour: FeedbackTraits, start: number) => {
  const draw = random(behaviour.seed)
  const dice = (sides: number): number => Math.floor(draw() * sides)
  const held = new Map<string, CommentRow[]>()
  const requests: Array<{ readonly operation: string; readonly ids: number }> = []
  let clock = start
  let bustle = behaviour.changesPerRequest
  let refusals = 0
  let serial = 9_007_199_254_740_993n

  const add = (key: string, mention: number): void => {
    serial += 2n
    held.set(key, [...(held.get(key) ?? []), { id: serial, mention, text: `${key} ${serial}`, answer: null }])
  }

  const stir = (): void => {
    const keys = [...held.keys()]
    const key = keys[dice(keys.length)] ?? ''
    const rows = held.get(key) ?? []
    const recent = rows.filter(({ mention }) => mention > clock - 20 * day)
    const [chosen] = recent.slice(dice(Math.max(1, recent.length)))
    const chance = draw()
    if (chance < 0.4) add(key, clock)
    else if (chance < 0.6) add(key, clock - dice(20 * day))
    else if (chance < 0.7) for (let n = dice(6); n >= 0; n -= 1) add(key, Math.floor(clock / 1000) * 1000)
    else if (chosen !== undefined) chosen.answer = `answered at ${clock}`
  }

  const ordered = (rows: ReadonlyArray<CommentRow>): ReadonlyArray<CommentRow> => {
    const place = ({ id, mention }: CommentRow): number =>
      ({ newest: -mention, oldest: mention, scattered: Number(id % 7919n), shuffled: draw() })[behaviour.order]
    return rows
      .map((row) => [place(row), row] as const)
      .sort(([a], [b]) => a - b)
      .map(([, row]) => row)
  }

  const total = (count: number, size: number): number | undefined =>
    ({ right: Math.ceil(count / size), zero: 0, huge: 1000, none: undefined })[behaviour.totals]

  type Asked = Pick<CommentsForm, 'page' | 'perPage' | 'showComments'> & {
    readonly fromDate?: string | null
    readonly toDate?: string | null
  }

  /** What is listed under each entity asked for, that exists. */
  const list = (operation: string, kind: Kind, ids: ReadonlyArray<string>, asked: Asked, firstPage: number) => {
    requests.push({ operation, ids: ids.length })
    if (requests.length > 20_000) throw new Error('a reading that does not end')
    clock += 50 + dice(400)
    for (let n = bustle; n > draw(); n -= 1) stir()
    const { showComments = true, fromDate, toDate } = asked
    if (showComments && (typeof fromDate !== 'string' || typeof toDate !== 'string'))
      throw new Error('fromDate and toDate go together')
    const [from, to] = showComments ? [toMillis(fromDate ?? ''), toMillis(toDate ?? '')] : [0, 0]
    if (from > to) throw new Error('a window that ends before it begins')
    const size = Math.min(asked.perPage ?? 20, behaviour.maxPageSize)
    const number = (asked.page ?? firstPage) - firstPage
    let before = 0
    const entities = ids.flatMap((id) => {
      const all = held.get(`${kind} ${id}`)
      if (all === undefined) return []
      const within = all.filter(
        ({ mention }) =>
          !behaviour.appliesWindow ||
          ((behaviour.bounds.from ? mention >= from : mention > from) &&
            (behaviour.bounds.to ? mention <= to : mention < to)),
      )
      const first = behaviour.paging === 'entity' || ids.length === 1 ? 0 : before
      before += within.length
      const rows = ordered(within).filter((_, n) => Math.floor((first + n) / size) === number)
      const pages = total(within.length, size)
      return [{ id: behaviour.names === 'own' ? `own-${id}` : id, name: `The ${kind} ${id}`, rows, pages }]
    })
    const perPage = { applied: size, asked: asked.perPage ?? 20, none: null }[behaviour.echo]
    return { entities, filter: { perPage }, servedAt: clock }
  }

  const status = { code: 200, message: 'SUCCESS' }
  const said = ({ mention, text, answer }: CommentRow) => ({
    mentionTime: toInstant(mention),
    response: answer === null ? null : { responseText: answer },
    source: text,
  })
  const notFound: ApiError = { _tag: 'Application', code: '7', message: 'Entity not found' }
  const tooMany: ApiError = { _tag: 'Http', status: 413, message: 'too many identifiers' }

  const commentsOf =
    (operation: string, kind: Kind, ids: ReadonlyArray<string>, asked: Asked) =>
    (): TE.TaskEither<ApiError, CommentsResponse> => {
      if (ids.length > behaviour.identifiers) {
        refusals += 1
        return TE.left(tooMany)
      }
      const { entities, filter, servedAt } = list(operation, kind, ids, asked, 1)
      if (entities.length === 0) return TE.left(notFound)
      return TE.right({
        status,
        servedAt,
        data: {
          filter,
          entities: entities.map(({ rows, pages, ...entity }) => ({
            ...entity,
            ...(pages === undefined ? {} : { totalPages: pages }),
            comments: rows.map((row) => ({ id: row.id, ...said(row) })),
          })),
        },
      })
    }

  const one = ({ personId, locationId, entityId }: ReviewsRequest): readonly [Kind, string] =>
    personId !== undefined
      ? ['person', personId]
      : locationId !== undefined
        ? ['location', locationId]
        : ['entity', entityId ?? '']

  const many = ({ personId, locationId, entityId }: CommentsForm): readonly [Kind, ReadonlyArray<string>] =>
    personId !== undefined
      ? ['person', personId]
      : locationId !== undefined
        ? ['location', locationId]
        : ['entity', entityId ?? []]

  const families = (request: ReviewsRequest | CommentsForm): number =>
    [request.personId, request.locationId, request.entityId].filter((ids) => ids !== undefined).length

  const api: Pick<Api, 'retrieveReviews' | 'retrieveComments' | 'retrieveCommentsByForm'> = {
    retrieveComments: (request) => async () => {
      if (families(request) !== 1) throw new Error('one identifier family a request')
      const [kind, id] = one(request as ReviewsRequest)
      return commentsOf('comments', kind, [id], request)()()
    },
    retrieveCommentsByForm: (request) => async () => {
      if (families(request) !== 1) throw new Error('one identifier family a request')
      return commentsOf('form', ...many(request), request)()()
    },
    retrieveReviews: (request) => async () => {
      if (families(request) !== 1) throw new Error('one identifier family a request')
      const [kind, id] = one(request)
      const { entities, filter, servedAt } = list('reviews', kind, [id], request, 0)
      if (entities.length === 0) return TE.left<ApiError, ReviewsResponse>(notFound)()
      return TE.right<ApiError, ReviewsResponse>({
        status,
        servedAt,
        data: {
          filter,
          entities: entities.map(({ rows, pages: _, ...entity }) => ({
            ...entity,
            reviews: rows.map((row) => ({ documentId: row.id, ...said(row) })),
          })),
        },
      })()
    },
  }

  return {
    api,
    requests,
    add,
    /** The entity exists, if only without anything said about it. */
    exist: (key: string): void => {
      held.set(key, held.get(key) ?? [])
    },
    stir,
    /** Somebody answers the oldest comment on an entity. */
    answer: (key: string): void => {
      for (const row of held.get(key)?.slice(0, 1) ?? []) row.answer = `answered at ${clock}`
    },
    /** How often there were too many identifiers. */
    refusals: (): number => refusals,
    now: (): number => clock,
    pass: (millis: number): void => {
      clock += millis
    },
    quiet: (): void => {
      bustle = 0
    },
    dice,
    /** What a destination must hold: the newest text of every row, by entity and id. */
    truth: (): ReadonlyMap<string, string> =>
      new Map(
        [...held].flatMap(([key, rows]) =>
          rows.map(({ id, text, answer }) => [`${key} ${id}`, `${text} ${answer}`] as const),
        ),
      ),
  }
}
export type FeedbackSimulation = ReturnType<typeof simulateFeedback>
