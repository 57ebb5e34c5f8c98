import type { IncomingMessage } from 'node:http'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import type { LookupRoutes } from '../../api'
import type { OperationName } from '../operations/operation'
import type { SandboxService } from '../operations/service'
import { type Churn, noChurn } from '../operations/writes'
import { readBody, type ServiceKind } from './handlers'
import { docsPage, indexPage } from './html-pages'
import { describeService } from './openapi'
import { jsonReply, type Reply, refusalReply } from './reply'

/**
 * A page or endpoint of the server that is not an operation. `isOperator`: it shows or changes data, so it needs the
 * token.
 */
export type SandboxPage = {
  readonly isOperator: boolean
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly answer: (request: IncomingMessage) => Promise<Reply>
}

const ChurnCounts = t.exact(t.partial({ change: t.number, delete: t.number, add: t.number, restore: t.number }))
const isCount = (count: number | undefined): boolean =>
  count === undefined || (Number.isInteger(count) && count >= 0 && count <= 1_000_000)

/** Undefined if the body is not JSON. */
const parseJsonBody = (body: Buffer | undefined): unknown =>
  pipe(
    E.tryCatch(
      () => JSON.parse(body?.toString('utf8') ?? '') as unknown,
      () => undefined,
    ),
    E.toUnion,
  )

const decodeChurn = (body: Buffer | undefined): Partial<Churn> | undefined => {
  const step = ChurnCounts.decode(parseJsonBody(body))
  return E.isRight(step) && Object.values(step.right).every(isCount) ? step.right : undefined
}

const ClockStep = t.type({ seconds: t.number })

/** By how many seconds the clock moves; undefined unless the body gives at most ten years. */
const decodeSeconds = (body: Buffer | undefined): number | undefined => {
  const json = parseJsonBody(body)
  return ClockStep.is(json) && json.seconds >= 0 && json.seconds <= 315_360_000 ? json.seconds : undefined
}

type ServedService = { readonly kind: ServiceKind; readonly lookups: LookupRoutes }

/** Addresses that only programs on this machine can reach. */
export const isLocalHost = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(host)

const isIpLiteral = (host: string): boolean => /^(\d{1,3}(\.\d{1,3}){3}|\[[\da-f:.]+\])$/i.test(host)

/**
 * The Host of a request is an address of this server, and not someone else's name that points here: a page under that
 * name could then read the answers. A name without a dot, such as that of a container, belongs to nobody else.
 */
const isOwnHost = (hostname: string, listenHost: string): boolean =>
  isLocalHost(hostname) ||
  hostname.toLowerCase() === listenHost.toLowerCase() ||
  hostname.toLowerCase() === `[${listenHost.toLowerCase()}]` ||
  (!isLocalHost(listenHost) && (isIpLiteral(hostname) || /^[a-z\d_-]+$/i.test(hostname)))

const readHostname = (host: string): string | undefined =>
  /^[\w.[\]:-]+$/.test(host) && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined

const bearerToken = (header: string | undefined): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]

/**
 * Why a request for an operator's page is refused; undefined if it is not. It must be addressed to this server, not
 * come from another site, and have the token.
 */
export const refuseOperatorRequest = (
  { headers, url }: Pick<IncomingMessage, 'headers' | 'url'>,
  { accessToken, host }: { readonly accessToken: string; readonly host: string },
): Reply | undefined => {
  const hostname = readHostname(headers.host ?? '')
  if (hostname === undefined || !isOwnHost(hostname, host))
    return refusalReply(403, 'the Host is not an address of this sandbox; use the address that it printed')
  const site = headers['sec-fetch-site']
  const isForeign =
    (headers.origin !== undefined && headers.origin.toLowerCase() !== `http://${headers.host}`.toLowerCase()) ||
    (site !== undefined && site !== 'same-origin' && site !== 'none')
  if (isForeign) return refusalReply(403, 'pages of other sites may not call the sandbox')
  const given = [headers.accesstoken, headers['access-token'], bearerToken(headers.authorization)]
  const query = new URLSearchParams((url ?? '').split('?')[1] ?? '').get('access_token')
  return [...given, query].includes(accessToken)
    ? undefined
    : refusalReply(
        401,
        'give the access_token that the sandbox printed, in the header accessToken or as ?access_token=',
      )
}

const htmlReply = (page: string): Reply => ({
  status: 200,
  headers: { 'Content-Type': 'text/html;charset=UTF-8' },
  body: Buffer.from(page),
})

/**
 * The pages besides the operations: the description of the service, and the operator's log, statistics, data and
 * changes.
 */
export const createSandboxPages = (
  service: SandboxService,
  log: RequestLog,
  served: ServedService,
  forward: (seconds: number) => void,
): ReadonlyArray<SandboxPage> =>
  listPages(service, log, served, forward).map((page) => ({ ...page, isOperator: page.path.startsWith('/__sandbox/') }))

const listPages = (
  service: SandboxService,
  log: RequestLog,
  { kind, lookups }: ServedService,
  forward: (seconds: number) => void,
): ReadonlyArray<Omit<SandboxPage, 'isOperator'>> => [
  { method: 'GET', path: '/openapi.json', answer: async () => jsonReply(200, describeService(lookups, kind)) },
  { method: 'GET', path: '/', answer: async () => htmlReply(indexPage) },
  { method: 'GET', path: '/docs', answer: async () => htmlReply(docsPage) },
  { method: 'GET', path: '/__sandbox/log', answer: async () => jsonReply(200, log.entries()) },
  { method: 'GET', path: '/__sandbox/stats', answer: async () => jsonReply(200, log.stats()) },
  {
    method: 'GET',
    path: '/__sandbox/truth',
    answer: async () => jsonReply(200, await service.truthSummary()),
  },
  {
    method: 'POST',
    path: '/__sandbox/churn',
    answer: async (request) => {
      const step = decodeChurn(await readBody(request))
      if (step === undefined) return refusalReply(400, 'expected counts such as {"change": 3, "delete": 1, "add": 1}')
      await service.churn({ ...noChurn, ...step })
      return jsonReply(200, { done: step })
    },
  },
  {
    method: 'POST',
    path: '/__sandbox/clock',
    answer: async (request) => {
      const seconds = decodeSeconds(await readBody(request))
      if (seconds === undefined)
        return refusalReply(400, 'expected {"seconds": 1800}: by how much the clock moves forward')
      forward(seconds)
      return jsonReply(200, { done: { seconds } })
    },
  },
]

/** One request in `/__sandbox/log`; it has no token. */
export type RequestLogEntry = {
  /** Number of the request, from 1. */
  readonly n: number
  readonly at: string
  readonly operation: OperationName | null
  readonly method: string
  readonly path: string
  /** The input; null if it could not be decoded, is too long, or contains a secret. */
  readonly request: unknown
  /** Null if no answer was sent. */
  readonly status: number | null
  readonly bytes: number
  readonly fault: string | null
}

/** Counts since the start of the server. */
export type RequestStats = {
  /** Requests per operation. */
  readonly requests: Readonly<Record<string, number>>
  /** Requests of the two exports together. */
  readonly exports: number
  /** Answers per status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Faults per kind. */
  readonly faults: Readonly<Record<string, number>>
}

/** Records the requests of a server. */
export type RequestLog = {
  /** Counts a request of an operation at its start. */
  readonly countRequest: (operation: OperationName) => void
  /** Adds a finished request. */
  readonly addEntry: (entry: Omit<RequestLogEntry, 'n'>) => void
  readonly entries: () => ReadonlyArray<RequestLogEntry>
  readonly stats: () => RequestStats
}

const maxEntries = 10_000

/** Keeps the last 10,000 requests, and counts all requests. */
export const createRequestLog = (): RequestLog => {
  const entries: Array<RequestLogEntry> = []
  const requests = new Map<string, number>()
  const statuses = new Map<string, number>()
  const faults = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string | number | null): void => {
    if (key !== null) counts.set(String(key), (counts.get(String(key)) ?? 0) + 1)
  }
  let lastNumber = 0
  return {
    countRequest: (operation) => count(requests, operation),
    addEntry: (entry) => {
      count(statuses, entry.status)
      count(faults, entry.fault)
      entries.push({ n: ++lastNumber, ...entry })
      if (entries.length > maxEntries) entries.shift()
    },
    entries: () => entries,
    stats: () => ({
      requests: Object.fromEntries(requests),
      exports: (requests.get('exportReviews') ?? 0) + (requests.get('exportDeletedReviews') ?? 0),
      statuses: Object.fromEntries(statuses),
      faults: Object.fromEntries(faults),
    }),
  }
}
