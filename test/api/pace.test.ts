import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import { describe, expect, test } from 'vitest'
import { type AdaptiveRate, decreaseRate, increaseRate, initialRate, recordSend } from '../../connector/api/pace'
import { createThrottle } from '../../connector/api/throttle'
import { createFakeClock } from './clock'

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
