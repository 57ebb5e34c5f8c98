import type { ServerResponse } from 'node:http'
import { type ReceivedRequest, sendJson, startServer } from './listen'

type StoredComment = { readonly id: bigint; readonly mention: number; response: string | null }

/** How a service may be awkward where its specification is silent. */
export type ServiceTraits = {
  /** The most rows of a page, whatever is asked. */
  readonly clamp: number
  /** What the echo says of it. */
  readonly echoes: 'what it applied' | 'what was asked' | 'nothing'
  /** The most identifiers of a form; one more is answered 413. */
  readonly identifiers: number
  /** Every answer to a form also holds somebody nobody asked for. */
  readonly stranger: boolean
  /** What is said while it is read: after every answer, of every entity. */
  readonly shifts: boolean
}

const second = 1000

/**
 * Operations 1 to 3 as the specification has them, in plain node:http and nothing of ours: comments newest first under
 * `person:1` and the like, pages of them, and `Date` as its clock says.
 */
export const startUnusualService = async (
  habits: ServiceTraits,
  start: number,
  ended?: (close: () => void) => void,
) => {
  const held = new Map<string, StoredComment[]>()
  let clock = start
  let serial = 9_007_199_254_740_993n
  let lively = habits.shifts
  const refusals: number[] = []

  const say = (key: string, mention: number): void => {
    serial += 2n
    held.set(key, [...(held.get(key) ?? []), { id: serial, mention, response: null }])
  }
  const row = (id: string, { id: own, mention, response }: StoredComment) =>
    `{"${id}":${own},"surveyKey":null,"source":"small","mentionTime":"${new Date(mention).toISOString()}","response":${
      response === null ? null : JSON.stringify({ responseText: response })
    }}`

  const list = (kind: string, ids: ReadonlyArray<string>, asked: URLSearchParams, firstPage: number, name: string) => {
    const [from, to] = [Date.parse(asked.get('fromDate') ?? ''), Date.parse(asked.get('toDate') ?? '')]
    const wanted = Number(asked.get('perPage') ?? 20)
    const size = Math.min(wanted, habits.clamp)
    const page = Number(asked.get('page') ?? firstPage) - firstPage
    const entities = ids.map((id) => {
      const all = (held.get(`${kind}:${id}`) ?? [])
        .filter(({ mention }) => mention >= from && mention <= to)
        .sort((a, b) => b.mention - a.mention || Number(b.id - a.id))
      const rows = asked.get('showComments') === 'false' ? [] : all.slice(page * size, (page + 1) * size)
      const said = rows.map((one) => row(name === 'reviews' ? 'documentId' : 'id', one)).join(',')
      return `{"id":"${id}","name":"${kind} ${id}","totalCommentCount":${all.length},"${name}":[${said}]}`
    })
    const echo = { 'what it applied': size, 'what was asked': wanted, nothing: null }[habits.echoes]
    return `{"status":{"code":200,"message":"success"},"data":{"client":"small","entities":[${entities.join(',')}],"filter":{"perPage":${echo}}}}`
  }

  const askedOf = ({ method, url, body }: ReceivedRequest): URLSearchParams => {
    if (method === 'GET') return new URL(url, 'http://small').searchParams
    if (!url.endsWith('/v2/reviews')) return new URLSearchParams(body)
    const json: Record<string, unknown> = JSON.parse(body)
    return new URLSearchParams(Object.entries(json).map(([key, value]): [string, string] => [key, String(value)]))
  }

  const reply = (seen: ReceivedRequest, response: ServerResponse): void => {
    clock += 300
    const asked = askedOf(seen)
    const [kind = ''] = ['person', 'location', 'entity'].filter((one) => asked.has(`${one}Id`))
    const ids = asked.getAll(`${kind}Id`)
    const date = { Date: new Date(Math.floor(clock / second) * second).toUTCString() }
    const ofReviews = seen.url.endsWith('/v2/reviews')
    if (ids.length > habits.identifiers) {
      refusals.push(ids.length)
      sendJson(response, 413, { status: { code: 413, message: 'too many' } }, date)
      return
    }
    const all = habits.stranger && ids.length > 1 ? [...ids, 'stranger'] : ids
    sendJson(response, 200, list(kind, all, asked, ofReviews ? 0 : 1, ofReviews ? 'reviews' : 'comments'), date)
    if (lively) for (const key of held.keys()) if (!key.endsWith('stranger')) say(key, clock)
  }

  return {
    ...(await startServer(reply, ended)),
    say,
    /** Somebody answers the newest comment on each entity. */
    respond: (): void => {
      for (const rows of held.values()) {
        const [newest] = [...rows].sort((a, b) => b.mention - a.mention)
        if (newest !== undefined) newest.response = `answered at ${clock}`
      }
    },
    refusals,
    calm: (): void => {
      lively = false
    },
    pass: (millis: number): void => {
      clock += millis
    },
    now: (): number => clock,
    /** What there is to read, as `kind:id row response`; strangers are nobody's. */
    truth: (): ReadonlyArray<string> =>
      [...held]
        .flatMap(([key, rows]) =>
          key.endsWith('stranger') ? [] : rows.map(({ id, response }) => `${key} ${id} ${response}`),
        )
        .sort(),
  }
}
