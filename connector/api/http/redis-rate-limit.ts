import { createHash } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import * as E from 'fp-ts/Either'
import type { AbstractConnector, StandaloneConnectionOptions } from 'ioredis'
import { transientFailure } from '../../cdk'
import type { ApiError } from '../error'
import { addressTimeout } from './connections'
import { clientClosedError, limiterSettings, type RateLimit, type RateLimiter } from './rate-limit'

export type SharedLimiterOptions = {
  readonly redis_url: string
  readonly connectSeconds: number
  /** The key of the limit in Redis, one per service and application. */
  readonly id: string
  /** Longer than any job can take, in milliseconds. After this time, the slots of a killed process are free again. */
  readonly expiration: number
}

/** The id of an application's limit at a service. It is a hash, so that Redis stores neither of them. */
export const sharedLimiterId = (baseUrl: URL, application: string): string =>
  `feedback-${createHash('sha256').update(`${baseUrl.href}\n${application}`).digest('hex').slice(0, 32)}`

const idleTimeout = 600_000
const commandTimeout = 5_000
const connectionProblem = ({ name, message, code }: NodeJS.ErrnoException): string => {
  if (name === 'AbortError') return 'no answer in time'
  return /max retries|closed/i.test(message) ? 'the connection was lost' : (code ?? message)
}

/** Connects to Redis like ioredis, which cannot configure how long an address is tried. */
const redisConnector = (Base: typeof AbstractConnector, autoSelectFamilyAttemptTimeout: number) =>
  class extends Base {
    readonly options: StandaloneConnectionOptions

    constructor(options: unknown) {
      const given = options as StandaloneConnectionOptions
      super(given.disconnectTimeout ?? 0)
      this.options = given
    }

    async connect() {
      this.connecting = true
      const { host = 'localhost', port = 6379, tls: secure } = this.options
      const target = { host, port, autoSelectFamilyAttemptTimeout }
      const stream = secure === undefined ? net.connect(target) : tls.connect({ ...target, ...secure })
      stream.once('error', (error) => {
        this.firstError = error
      })
      this.stream = stream
      return stream
    }
  }

const connectLimiter = async (limit: RateLimit, { redis_url, connectSeconds, id }: SharedLimiterOptions) => {
  const [{ Redis, AbstractConnector: Base }, { default: Bottleneck }] = await Promise.all([
    import('ioredis'),
    import('bottleneck'),
  ])
  const client = new Redis(redis_url, {
    Connector: redisConnector(Base, addressTimeout(connectSeconds)),
    connectTimeout: connectSeconds * 1_000,
    commandTimeout,
    maxRetriesPerRequest: 1,
    retryStrategy: (times) => Math.min(times * 200, 2_000),
  })
  // Without a listener, ioredis prints each later error with its stack trace. A request that needs Redis fails anyway.
  client.on('error', () => undefined)
  try {
    await once(client, 'ready', { signal: AbortSignal.timeout(connectSeconds * 1_000 + commandTimeout) })
    const connection = new Bottleneck.IORedisConnection({ client, Redis })
    const limiter = new Bottleneck({
      ...limiterSettings(limit),
      id,
      connection,
      timeout: idleTimeout,
      heartbeatInterval: 1_000,
    })
    await limiter.ready()
    // Redis keeps the settings of the first process, but the configuration of the last one should apply.
    await limiter.updateSettings(limiterSettings(limit))
    return { limiter, connection }
  } catch (error) {
    client.disconnect()
    throw error
  }
}

type ConnectedLimiter = ReturnType<typeof connectLimiter>

/**
 * A limit shared by several processes, kept in Redis. It connects with the first request. Bottleneck uses the clock of
 * each process, so a process whose clock is behind waits for the difference.
 */
export const createSharedLimiter = (limit: RateLimit, shared: SharedLimiterOptions): RateLimiter => {
  const toLimiterError = (error: unknown): ApiError => ({
    _tag: 'RateLimiter',
    cause: transientFailure(
      `rate_limit.redis_url: Redis at ${new URL(shared.redis_url).host} cannot be reached ` +
        `(${connectionProblem(error as Error)}). Start it, or remove redis_url from the config.`,
    ),
  })
  const waiting = new Set<(error: ApiError) => void>()
  let current: ConnectedLimiter | undefined
  let isClosed = false

  /**
   * Bottleneck does not recover when Redis restarts or forgets the client, so the next request opens a new connection.
   */
  const disconnect = (connecting: typeof current, error: unknown): void => {
    if (connecting !== current) return
    current = undefined
    connecting?.then(({ connection }) => connection.disconnect(false)).catch(() => undefined)
    for (const fail of waiting) fail(toLimiterError(error))
  }

  const open = (): ConnectedLimiter => {
    const connecting = connectLimiter(limit, shared)
    connecting
      .then(({ limiter }) => limiter.on('error', (error) => disconnect(connecting, error)))
      .catch(() => undefined)
    return connecting
  }

  return {
    schedule: (job) => () =>
      new Promise((resolve, reject) => {
        const fail = (error: ApiError) => {
          waiting.delete(fail)
          resolve(E.left(isClosed ? clientClosedError : error))
        }
        const run = async () => {
          // It failed while it waited. Bottleneck cannot remove a single job, so its turn goes unused.
          if (!waiting.delete(fail)) return
          await job().then(E.right).then(resolve, reject)
        }
        if (isClosed) return fail(clientClosedError)
        waiting.add(fail)
        current ??= open()
        const connecting = current
        connecting
          .then(({ limiter }) => limiter.schedule({ expiration: shared.expiration }, run))
          .catch((error) => disconnect(connecting, error))
      }),
    close: async () => {
      isClosed = true
      disconnect(current, clientClosedError)
    },
  }
}
