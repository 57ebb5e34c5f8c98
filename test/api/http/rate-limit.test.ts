import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import {
  type AdaptiveRate,
  createLocalLimiter,
  createThrottle,
  decreaseRate,
  increaseRate,
  initialRate,
  minInterval,
  type RateLimit,
  recordSend,
  systemClock,
} from '../../../connector/api/http/rate-limit'
import { defined } from '../../../connector/cdk/schema'
import { createFakeClock } from '../../support/clock'
import { draws } from '../../support/draws'

/** Lets every request leave at once. */
const unlimitedLimiter = {
  schedule:
    <A>(job: Task<A>) =>
    async () =>
      E.right(await job()),
}

const rateLimitError = (retryAfter?: number): ApiError => ({
  _tag: 'Http',
  status: 429,
  message: '',
  ...defined({ retryAfter }),
})

/**
 * A service that accepts `limit` requests in each window; a window begins with the first request after the previous
 * one.
 */
const windowedService = (limit: number, length: number, sendsRetryAfter: boolean) => {
  let start = Number.NEGATIVE_INFINITY
  let accepted = 0
  return (now: number) => {
    if (now >= start + length) {
      start = now
      accepted = 0
    }
    if (accepted++ < limit) return undefined
    return rateLimitError(sendsRetryAfter ? start + length - now : undefined)
  }
}

/** A service that accepts a request every `interval` milliseconds, and `burst` at once after a pause. */
const tokenBucketService = (interval: number, burst: number) => {
  let tokens = burst
  let last = 0
  return (now: number) => {
    tokens = Math.min(burst, tokens + (now - last) / interval)
    last = now
    if (tokens < 1) return rateLimitError()
    tokens--
    return undefined
  }
}

/**
 * Sends `count` requests one after another, each taking `latency`; a refused one again after the delays of the retry
 * policy.
 */
const runRequests = async (service: ReturnType<typeof windowedService>, count: number, latency: number) => {
  const { clock, pass } = createFakeClock()
  const { run } = createThrottle(unlimitedLimiter, clock, 600_000)
  let accepted = 0
  let refused = 0
  let refusedInARow = 0
  while (accepted < count) {
    const answer = await run(async () => {
      const error = service(clock.ticks())
      pass(latency)
      return error === undefined ? E.right(1) : E.left(error)
    })()
    if (E.isRight(answer)) {
      accepted++
      refusedInARow = 0
    } else {
      refused++
      pass(Math.min(60_000, 375 * 2 ** refusedInARow++))
    }
  }
  return { perSecond: accepted / (clock.ticks() / 1000), refusedShare: refused / (accepted + refused) }
}

describe('without a configured rate the client finds the rate of the service and stays near it', () => {
  test.each([
    ['10 a second, strictly', tokenBucketService(100, 1), 10],
    ['10 a second, with bursts', tokenBucketService(100, 20), 10],
    ['1 a second', tokenBucketService(1000, 5), 1],
    ['50 a second', tokenBucketService(20, 10), 50],
    ['60 a minute', windowedService(60, 60_000, false), 1],
    ['600 a minute, with Retry-After', windowedService(600, 60_000, true), 10],
  ])('%s', async (_, service, limit) => {
    const { perSecond, refusedShare } = await runRequests(service, 2000, 5)
    expect(perSecond).toBeGreaterThan(limit * 0.8)
    expect(refusedShare).toBeLessThan(0.1)
  })

  test('nothing waits where the service has no limit', async () => {
    const { perSecond, refusedShare } = await runRequests(() => undefined, 1000, 5)
    expect(perSecond).toBeCloseTo(200)
    expect(refusedShare).toBe(0)
  })

  test('a pause that the service asks for does not count as its rate', async () => {
    const { clock } = createFakeClock()
    const { run } = createThrottle(unlimitedLimiter, clock, 600_000)
    const outage: ApiError = { _tag: 'Http', status: 503, message: '', retryAfter: 500_000 }
    const answers = [E.left(outage), E.left(rateLimitError(1_000)), ...Array.from({ length: 10 }, () => E.right(1))]
    for (const answer of answers) await run(async () => answer)()
    expect(clock.ticks()).toBeGreaterThanOrEqual(501_000)
    expect(clock.ticks()).toBeLessThan(502_000)
  })

  test('the rate rises after the service lifts its limit', async () => {
    const first = tokenBucketService(1000, 1)
    const second = tokenBucketService(10, 1)
    let count = 0
    const { perSecond } = await runRequests((now) => (count++ < 300 ? first(now) : second(now)), 5000, 2)
    expect(perSecond).toBeGreaterThan(3)
  })
})

test('refusals of requests sent together lower the rate once', () => {
  const sent = [0, 10, 20, 30].reduce(recordSend, initialRate(0))
  const once = decreaseRate(sent, 10, 40)
  expect(once.interval).toBeGreaterThan(10)
  expect(decreaseRate(once, 20, 41)).toBe(once)
  expect(decreaseRate(once, 50, 60)).toBe(once)
  const accepted = increaseRate(once, 60, 70)
  expect(decreaseRate(accepted, 80, 90).interval).toBeGreaterThan(accepted.interval)
})

test('a lowered rate is back after fifty answers and goes on to rise', () => {
  const sent = [0, 10, 20, 30].reduce(recordSend, initialRate(0))
  const lowered = decreaseRate(sent, 30, 40)
  const accept = (rate: AdaptiveRate) => increaseRate(rate, 40, 50)
  const later = Array.from({ length: 51 }).reduce(accept, lowered)
  expect(lowered.interval).toBeCloseTo(10 / 0.8)
  expect(later.interval).toBeCloseTo(10)
  expect(accept(later).interval).toBeLessThan(later.interval)
})

/** The highest number of `times` in any stretch of `length`, its ends included. */
const maxInWindow = (times: ReadonlyArray<number>, length: number): number =>
  Math.max(...times.map((from) => times.filter((time) => time >= from && time <= from + length).length))

const gaps = (times: ReadonlyArray<number>): ReadonlyArray<number> =>
  times.slice(1).map((time, index) => time - (times[index] ?? 0))

const sleep = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const startLimiter = (limit: RateLimit) => {
  const limiter = createLocalLimiter(limit)
  onTestFinished(limiter.close)
  return limiter
}

const useFakeTime = () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
}

describe('a configured rate', () => {
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
      draws(100),
    )
  })

  test('is used up to nine tenths at least', () => {
    for (const perMinute of [1, 2, 3, 10, 60, 600, 6000])
      expect(60_000 / minInterval(perMinute)).toBeGreaterThan(perMinute * 0.9)
  })

  test('holds for all requests of the client together', async () => {
    const limiter = startLimiter({ requests_per_minute: 1500, max_concurrency: 4 })
    const { run } = createThrottle(limiter, systemClock(new AbortController().signal), 1000)
    const sendTimes: number[] = []
    await Promise.all(Array.from({ length: 10 }, () => run(async () => E.right(sendTimes.push(performance.now())))()))
    expect(sendTimes).toHaveLength(10)
    expect(Math.min(...gaps(sendTimes))).toBeGreaterThanOrEqual(minInterval(1500))
  })

  test('is never exceeded in any minute, however requests come and whatever they take', async () => {
    useFakeTime()
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(
          fc.record({
            after: fc.oneof(fc.constant(0), fc.nat(3), fc.integer({ min: 0, max: 90_000 })),
            duration: fc.oneof(fc.constant(0), fc.nat(50), fc.integer({ min: 0, max: 70_000 })),
          }),
          { minLength: 20, maxLength: 60 },
        ),
        async (requests_per_minute, max_concurrency, requests) => {
          const limiter = createLocalLimiter({ requests_per_minute, max_concurrency })
          const sendTimes: number[] = []
          let underWay = 0
          const send = async (duration: number) => {
            underWay += 1
            expect(underWay).toBeLessThanOrEqual(max_concurrency)
            sendTimes.push(performance.now())
            await sleep(duration)
            underWay -= 1
          }
          const all = requests.reduce<{ readonly at: number; readonly sent: ReadonlyArray<Promise<unknown>> }>(
            ({ at, sent }, { after, duration }) => ({
              at: at + after,
              sent: [...sent, sleep(at + after).then(limiter.schedule(() => send(duration)))],
            }),
            { at: 0, sent: [] },
          ).sent
          await vi.runAllTimersAsync()
          await Promise.all(all)
          await limiter.close()
          expect(sendTimes).toHaveLength(requests.length)
          expect(maxInWindow(sendTimes, 60_000)).toBeLessThanOrEqual(requests_per_minute)
        },
      ),
      draws(60),
    )
  })

  test.each([
    ['back', -3_600_000],
    ['forward', 3_600_000],
  ])('holds, and delays nothing, where the wall clock is set %s by an hour', async (_, correction) => {
    useFakeTime()
    const limiter = startLimiter({ requests_per_minute: 60, max_concurrency: 2 })
    const start = performance.now()
    const sendTimes: number[] = []
    const all = Array.from({ length: 6 }, () => limiter.schedule(async () => sendTimes.push(performance.now()))())
    await vi.advanceTimersByTimeAsync(2500)
    vi.setSystemTime(Date.now() + correction)
    await vi.runAllTimersAsync()
    await Promise.all(all)
    expect(sendTimes).toHaveLength(6)
    expect(Math.min(...gaps(sendTimes))).toBeGreaterThanOrEqual(minInterval(60))
    expect((sendTimes.at(-1) ?? 0) - start).toBeLessThan(6 * minInterval(60))
  })

  test('holds wherever the wall clock is set forward between two requests', async () => {
    useFakeTime()
    for (let at = 0; at <= minInterval(600) + 5; at += 1) {
      const limiter = createLocalLimiter({ requests_per_minute: 600, max_concurrency: 1 })
      const sendTimes: number[] = []
      const all = Array.from({ length: 5 }, () => limiter.schedule(async () => sendTimes.push(performance.now()))())
      await vi.advanceTimersByTimeAsync(150 + at)
      vi.setSystemTime(Date.now() + 5000)
      await vi.runAllTimersAsync()
      await Promise.all(all)
      await limiter.close()
      expect(Math.min(...gaps(sendTimes)), `after ${at} ms`).toBeGreaterThanOrEqual(minInterval(600))
    }
  })

  test('holds after the process stood still while many requests waited', async () => {
    const limiter = startLimiter({ requests_per_minute: 1200, max_concurrency: 8 })
    const sendTimes: number[] = []
    const all = Array.from({ length: 8 }, () => limiter.schedule(async () => sendTimes.push(performance.now()))())
    await all[1]
    const stillUntil = performance.now() + 300
    while (performance.now() < stillUntil);
    await Promise.all(all)
    expect(sendTimes).toHaveLength(8)
    expect(Math.min(...gaps(sendTimes))).toBeGreaterThanOrEqual(minInterval(1200))
  })
})

describe('max_concurrency', () => {
  test.each([[undefined], [60_000]])(
    'is the most that is ever under way, and is reached (requests_per_minute: %s)',
    async (requests_per_minute) => {
      const limiter = startLimiter({ max_concurrency: 3, ...defined({ requests_per_minute }) })
      let underWay = 0
      let peak = 0
      const job = async () => {
        peak = Math.max(peak, ++underWay)
        await sleep(30)
        underWay--
      }
      await Promise.all(Array.from({ length: 12 }, () => limiter.schedule(job)()))
      expect(peak).toBe(3)
    },
  )

  test('lets the first to come go first, and the next after a job that failed', async () => {
    const limiter = startLimiter({ max_concurrency: 1 })
    const order: number[] = []
    const failed = limiter.schedule(() => Promise.reject(new Error('broken')))()
    const all = [1, 2, 3].map((name) => limiter.schedule(async () => order.push(name))())
    await expect(failed).rejects.toThrow('broken')
    await Promise.all(all)
    expect(order).toEqual([1, 2, 3])
  })
})

describe('a closed limiter', () => {
  test.each([
    ['its rate', { requests_per_minute: 1, max_concurrency: 2 }],
    ['room', { max_concurrency: 1 }],
  ])('refuses what waits for %s, and what comes later', async (_, limit) => {
    const limiter = createLocalLimiter(limit)
    let hasStarted = false
    let finish = (_: string): void => expect.unreachable()
    const first = limiter.schedule(() => {
      hasStarted = true
      return new Promise<string>((resolve) => {
        finish = resolve
      })
    })()
    await expect.poll(() => hasStarted).toBe(true)
    const waiting = [limiter.schedule(async () => 2)(), limiter.schedule(async () => 2)()]
    await sleep(20)
    await limiter.close()
    for (const answer of [...(await Promise.all(waiting)), await limiter.schedule(async () => 3)()])
      expect(answer).toMatchObject({ left: { _tag: 'Network', code: 'ABORTED' } })
    finish('answered')
    expect(await first).toEqual(E.right('answered'))
  })
})

describe('Retry-After', () => {
  test('delays every request, not only the refused one', async () => {
    const { clock, waits } = createFakeClock()
    const { run } = createThrottle(unlimitedLimiter, clock, 600_000)
    const sendTimes: number[] = []
    await run(async () => E.left(rateLimitError(30_000)))()
    await run(async () => E.right(sendTimes.push(clock.ticks())))()
    expect(waits[0]).toBe(30_000)
    expect(sendTimes).toHaveLength(1)
    expect(clock.ticks()).toBeGreaterThanOrEqual(30_000)
  })

  test('delays also a request that already waited in the limiter', async () => {
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
    const sendTimes: number[] = []
    const refused = run(async () => E.left(rateLimitError(30_000)))
    meanwhile = async () => {
      meanwhile = async () => undefined
      await refused()
    }
    await run(async () => E.right(sendTimes.push(clock.ticks())))()
    expect(sendTimes).toHaveLength(1)
    expect(clock.ticks()).toBeGreaterThanOrEqual(30_000)
  })

  test('delays nothing where it is longer than the longest allowed wait', async () => {
    const { clock, waits } = createFakeClock()
    const { run } = createThrottle(unlimitedLimiter, clock, 600_000)
    await run(async () => E.left(rateLimitError(601_000)))()
    await run(async () => E.right(1))()
    expect(Math.max(0, ...waits)).toBeLessThan(10_000)
  })
})
