import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseFaultList } from '../../../connector/sandbox/faults/plan'
import { exportOrders } from '../../../connector/sandbox/operations/exports'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import {
  epochTime,
  operationPaths,
  postJson,
  readJsonAnswer,
  requestToken,
  startSmallSandbox,
} from '../../support/sandbox'

const { exportReviews, exportDeletedReviews } = operationPaths

type Row = { readonly id: number; readonly modifiedTime: string; readonly [name: string]: unknown }
type Page = { readonly reviews: ReadonlyArray<Row>; readonly filter: Record<string, unknown> }
const requestPage = (sandbox: Sandbox, path: string, body: object) =>
  readJsonAnswer<Page>(postJson(sandbox, path, { modifiedTimeFrom: epochTime, ...body }))

const until = Date.parse('2026-06-01T00:00:00Z')

describe('an export', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await startSandbox({ reviews: 3000, until })
  })
  afterAll(() => sandbox.close())

  it('has every review once over all pages', async () => {
    const pages = await Promise.all(
      [0, 1000, 2000, 3000].map((offset) => requestPage(sandbox, exportReviews, { offset })),
    )
    expect(pages.map((one) => one.reviews.length)).toEqual([1000, 1000, 1000, 0])
    const times = pages.flatMap((one) => one.reviews.map(({ modifiedTime }) => modifiedTime))
    expect(times).toEqual([...times].sort())
    const { reviews } = await sandbox.truth()
    expect(reviews).toHaveLength(3000)
    expect(new Set(reviews.map(({ id }) => id)).size).toBe(3000)
  })

  it('has exact ids beyond 2^53, and the same text as the truth', async () => {
    const text = await (
      await postJson(sandbox, exportReviews, {
        modifiedTimeFrom: epochTime,
        additionalFields: ['brand', 'visitRecordId'],
      })
    ).text()
    const { reviews } = await sandbox.truth()
    const large = reviews.filter(({ id }) => BigInt(id) > 2n ** 53n && text.includes(`{"id":${id},`))
    expect(large.length).toBeGreaterThan(100)
    for (const { json } of large) expect(text).toContain(json)
  })

  it('has reviews with every attribute of the specification, and no null', async () => {
    const { reviews } = await sandbox.truth()
    const all = reviews.map(({ json }) => json).join('\n')
    expect(all).not.toContain('null')
    const common = [
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
    const optional = [
      'taskDetails',
      'visitRecordId',
      'textAnalytics',
      'brand',
      'engagement',
      'engagements',
      'liabilities',
    ]
    const nested = [
      'ownerEmail',
      'ownerName',
      'closureComment',
      'overallCommentSentiment',
      'noOfSentiments',
      'npi',
      'severity',
    ]
    for (const name of [...common, ...optional, ...nested]) expect(all).toContain(`"${name}":`)
    for (const { json } of reviews) JSON.parse(json)
  })

  it('filters by modification time, sources and mention time', async () => {
    const { reviews: first } = await requestPage(sandbox, exportReviews, { limit: 3 })
    const second = first[1]?.modifiedTime ?? ''
    const { reviews: later } = await requestPage(sandbox, exportReviews, { modifiedTimeFrom: second, limit: 1 })
    expect(later[0]?.id).toBe(first[2]?.id)
    const { reviews: surveys } = await requestPage(sandbox, exportReviews, { sources: [101] })
    expect(new Set(surveys.map(({ source }) => (source as { id: number }).id))).toEqual(new Set([101]))
    const between = { mentionTimeAfter: '2025-01-01T00:00:00.000Z', mentionTimeBefore: '2025-02-01T00:00:00.000Z' }
    const { reviews: january } = await requestPage(sandbox, exportReviews, between)
    const { reviews } = await sandbox.truth()
    const expected = reviews.filter(({ json }) => String(JSON.parse(json).mentionTime).startsWith('2025-01'))
    expect(january).toHaveLength(expected.length)
    expect(expected.length).toBeGreaterThan(20)
  })

  it('has brand and visitRecordId only if requested', async () => {
    const { reviews: plain } = await requestPage(sandbox, exportReviews, { limit: 50 })
    expect(plain.some((row) => 'brand' in row || 'visitRecordId' in row)).toBe(false)
    const { reviews: full } = await requestPage(sandbox, exportReviews, {
      limit: 50,
      additionalFields: ['brand', 'visitRecordId'],
    })
    expect(full.every((row) => 'brand' in row && 'visitRecordId' in row)).toBe(true)
  })

  it('echoes the filter, with defaults for missing filters', async () => {
    const { filter } = await requestPage(sandbox, exportReviews, {})
    expect(filter).toMatchObject({
      sources: [101, 202, 203, 307],
      modifiedTimeFrom: epochTime,
      mentionTimeAfter: epochTime,
      dateType: 'MODIFIED_TIME',
      offset: 0,
      limit: 1000,
      additionalFields: [],
    })
    expect((await requestPage(sandbox, exportDeletedReviews, { offset: 2, limit: 3, sources: [101] })).filter).toEqual({
      clientId: 'sandbox',
      sources: [101],
      modifiedTimeFrom: epochTime,
      offset: 2,
      limit: 3,
    })
  })

  it.each([
    ['no time', {}],
    ['a time of another pattern', { modifiedTimeFrom: '2025-01-01' }],
    ['a date that does not exist', { modifiedTimeFrom: '2025-02-30T00:00:00.000Z' }],
    ['limit 0', { modifiedTimeFrom: epochTime, limit: 0 }],
    ['limit 1001', { modifiedTimeFrom: epochTime, limit: 1001 }],
    ['a limit in words', { modifiedTimeFrom: epochTime, limit: 'ten' }],
    ['offset -1', { modifiedTimeFrom: epochTime, offset: -1 }],
    ['an unknown field', { modifiedTimeFrom: epochTime, additionalFields: ['mood'] }],
    ['no JSON', '{'],
  ])('refuses %s with the error body', async (_, body) => {
    const response = await postJson(sandbox, exportReviews, body)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ status: { code: 400, message: expect.any(String) } })
  })

  it('ignores attributes that the operation does not have', async () => {
    const ignored = { mood: 1, mentionTimeAfter: '2026-01-01T00:00:00.000Z', additionalFields: 5 }
    const { reviews: plain } = await requestPage(sandbox, exportDeletedReviews, {})
    expect((await requestPage(sandbox, exportDeletedReviews, ignored)).reviews).toEqual(plain)
    expect(plain.length).toBeGreaterThan(0)
  })

  it('needs an access token in the header of its group', async () => {
    expect(
      (await postJson(sandbox, exportReviews, { modifiedTimeFrom: epochTime }, { accessToken: 'guess' })).status,
    ).toBe(401)
    const other = await fetch(sandbox.url + exportReviews, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Access-Token': sandbox.accessToken },
      body: JSON.stringify({ modifiedTimeFrom: epochTime }),
    })
    expect(other.status).toBe(401)
  })

  it('accepts a token that was exchanged for the application id and secret', async () => {
    expect((await requestToken(sandbox, 'guess')).status).toBe(401)
    const { accessToken, expiresIn } = await readJsonAnswer<Record<string, unknown>>(requestToken(sandbox))
    expect(expiresIn).toBe(3600)
    expect(
      (await postJson(sandbox, exportReviews, { modifiedTimeFrom: epochTime }, { accessToken: String(accessToken) }))
        .status,
    ).toBe(200)
  })
})

describe('the generated data', () => {
  it('is the same for the same seed, and different for another seed', async () => {
    const [one, two, three] = await Promise.all([
      startSmallSandbox({ reviews: 200, until, seed: 1 }),
      startSmallSandbox({ reviews: 200, until, seed: 1 }),
      startSmallSandbox({ reviews: 200, until, seed: 2 }),
    ])
    expect(await one.truth()).toEqual(await two.truth())
    expect(await one.truth()).not.toEqual(await three.truth())
  })

  it('ends before now and has equal times of several reviews', async () => {
    const before = Date.now()
    const { reviews } = await (await startSmallSandbox({ reviews: 2000 })).truth()
    const times = reviews.map(({ modifiedTime }) => modifiedTime).sort()
    expect(Date.parse(times.at(-1) ?? '')).toBeLessThanOrEqual(before)
    expect(new Set(times).size).toBeLessThan(1900)
    expect(new Set(times).size).toBeGreaterThan(1000)
  })
})

describe('the order of an export', () => {
  const firstIds = async (sandbox: Sandbox) =>
    (await requestPage(sandbox, exportReviews, {})).reviews.map(({ id }) => id)

  it('can be descending by time, or by id', async () => {
    const times = (
      await requestPage(await startSmallSandbox({ reviews: 1000, order: 'modified_desc' }), exportReviews, {})
    ).reviews.map((row) => row.modifiedTime)
    expect(times).toEqual([...times].sort().reverse())
    const ids = await firstIds(await startSmallSandbox({ reviews: 1000, order: 'id' }))
    expect(ids).toEqual([...ids].sort((a, b) => a - b))
  })

  it.each([...exportOrders])('is the same for readers of several ranges of time who take turns: %s', async (order) => {
    const sandbox = await startSmallSandbox({ reviews: 1000, order })
    const truth = (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => ({ id: Number(id), modifiedTime }))
    const times = truth.map(({ modifiedTime }) => modifiedTime).sort()
    const isDescending = order === 'modified_desc'
    const key = ({ id, modifiedTime }: (typeof truth)[number]) =>
      (order === 'id' ? '' : modifiedTime) + `${id}`.padStart(9)
    const sorted = [...truth].sort((a, b) => (key(a) < key(b) === isDescending ? 1 : -1))
    const froms = ['2000-01-01T00:00:00.000Z', times[300], times[900], times[999]].map(String)
    for (const offset of [0, 40, 80, 990])
      for (const modifiedTimeFrom of froms) {
        const { reviews } = await requestPage(sandbox, exportReviews, { modifiedTimeFrom, offset, limit: 40 })
        const expected = sorted.filter((row) => row.modifiedTime > modifiedTimeFrom).slice(offset, offset + 40)
        const seen = reviews.map(({ id, modifiedTime }) => (order === 'ties' ? { modifiedTime } : { id, modifiedTime }))
        expect(seen).toEqual(order === 'ties' ? expected.map(({ modifiedTime }) => ({ modifiedTime })) : expected)
      }
  })

  it('changes among equal times with every request if it is ties', async () => {
    const sandbox = await startSmallSandbox({ reviews: 1000, order: 'ties' })
    const [one, two] = [await requestPage(sandbox, exportReviews, {}), await requestPage(sandbox, exportReviews, {})]
    expect(one.reviews.map(({ modifiedTime }) => modifiedTime)).toEqual(
      two.reviews.map(({ modifiedTime }) => modifiedTime),
    )
    expect(one.reviews.map(({ id }) => id)).not.toEqual(two.reviews.map(({ id }) => id))
  })
})

describe('churn', () => {
  it('changes, deletes and adds reviews after every page, with the current time', async () => {
    let now = Date.parse('2026-07-01T00:00:00Z')
    const sandbox = await startSmallSandbox({ until, churn: { change: 3, delete: 1, add: 2 }, now: () => now++ })
    const before = await sandbox.truth()
    await requestPage(sandbox, exportReviews, {})
    const after = await sandbox.truth()
    const texts = new Map(before.reviews.map(({ id, json }) => [id, json]))
    expect(after.reviews).toHaveLength(101)
    expect(after.deleted.filter(({ modifiedTime }) => modifiedTime > '2026-07')).toHaveLength(1)
    const recent = after.reviews.filter(({ modifiedTime }) => modifiedTime > '2026-07')
    expect(recent.filter(({ id }) => !texts.has(id))).toHaveLength(2)
    const changed = after.reviews.filter(({ id, json }) => texts.has(id) && texts.get(id) !== json)
    expect(changed.every(({ modifiedTime }) => modifiedTime > '2026-07')).toBe(true)
    expect([2, 3]).toContain(changed.length)
    const deleted = before.reviews.filter(({ id }) => !after.reviews.some((row) => row.id === id))
    const { reviews: deletions } = await requestPage(sandbox, exportDeletedReviews, {
      modifiedTimeFrom: '2026-07-01T00:00:00.000Z',
    })
    expect(deletions.map(({ id }) => String(id))).toEqual(deleted.map(({ id }) => id))
  })

  it('restores deleted reviews unchanged except for their time', async () => {
    let now = Date.parse('2026-07-01T00:00:00Z')
    const sandbox = await startSmallSandbox({ reviews: 50, until, now: () => now })
    const before = await sandbox.truth()
    await sandbox.churn({ delete: 3 })
    now += 60_000
    await sandbox.churn({ restore: 2 })
    const after = await sandbox.truth()
    expect(after.reviews).toHaveLength(49)
    expect(after.deleted).toHaveLength(before.deleted.length + 3)
    const texts = new Map(before.reviews.map(({ id, json }) => [id, json]))
    const restored = after.reviews.filter(({ modifiedTime }) => modifiedTime === '2026-07-01T00:01:00.000Z')
    expect(restored).toHaveLength(2)
    const withoutTime = (text: string | undefined) => text?.replace(/"modifiedTime":"[^"]*"/, '')
    for (const { id, json } of restored) expect(withoutTime(json)).toBe(withoutTime(texts.get(id)))
    await sandbox.churn({ restore: 5 })
    expect((await sandbox.truth()).reviews.map(({ id }) => id)).toEqual(before.reviews.map(({ id }) => id))
  })
})

describe('a list of faults', () => {
  it('applies once to the numbered requests', async () => {
    const faults = parseFaultList('1=429,2=500,3=reset,4=cutjson,5=hang')
    if (E.isLeft(faults)) throw new Error(faults.left)
    const sandbox = await startSmallSandbox({ reviews: 1000, faults: faults.right })
    const body = { modifiedTimeFrom: epochTime }
    const limited = await postJson(sandbox, exportReviews, body)
    expect([limited.status, limited.headers.get('Retry-After')]).toEqual([429, '1'])
    expect((await postJson(sandbox, exportDeletedReviews, body)).status).toBe(500)
    await expect(postJson(sandbox, exportReviews, body)).rejects.toThrow()
    await expect(postJson(sandbox, exportReviews, body).then((answer) => answer.json())).rejects.toThrow(SyntaxError)
    const controller = new AbortController()
    const unanswered = fetch(sandbox.url + exportReviews, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', accessToken: sandbox.accessToken },
      body: JSON.stringify(body),
      signal: controller.signal,
    })
    while (sandbox.stats().exports < 5) await new Promise(setImmediate)
    controller.abort()
    await expect(unanswered).rejects.toThrow()
    expect((await postJson(sandbox, exportReviews, body)).status).toBe(200)
    expect(sandbox.stats()).toMatchObject({ requests: { exportReviews: 5, exportDeletedReviews: 1 }, exports: 6 })
  })

  it.each(['x', '0=429', '1=burn'])('is refused if it is %s', (text) =>
    expect(E.isLeft(parseFaultList(text))).toBe(true),
  )
})
