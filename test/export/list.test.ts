import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, test } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import type { ExportPage, FetchPage } from '../../connector/export/fetch-page'
import { type ExportFilters, readMentionTime } from '../../connector/export/filters'
import { toList } from '../../connector/export/list'
import { reviewRecord } from '../support/export-record'
import { simulateExport, stableTraits } from '../support/export-simulation'
import { readService, refuseEnd } from '../support/read-list'

const at = Date.UTC(2026, 0, 1)
const page: ExportPage = { rows: [], filter: {}, unknownPaths: [] }

describe('an export as a list', () => {
  /** The request that is sent for one of the list, and the page that the answer `echo` becomes. */
  const ask = async (filters: ExportFilters, bounds: object, echo: ExportPage['filter'] = {}) => {
    const requests: Parameters<FetchPage>[0][] = []
    const fetch: FetchPage = (request) => {
      requests.push(request)
      return TE.right({ ...page, filter: echo, servedAt: at })
    }
    const list = toList({ operation: 'export reviews', fetch, filters, hasMentionTime: true })
    const answer = await list.fetch({ from: at, bounds, offset: 20, limit: 50 })()
    return { request: requests[0], page: E.isRight(answer) ? answer.right : undefined }
  }

  test('is asked for with its filters', async () => {
    const { request, page: answer } = await ask({ sources: [3] }, {})
    expect(request).toEqual({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', sources: [3], offset: 20, limit: 50 })
    expect(answer).toEqual({ rows: [], bounds: {}, servedAt: at })
  })

  test.each([
    ['inside those of the config', at - 4000, at - 3000, -4, -3],
    ['outside of them', at - 9000, at + 9000, -5, 0],
    ['across one of them', at - 4000, at + 9000, -4, 0],
  ])('keeps to the bounds of the config: %s', async (_, after, before, seconds, secondsBefore) => {
    const time = (offset: number) => new Date(at + offset * 1000).toISOString()
    const filters = { mentionTimeAfter: time(-5), mentionTimeBefore: time(0) }
    const { request } = await ask(filters, { after, before })
    expect(request).toMatchObject({ mentionTimeAfter: time(seconds), mentionTimeBefore: time(secondsBefore) })
  })

  test('hands on the limit that an answer echoes', async () => {
    expect((await ask({}, {}, { limit: 30 })).page).toMatchObject({ limit: 30 })
    expect((await ask({}, {}, { mentionTimeAfter: '2026-01-01T00:00:00.000Z' })).page?.bounds).toEqual({ after: at })
  })

  test('can be cut by mention time if it has one', () => {
    const listing = { operation: 'x', fetch: (() => TE.right(page)) as FetchPage, filters: {} }
    expect(toList({ ...listing, hasMentionTime: false })).not.toHaveProperty('mentionTime')
    expect(toList({ ...listing, hasMentionTime: true })).toHaveProperty('mentionTime', readMentionTime)
  })
})

test.each<[string, string, number | undefined]>([
  ['its mention time', '{"mentionTime":"2026-01-01T00:00:00.000Z"}', at],
  ['none', '{"rating":3}', undefined],
  ['none at its own level', '{"parent":{"mentionTime":"2026-01-01T00:00:00.000Z"}}', undefined],
  ['one that is no text', '{"mentionTime":1767225600000}', undefined],
  ['one that is no time', '{"mentionTime":"yesterday"}', undefined],
  ['null in place of one', '{"mentionTime":null}', undefined],
  ['the name alone', '"a \\"mentionTime\\""', undefined],
  ['the name in a list', '["mentionTime"]', undefined],
])('of a review is read %s', (_, text, time) => {
  const bytes = Buffer.from(`[${text},{}]`)
  expect(readMentionTime({ ...reviewRecord(1, 1), raw: bytes.subarray(1, 1 + Buffer.byteLength(text)) })).toBe(time)
})

const http = (status: number): ApiError => ({ _tag: 'Http', status, message: 'offset' })
const inBody = (code: string, message = 'offset'): ApiError => ({ _tag: 'Application', code, message })
const quiet = (rows: number) => simulateExport({ ...stableTraits, rows }, 1)

describe.each<[string, ApiError]>([
  ...[204, 400, 403, 404, 405, 410, 413, 416, 422, 500, 501].map((status): [string, ApiError] => [
    `${status}`,
    http(status),
  ]),
  ['an error with status 200', inBody('TOO_DEEP')],
  ['a code with status 200', inBody('5030', 'offset 503 is too deep')],
])('an offset that the service refuses with %s', (_, refusal) => {
  test('after the last row is an empty page', async () => {
    for (const concurrency of [1, 4]) {
      const service = quiet(200)
      let refused = 0
      const fetch: FetchPage = (request) => {
        if (request.offset < 200) return service.reviews(request)
        refused += 1
        return TE.left(refusal)
      }
      const { read, failure } = await readService(service, { fetch, concurrency })
      expect(failure).toBeUndefined()
      expect(read.size).toBe(200)
      expect(refused).toBeLessThanOrEqual(concurrency)
    }
  })

  test('deeper than the service allows is read in windows', async () => {
    const service = quiet(200)
    const fetch: FetchPage = (request) => (request.offset < 120 ? service.reviews(request) : TE.left(refusal))
    const { read, failure } = await readService(service, { fetch })
    expect(failure).toBeUndefined()
    expect(read.size).toBe(200)
  })

  test('of a window with few rows is asked for in others again', async () => {
    const service = simulateExport({ ...stableTraits, rows: 60, order: 'random', clamp: 20, unmentioned: 0.3 }, 1)
    const { read, failure } = await readService(service, { fetch: refuseEnd(service.reviews, refusal) })
    expect(failure).toBeUndefined()
    expect(read.size).toBe(60)
  })

  test('of a list that nothing cuts ends it INCOMPLETE', async () => {
    const service = simulateExport({ ...stableTraits, rows: 200, clamp: 50 }, 1)
    const fetch: FetchPage = (request) => (request.offset >= 120 ? TE.left(refusal) : service.reviews(request))
    const { failure, isComplete } = await readService(service, { fetch, isReviews: false })
    expect(isComplete).toBe(false)
    expect(failure?.message).toMatch(/the service refuses offset \d+.*cursor of the stream did not move/)
  })
})

test.each<[string, ApiError]>([
  ...[401, 408, 429, 502, 503, 504].map((status): [string, ApiError] => [`${status}`, http(status)]),
  ...['HTTP_503', '503.0', 'SERVICE_UNAVAILABLE', 'TooManyRequests', 'gateway-timeout'].map(
    (code): [string, ApiError] => [code, inBody(code)],
  ),
  ['none', inBody('none', '503 Service Unavailable')],
  ['7', inBody('7', 'Too *** requests')],
])('an outage at further offsets is no empty page: %s', async (name, error) => {
  const service = quiet(200)
  const fetch: FetchPage = (request) => (request.offset > 0 ? TE.left(error) : service.reviews(request))
  const { failure, isComplete } = await readService(service, { fetch })
  expect(isComplete).toBe(false)
  expect(failure?.message).toMatch(new RegExp(`^export reviews: .*${error._tag === 'Http' ? name : `code ${name}`}`))
})

test('a token that expires while the list is read is not an empty page', async () => {
  const service = quiet(200)
  let expired = false
  const fetch: FetchPage = (request) => {
    expired ||= request.offset > 100
    return expired ? TE.left({ _tag: 'Http', status: 400, message: 'token' }) : service.reviews(request)
  }
  expect((await readService(service, { fetch })).failure?.message).toContain('(400)')
})

test('half as many rows are asked for after an answer that is too large', async () => {
  const service = quiet(200)
  const tooLarge: ApiError = { _tag: 'TooLarge', bytes: 2, limit: 1 }
  const fetch: FetchPage = (request) => (request.limit > 12 ? TE.left(tooLarge) : service.reviews(request))
  const { read, notes } = await readService(service, { fetch })
  expect(read.size).toBe(200)
  expect(notes).toContainEqual(expect.stringContaining('asking for 12 rows at a time'))
  const { failure } = await readService(service, { fetch: () => TE.left(tooLarge) })
  expect(failure?.message).toContain('max_response_mb')
})

test('a page that was asked for ahead, fails and is not needed, is ignored', async () => {
  const service = quiet(200)
  const fetch: FetchPage = (request, turn) =>
    request.offset > 200 ? () => Promise.reject(new Error('the page is not needed')) : service.reviews(request, turn)
  const { ids, failure } = await readService(service, { fetch, concurrency: 6 })
  expect(failure).toBeUndefined()
  expect(ids.length).toBe(200)
})
