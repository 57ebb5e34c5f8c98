import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { RateLimit } from '../../connector/api/budget'
import { budgetId, type Shared, sharedBudget } from '../../connector/api/shared-budget'
import { answer, listen } from './listen'
import { freePort, noRedis, startRedis } from './redis'

const build = join(__dirname, '../../build')

const spender = (...args: ReadonlyArray<string | number>) =>
  spawn(process.execPath, [join(__dirname, 'spender.mjs'), build, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })

const budgetOf = (limit: RateLimit, shared: Omit<Shared, 'id' | 'expiration'> & Partial<Shared>) => {
  const budget = sharedBudget(limit, { id: 'one', expiration: 1000, ...shared })
  onTestFinished(budget.close)
  return budget
}

test('a budget is named by service and application, telling neither', () => {
  const id = budgetId(new URL('https://feedback.example/a'), 'my-app')
  expect(id).toMatch(/^feedback-[0-9a-f]{32}$/)
  expect(budgetId(new URL('https://feedback.example/a'), 'other')).not.toBe(id)
  expect(budgetId(new URL('https://feedback.example/b'), 'my-app')).not.toBe(id)
})

test('Redis out of reach is said by name, without its password, and nothing waits for it', async () => {
  const port = await freePort()
  const budget = budgetOf({ max_concurrency: 1 }, { redis_url: `redis://:r3dis-pass@127.0.0.1:${port}` })
  const answers = [await budget.spend(async () => 1)(), await budget.spend(async () => 1)()]
  for (const answer of answers)
    expect(answer).toEqual(
      E.left({
        _tag: 'Budget',
        cause: {
          _tag: 'Transient',
          message: `rate_limit.redis_url: Redis at 127.0.0.1:${port} cannot be asked (ECONNREFUSED). Start it, or take redis_url out of the config.`,
        },
      }),
    )
})

if (noRedis !== undefined) console.warn(`Tests of the shared budget are skipped: ${noRedis}.`)

describe.skipIf(noRedis !== undefined)('with a real Redis', () => {
  test('four processes together keep the limit', async () => {
    const { url } = await startRedis()
    const times: number[] = []
    const service = await listen((_, response) => {
      times.push(performance.now())
      answer(response, 200)
    })
    const ended = await Promise.all(
      Array.from({ length: 4 }, () => once(spender(url, 'four', 900, 6, service.url), 'exit')),
    )
    expect(ended).toEqual(ended.map(() => [0, null]))
    expect(times).toHaveLength(24)
    // 23 times 68 ms; four budgets of their own would be done in 5 times 68 ms.
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1000)
  })

  test('a process that is killed gives its slots back', async () => {
    const { url } = await startRedis()
    const killed = spender(url, 'killed', 60_000, 'forever')
    let started = ''
    await new Promise<void>((resolve) =>
      killed.stdout.on('data', (text) => {
        started += text
        if (started.length === 4) resolve()
      }),
    )
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    const budget = budgetOf({ max_concurrency: 4 }, { redis_url: url, id: 'killed' })
    expect(await budget.spend(async () => 1)()).toEqual(E.right(1))
  })

  test('the configuration of who comes last holds', async () => {
    const { url: redis_url } = await startRedis()
    expect(await budgetOf({ max_concurrency: 1 }, { redis_url }).spend(async () => 1)()).toEqual(E.right(1))
    const budget = budgetOf({ max_concurrency: 3 }, { redis_url })
    let now = 0
    let peak = 0
    const job = async () => {
      peak = Math.max(peak, ++now)
      await new Promise((resolve) => setTimeout(resolve, 20))
      now--
    }
    await Promise.all(Array.from({ length: 9 }, () => budget.spend(job)()))
    expect(peak).toBe(3)
  })

  test('a process whose clock is an hour ahead holds up nobody', async () => {
    const { url: redis_url } = await startRedis()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    onTestFinished(() => void vi.useRealTimers())
    expect(await budgetOf({ max_concurrency: 1 }, { redis_url }).spend(async () => 1)()).toEqual(E.right(1))
    vi.useRealTimers()
    expect(await budgetOf({ max_concurrency: 1 }, { redis_url }).spend(async () => 2)()).toEqual(E.right(2))
  })

  test('Redis dies: what is under way ends well, what waits is told, and a new Redis is found', async () => {
    const redis = await startRedis()
    const budget = budgetOf({ max_concurrency: 1 }, { redis_url: redis.url })
    let finish = () => undefined as unknown
    const underWay = budget.spend(
      () =>
        new Promise<string>((resolve) => {
          finish = () => resolve('done')
        }),
    )()
    await expect.poll(() => finish.toString()).toContain('done')
    const waiting = budget.spend(async () => 'never')()
    await redis.stop()
    finish()
    expect(await underWay).toEqual(E.right('done'))
    expect(await waiting).toMatchObject({ left: { _tag: 'Budget', cause: { _tag: 'Transient' } } })
    await startRedis(redis.port)
    await expect.poll(() => budget.spend(async () => 'again')(), { timeout: 10_000 }).toEqual(E.right('again'))
  })

  test('a closed budget answers what waits', async () => {
    const { url: redis_url } = await startRedis()
    const budget = budgetOf({ max_concurrency: 1 }, { redis_url, expiration: 60_000 })
    let begun = false
    void budget.spend(() => {
      begun = true
      return new Promise(() => undefined)
    })()
    await expect.poll(() => begun).toBe(true)
    const waiting = budget.spend(async () => 1)()
    await budget.close()
    for (const answer of [await waiting, await budget.spend(async () => 1)()])
      expect(answer).toMatchObject({ left: { _tag: 'Network', code: 'ABORTED' } })
  })
})
