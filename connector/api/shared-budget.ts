import { createHash } from 'node:crypto'
import Bottleneck from 'bottleneck'
import * as E from 'fp-ts/Either'
import { transientFailure } from '../cdk/failure'
import { type Budget, closed, type RateLimit, settings } from './budget'
import type { ApiError } from './error'

export type Shared = {
  readonly redis_url: string
  /** Names the budget in Redis: the service and the application whose limit it is. */
  readonly id: string
  /** Longer than any job can take, milliseconds: a process that was killed gives its slots back after that. */
  readonly expiration: number
}

/** The id of the budget of an application at a service; tells neither to who reads Redis. */
export const budgetId = (baseUrl: URL, application: string): string =>
  `feedback-${createHash('sha256').update(`${baseUrl.href}\n${application}`).digest('hex').slice(0, 32)}`

const idle = 600_000

const connect = async (limit: RateLimit, { redis_url, id }: Shared) => {
  const { Redis } = await import('ioredis')
  const client = new Redis(redis_url, {
    lazyConnect: true,
    connectTimeout: 5000,
    commandTimeout: 5000,
    maxRetriesPerRequest: 1,
    retryStrategy: (times) => Math.min(times * 200, 2000),
  })
  let reason = ''
  client.on('error', ({ message, code }: NodeJS.ErrnoException) => {
    reason = code ?? message
  })
  try {
    await client.connect()
    const connection = new Bottleneck.IORedisConnection({ client, Redis })
    const limiter = new Bottleneck({ ...settings(limit), id, connection, timeout: idle })
    await limiter.ready()
    // What the first process wrote stays in Redis; ours is the newer configuration.
    await limiter.updateSettings(settings(limit))
    return { limiter, connection }
  } catch (error) {
    client.disconnect()
    throw reason === '' ? error : Object.assign(new Error(reason), { code: reason })
  }
}

/** One budget for many processes, kept in Redis, which is connected to when the first request is about to leave. */
export const sharedBudget = (limit: RateLimit, shared: Shared): Budget => {
  const { host } = new URL(shared.redis_url)
  const lost = (error: unknown): ApiError => {
    const { code, message } = error as NodeJS.ErrnoException
    return {
      _tag: 'Budget',
      cause: transientFailure(
        `rate_limit.redis_url: Redis at ${host} cannot be asked (${code ?? message}). Start it, or take redis_url out of the config.`,
      ),
    }
  }
  const waiting = new Set<(error: ApiError) => void>()
  let connected: ReturnType<typeof connect> | undefined
  let stopped = false

  const open = () => {
    connected ??= connect(limit, shared).then(
      (one) => {
        one.limiter.on('error', (error) => {
          for (const fail of waiting) fail(lost(error))
        })
        return one
      },
      (error) => {
        connected = undefined
        throw error
      },
    )
    return connected
  }

  return {
    spend: (job) => () =>
      new Promise((resolve, reject) => {
        const fail = (error: ApiError) => {
          waiting.delete(fail)
          resolve(E.left(stopped ? closed : error))
        }
        const run = async () => {
          // Given up while it waited: Bottleneck cannot be told, so its turn passes unused.
          if (!waiting.delete(fail)) return
          await job().then(E.right).then(resolve, reject)
        }
        waiting.add(fail)
        open()
          .then(({ limiter }) => limiter.schedule({ expiration: shared.expiration }, run))
          .catch((error) => fail(lost(error)))
      }),
    close: async () => {
      stopped = true
      for (const fail of waiting) fail(closed)
      const one = await connected?.catch(() => undefined)
      await one?.limiter.disconnect(false)
      await one?.connection.disconnect(false)
    },
  }
}
