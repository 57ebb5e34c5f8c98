import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
  type ApiError,
  type ClientConfig,
  type ClientOptions,
  type Clock,
  checkRedisUrl,
  checkUrl,
  createHttpClient,
  type HttpClient,
  isRefusalInBody,
  isUnreachableCode,
  type LookupListRequest,
  type LookupPaging,
  type LookupRoutes,
  outageKind,
  parseHeaderDate,
  publishedLocationOrder,
  publishedLocationPaging,
  resolveTokenUrl,
  routes,
  systemClock,
  type TokenReport,
  toFailure,
} from '../api'
import { configFailure, defined, type Failure } from '../cdk'
import type { ConnectionConfig, LocationLookupConfig, LookupPagingConfig } from '../config'

/** A client that is connected to its service. */
export type ServiceClient = {
  readonly send: HttpClient['send']
  /**
   * Calls `listener` with the time until which the service makes us wait, in milliseconds since 1970; returns how to
   * stop that.
   */
  readonly onWait: (listener: (until: number) => void) => () => void
  /** Waits so many milliseconds, or until the client is closed. */
  readonly wait: Clock['wait']
  /** Aborts the requests under way and closes the connections. */
  readonly close: () => Promise<void>
}

/**
 * The failure of the first request of a check. Where no service is found, the address is the most likely cause: a
 * change of the config helps.
 */
export const toConnectionFailure = (error: ApiError, failure: Failure): Failure => {
  const code = error._tag === 'Network' || error._tag === 'Proxy' || error._tag === 'Token' ? error.code : undefined
  return code !== undefined && isUnreachableCode(code) ? { ...failure, _tag: 'Config' } : failure
}

/** The failure where another server answers instead of the service. */
export const otherServerFailure = (operation: string, why: string): Failure =>
  configFailure(
    `${operation}: what answers at base_url is not the service (${why}). ` +
      'Check base_url; a proxy or a login page may stand between.',
  )

/** Whether a service that is reached and accepts the token may have refused just what was asked for. */
export const mayRefuseRequest = (error: ApiError): boolean =>
  error._tag === 'Http'
    ? ![401, 403].includes(error.status) && outageKind(error) === undefined
    : error._tag === 'Decode' || isRefusalInBody(error)

/**
 * What is wrong where a request of nothing at all is answered so: the token or the permission is refused, or nobody
 * answers, be it for an outage or a rate limit, or for a page instead of the service. Undefined where the service may
 * refuse just that nothing was sent.
 */
export const findAccessFailure = (operation: string, error: ApiError): Failure | undefined => {
  if (error._tag === 'Decode' && error.isPage) return otherServerFailure(operation, 'it is a page in HTML')
  return mayRefuseRequest(error) ? undefined : toConnectionFailure(error, toFailure(operation, error))
}

type ConnectionLimits = Pick<ConnectionConfig, 'rate_limit'>

/** Client options with the environment variables that name proxies, so that no caller forgets them. */
export type ServiceClientOptions = ClientOptions & Required<Pick<ClientOptions, 'proxyVariables'>>

/** The client that a configuration describes; fails if one of its addresses is not allowed. */
export const createClient = (
  config: ConnectionConfig & Pick<ClientConfig, 'max_response_mb'>,
  options: ServiceClientOptions,
): E.Either<Failure, ServiceClient> =>
  pipe(
    checkUrl('base_url', config.base_url, config.allow_http),
    E.bindTo('base'),
    E.bind('credentials', ({ base }) => resolveCredentials(base, config)),
    E.chainFirst(() =>
      config.rate_limit.redis_url === undefined ? E.right(undefined) : checkRedisUrl(config.rate_limit.redis_url),
    ),
    E.map(({ base, credentials }) => openClient({ ...config, base_url: base, credentials }, options)),
  )

/** The credentials with a full `token_url`; fails if that is not allowed. */
const resolveCredentials = (
  base: URL,
  { credentials, allow_http }: ConnectionConfig,
): E.Either<Failure, ClientConfig['credentials']> => {
  if (credentials.auth_type === 'access_token') return E.right(credentials)
  const token_url = resolveTokenUrl(base, credentials.token_url)
  return pipe(
    checkUrl('credentials.token_url', token_url, allow_http),
    E.map(() => ({ ...credentials, token_url, token_request: defined(credentials.token_request) })),
  )
}

const openClient = (
  config: Pick<ClientConfig, 'base_url' | 'credentials' | 'timeouts' | 'max_response_mb'> & ConnectionLimits,
  options: ClientOptions,
): ServiceClient => {
  const closed = new AbortController()
  const listeners = new Set<(until: number) => void>()
  const { requests_per_minute, redis_url, max_concurrency } = config.rate_limit
  const client = createHttpClient(
    {
      ...config,
      rate_limit: { max_concurrency, ...defined({ requests_per_minute, redis_url }) },
    },
    {
      ...options,
      onWait: (until) => {
        options.onWait?.(until)
        for (const listener of [...listeners]) listener(until)
      },
    },
  )
  return {
    send: client.send,
    onWait: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    wait: (options.clock ?? systemClock)(closed.signal).wait,
    close: () => {
      closed.abort()
      return client.close()
    },
  }
}

/** What the requests of a check showed beside their answers. */
export type Observations = {
  sends: number
  answers: number
  /** Answers with a status below 400. */
  acceptances: number
  refusedForRate: number
  token: TokenReport | undefined
  /** The service's clock minus ours lies between these, milliseconds: a Date has whole seconds. */
  clock: readonly [least: number, most: number] | 'contradictory' | undefined
  rateLimitHeaders: Readonly<Record<string, string>>
}

/** Values of headers that hold nothing but numbers, names of units and separators. */
const rateLimitValue = /^[\w .,;:="/-]{1,80}$/

/** Client options that observe the requests; `now`: milliseconds since 1970. */
export const observeRequests = (now: () => number) => {
  const seen: Observations = {
    sends: 0,
    answers: 0,
    acceptances: 0,
    refusedForRate: 0,
    token: undefined,
    clock: undefined,
    rateLimitHeaders: {},
  }
  const options = {
    onSend: () => {
      seen.sends += 1
    },
    onToken: (report) => {
      seen.token = report
    },
    onRequest: ({ status, millis, headers }) => {
      seen.answers += 1
      seen.acceptances += status < 400 ? 1 : 0
      seen.refusedForRate += status === 429 ? 1 : 0
      const limits = Object.entries(headers).filter(
        ([name, value]) => /rate-?limit/.test(name) && rateLimitValue.test(value ?? ''),
      )
      seen.rateLimitHeaders = { ...seen.rateLimitHeaders, ...(Object.fromEntries(limits) as Record<string, string>) }
      const date = parseHeaderDate(headers.date)
      if (Number.isNaN(date) || Number(headers.age ?? 0) > 0) return
      if (seen.clock === 'contradictory') return
      const [least, most] = seen.clock ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
      // The Date was written between sending and now.
      const [low, high] = [Math.max(least, date - now()), Math.min(most, date + 1000 - (now() - millis))]
      seen.clock = low <= high ? [low, high] : 'contradictory'
    },
  } satisfies ClientOptions
  return { seen, options }
}

/** How the pages of a lookup are asked for, as a config describes it. */
export const toLookupPaging = ({
  page_param,
  first_page,
  size_param,
  size,
  total_pages_path,
}: LookupPagingConfig): LookupPaging => ({
  pageParam: page_param,
  firstPage: first_page,
  size,
  ...defined({ sizeParam: size_param, totalPagesPath: total_pages_path }),
})

/** The list of locations that a config names: its route, and where its records and pages are. */
export const toLocationLookup = ({
  method,
  path,
  records_path,
  paging,
}: LocationLookupConfig): {
  readonly route: NonNullable<LookupRoutes['locations']>
  readonly list: Pick<LookupListRequest, 'recordsPath' | 'paging' | 'query'>
} => ({
  route: { method, path: path ?? routes.lookupLocations.path },
  list: {
    recordsPath: records_path,
    paging: paging === undefined ? publishedLocationPaging : toLookupPaging(paging),
    ...(path === undefined ? { query: publishedLocationOrder } : {}),
  },
})
