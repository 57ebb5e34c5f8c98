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
   * Calls `listener` with the time until which the service makes us wait, in milliseconds since 1970. Returns a
   * function that stops the calls.
   */
  readonly onWait: (listener: (until: number) => void) => () => void
  /** Waits so many milliseconds, or until the client is closed. */
  readonly wait: Clock['wait']
  /** Aborts the requests in flight and closes the connections. */
  readonly close: () => Promise<void>
}

/**
 * The failure of a check's first request. If no service answers, the address is the likely cause, so the user should
 * change the config.
 */
export const toConnectionFailure = (error: ApiError, failure: Failure): Failure => {
  const code = error._tag === 'Network' || error._tag === 'Proxy' || error._tag === 'Token' ? error.code : undefined
  return code !== undefined && isUnreachableCode(code) ? { ...failure, _tag: 'Config' } : failure
}

/** The failure if another server answers instead of the service. */
export const otherServerFailure = (operation: string, why: string): Failure =>
  configFailure(
    `${operation}: the server at base_url is not the service (${why}). ` +
      'Check base_url; a proxy or a login page may be in between.',
  )

/** The service, although it accepts the token, may have refused only this request. */
export const mayRefuseRequest = (error: ApiError): boolean =>
  error._tag === 'Http'
    ? ![401, 403].includes(error.status) && outageKind(error) === undefined
    : error._tag === 'Decode' || isRefusalInBody(error)

/**
 * What is wrong if an empty request fails with this error: the token or the permission is refused, or there is no
 * usable answer because of an outage, a rate limit or a page from another server. Undefined if the service may only
 * have refused that the request was empty.
 */
export const findAccessFailure = (operation: string, error: ApiError): Failure | undefined => {
  if (error._tag === 'Decode' && error.isPage) return otherServerFailure(operation, 'it is a page in HTML')
  return mayRefuseRequest(error) ? undefined : toConnectionFailure(error, toFailure(operation, error))
}

type ConnectionLimits = Pick<ConnectionConfig, 'rate_limit'>

/** Client options, including the environment variables that name proxies so that no caller forgets them. */
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

/** The credentials with a complete `token_url`; fails if that is not allowed. */
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

/** What the requests of a check showed besides their answers. */
export type Observations = {
  sends: number
  answers: number
  /** Number of answers with a status below 400. */
  acceptances: number
  refusedForRate: number
  token: TokenReport | undefined
  /** The range of the difference between the service's clock and ours, in milliseconds: a Date has whole seconds. */
  clock: readonly [least: number, most: number] | 'contradictory' | undefined
  rateLimitHeaders: Readonly<Record<string, string>>
}

/** Accepts header values made only of numbers, unit names and separators. */
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
      // The Date was written between sending the request and now.
      const [low, high] = [Math.max(least, date - now()), Math.min(most, date + 1000 - (now() - millis))]
      seen.clock = low <= high ? [low, high] : 'contradictory'
    },
  } satisfies ClientOptions
  return { seen, options }
}

/** How a lookup is paged, from its config. */
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

/** The list of locations in a config: its route, and where its records and pages are. */
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
