import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RateLimit } from '../../../connector/api/http/rate-limit'
import {
  createSharedLimiter,
  type SharedLimiterOptions,
  sharedLimiterId,
} from '../../../connector/api/http/shared-rate-limit'
import { sendJson, startServer } from '../../support/listen'
import { freePort, missingRedis, startRedis } from '../../support/redis'

const build = join(__dirname, '../../../build')

const spawnSpender = (...args: ReadonlyArray<string | number>) =>
  spawn(process.execPath, [join(__dirname, '../../support/redis-client.mjs'), build, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })

const createTestLimiter = (
  limit: RateLimit,
  shared: Omit<SharedLimiterOptions, 'id' | 'expiration'> & Partial<SharedLimiterOptions>,
) => {
  const budget = createSharedLimiter(limit, { id: 'one', expiration: 1000, ...shared })
  onTestFinished(budget.close)
  return budget
}

test('a budget is named by service and application, telling neither', () => {
  const id = sharedLimiterId(new URL('https://feedback.example/a'), 'my-app')
  expect(id).toMatch(/^feedback-[0-9a-f]{32}$/)
  expect(sharedLimiterId(new URL('https://feedback.example/a'), 'other')).not.toBe(id)
  expect(sharedLimiterId(new URL('https://feedback.example/b'), 'my-app')).not.toBe(id)
})

test('Redis out of reach is said by name, without its password, and nothing waits for it', async () => {
  const port = await freePort()
  const budget = createTestLimiter({ max_concurrency: 1 }, { redis_url: `redis://:r3dis-pass@127.0.0.1:${port}` })
  const answers = [await budget.schedule(async () => 1)(), await budget.schedule(async () => 1)()]
  for (const answer of answers)
    expect(answer).toEqual(
      E.left({
        _tag: 'RateLimiter',
        cause: {
          _tag: 'Transient',
          message: `rate_limit.redis_url: Redis at 127.0.0.1:${port} cannot be reached (ECONNREFUSED). Start it, or take redis_url out of the config.`,
        },
      }),
    )
})

if (missingRedis !== undefined) console.warn(`Tests of the shared budget are skipped: ${missingRedis}.`)

describe.skipIf(missingRedis !== undefined)('with a real Redis', () => {
  test('four processes together keep the limit', async () => {
    const { url } = await startRedis()
    const times: number[] = []
    const service = await startServer((_, response) => {
      times.push(performance.now())
      sendJson(response, 200)
    })
    const ended = await Promise.all(
      Array.from({ length: 4 }, () => once(spawnSpender(url, 'four', 900, 6, service.url), 'exit')),
    )
    expect(ended).toEqual(ended.map(() => [0, null]))
    expect(times).toHaveLength(24)
    // 23 times 68 ms; four budgets of their own would be done in 5 times 68 ms.
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1000)
  })

  test('a process that is killed gives its slots back', async () => {
    const { url } = await startRedis()
    const killed = spawnSpender(url, 'killed', 60_000, 'forever')
    let started = ''
    await new Promise<void>((resolve) =>
      killed.stdout.on('data', (text) => {
        started += text
        if (started.length === 4) resolve()
      }),
    )
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    const budget = createTestLimiter({ max_concurrency: 4 }, { redis_url: url, id: 'killed' })
    expect(await budget.schedule(async () => 1)()).toEqual(E.right(1))
  })

  test('the configuration of who comes last holds', async () => {
    const { url: redis_url } = await startRedis()
    expect(await createTestLimiter({ max_concurrency: 1 }, { redis_url }).schedule(async () => 1)()).toEqual(E.right(1))
    const budget = createTestLimiter({ max_concurrency: 3 }, { redis_url })
    let now = 0
    let peak = 0
    const job = async () => {
      peak = Math.max(peak, ++now)
      await new Promise((resolve) => setTimeout(resolve, 20))
      now--
    }
    await Promise.all(Array.from({ length: 9 }, () => budget.schedule(job)()))
    expect(peak).toBe(3)
  })

  test('a process whose clock is an hour ahead holds up nobody', async () => {
    const { url: redis_url } = await startRedis()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    onTestFinished(() => void vi.useRealTimers())
    expect(await createTestLimiter({ max_concurrency: 1 }, { redis_url }).schedule(async () => 1)()).toEqual(E.right(1))
    vi.useRealTimers()
    expect(await createTestLimiter({ max_concurrency: 1 }, { redis_url }).schedule(async () => 2)()).toEqual(E.right(2))
  })

  test('Redis dies: what is under way ends well, what waits is told, and a new Redis is found', async () => {
    const redis = await startRedis()
    const budget = createTestLimiter({ max_concurrency: 1 }, { redis_url: redis.url })
    let finish = () => undefined as unknown
    const underWay = budget.schedule(
      () =>
        new Promise<string>((resolve) => {
          finish = () => resolve('done')
        }),
    )()
    await expect.poll(() => finish.toString()).toContain('done')
    const waiting = budget.schedule(async () => 'never')()
    await redis.stop()
    finish()
    expect(await underWay).toEqual(E.right('done'))
    expect(await waiting).toMatchObject({ left: { _tag: 'RateLimiter', cause: { _tag: 'Transient' } } })
    await startRedis(redis.port)
    await expect.poll(() => budget.schedule(async () => 'again')(), { timeout: 10_000 }).toEqual(E.right('again'))
  })

  test('a closed budget answers what waits', async () => {
    const { url: redis_url } = await startRedis()
    const budget = createTestLimiter({ max_concurrency: 1 }, { redis_url, expiration: 60_000 })
    let begun = false
    void budget.schedule(() => {
      begun = true
      return new Promise(() => undefined)
    })()
    await expect.poll(() => begun).toBe(true)
    const waiting = budget.schedule(async () => 1)()
    await budget.close()
    for (const answer of [await waiting, await budget.schedule(async () => 1)()])
      expect(answer).toMatchObject({ left: { _tag: 'Network', code: 'ABORTED' } })
  })
})
