import type { ServerResponse } from 'node:http'
import { type ReceivedRequest, sendJson, startServer } from './listen'

type StoredComment = { readonly id: bigint; readonly mention: number; response: string | null }

/** How a service behaves where its specification says nothing. */
export type ServiceTraits = {
  /** The most rows on a page, whatever is requested. */
  readonly maxPageSize: number
  /** The perPage of the echo. */
  readonly echo: 'the applied size' | 'the requested size' | 'nothing'
  /** The most identifiers of a form; one more is answered 413. */
  readonly maxIdentifiers: number
  /** Every answer to a form also has an entity that was not requested. */
  readonly unrequestedEntity: boolean
  /** Every entity gets a comment after every answer. */
  readonly changesWhileRead: boolean
}

const second = 1000

/**
 * Operations 1 to 3 as in the specification, in plain node:http without the sandbox: pages of comments, newest first,
 * with keys such as `person:1`, and `Date` from its own clock.
 */
export const startUnusualService = async (
  traits: ServiceTraits,
  start: number,
  ended?: (close: () => void) => void,
) => {
  const commentsByKey = new Map<string, StoredComment[]>()
  let clock = start
  let serial = 9_007_199_254_740_993n
  let isChanging = traits.changesWhileRead
  const refusals: number[] = []

  const addComment = (key: string, mention: number): void => {
    serial += 2n
    commentsByKey.set(key, [...(commentsByKey.get(key) ?? []), { id: serial, mention, response: null }])
  }
  const row = (id: string, { id: rowId, mention, response }: StoredComment) => {
    const mentionTime = new Date(mention).toISOString()
    const answer = response === null ? null : JSON.stringify({ responseText: response })
    return `{"${id}":${rowId},"surveyKey":null,"source":"small","mentionTime":"${mentionTime}","response":${answer}}`
  }

  const list = (
    kind: string,
    ids: ReadonlyArray<string>,
    parameters: URLSearchParams,
    firstPage: number,
    name: string,
  ) => {
    const [from, to] = [Date.parse(parameters.get('fromDate') ?? ''), Date.parse(parameters.get('toDate') ?? '')]
    const requestedSize = Number(parameters.get('perPage') ?? 20)
    const size = Math.min(requestedSize, traits.maxPageSize)
    const page = Number(parameters.get('page') ?? firstPage) - firstPage
    const entities = ids.map((id) => {
      const all = (commentsByKey.get(`${kind}:${id}`) ?? [])
        .filter(({ mention }) => mention >= from && mention <= to)
        .sort((a, b) => b.mention - a.mention || Number(b.id - a.id))
      const rows = parameters.get('showComments') === 'false' ? [] : all.slice(page * size, (page + 1) * size)
      const rowTexts = rows.map((one) => row(name === 'reviews' ? 'documentId' : 'id', one)).join(',')
      return `{"id":"${id}","name":"${kind} ${id}","totalCommentCount":${all.length},"${name}":[${rowTexts}]}`
    })
    const echo = { 'the applied size': size, 'the requested size': requestedSize, nothing: null }[traits.echo]
    return (
      '{"status":{"code":200,"message":"success"},' +
      `"data":{"client":"small","entities":[${entities.join(',')}],"filter":{"perPage":${echo}}}}`
    )
  }

  const parametersOf = ({ method, url, body }: ReceivedRequest): URLSearchParams => {
    if (method === 'GET') return new URL(url, 'http://small').searchParams
    if (!url.endsWith('/v2/reviews')) return new URLSearchParams(body)
    const json: Record<string, unknown> = JSON.parse(body)
    return new URLSearchParams(Object.entries(json).map(([key, value]): [string, string] => [key, String(value)]))
  }

  const reply = (seen: ReceivedRequest, response: ServerResponse): void => {
    clock += 300
    const parameters = parametersOf(seen)
    const [kind = ''] = ['person', 'location', 'entity'].filter((one) => parameters.has(`${one}Id`))
    const ids = parameters.getAll(`${kind}Id`)
    const date = { Date: new Date(Math.floor(clock / second) * second).toUTCString() }
    const ofReviews = seen.url.endsWith('/v2/reviews')
    if (ids.length > traits.maxIdentifiers) {
      refusals.push(ids.length)
      sendJson(response, 413, { status: { code: 413, message: 'too many' } }, date)
      return
    }
    const all = traits.unrequestedEntity && ids.length > 1 ? [...ids, 'stranger'] : ids
    sendJson(response, 200, list(kind, all, parameters, ofReviews ? 0 : 1, ofReviews ? 'reviews' : 'comments'), date)
    if (isChanging) for (const key of commentsByKey.keys()) if (!key.endsWith('stranger')) addComment(key, clock)
  }

  return {
    ...(await startServer(reply, ended)),
    addComment,
    /** Answers the newest comment on each entity. */
    respond: (): void => {
      for (const rows of commentsByKey.values()) {
        const [newest] = [...rows].sort((a, b) => b.mention - a.mention)
        if (newest !== undefined) newest.response = `answered at ${clock}`
      }
    },
    refusals,
    stopChanges: (): void => {
      isChanging = false
    },
    advanceClock: (millis: number): void => {
      clock += millis
    },
    now: (): number => clock,
    /** The rows that exist, as `kind:id row response`, without those of entities that are never requested. */
    truth: (): ReadonlyArray<string> =>
      [...commentsByKey]
        .flatMap(([key, rows]) =>
          key.endsWith('stranger') ? [] : rows.map(({ id, response }) => `${key} ${id} ${response}`),
        )
        .sort(),
  }
}
