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
  isUnreachableCode,
  systemClock,
} from '../api'
import { defined, type Failure } from '../cdk'
import type { ConnectionConfig } from '../config'

/** A client that is connected to its service. */
export type ServiceClient = {
  readonly send: HttpClient['send']
  /** Calls `listener` with the time until which the service makes us wait, in milliseconds since 1970; returns how to stop that. */
  readonly onWait: (listener: (until: number) => void) => () => void
  /** Waits so many milliseconds, or until the client is closed. */
  readonly wait: Clock['wait']
  /** Aborts the requests under way and closes the connections. */
  readonly close: () => Promise<void>
}

/** The failure of the first request of a check. Where no service is found, the address is the most likely cause: a change of the config helps. */
export const toConnectionFailure = (error: ApiError, failure: Failure): Failure => {
  const code = error._tag === 'Network' || error._tag === 'Token' ? error.code : undefined
  return code !== undefined && isUnreachableCode(code) ? { ...failure, _tag: 'Config' } : failure
}

/** The client that a configuration describes; fails if one of its addresses is not allowed. */
export const createClient = (
  config: ConnectionConfig & Pick<ClientConfig, 'max_response_mb'>,
  options: ClientOptions = {},
): E.Either<Failure, ServiceClient> =>
  pipe(
    checkUrl('base_url', config.base_url, config.allow_http),
    E.chainFirst(() =>
      config.credentials.auth_type === 'application'
        ? checkUrl('credentials.token_url', config.credentials.token_url, config.allow_http)
        : E.right(undefined),
    ),
    E.chainFirst(() =>
      config.rate_limit.redis_url === undefined ? E.right(undefined) : checkRedisUrl(config.rate_limit.redis_url),
    ),
    E.map((base) => openClient(config, base, options)),
  )

const openClient = (
  config: ConnectionConfig & Pick<ClientConfig, 'max_response_mb'>,
  base: URL,
  options: ClientOptions,
): ServiceClient => {
  const closed = new AbortController()
  const listeners = new Set<(until: number) => void>()
  const { requests_per_minute, redis_url, max_concurrency } = config.rate_limit
  const client = createHttpClient(
    {
      ...config,
      base_url: base,
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
