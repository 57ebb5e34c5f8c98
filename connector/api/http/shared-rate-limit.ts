import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as E from 'fp-ts/Either'
import { transientFailure } from '../../cdk'
import type { ApiError } from '../error'
import { clientClosedError, limiterSettings, type RateLimit, type RateLimiter } from './rate-limit'

export type SharedLimiterOptions = {
  readonly redis_url: string
  /** Names the budget in Redis: the service and the application whose limit it is. */
  readonly id: string
  /** Longer than any job can take, milliseconds: a process that was killed gives its slots back after that. */
  readonly expiration: number
}

/** The id of the budget of an application at a service; tells neither to who reads Redis. */
export const sharedLimiterId = (baseUrl: URL, application: string): string =>
  `feedback-${createHash('sha256').update(`${baseUrl.href}\n${application}`).digest('hex').slice(0, 32)}`

const idleTimeout = 600_000
const readyTimeout = 10_000

const connectionProblem = ({ name, message, code }: NodeJS.ErrnoException): string => {
  if (name === 'AbortError') return `no answer in ${readyTimeout / 1000} s`
  return /max retries|closed/i.test(message) ? 'the connection was lost' : (code ?? message)
}

type RedisScripts = { __scriptFn__: (name: string) => (keys: number, ...rest: ReadonlyArray<unknown>) => unknown }

/** Bottleneck stamps by the clock of each process, and who lags behind another would wait for the difference: Redis tells the time. */
const useRedisClock = async (
  client: { readonly time: () => Promise<ReadonlyArray<number>> },
  scripts: RedisScripts,
) => {
  const [seconds = 0, micros = 0] = await client.time()
  const ahead = Number(seconds) * 1000 + Number(micros) / 1000 - performance.now()
  const scriptFn = scripts.__scriptFn__.bind(scripts)
  scripts.__scriptFn__ = (name) => {
    const script = scriptFn(name)
    return (keys, ...rest) => script(keys, ...rest.with(keys, Math.round(performance.now() + ahead)))
  }
}

const connectLimiter = async (limit: RateLimit, { redis_url, id }: SharedLimiterOptions) => {
  const [{ Redis }, { default: Bottleneck }] = await Promise.all([import('ioredis'), import('bottleneck')])
  const client = new Redis(redis_url, {
    connectTimeout: 5000,
    commandTimeout: 5000,
    maxRetriesPerRequest: 1,
    retryStrategy: (times) => Math.min(times * 200, 2000),
  })
  try {
    await once(client, 'ready', { signal: AbortSignal.timeout(readyTimeout) })
    const connection = new Bottleneck.IORedisConnection({ client, Redis })
    await useRedisClock(client, connection as unknown as RedisScripts)
    const limiter = new Bottleneck({
      ...limiterSettings(limit),
      id,
      connection,
      timeout: idleTimeout,
      heartbeatInterval: 1000,
    })
    await limiter.ready()
    // What the first process wrote stays in Redis; ours is the newer configuration.
    await limiter.updateSettings(limiterSettings(limit))
    return { limiter, connection }
  } catch (error) {
    client.disconnect()
    throw error
  }
}

type ConnectedLimiter = ReturnType<typeof connectLimiter>

/** One budget for many processes, kept in Redis, which is connected to when the first request is about to leave. */
export const createSharedLimiter = (limit: RateLimit, shared: SharedLimiterOptions): RateLimiter => {
  const lost = (error: unknown): ApiError => ({
    _tag: 'RateLimiter',
    cause: transientFailure(
      `rate_limit.redis_url: Redis at ${new URL(shared.redis_url).host} cannot be asked (${connectionProblem(error as Error)}). Start it, or take redis_url out of the config.`,
    ),
  })
  const waiting = new Set<(error: ApiError) => void>()
  let connected: ConnectedLimiter | undefined
  let stopped = false

  /** Bottleneck does not find back to a Redis that was restarted or has forgotten us: the next request connects anew. */
  const giveUp = (connection: typeof connected, error: unknown): void => {
    if (connection !== connected) return
    connected = undefined
    connection?.then((one) => one.connection.disconnect(false)).catch(() => undefined)
    for (const fail of waiting) fail(lost(error))
  }

  const open = (): ConnectedLimiter => {
    const connection = connectLimiter(limit, shared)
    connection.then(({ limiter }) => limiter.on('error', (error) => giveUp(connection, error))).catch(() => undefined)
    return connection
  }

  return {
    schedule: (job) => () =>
      new Promise((resolve, reject) => {
        const fail = (error: ApiError) => {
          waiting.delete(fail)
          resolve(E.left(stopped ? clientClosedError : error))
        }
        const run = async () => {
          // Given up while it waited: Bottleneck cannot be told, so its turn passes unused.
          if (!waiting.delete(fail)) return
          await job().then(E.right).then(resolve, reject)
        }
        if (stopped) return fail(clientClosedError)
        waiting.add(fail)
        connected ??= open()
        const connection = connected
        connection
          .then(({ limiter }) => limiter.schedule({ expiration: shared.expiration }, run))
          .catch((error) => giveUp(connection, error))
      }),
    close: async () => {
      stopped = true
      giveUp(connected, clientClosedError)
    },
  }
}
