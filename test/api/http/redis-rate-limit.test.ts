import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RateLimit } from '../../../connector/api/http/rate-limit'
import {
  createSharedLimiter,
  type SharedLimiterOptions,
  sharedLimiterId,
} from '../../../connector/api/http/redis-rate-limit'
import { sendJson, startServer } from '../../support/listen'
import { freePort, missingRedis, startRedis } from '../../support/redis'

const build = join(__dirname, '../../../build')

const spawnClient = (...args: ReadonlyArray<string | number>) =>
  spawn(process.execPath, [join(__dirname, '../../support/redis-client.mjs'), build, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })

const createTestLimiter = (
  limit: RateLimit,
  shared: Omit<SharedLimiterOptions, 'id' | 'expiration' | 'connectSeconds'> & Partial<SharedLimiterOptions>,
) => {
  const limiter = createSharedLimiter(limit, { id: 'one', expiration: 600_000, connectSeconds: 5, ...shared })
  onTestFinished(limiter.close)
  return limiter
}

test('the id of a limit differs by service and application and names neither', () => {
  const id = sharedLimiterId(new URL('https://feedback.example/a'), 'my-app')
  expect(id).toMatch(/^feedback-[0-9a-f]{32}$/)
  expect(sharedLimiterId(new URL('https://feedback.example/a'), 'other')).not.toBe(id)
  expect(sharedLimiterId(new URL('https://feedback.example/b'), 'my-app')).not.toBe(id)
})

test('requests fail at once where Redis is out of reach, and the message has its host but no password', async () => {
  const port = await freePort()
  const limiter = createTestLimiter({ max_concurrency: 1 }, { redis_url: `redis://:r3dis-pass@127.0.0.1:${port}` })
  const answers = [await limiter.schedule(async () => 1)(), await limiter.schedule(async () => 1)()]
  for (const answer of answers)
    expect(answer).toEqual(
      E.left({
        _tag: 'RateLimiter',
        cause: {
          _tag: 'Transient',
          message:
            `rate_limit.redis_url: Redis at 127.0.0.1:${port} cannot be reached ` +
            '(ECONNREFUSED). Start it, or remove redis_url from the config.',
        },
      }),
    )
})

if (missingRedis !== undefined) console.warn(`Tests of the shared limit are skipped: ${missingRedis}.`)

describe.skipIf(missingRedis !== undefined)('a limit in a real Redis', () => {
  test('holds for four processes together', async () => {
    const { url } = await startRedis()
    const times: number[] = []
    const service = await startServer((_, response) => {
      times.push(performance.now())
      sendJson(response, 200)
    })
    const ended = await Promise.all(
      Array.from({ length: 4 }, () => once(spawnClient(url, 'four', 900, 6, service.url), 'exit')),
    )
    expect(ended).toEqual(ended.map(() => [0, null]))
    expect(times).toHaveLength(24)
    // 23 intervals of 68 ms. With separate limits, each process would need 5 intervals.
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1000)
  })

  test('frees the slots of a killed process', async () => {
    const { url } = await startRedis()
    const killed = spawnClient(url, 'killed', 60_000, 'forever')
    let started = ''
    await new Promise<void>((resolve) =>
      killed.stdout.on('data', (text) => {
        started += text
        if (started.length === 4) resolve()
      }),
    )
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    const limiter = createTestLimiter({ max_concurrency: 4 }, { redis_url: url, id: 'killed', expiration: 1000 })
    expect(await limiter.schedule(async () => 1)()).toEqual(E.right(1))
  })

  test('follows the configuration of the process that came last', async () => {
    const { url: redis_url } = await startRedis()
    expect(await createTestLimiter({ max_concurrency: 1 }, { redis_url }).schedule(async () => 1)()).toEqual(E.right(1))
    const limiter = createTestLimiter({ max_concurrency: 3 }, { redis_url })
    let underWay = 0
    let peak = 0
    const job = async () => {
      peak = Math.max(peak, ++underWay)
      await new Promise((resolve) => setTimeout(resolve, 20))
      underWay--
    }
    await Promise.all(Array.from({ length: 9 }, () => limiter.schedule(job)()))
    expect(peak).toBe(3)
  })

  test('survives the death of Redis: what is under way succeeds, what waits fails, a new Redis is used', async () => {
    const redis = await startRedis()
    const limiter = createTestLimiter({ max_concurrency: 1 }, { redis_url: redis.url })
    let finish = () => undefined as unknown
    const underWay = limiter.schedule(
      () =>
        new Promise<string>((resolve) => {
          finish = () => resolve('done')
        }),
    )()
    await expect.poll(() => finish.toString()).toContain('done')
    const waiting = limiter.schedule(async () => 'never')()
    await redis.stop()
    finish()
    expect(await underWay).toEqual(E.right('done'))
    expect(await waiting).toMatchObject({ left: { _tag: 'RateLimiter', cause: { _tag: 'Transient' } } })
    await startRedis(redis.port)
    await expect.poll(() => limiter.schedule(async () => 'again')()).toEqual(E.right('again'))
  })

  test('refuses what waits and what comes later once it is closed', async () => {
    const { url: redis_url } = await startRedis()
    const limiter = createTestLimiter({ max_concurrency: 1 }, { redis_url })
    let hasStarted = false
    void limiter.schedule(() => {
      hasStarted = true
      return new Promise(() => undefined)
    })()
    await expect.poll(() => hasStarted).toBe(true)
    const waiting = limiter.schedule(async () => 1)()
    await limiter.close()
    for (const answer of [await waiting, await limiter.schedule(async () => 1)()])
      expect(answer).toMatchObject({ left: { _tag: 'Network', code: 'ABORTED' } })
  })
})
