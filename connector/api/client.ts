import { setMaxListeners } from 'node:events'
import { unescape } from 'node:querystring'
import { redact } from '../cdk/redact'
import type { Send } from './api'
import { type Budget, localBudget, type RateLimit, settings } from './budget'
import { type Clock, systemClock } from './clock'
import { httpSend, type Observer } from './http'
import { budgetId, sharedBudget } from './shared-budget'
import { throttle } from './throttle'
import { exchangedToken, staticToken } from './token'
import type { Exchange } from './token-exchange'
import { transport } from './transport'

/** The parts of a config that the client lives by, under the config's own names. */
export type ClientConfig = {
  readonly base_url: URL
  readonly credentials:
    | { readonly auth_type: 'access_token'; readonly access_token: string }
    | ({ readonly auth_type: 'application' } & Exchange)
  readonly rate_limit: RateLimit & { readonly redis_url?: string }
  readonly timeouts: {
    readonly connect_seconds: number
    readonly response_seconds: number
    readonly max_wait_seconds: number
  }
  readonly max_response_mb: number
}

export type ClientOptions = Observer & {
  /** How often a request that meets faults is sent; 6 unless told. */
  readonly attempts?: number
  readonly clock?: (stop: AbortSignal) => Clock
}

export type Client = {
  readonly send: Send
  /** Gives up what is under way; nothing keeps the process alive afterwards. */
  readonly close: () => Promise<void>
}

/** What no output may hold. */
export const secretsOf = ({ credentials, rate_limit }: Pick<ClientConfig, 'credentials' | 'rate_limit'>) => [
  credentials.auth_type === 'access_token' ? credentials.access_token.trim() : credentials.application_secret,
  ...(rate_limit.redis_url === undefined
    ? []
    : [rate_limit.redis_url, unescape(new URL(rate_limit.redis_url).password)]),
]

/** A job is an exchange of a token at most, and a request; in Redis it counts from when its turn is given to it. */
const toBudget = ({ base_url, credentials, rate_limit, timeouts }: ClientConfig): Budget =>
  rate_limit.redis_url === undefined
    ? localBudget(rate_limit)
    : sharedBudget(rate_limit, {
        redis_url: rate_limit.redis_url,
        id: budgetId(base_url, credentials.auth_type === 'application' ? credentials.application_id : ''),
        expiration:
          2000 * timeouts.response_seconds + 10_000 + rate_limit.max_concurrency * settings(rate_limit).minTime,
      })

/** The client of one service, with one budget and one token for all its operations. */
export const httpClient = (config: ClientConfig, options: ClientOptions = {}): Client => {
  const { credentials, timeouts } = config
  const { attempts = 6, clock: makeClock = systemClock, ...observer } = options
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const clock = makeClock(stop.signal)
  const secrets = secretsOf(config)
  const wire = transport(
    {
      connectSeconds: timeouts.connect_seconds,
      responseSeconds: timeouts.response_seconds,
      maxResponseBytes: config.max_response_mb * 1_000_000,
    },
    clock,
    redact(secrets),
    stop.signal,
  )
  const patience = { attempts, maxWait: timeouts.max_wait_seconds * 1000 }
  const budget = toBudget(config)
  const token =
    credentials.auth_type === 'access_token'
      ? staticToken(credentials.access_token)
      : exchangedToken(credentials, wire.exchange, clock)
  return {
    send: httpSend({
      baseUrl: config.base_url,
      token,
      throttle: throttle(budget, clock, patience.maxWait),
      transport: wire,
      patience,
      clock,
      secrets,
      observer,
    }),
    close: async () => {
      if (stop.signal.aborted) return
      stop.abort()
      wire.close()
      await budget.close()
    },
  }
}
