import * as E from 'fp-ts/Either'
import type * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import type { RawResponse } from '../../connector/api/route'
import type { FetchPage } from '../../connector/export/fetch-page'
import { createDeletedReviewFetcher, createReviewFetcher } from '../../connector/export/fetch-page'
import { cutReviews, reviewJson } from '../support/review-page'

const request = { modifiedTimeFrom: '2024-05-01T00:00:00.000Z', offset: 40, limit: 20 }
const echo = { modifiedTimeFrom: '2024-05-01T00:00:00.000Z', offset: 40, limit: 20 }
const pageWith = (filter: object, ...records: ReadonlyArray<string>): string =>
  `{"reviews":[${records.join(',')}],"filter":${JSON.stringify(filter)}}`

/** A service that gives its answers one after another, then the last one again and again, and records its requests. */
const answerWith = (...answers: ReadonlyArray<string | RawResponse | ApiError>) => {
  const asked: unknown[] = []
  const operation = (input: unknown): TE.TaskEither<ApiError, RawResponse> => {
    return async () => {
      const answer = answers[Math.min(asked.length, answers.length - 1)] ?? ''
      asked.push(input)
      if (typeof answer === 'string') return E.right({ body: Buffer.from(answer), servedAt: 7 })
      return 'body' in answer ? E.right(answer) : E.left(answer)
    }
  }
  return { asked, api: { exportReviews: operation, exportDeletedReviews: operation } }
}

const fetchOnce = (request: Parameters<FetchPage>[0], ...answers: ReadonlyArray<string | RawResponse | ApiError>) =>
  createReviewFetcher(answerWith(...answers).api, cutReviews)(request)()

describe('a page of an export', () => {
  it('is what the service answered, and when', async () => {
    expect(await fetchOnce(request, pageWith(echo, reviewJson()))).toMatchObject({
      right: { rows: [{ id: '1' }], filter: echo, unknownPaths: [], servedAt: 7 },
    })
  })

  it('without content (204) has no rows, or comes after the last', async () => {
    const noContent: RawResponse = { body: Buffer.of(), hasNoContent: true }
    expect(await fetchOnce({ ...request, offset: 0 }, noContent)).toMatchObject({ right: { rows: [] } })
    expect(await fetchOnce(request, noContent)).toMatchObject({ left: { _tag: 'Http', status: 204 } })
  })

  it('of deletions is requested without the filters that their operation lacks', async () => {
    const { api, asked } = answerWith(pageWith(echo))
    const whole = {
      ...request,
      sources: [1],
      mentionTimeAfter: '2024-01-01T00:00:00.000Z',
      additionalFields: ['brand'],
    }
    await createReviewFetcher(api, cutReviews)(whole)()
    await createDeletedReviewFetcher(api, cutReviews)(whole)()
    expect(asked).toStrictEqual([
      {
        ...request,
        sources: [1],
        mentionTimeAfter: '2024-01-01T00:00:00.000Z',
        additionalFields: ['brand'],
      },
      { ...request, sources: [1] },
    ])
  })

  it('may echo less, a clamped limit, or the same time written differently', async () => {
    for (const filter of [{}, { ...echo, limit: 5 }, { modifiedTimeFrom: '2024-05-01T02:00:00+02:00', offset: null }])
      expect(E.isRight(await fetchOnce(request, pageWith(filter)))).toBe(true)
  })

  it.each([
    ['modifiedTimeFrom', { ...echo, modifiedTimeFrom: '2024-05-01T00:00:00.001Z' }],
    ['modifiedTimeFrom', { ...echo, modifiedTimeFrom: 'yesterday' }],
    ['offset', { ...echo, offset: 0 }],
  ])('that echoes another %s is refused', async (name, filter) => {
    expect(await fetchOnce(request, pageWith(filter, reviewJson()))).toMatchObject({
      left: { _tag: 'Decode', path: `$.filter.${name}` },
    })
  })

  it('without records is empty only if it echoes our request', async () => {
    expect(await fetchOnce(request, JSON.stringify({ filter: echo }))).toMatchObject({ right: { rows: [] } })
    expect(await fetchOnce(request, '{"filter":{"clientId":"a"}}')).toMatchObject({
      left: { _tag: 'Decode', path: '$' },
    })
    expect(await fetchOnce(request, '{}')).toMatchObject({ left: { _tag: 'Decode' } })
    expect(await fetchOnce(request, '{"reviews":[]}')).toMatchObject({ right: { rows: [] } })
  })

  it('names the filters that were applied more narrowly than requested', async () => {
    const asked = {
      ...request,
      sources: [1, 2],
      mentionTimeAfter: '2024-01-01T00:00:00.000Z',
      mentionTimeBefore: '2024-02-01T00:00:00.000Z',
    }
    const less = {
      sources: [2, 3],
      mentionTimeAfter: '2024-01-02T00:00:00.000Z',
      mentionTimeBefore: '2024-01-31T00:00:00.000Z',
    }
    const more = { sources: [1, 2, 3], mentionTimeAfter: '2023-01-01T00:00:00.000Z', mentionTimeBefore: null }
    expect(await fetchOnce(asked, pageWith({ ...echo, ...less }))).toMatchObject({
      right: { narrowerFilters: ['sources', 'mentionTimeAfter', 'mentionTimeBefore'] },
    })
    expect(await fetchOnce(asked, pageWith({ ...echo, ...more }))).not.toHaveProperty('right.narrowerFilters')
    expect(await fetchOnce(request, pageWith({ ...echo, ...less }))).not.toHaveProperty('right.narrowerFilters')
  })

  it('is cut when its turn comes, and requested again then if it is broken', async () => {
    const { api, asked } = answerWith('', pageWith(echo, reviewJson()))
    let come = () => {}
    const turn = new Promise<void>((resolve) => {
      come = resolve
    })
    let here = 0
    const page = createReviewFetcher(api, cutReviews)(request, () => {
      here += 1
      return turn
    })()
    await new Promise((resolve) => setImmediate(resolve))
    expect([asked.length, here]).toEqual([1, 1])
    come()
    expect(await page).toMatchObject({ right: { rows: [{ id: '1' }] } })
    expect([asked.length, here]).toEqual([2, 2])
  })

  it('may hold more rows than requested', async () => {
    expect(await fetchOnce({ ...request, limit: 1 }, pageWith({}, reviewJson(), reviewJson()))).toMatchObject({
      right: { rows: { length: 2 } },
    })
  })
})

describe('a broken answer', () => {
  it.each([
    ['that is cut short', pageWith(echo, reviewJson()).slice(0, -9)],
    ['to another request', pageWith({ ...echo, offset: 0 })],
    ['that reports an error of the application', '{"status":{"code":1,"message":"busy"}}'],
  ])('%s is requested again twice, with the same offset', async (_, broken) => {
    const late = answerWith(broken, broken, pageWith(echo, reviewJson()))
    expect(await createReviewFetcher(late.api, cutReviews)(request)()).toMatchObject({ right: { rows: [{ id: '1' }] } })
    expect(late.asked).toEqual([request, request, request])
    const never = answerWith(broken)
    expect(E.isLeft(await createReviewFetcher(never.api, cutReviews)(request)())).toBe(true)
    expect(never.asked).toHaveLength(3)
  })

  it('that no second request can mend is requested once', async () => {
    const tooLarge: ApiError = { _tag: 'TooLarge', bytes: 2, limit: 1 }
    const large = answerWith(tooLarge)
    expect(await createReviewFetcher(large.api, cutReviews)(request)()).toEqual(E.left(tooLarge))
    expect(large.asked).toHaveLength(1)
  })
})
