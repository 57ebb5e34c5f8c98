import { describe, expect, it } from 'vitest'
import { checkCommand } from '../../../connector/cli/check'
import { sourceCheckCommand } from '../../../connector/cli/feedback-source'
import { writeTempFile } from '../../support/files'
import { dayMs, type ObservedService, startObservedService } from '../../support/observed-service'
import { runCommand } from '../../support/run-command'
import { applicationCredentials, sandboxConfig, startSmallSandbox } from '../../support/sandbox'

type ToldFinding = { readonly finding: string; readonly known: boolean; readonly text: string; readonly value: unknown }

const fixed = { auth_type: 'access_token', access_token: 'not-for-anybody' }
const application = { auth_type: 'application', application_id: 'app', application_secret: 'S3CR3T' }

const checkConfig = async (config: object) => {
  const { status, stdout, stderr } = await runCommand(checkCommand, ['--config', writeTempFile(config), '--json'])
  const { failure, findings, warnings } = JSON.parse(stdout)
  const told = findings as ReadonlyArray<ToldFinding>
  return {
    status,
    stderr,
    failure,
    warnings,
    told,
    of: (name: string) => told.filter(({ finding }) => finding === name),
  }
}

/** The findings of a check of a service. */
const check = async (world: ObservedService, more: object = {}) => {
  const service = await startObservedService(world)
  const config = { base_url: service.url, credentials: fixed, start_date: '2024-01-01', ...more }
  return { ...(await checkConfig(config)), requests: service.countRequests() }
}

const valueOf = ([told]: ReadonlyArray<ToldFinding>) => (told?.value ?? {}) as Readonly<Record<string, number>>

const reversed = (n: number, count: number) => count - 1 - n
/** A permutation without any order. */
const shuffled = (n: number, count: number) => (n * 7919) % count

describe('check says of the export', () => {
  it.each<[string, ObservedService, object, Record<string, string>]>([
    [
      'that an empty account has nothing to read',
      { reviews: 0 },
      {},
      {
        reviews: '0 since start_date',
        order: 'unknown: there are no reviews',
        'first sync': 'nothing to read',
        'page size': 'asked for 1,000, got 0, and no more after it: unknown if the service clamps larger pages',
      },
    ],
    [
      'that there is one review',
      { reviews: 1 },
      {},
      { reviews: '1 since start_date', order: 'unknown: there is only one review' },
    ],
    [
      'that one review stands where an offset behind it is refused',
      { reviews: 1, beyondEnd: 'refused' },
      {},
      { reviews: '1 since start_date' },
    ],
    [
      'a clamp of 100 and the number of reviews behind it',
      { reviews: 150, clamp: 100 },
      {},
      {
        'page size': 'asked for 1,000, got 100 and there are more: the service clamps pages at 100',
        reviews: '150 since start_date',
        order: 'by modifiedTime, oldest first, as far as 150 rows show',
      },
    ],
    [
      'a clamp that only the echo tells',
      { reviews: 5, clamp: 100, echoesClamp: true },
      {},
      { 'page size': 'asked for 1,000, got 5: the service lowers limit to 100' },
    ],
    [
      'that limit is ignored',
      { reviews: 2000, ignoresLimit: true },
      { page_size: 50 },
      { 'page size': 'asked for 50, got 500: the service ignores limit' },
    ],
    ['that there is no clamp', { reviews: 60 }, { page_size: 20 }, { 'page size': 'asked for 20, got 20: no clamp' }],
    [
      'the order newest first',
      { reviews: 30, order: reversed },
      { page_size: 20 },
      { order: 'by modifiedTime, newest first, as far as 30 rows show', reviews: '30 since start_date' },
    ],
    [
      'that rows have no order',
      { reviews: 40, order: shuffled },
      {},
      { order: 'neither by modifiedTime nor by id; a run needs no order, as far as 40 rows show' },
    ],
    [
      'that offsets are refused beyond 10,000',
      { reviews: 30_000, depth: 10_000 },
      {},
      {
        reviews: expect.stringMatching(/^at least (8|9),\d{3} since start_date: the service refuses offset 1\d,\d{3}$/),
      },
    ],
    [
      'that an offset beyond the end has an old row',
      { reviews: 3000, beyondEnd: 'last row' },
      {},
      { reviews: expect.stringMatching(/^at least 2,000 since start_date: .* with a row of another offset$/) },
    ],
    [
      'the only reviews where offsets beyond the end repeat the last one',
      { reviews: 12, beyondEnd: 'last row' },
      {},
      { reviews: '12 since start_date', order: 'by modifiedTime, oldest first, as far as 12 rows show' },
    ],
  ])('%s', async (_, world, more, expected) => {
    const { told } = await check(world, more)
    const texts = Object.fromEntries(told.map(({ finding, text }) => [finding, text]))
    expect(texts).toMatchObject(expected)
  })

  it.each([3000, 48_213, 700_000])('a range that holds the number of reviews, %d', async (reviews) => {
    const { of, requests } = await check({ reviews, order: shuffled })
    const { at_least = 0, at_most = 0 } = valueOf(of('reviews'))
    expect([at_least <= reviews, reviews <= at_most, at_most <= 1.16 * at_least]).toEqual([true, true, true])
    expect(of('first sync')[0]).toMatchObject({
      known: true,
      text: expect.stringMatching(/^(about )?\d+ (s|min).*: \d+ pages of 1,000 at /),
    })
    expect(requests).toBeLessThanOrEqual(44)
  })

  it('at least so many, and why, where the service limits the rate while they are counted', async () => {
    const { of } = await check({ reviews: 30_000, refusedForRate: 9 })
    expect(of('reviews')[0]?.text).toMatch(/^at least [\d,]+ since start_date: the service asks to wait 60 s$/)
    expect(of('rate limit')[0]?.text).toMatch(/; \d+ of \d+ answers were 429$/)
    expect(of('first sync')[0]?.text).toMatch(/^at least /)
  })

  it('a first sync as slow as its configured rate', async () => {
    const { of } = await check({ reviews: 30_000, clamp: 100 }, { rate_limit: { requests_per_minute: 60 } })
    const { seconds_at_least } = valueOf(of('first sync'))
    expect(seconds_at_least).toBeGreaterThanOrEqual(270)
    expect(of('first sync')[0]?.text).toContain('rate_limit.requests_per_minute (60)')
  })
})

describe('check says of the service', () => {
  const at = (now: number, minutes: number) => new Date(now + minutes * 60_000).toISOString()
  it.each<[string, (now: number) => unknown, string]>([
    ['seconds', () => 1800, 'lives 30 min (the answer gives seconds), renewed after 25 min'],
    ['seconds as a text', () => '600', 'lives 10 min (the answer gives seconds), renewed after 8 min'],
    [
      'epoch seconds',
      (now) => Math.round(now / 1000) + 1800,
      'lives 30 min (the answer gives epoch seconds), renewed after 25 min',
    ],
    [
      'epoch milliseconds',
      (now) => now + 1_800_000,
      'lives 30 min (the answer gives epoch milliseconds), renewed after 25 min',
    ],
    ['a time with a zone', (now) => at(now, 30), 'lives 30 min (the answer gives a time), renewed after 25 min'],
    [
      'a time without a zone',
      (now) => at(now, 30).slice(0, 19).replace('T', ' '),
      'lives 30 min (the answer gives a time without a zone, read as UTC), renewed after 25 min',
    ],
    [
      'a time in the past',
      (now) => at(now, -60),
      'its lifetime is unknown, since the answer gives no expiry within a day, so it is renewed after 25 min',
    ],
    [
      'words',
      () => 'soon',
      'its lifetime is unknown, since the answer gives no expiry within a day, so it is renewed after 25 min',
    ],
    ['nothing', () => undefined, 'the answer gives no lifetime, so it is renewed after 25 min'],
  ])('how long a token lives whose expiry is %s', async (_, expiresIn, expected) => {
    const { of } = await check(
      { token: (now) => ({ accessToken: 'abc', status: { code: 200 }, expiresIn: expiresIn(now) }) },
      { credentials: application },
    )
    expect(of('token')).toMatchObject([{ known: true, text: `issued for form with appId and appSecret; ${expected}` }])
  })

  it('that the expiry of a fixed token is unknown', async () => {
    expect((await check({})).of('token')).toMatchObject([
      { known: false, text: expect.stringContaining('its expiry is unknown') },
    ])
  })

  it.each<[string, NonNullable<ObservedService['clock']> | null, boolean, RegExp, unknown]>([
    ['is right', 0, true, /^the same as here, to the second$/, 0],
    [
      'is 5 minutes ahead',
      300_000,
      true,
      /^the service's is (300|299|301) s ahead of the one here/,
      expect.any(Number),
    ],
    [
      'is an hour behind',
      -3_600_000,
      true,
      /^the service's is 3(600|599|601) s behind the one here/,
      expect.any(Number),
    ],
    ['is not told', null, false, /^unknown: no answer has a Date header/, null],
    ['jumps', (n) => n * 60_000, false, /^unknown: .* contradict each other$/, null],
  ])('that its clock %s', async (_, clock, known, text, value) => {
    expect((await check({ clock })).of('clock')).toEqual([
      { finding: 'clock', known, text: expect.stringMatching(text), value },
    ])
  })

  it.each<[Readonly<Record<string, string>>, string]>([
    [
      { 'X-RateLimit-Limit': '60', 'X-RateLimit-Remaining': '59' },
      'reported as x-ratelimit-limit: 60, x-ratelimit-remaining: 59',
    ],
    [{ 'X-Rate-Limit-Limit': '60' }, 'reported as x-rate-limit-limit: 60'],
    [{ RateLimit: '"default";r=50;t=30' }, 'reported as ratelimit: "default";r=50;t=30'],
    [{ 'RateLimit-Policy': '"default";q=100;w=60' }, 'reported as ratelimit-policy: "default";q=100;w=60'],
    [{ 'X-RateLimit-Limit': 'Mr. Smith (born 1970) <is> ill' }, 'no rate-limit headers in '],
    [{}, 'no rate-limit headers in '],
  ])('which rate limit its headers report: %j', async (headers, expected) => {
    expect((await check({ headers })).of('rate limit')[0]?.text).toContain(expected)
  })
})

describe('check says of entities', () => {
  const entities = { location_ids: ['1', '2', '7'], person_ids: ['2'] }

  it.each<[NonNullable<ObservedService['unknownEntity']>, string]>([
    ['left out', 'nothing is listed for it'],
    [404, 'status 404'],
    ['error in a 200', 'an error in the answer'],
  ])('which are unknown where such a request is answered: %s', async (unknownEntity, reason) => {
    const { of, warnings, status } = await check({ unknownEntity }, { entities })
    expect(of('entities')).toMatchObject([
      {
        text: `1 of 4 are unknown to the service: 7 in entities.location_ids (${reason})`,
        value: { total: 4, unknown: [{ key: 'entities.location_ids', id: '7' }], unasked: 0 },
      },
    ])
    expect(warnings).toContain(
      'entities.location_ids: the service does not know 7 ' +
        `(${reason}). Correct it or take it out; a run reads the others.`,
    )
    expect(status).toBe(0)
  })

  it('that it lists all', async () => {
    expect((await check({}, { entities: { location_ids: ['1', '2'] } })).of('entities')).toMatchObject([
      { text: 'the service lists 2 of 2' },
    ])
  })

  it('how many it did not ask for', async () => {
    const location_ids = Array.from({ length: 30 }, (_, n) => String(n + 1))
    const { of } = await check({ unknownEntity: 404 }, { entities: { location_ids } })
    expect(of('entities')[0]?.value).toMatchObject({ total: 30, unasked: 22 })
  })

  it('nothing where none is configured', async () => {
    const { of } = await check({})
    expect([of('entities'), of('windows')]).toEqual([[], []])
  })

  it.each<[string, ObservedService, boolean | null, RegExp]>([
    ['used, by the rows', {}, true, /: uses fromDate and toDate, as the rows show$/],
    ['ignored, by the rows', { windows: 'ignored' }, false, /: ignores fromDate and toDate, as the rows show$/],
    ['ignored, by the rows without an echo', { windows: 'ignored', echo: 'none' }, false, /as the rows show$/],
    ['not to be told without rows', { mentions: [] }, null, /unknown: the entity has no rows in the last 365 days/],
    [
      'not to be told by rows that every window has',
      { mentions: [365 * dayMs], windows: 'ignored', echo: 'none' },
      null,
      /unknown: /,
    ],
  ])('that windows are %s', async (_, world, used, text) => {
    const told = (await check(world, { entities: { location_ids: ['7', '1'] } })).of('windows')
    expect(told).toHaveLength(2)
    for (const { text: own, value, known } of told) {
      expect(own).toMatch(text)
      expect([known, (value as { used: boolean } | null)?.used ?? null]).toEqual([used !== null, used])
    }
    expect(told.map(({ text: own }) => own.slice(0, 17))).toEqual(['retrieve comments', 'retrieve reviews:'])
  })
})

describe('check warns', () => {
  it('nothing of a start_date in the future, which fails it, by the clock of the service', async () => {
    const tomorrow = new Date(Date.now() + dayMs).toISOString()
    const refused = await check({ reviews: 0 }, { start_date: tomorrow })
    expect(refused).toMatchObject({ status: 78, warnings: [] })
    expect(refused.failure.message).toContain(`start_date (${tomorrow}) lies in the future`)
    const later = (await check({ reviews: 0, clock: 2 * dayMs }, { start_date: tomorrow })).warnings
    expect(later.join()).not.toContain('in the future')
  })
})

describe('the requests of check', () => {
  it('are reported, and no more than a minute of the configured rate', async () => {
    const { of, requests, told } = await check({ reviews: 700_000 }, { rate_limit: { requests_per_minute: 12 } })
    expect(requests).toBeLessThanOrEqual(12)
    expect(of('requests')).toMatchObject([{ value: requests }])
    expect(of('reviews')[0]?.text).toMatch(/^at least .*: there was no time to check$/)
    expect(told.every(({ known, value }) => known === (value !== null))).toBe(true)
  })

  it('ask nothing further where the address is wrong', async () => {
    const { told } = await checkConfig({ base_url: 'http://127.0.0.1:1', credentials: fixed, start_date: '2024-01-01' })
    expect(told).toEqual([])
  })
})

describe.each(['specification', 'published'] as const)('check of a sandbox like the %s', (like) => {
  it('reports what it found out, in words, as JSON and as one message of a platform', async () => {
    const sandbox = await startSmallSandbox({ like, reviews: 1200 })
    const config = sandboxConfig(sandbox, {
      entities: { location_ids: ['1001', 'nowhere'], entity_ids: ['10'] },
      credentials: applicationCredentials(sandbox),
    })
    const { of, warnings, status } = await checkConfig(config)
    expect(status).toBe(0)
    expect(of('token')[0]?.text).toMatch(
      like === 'published'
        ? new RegExp(
            '^issued for form with appId and appSecret; lives 30 min .* ' +
              String.raw`without a zone, read as UTC\), renewed after 25 min$`,
          )
        : /^issued for form with appId and appSecret; lives 1 h 0 min \(the answer gives seconds\)/,
    )
    expect(of('reviews')).toMatchObject([{ text: '1,200 since start_date' }])
    expect(of('page size')).toMatchObject([{ text: 'asked for 1,000, got 1,000: no clamp' }])
    expect(of('order')).toMatchObject([{ value: 'modified_time_ascending' }])
    expect(of('clock')).toMatchObject([{ value: 0 }])
    expect(of('windows')).toMatchObject([
      { value: { operation: 'retrieve comments', used: true } },
      { value: { operation: 'retrieve reviews', used: like === 'specification' } },
    ])
    expect(of('entities')[0]?.text).toMatch(/^1 of 3 are unknown to the service: nowhere in entities\.location_ids/)
    expect(warnings.join(' ')).toContain('entities.location_ids: the service does not know nowhere')
    const path = writeTempFile(config)
    const words = await runCommand(checkCommand, ['--config', path])
    for (const { finding } of (await checkConfig(config)).told)
      expect(words.stdout).toMatch(new RegExp(`^${finding} `, 'm'))
    const lines = (await runCommand(sourceCheckCommand, ['--config', path])).stdout.trim().split('\n')
    expect(lines).toHaveLength(1)
    const { connectionStatus } = JSON.parse(lines[0] ?? '')
    expect(connectionStatus).toMatchObject({
      status: 'SUCCEEDED',
      message: expect.stringMatching(/Token: .*Clock: .*Order: .*Windows: .*Reviews: 1,200 since start_date\. .*\.$/),
    })
    expect(connectionStatus.message).not.toContain('\n')
  })
})
