import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseFaultList } from '../../../connector/sandbox/faults/plan'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../../connector/sandbox/start'

const running: Array<Sandbox> = []
const start = async (options: SandboxOptions): Promise<Sandbox> => {
  const sandbox = await startSandbox(options)
  running.push(sandbox)
  return sandbox
}
afterAll(async () => {
  for (const sandbox of running) await sandbox.close()
})

const reviews = '/api/reputation/v1/reviews'
const deleted = '/api/reputation/v1/deleted-reviews'
const epoch = '1970-01-01T00:00:00.000Z'

const ask = (sandbox: Sandbox, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(sandbox.url + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', accessToken: sandbox.accessToken, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

type Row = { readonly id: number; readonly modifiedTime: string; readonly [name: string]: unknown }
const page = async (sandbox: Sandbox, path: string, body: object) => {
  const response = await ask(sandbox, path, { modifiedTimeFrom: epoch, ...body })
  return (await response.json()) as { readonly reviews: ReadonlyArray<Row>; readonly filter: Record<string, unknown> }
}

const until = Date.parse('2026-06-01T00:00:00Z')

describe('an export', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await start({ reviews: 3000, until })
  })

  it('brings every review once, over pages', async () => {
    const pages = await Promise.all([0, 1000, 2000, 3000].map((offset) => page(sandbox, reviews, { offset })))
    expect(pages.map((one) => one.reviews.length)).toEqual([1000, 1000, 1000, 0])
    const times = pages.flatMap((one) => one.reviews.map(({ modifiedTime }) => modifiedTime))
    expect(times).toEqual([...times].sort())
    const { reviews: held } = await sandbox.truth()
    expect(held).toHaveLength(3000)
    expect(new Set(held.map(({ id }) => id)).size).toBe(3000)
  })

  it('serves ids beyond 2^53 as they are, and the same text as the truth', async () => {
    const text = await (
      await ask(sandbox, reviews, { modifiedTimeFrom: epoch, additionalFields: ['brand', 'visitRecordId'] })
    ).text()
    const { reviews: held } = await sandbox.truth()
    const large = held.filter(({ id }) => BigInt(id) > 2n ** 53n && text.includes(`{"id":${id},`))
    expect(large.length).toBeGreaterThan(100)
    for (const { json } of large) expect(text).toContain(json)
  })

  it('is made of reviews that use what the specification shows, without a null', async () => {
    const { reviews: held } = await sandbox.truth()
    const all = held.map(({ json }) => json).join('\n')
    expect(all).not.toContain('null')
    const named = [
      'surveyBarCode',
      'location',
      'provider',
      'source',
      'avatar',
      'mentionTime',
      'rating',
      'reviewScore',
      'contents',
    ]
    const others = [
      'taskDetails',
      'visitRecordId',
      'textAnalytics',
      'brand',
      'engagement',
      'engagements',
      'liabilities',
    ]
    const deep = [
      'ownerEmail',
      'ownerName',
      'closureComment',
      'overallCommentSentiment',
      'noOfSentiments',
      'npi',
      'severity',
    ]
    for (const name of [...named, ...others, ...deep]) expect(all).toContain(`"${name}":`)
    for (const { json } of held) JSON.parse(json)
  })

  it('serves what changed after a time, from sources, mentioned in a window', async () => {
    const { reviews: some } = await page(sandbox, reviews, { limit: 3 })
    const second = some[1]?.modifiedTime ?? ''
    const { reviews: later } = await page(sandbox, reviews, { modifiedTimeFrom: second, limit: 1 })
    expect(later[0]?.id).toBe(some[2]?.id)
    const { reviews: surveys } = await page(sandbox, reviews, { sources: [101] })
    expect(new Set(surveys.map(({ source }) => (source as { id: number }).id))).toEqual(new Set([101]))
    const between = { mentionTimeAfter: '2025-01-01T00:00:00.000Z', mentionTimeBefore: '2025-02-01T00:00:00.000Z' }
    const { reviews: january } = await page(sandbox, reviews, between)
    const { reviews: held } = await sandbox.truth()
    const wanted = held.filter(({ json }) => String(JSON.parse(json).mentionTime).startsWith('2025-01'))
    expect(january).toHaveLength(wanted.length)
    expect(wanted.length).toBeGreaterThan(20)
  })

  it('adds brand and visitRecordId only if asked', async () => {
    const { reviews: plain } = await page(sandbox, reviews, { limit: 50 })
    expect(plain.some((row) => 'brand' in row || 'visitRecordId' in row)).toBe(false)
    const { reviews: full } = await page(sandbox, reviews, { limit: 50, additionalFields: ['brand', 'visitRecordId'] })
    expect(full.every((row) => 'brand' in row && 'visitRecordId' in row)).toBe(true)
  })

  it('echoes the filter, with the defaults of what was not asked', async () => {
    const { filter } = await page(sandbox, reviews, {})
    expect(filter).toMatchObject({
      sources: [101, 202, 203, 307],
      modifiedTimeFrom: epoch,
      mentionTimeAfter: epoch,
      dateType: 'MODIFIED_TIME',
      offset: 0,
      limit: 1000,
      additionalFields: [],
    })
    expect((await page(sandbox, deleted, { offset: 2, limit: 3, sources: [101] })).filter).toEqual({
      clientId: 'sandbox',
      sources: [101],
      modifiedTimeFrom: epoch,
      offset: 2,
      limit: 3,
    })
  })

  it.each([
    ['no time', {}],
    ['a time of another pattern', { modifiedTimeFrom: '2025-01-01' }],
    ['a day that is not', { modifiedTimeFrom: '2025-02-30T00:00:00.000Z' }],
    ['limit 0', { modifiedTimeFrom: epoch, limit: 0 }],
    ['limit 1001', { modifiedTimeFrom: epoch, limit: 1001 }],
    ['a limit in words', { modifiedTimeFrom: epoch, limit: 'ten' }],
    ['offset -1', { modifiedTimeFrom: epoch, offset: -1 }],
    ['an unknown field', { modifiedTimeFrom: epoch, additionalFields: ['mood'] }],
    ['no JSON', '{'],
  ])('refuses %s with the error body', async (_, body) => {
    const response = await ask(sandbox, reviews, body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ status: { code: 400, message: expect.any(String) } })
  })

  it('passes over attributes that the operation does not have', async () => {
    const strange = { mood: 1, mentionTimeAfter: '2026-01-01T00:00:00.000Z', additionalFields: 5 }
    const { reviews: plain } = await page(sandbox, deleted, {})
    expect((await page(sandbox, deleted, strange)).reviews).toEqual(plain)
    expect(plain.length).toBeGreaterThan(0)
  })

  it('wants an access token, in the header of its group', async () => {
    expect((await ask(sandbox, reviews, { modifiedTimeFrom: epoch }, { accessToken: 'guess' })).status).toBe(401)
    const other = await fetch(sandbox.url + reviews, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Access-Token': sandbox.accessToken },
      body: JSON.stringify({ modifiedTimeFrom: epoch }),
    })
    expect(other.status).toBe(401)
  })

  it('exchanges the application id and secret for a token', async () => {
    const { applicationId, applicationSecret } = sandbox
    const exchange = (secret: string) =>
      fetch(sandbox.tokenUrl, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ applicationId, applicationSecret: secret }),
      })
    expect((await exchange('guess')).status).toBe(401)
    const { accessToken, expiresIn } = (await (await exchange(applicationSecret)).json()) as Record<string, unknown>
    expect(expiresIn).toBe(3600)
    expect(
      (await ask(sandbox, reviews, { modifiedTimeFrom: epoch }, { accessToken: String(accessToken) })).status,
    ).toBe(200)
  })
})

describe('the data', () => {
  it('is the same for the same seed, and another for another', async () => {
    const [one, two, three] = await Promise.all([
      start({ reviews: 200, until, seed: 1 }),
      start({ reviews: 200, until, seed: 1 }),
      start({ reviews: 200, until, seed: 2 }),
    ])
    expect(await one.truth()).toEqual(await two.truth())
    expect(await one.truth()).not.toEqual(await three.truth())
  })

  it('ends before now and has times that several reviews share', async () => {
    const before = Date.now()
    const { reviews: held } = await (await start({ reviews: 2000 })).truth()
    const times = held.map(({ modifiedTime }) => modifiedTime).sort()
    expect(Date.parse(times.at(-1) ?? '')).toBeLessThanOrEqual(before)
    expect(new Set(times).size).toBeLessThan(1900)
    expect(new Set(times).size).toBeGreaterThan(1000)
  })
})

describe('the order', () => {
  const firstIds = async (sandbox: Sandbox) => (await page(sandbox, reviews, {})).reviews.map(({ id }) => id)

  it('is by time backwards, or by id', async () => {
    const times = (await page(await start({ order: 'modified_desc' }), reviews, {})).reviews.map(
      (row) => row.modifiedTime,
    )
    expect(times).toEqual([...times].sort().reverse())
    const ids = await firstIds(await start({ order: 'id' }))
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
  })

  it('is new among equal times at every request, with ties', async () => {
    const sandbox = await start({ order: 'ties' })
    const [one, two] = [await page(sandbox, reviews, {}), await page(sandbox, reviews, {})]
    expect(one.reviews.map(({ modifiedTime }) => modifiedTime)).toEqual(
      two.reviews.map(({ modifiedTime }) => modifiedTime),
    )
    expect(one.reviews.map(({ id }) => id)).not.toEqual(two.reviews.map(({ id }) => id))
  })
})

describe('churn', () => {
  it('changes, deletes and adds after every page, at the time it happens', async () => {
    let now = Date.parse('2026-07-01T00:00:00Z')
    const sandbox = await start({ reviews: 100, until, churn: { change: 3, delete: 1, add: 2 }, now: () => now++ })
    const before = await sandbox.truth()
    await page(sandbox, reviews, {})
    const after = await sandbox.truth()
    const texts = new Map(before.reviews.map(({ id, json }) => [id, json]))
    expect(after.reviews).toHaveLength(101)
    expect(after.deleted.filter(({ modifiedTime }) => modifiedTime > '2026-07')).toHaveLength(1)
    const fresh = after.reviews.filter(({ modifiedTime }) => modifiedTime > '2026-07')
    expect(fresh.filter(({ id }) => !texts.has(id))).toHaveLength(2)
    const changed = after.reviews.filter(({ id, json }) => texts.has(id) && texts.get(id) !== json)
    expect(changed.every(({ modifiedTime }) => modifiedTime > '2026-07')).toBe(true)
    expect([2, 3]).toContain(changed.length)
    const gone = before.reviews.filter(({ id }) => !after.reviews.some((row) => row.id === id))
    const { reviews: told } = await page(sandbox, deleted, { modifiedTimeFrom: '2026-07-01T00:00:00.000Z' })
    expect(told.map(({ id }) => String(id))).toEqual(gone.map(({ id }) => id))
  })

  it('restores deleted reviews as they were, later', async () => {
    let now = Date.parse('2026-07-01T00:00:00Z')
    const sandbox = await start({ reviews: 50, until, now: () => now })
    const before = await sandbox.truth()
    await sandbox.churn({ delete: 3 })
    now += 60_000
    await sandbox.churn({ restore: 2 })
    const after = await sandbox.truth()
    expect(after.reviews).toHaveLength(49)
    expect(after.deleted).toHaveLength(before.deleted.length + 3)
    const texts = new Map(before.reviews.map(({ id, json }) => [id, json]))
    const back = after.reviews.filter(({ modifiedTime }) => modifiedTime === '2026-07-01T00:01:00.000Z')
    expect(back).toHaveLength(2)
    const timeless = (text: string | undefined) => text?.replace(/"modifiedTime":"[^"]*"/, '')
    for (const { id, json } of back) expect(timeless(json)).toBe(timeless(texts.get(id)))
    await sandbox.churn({ restore: 5 })
    expect((await sandbox.truth()).reviews.map(({ id }) => id)).toEqual(before.reviews.map(({ id }) => id))
  })
})

describe('faults', () => {
  it('strike the numbered requests once', async () => {
    const faults = parseFaultList('1=429,2=500,3=reset,4=cutjson,5=hang')
    if (E.isLeft(faults)) throw new Error(faults.left)
    const sandbox = await start({ faults: faults.right })
    const body = { modifiedTimeFrom: epoch }
    const limited = await ask(sandbox, reviews, body)
    expect([limited.status, limited.headers.get('Retry-After')]).toEqual([429, '1'])
    expect((await ask(sandbox, deleted, body)).status).toBe(500)
    await expect(ask(sandbox, reviews, body)).rejects.toThrow()
    await expect(ask(sandbox, reviews, body).then((cut) => cut.json())).rejects.toThrow(SyntaxError)
    const patience = new AbortController()
    const hung = fetch(sandbox.url + reviews, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', accessToken: sandbox.accessToken },
      body: JSON.stringify(body),
      signal: patience.signal,
    })
    while (sandbox.stats().exports < 5) await new Promise(setImmediate)
    patience.abort()
    await expect(hung).rejects.toThrow()
    expect((await ask(sandbox, reviews, body)).status).toBe(200)
    expect(sandbox.stats()).toMatchObject({ requests: { exportReviews: 5, exportDeletedReviews: 1 }, exports: 6 })
  })

  it.each(['x', '0=429', '1=burn'])('are not read from %s', (text) => expect(E.isLeft(parseFaultList(text))).toBe(true))
})
