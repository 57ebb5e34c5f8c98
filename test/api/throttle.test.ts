import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createLocalLimiter, minInterval } from '../../connector/api/budget'
import { systemClock } from '../../connector/api/clock'
import type { ApiError } from '../../connector/api/error'
import { createThrottle } from '../../connector/api/throttle'
import { createFakeClock } from './clock'

const rateLimitError = (retryAfter?: number): ApiError => ({
  _tag: 'Http',
  status: 429,
  message: '',
  ...(retryAfter === undefined ? {} : { retryAfter }),
})
const unlimitedLimiter = {
  schedule:
    <A>(job: Task<A>) =>
    async () =>
      E.right(await job()),
}

/** The most of `times` that any stretch of `length` holds, its ends included. */
const maxInWindow = (times: ReadonlyArray<number>, length: number): number =>
  Math.max(...times.map((from) => times.filter((time) => time >= from && time <= from + length).length))

describe('a configured limit', () => {
  test('is never exceeded in any minute, even where one request is slow on its way and the next is fast', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 50, maxLength: 200 }),
        (perMinute, delays) => {
          const step = minInterval(perMinute)
          const from = Math.max(0, perMinute - 20)
          const arrived = delays.map((delay, index) => (index < 25 ? index : from + index) * step + delay)
          expect(maxInWindow(arrived, 60_000)).toBeLessThanOrEqual(perMinute)
        },
      ),
      { seed: 20261121 },
    )
  })

  test('is nearly used up', () => {
    for (const perMinute of [1, 2, 3, 10, 60, 600, 6000])
      expect(60_000 / minInterval(perMinute)).toBeGreaterThan(perMinute * 0.9)
  })

  test('holds for all that share the budget', async () => {
    const budget = createLocalLimiter({ requests_per_minute: 1500, max_concurrency: 4 })
    onTestFinished(budget.close)
    const { run } = createThrottle(budget, systemClock(new AbortController().signal), 1000)
    const left: number[] = []
    await Promise.all(Array.from({ length: 10 }, () => run(async () => E.right(left.push(performance.now())))()))
    expect(left).toHaveLength(10)
    const last = (left.at(-1) ?? 0) - (left[0] ?? 0)
    expect(last).toBeGreaterThan(8 * minInterval(1500))
  })

  test('is never exceeded in any minute, however requests come and whatever they take', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(
          fc.record({
            after: fc.oneof(fc.constant(0), fc.nat(3), fc.integer({ min: 0, max: 90_000 })),
            takes: fc.oneof(fc.constant(0), fc.nat(50), fc.integer({ min: 0, max: 70_000 })),
          }),
          { minLength: 20, maxLength: 60 },
        ),
        async (requests_per_minute, max_concurrency, requests) => {
          const budget = createLocalLimiter({ requests_per_minute, max_concurrency })
          const left: number[] = []
          const wait = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))
          let underWay = 0
          const send = async (takes: number) => {
            underWay += 1
            expect(underWay).toBeLessThanOrEqual(max_concurrency)
            left.push(performance.now())
            await wait(takes)
            underWay -= 1
          }
          const all = requests.reduce<{ readonly at: number; readonly sent: ReadonlyArray<Promise<unknown>> }>(
            ({ at, sent }, { after, takes }) => ({
              at: at + after,
              sent: [...sent, wait(at + after).then(budget.schedule(() => send(takes)))],
            }),
            { at: 0, sent: [] },
          ).sent
          await vi.runAllTimersAsync()
          await Promise.all(all)
          await budget.close()
          expect(left).toHaveLength(requests.length)
          expect(maxInWindow(left, 60_000)).toBeLessThanOrEqual(requests_per_minute)
        },
      ),
      { seed: 20261121, numRuns: 60 },
    )
  })

  test('no more are under way than allowed', async () => {
    const budget = createLocalLimiter({ max_concurrency: 3 })
    onTestFinished(budget.close)
    let now = 0
    let peak = 0
    const job = async () => {
      peak = Math.max(peak, ++now)
      await new Promise((resolve) => setTimeout(resolve, 5))
      now--
    }
    await Promise.all(Array.from({ length: 12 }, () => budget.schedule(job)()))
    expect(peak).toBe(3)
  })
})

describe('a closed budget', () => {
  test('answers what waits, and what comes later', async () => {
    const budget = createLocalLimiter({ requests_per_minute: 1, max_concurrency: 1 })
    expect(await budget.schedule(async () => 1)()).toEqual(E.right(1))
    const waiting = budget.schedule(async () => 2)()
    await budget.close()
    for (const answer of [await waiting, await budget.schedule(async () => 3)()])
      expect(answer).toMatchObject({ left: { _tag: 'Network', code: 'ABORTED' } })
  })
})

describe('Retry-After', () => {
  test('holds back every request, not only the one refused', async () => {
    const { clock, waits } = createFakeClock()
    const { run } = createThrottle(unlimitedLimiter, clock, 600_000)
    const left: number[] = []
    await run(async () => E.left(rateLimitError(30_000)))()
    await run(async () => E.right(left.push(clock.ticks())))()
    expect(waits[0]).toBe(30_000)
    expect(left).toHaveLength(1)
    expect(clock.ticks()).toBeGreaterThanOrEqual(30_000)
  })

  test('also one whose turn had come already', async () => {
    const { clock } = createFakeClock()
    const { run } = createThrottle(
      {
        schedule: (job) => async () => {
          await meanwhile()
          return E.right(await job())
        },
      },
      clock,
      600_000,
    )
    let meanwhile = async () => undefined as unknown
    const left: number[] = []
    const refused = run(async () => E.left(rateLimitError(30_000)))
    meanwhile = async () => {
      meanwhile = async () => undefined
      await refused()
    }
    await run(async () => E.right(left.push(clock.ticks())))()
    expect(left).toHaveLength(1)
    expect(clock.ticks()).toBeGreaterThanOrEqual(30_000)
  })

  test('longer than anybody may wait holds back nobody', async () => {
    const { clock, waits } = createFakeClock()
    const { run } = createThrottle(unlimitedLimiter, clock, 600_000)
    await run(async () => E.left(rateLimitError(601_000)))()
    await run(async () => E.right(1))()
    expect(Math.max(0, ...waits)).toBeLessThan(10_000)
  })
})
