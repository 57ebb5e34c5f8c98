import type { ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { type ReceivedRequest, sendJson, startServer } from './listen'

/** A service in plain node:http that follows the specification unless stated otherwise. */
export type ObservedService = {
  /** How many reviews there are; default 25. */
  readonly reviews?: number
  /** The position of the nth row among all; default oldest first. */
  readonly order?: (n: number, count: number) => number
  /** The most rows on a page, whatever is requested. */
  readonly clamp?: number
  readonly ignoresLimit?: boolean
  /** The echo holds the applied limit. */
  readonly echoesClamp?: boolean
  /** Offsets from here on are refused. */
  readonly depth?: number
  /** How long each page of reviews takes, milliseconds. */
  readonly delay?: number
  /** How an offset beyond the end is answered; default with no rows. */
  readonly beyondEnd?: 'refused' | 'last row'
  /** How far the Date header is ahead, milliseconds; null: the header is missing. Default 0. */
  readonly clock?: number | null | ((request: number) => number)
  readonly headers?: Readonly<Record<string, string>>
  /** Requests from this one on are answered 429. */
  readonly refusedForRate?: number
  /** The answer to a request for a token; `now`: milliseconds. */
  readonly token?: (now: number) => unknown
  /** The entities that exist; default 1 and 2. */
  readonly entities?: ReadonlyArray<string>
  /** What happens to a request with an unknown entity; default it is left out. */
  readonly unknownEntity?: 'left out' | 404 | 'error in a 200'
  /** The feedback of each entity: mention times, milliseconds ago. */
  readonly mentions?: ReadonlyArray<number>
  readonly windows?: 'used' | 'ignored'
  readonly echo?: 'window' | 'no window' | 'none'
}

export const dayMs = 86_400_000
const start = Date.parse('2024-01-01T00:00:00Z')

const instant = (time: number): string => new Date(time).toISOString()

export const startObservedService = async (world: ObservedService, onEnd?: (close: () => void) => void) => {
  const { reviews: count = 25, order = (n) => n, clock = 0, headers = {} } = world
  const { entities = ['1', '2'], mentions = [dayMs, 2 * dayMs], windows = 'used', echo = 'window' } = world
  let requests = 0

  const send = (to: ServerResponse, status: number, body: unknown) => {
    requests += 1
    if (clock === null) to.sendDate = false
    const ahead = typeof clock === 'function' ? clock(requests) : clock
    const date = ahead === null ? {} : { Date: new Date(Date.now() + ahead).toUTCString() }
    sendJson(to, status, body, { ...date, ...headers })
  }
  const refuse = (to: ServerResponse, status: number) => send(to, status, { status: { code: status, message: 'no' } })

  const sendReviews = async (to: ServerResponse, body: string) => {
    if (world.delay !== undefined) await setTimeout(world.delay)
    const filter = JSON.parse(body)
    const { modifiedTimeFrom, offset, limit } = filter
    if (offset >= (world.depth ?? Number.POSITIVE_INFINITY)) return refuse(to, 400)
    const from = Date.parse(modifiedTimeFrom)
    const total = from > start + 400 * dayMs ? 0 : count
    const size = world.ignoresLimit === true ? 500 : Math.min(limit, world.clamp ?? limit)
    const isBeyond = total > 0 && offset >= total
    if (isBeyond && world.beyondEnd === 'refused') return refuse(to, 400)
    const first = isBeyond && world.beyondEnd === 'last row' ? total - 1 : offset
    const rows = Array.from({ length: Math.max(0, Math.min(size, total - first)) }, (_, i) => order(first + i, total))
    return send(to, 200, {
      reviews: rows.map((n) => ({ id: n + 1, modifiedTime: instant(start + (n + 1) * 1000) })),
      filter: world.echoesClamp === true ? { ...filter, limit: size } : filter,
    })
  }

  const sendFeedback = (to: ServerResponse, list: 'comments' | 'reviews', parameters: URLSearchParams) => {
    const ids = ['personId', 'locationId', 'entityId'].flatMap((name) => parameters.getAll(name))
    const isUnknown = (id: string) => !entities.includes(id)
    if (ids.some(isUnknown) && world.unknownEntity === 404) return refuse(to, 404)
    if (ids.some(isUnknown) && world.unknownEntity === 'error in a 200')
      return send(to, 200, { status: { code: 'X', message: 'no such entity' } })
    const now = Date.now()
    const [from, to_] = ['fromDate', 'toDate'].map((name) => Date.parse(parameters.get(name) ?? ''))
    const isInWindow = (time: number) =>
      windows === 'ignored' || Number.isNaN(from) || (time >= (from ?? 0) && time <= (to_ ?? 0))
    const page = Number(parameters.get('page') ?? 0) - (list === 'comments' ? 1 : 0)
    const rows = page > 0 ? [] : mentions.map((ago) => now - ago).filter(isInWindow)
    const period =
      windows === 'ignored'
        ? { from: instant(now - 365 * dayMs), to: instant(now) }
        : { from: parameters.get('fromDate'), to: parameters.get('toDate') }
    const hidden = parameters.get(list === 'comments' ? 'showComments' : 'showReviews') === 'false'
    return send(to, 200, {
      status: { code: 200, message: 'success' },
      data: {
        client: 'small',
        entities: ids
          .filter((id) => !isUnknown(id))
          .map((id) => ({
            id,
            name: `Entity ${id}`,
            [list]: hidden
              ? []
              : rows.map((time, n) => ({ id: n + 1, documentId: n + 1, mentionTime: instant(time), source: 'small' })),
          })),
        ...(echo === 'none' ? {} : { filter: { perPage: 100, ...(echo === 'window' ? { period } : {}) } }),
      },
    })
  }

  const reply = ({ method, url, body }: ReceivedRequest, to: ServerResponse) => {
    if (requests + 1 >= (world.refusedForRate ?? Number.POSITIVE_INFINITY)) {
      requests += 1
      return sendJson(to, 429, { status: { code: 429, message: 'slow' } }, { 'Retry-After': '60' })
    }
    const { pathname, searchParams } = new URL(url, 'http://small')
    if (pathname === '/api/service/v1/token/create')
      return send(to, 200, world.token?.(Date.now()) ?? { accessToken: 'abc' })
    if (pathname === '/api/reputation/v1/reviews') return sendReviews(to, body)
    if (pathname === '/api/reputation/v1/deleted-reviews')
      return send(to, 200, { reviews: [], filter: JSON.parse(body) })
    if (pathname === '/api/bsr/comments')
      return sendFeedback(to, 'comments', method === 'GET' ? searchParams : new URLSearchParams(body))
    if (pathname === '/api/external/bsr/v2/reviews')
      return sendFeedback(
        to,
        'reviews',
        new URLSearchParams(
          Object.entries<unknown>(JSON.parse(body)).map(([key, value]): [string, string] => [key, String(value)]),
        ),
      )
    return refuse(to, 404)
  }
  return { ...(await startServer(reply, onEnd)), countRequests: () => requests }
}
