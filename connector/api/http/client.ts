import { setMaxListeners } from 'node:events'
import { unescape } from 'node:querystring'
import { createRedactor } from '../../cdk'
import type { SendRequest } from '../route'
import type { ProxyVariables } from './proxy'
import {
  type Clock,
  createLocalLimiter,
  createThrottle,
  limiterSettings,
  type RateLimit,
  type RateLimiter,
  systemClock,
} from './rate-limit'
import { createSharedLimiter, sharedLimiterId } from './redis-rate-limit'
import { createSend, type RequestObserver } from './send'
import { createExchangeTokenSource, createStaticTokenSource } from './token'
import type { TokenExchange } from './token-exchange'
import { createTransport, type Transport } from './transport'

/** The parts of a config that the client needs, under the config's own keys. */
export type ClientConfig = {
  readonly base_url: URL
  readonly credentials:
    | { readonly auth_type: 'access_token'; readonly access_token: string }
    | ({ readonly auth_type: 'application' } & TokenExchange)
    /** Sent with every request, because no route names a token header. */
    | { readonly auth_type: 'headers'; readonly headers: Readonly<Record<string, string>> }
  readonly rate_limit: RateLimit & { readonly redis_url?: string }
  readonly timeouts: {
    readonly connect_seconds: number
    readonly response_seconds: number
    readonly max_wait_seconds: number
  }
  readonly max_response_mb: number
}

export type ClientOptions = RequestObserver & {
  /** How often a failing request is sent; 6 by default. */
  readonly attempts?: number
  readonly clock?: (stop: AbortSignal) => Clock
  /** The environment variables that name proxies. Without them, no proxy is used. */
  readonly proxyVariables?: ProxyVariables
}

export type HttpClient = {
  readonly send: SendRequest
  /** Aborts all requests in progress. Afterwards, the client no longer keeps the process alive. */
  readonly close: () => Promise<void>
}

const credentialSecrets = (credentials: ClientConfig['credentials']): ReadonlyArray<string> => {
  switch (credentials.auth_type) {
    case 'access_token':
      return [credentials.access_token.trim()]
    case 'application':
      return [credentials.application_secret]
    case 'headers':
      // For `Bearer abc`, also the token alone.
      return Object.values(credentials.headers).flatMap((value) => [value, ...value.split(' ').slice(-1)])
  }
}

/** The strings that must not appear in any output. */
const clientSecrets = ({ credentials, rate_limit }: Pick<ClientConfig, 'credentials' | 'rate_limit'>) => [
  ...credentialSecrets(credentials),
  ...(rate_limit.redis_url === undefined
    ? []
    : [rate_limit.redis_url, unescape(new URL(rate_limit.redis_url).password)]),
]

/**
 * A job takes at most a token exchange and a request. In Redis, its time begins when it gets its turn, which may be
 * before it starts.
 */
const createLimiter = ({ base_url, credentials, rate_limit, timeouts }: ClientConfig): RateLimiter =>
  rate_limit.redis_url === undefined
    ? createLocalLimiter(rate_limit)
    : createSharedLimiter(rate_limit, {
        redis_url: rate_limit.redis_url,
        connectSeconds: timeouts.connect_seconds,
        id: sharedLimiterId(base_url, credentials.auth_type === 'application' ? credentials.application_id : ''),
        expiration:
          2000 * timeouts.response_seconds + 10_000 + rate_limit.max_concurrency * limiterSettings(rate_limit).minTime,
      })

/** The client of one service, with one rate limit and one token for all operations. */
export const createHttpClient = (config: ClientConfig, options: ClientOptions = {}): HttpClient => {
  const { credentials, timeouts } = config
  const { attempts = 6, clock: makeClock = systemClock, proxyVariables = {}, ...observer } = options
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const clock = makeClock(stop.signal)
  const secrets = clientSecrets(config)
  const transport = createTransport(
    {
      connectSeconds: timeouts.connect_seconds,
      responseSeconds: timeouts.response_seconds,
      maxResponseBytes: config.max_response_mb * 1_000_000,
      proxyVariables,
    },
    clock,
    createRedactor(secrets),
    stop.signal,
  )
  const sharedHeaders = credentials.auth_type === 'headers' ? credentials.headers : {}
  const sendOnce: Transport['exchange'] = (request) => () => {
    observer.onSend?.()
    return transport.exchange({ ...request, headers: { ...sharedHeaders, ...request.headers } })()
  }
  const retryLimits = { maxAttempts: attempts, maxWait: timeouts.max_wait_seconds * 1000 }
  const limiter = createLimiter(config)
  const throttle = createThrottle(limiter, clock, retryLimits.maxWait)
  const token =
    credentials.auth_type === 'application'
      ? createExchangeTokenSource(credentials, sendOnce, clock, {
          waitForTurn: throttle.run,
          notify: observer.onNotice,
          onToken: observer.onToken,
        })
      : createStaticTokenSource(credentials.auth_type === 'access_token' ? credentials.access_token : '')
  return {
    send: createSend({
      baseUrl: config.base_url,
      token,
      throttle,
      transport: { exchange: sendOnce },
      retryLimits,
      clock,
      secrets,
      observer,
    }),
    close: async () => {
      if (stop.signal.aborted) return
      stop.abort()
      transport.close()
      await limiter.close()
    },
  }
}
