import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { systemClock } from '../../../connector/api/http/clock'
import {
  type AdaptiveRate,
  createLocalLimiter,
  createThrottle,
  decreaseRate,
  increaseRate,
  initialRate,
  minInterval,
  recordSend,
} from '../../../connector/api/http/rate-limit'
import { createFakeClock } from '../../support/clock'

const immediateLimiter = {
  schedule:
    <A>(job: Task<A>) =>
    async () =>
      E.right(await job()),
}

/** A service that takes `limit` requests in each window; a window begins with the first request after the last. */
const windowedService = (limit: number, length: number, tells: boolean) => {
  let begin = Number.NEGATIVE_INFINITY
  let taken = 0
  return (now: number) => {
    if (now >= begin + length) {
      begin = now
      taken = 0
    }
    if (taken++ < limit) return undefined
    return { _tag: 'Http' as const, status: 429, message: '', ...(tells ? { retryAfter: begin + length - now } : {}) }
  }
}

/** A service that takes a request every `every` milliseconds, and `burst` at once after a rest. */
const tokenBucketService = (every: number, burst: number) => {
  let tokens = burst
  let last = 0
  return (now: number) => {
    tokens = Math.min(burst, tokens + (now - last) / every)
    last = now
    if (tokens < 1) return { _tag: 'Http' as const, status: 429, message: '' }
    tokens--
    return undefined
  }
}

/** Sends `count` requests one after another, each taking `latency`, and again, after the waits of the retry policy, what was refused. */
const runRequests = async (service: ReturnType<typeof windowedService>, count: number, latency: number) => {
  const { clock, pass } = createFakeClock()
  const { run } = createThrottle(immediateLimiter, clock, 600_000)
  let good = 0
  let bad = 0
  let inARow = 0
  while (good < count) {
    const answer = await run(async () => {
      const error = service(clock.ticks())
      pass(latency)
      return error === undefined ? E.right(1) : E.left(error)
    })()
    if (E.isRight(answer)) {
      good++
      inARow = 0
    } else {
      bad++
      pass(Math.min(60_000, 375 * 2 ** inARow++))
    }
  }
  return { perSecond: good / (clock.ticks() / 1000), share: bad / (good + bad) }
}

describe('without a configured limit the rate is found, and kept near', () => {
  test.each([
    ['10 a second, strictly', tokenBucketService(100, 1), 10],
    ['10 a second, with bursts', tokenBucketService(100, 20), 10],
    ['1 a second', tokenBucketService(1000, 5), 1],
    ['50 a second', tokenBucketService(20, 10), 50],
    ['60 a minute', windowedService(60, 60_000, false), 1],
    ['600 a minute, telling when to come back', windowedService(600, 60_000, true), 10],
  ])('%s', async (_, service, limit) => {
    const { perSecond, share } = await runRequests(service, 2000, 5)
    expect(perSecond).toBeGreaterThan(limit * 0.8)
    expect(share).toBeLessThan(0.1)
  })

  test('where there is no limit nothing waits', async () => {
    const { perSecond, share } = await runRequests(() => undefined, 1000, 5)
    expect(perSecond).toBeCloseTo(200)
    expect(share).toBe(0)
  })

  test('a limit that is lifted is noticed', async () => {
    const first = tokenBucketService(1000, 1)
    const second = tokenBucketService(10, 1)
    let count = 0
    const { perSecond } = await runRequests((now) => (count++ < 300 ? first(now) : second(now)), 5000, 2)
    expect(perSecond).toBeGreaterThan(3)
  })
})

test('several refusals of requests sent together lower the rate once', () => {
  const sent = [0, 10, 20, 30].reduce(recordSend, initialRate(0))
  const once = decreaseRate(sent, 10, 40)
  expect(once.interval).toBeGreaterThan(10)
  expect(decreaseRate(once, 20, 41)).toBe(once)
  expect(decreaseRate(once, 50, 60)).toBe(once)
  const open = increaseRate(once, 60, 70)
  expect(decreaseRate(open, 80, 90).interval).toBeGreaterThan(open.interval)
})

test('the rate found comes back after fifty answers, and goes on', () => {
  const sent = [0, 10, 20, 30].reduce(recordSend, initialRate(0))
  const lowered = decreaseRate(sent, 30, 40)
  const answered = (pace: AdaptiveRate) => increaseRate(pace, 40, 50)
  const later = Array.from({ length: 51 }).reduce(answered, lowered)
  expect(lowered.interval).toBeCloseTo(10 / 0.8)
  expect(later.interval).toBeCloseTo(10)
  expect(answered(later).interval).toBeLessThan(later.interval)
})

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
