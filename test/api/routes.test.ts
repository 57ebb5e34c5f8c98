import * as E from 'fp-ts/Either'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHttpClient } from '../../connector/api/http/client'
import { type Api, createApi, type LookupRoutes } from '../../connector/api/routes'
import { sendJson, startServer } from '../support/listen'

/** The `Api` of a server that answers every request with `body`. */
const startApi = async (body: unknown, lookups?: LookupRoutes, status = 200) => {
  const { url, seen } = await startServer((_, response) => sendJson(response, status, body))
  const { send, close } = createHttpClient(
    {
      base_url: new URL(`${url}/gateway`),
      credentials: { auth_type: 'access_token', access_token: 'T0ken' },
      rate_limit: { max_concurrency: 1 },
      timeouts: { connect_seconds: 5, response_seconds: 5, max_wait_seconds: 5 },
      max_response_mb: 1,
    },
    { attempts: 1 },
  )
  onTestFinished(close)
  return { api: createApi(send, lookups), seen }
}

const parseHeaders = (rawHeaders: ReadonlyArray<string>): ReadonlyMap<string, string> =>
  new Map(rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : [])))

type Exchange = {
  readonly call: (api: Api) => Promise<E.Either<unknown, unknown>>
  readonly request: string
  readonly header?: string
  readonly contentType?: string
  readonly body?: unknown
  readonly answer: unknown
}

// Each request and response is written from the service's specification.
const exchanges: Record<string, Exchange> = {
  '1. Retrieve reviews': {
    call: (api) =>
      api.retrieveReviews({
        personId: 'P-7',
        page: 0,
        perPage: 20,
        minThreshold: 3.5,
        days: 365,
        showReviews: true,
        fromDate: '2026-01-01T00:00:00Z',
        toDate: null,
        additionalFields: ['tone'],
      })(),
    request: 'POST /gateway/api/external/bsr/v2/reviews',
    header: 'Access-Token',
    contentType: 'application/json',
    body: {
      personId: 'P-7',
      page: 0,
      perPage: 20,
      minThreshold: 3.5,
      days: 365,
      showReviews: true,
      fromDate: '2026-01-01T00:00:00Z',
      toDate: null,
      additionalFields: ['tone'],
    },
    answer: {
      status: { code: 200, message: 'SUCCESS', type: null, server: 'a1' },
      data: {
        client: 'acme',
        entities: [
          {
            id: 'P-7',
            name: 'Dr. Ada Example',
            reviewSummary: null,
            lookBackWindow: 365,
            totalRatingCount: 1,
            totalCommentCount: 1,
            totalSurveyCount: 1,
            overallRating: {
              name: null,
              value: 4.5,
              categoryResponseCount: 1,
              questionRatings: [{ name: 'Staff', value: 4, responseCount: 1 }],
              ratingDistribution: [{ ratingNum: 5, ratingSurveyCount: 1 }],
            },
            ratings: [],
            VendorSealOfIntegrity: null,
            reviews: [
              {
                documentId: 12,
                surveyKey: 'S1',
                source: 'Survey',
                mentionTime: '2026-01-02T03:04:05Z',
                overallRating: { name: 'Overall', value: 4.5, responseCount: 1 },
                ratings: [],
                comment: { commentId: 13, wordCount: 2, comment: 'Well done' },
                response: { responseText: 'Thanks', respondedBy: null, respondedTime: null },
                tone: null,
                category: null,
                varname: null,
              },
            ],
          },
        ],
        filter: { entityId: 7, scrollKey: null, person: true, perPage: 20, period: { from: null, to: null } },
      },
    },
  },
  '2. Retrieve comments, query form': {
    call: (api) =>
      api.retrieveComments({
        locationId: 'L 1',
        page: 1,
        minThreshold: 0,
        showComments: false,
        additionalFields: ['a', 'b'],
      })(),
    request:
      'GET ' +
      '/gateway/api/bsr/comments?locationId=L+1&page=1&minThreshold=0&showComments=false' +
      '&additionalFields=a&additionalFields=b',
    header: 'Access-Token',
    answer: {
      status: { code: '200', message: 'success', type: null },
      data: {
        client: 'acme',
        entities: [
          {
            id: 'L 1',
            name: 'Clinic',
            totalPages: 1,
            comments: [
              {
                id: 5,
                surveyKey: null,
                source: 'Survey',
                mentionTime: '2026-01-02T03:04:05.678Z',
                wordCount: 1,
                comment: 'Good',
                overallRating: { name: 'Overall', value: 5, responseCount: 1 },
                ratings: [],
                response: null,
                tone: null,
                category: null,
                varname: null,
              },
            ],
          },
        ],
        filter: { minThreshold: 0, page: 1, perPage: 20, configVersion: null },
      },
    },
  },
  '3. Retrieve comments, form request': {
    call: (api) =>
      api.retrieveCommentsByForm({ personId: ['1', '2'], entityId: ['x&y'], perPage: 50, showRatings: true })(),
    request: 'POST /gateway/api/bsr/comments',
    header: 'Access-Token',
    contentType: 'application/x-www-form-urlencoded',
    body: 'personId=1&personId=2&entityId=x%26y&perPage=50&showRatings=true',
    answer: { status: { code: 0, message: null, type: null }, data: { client: 'acme', entities: [], filter: null } },
  },
  '4. Create visit records': {
    call: (api) =>
      api.createVisitRecords([
        {
          name: 'Ada Example',
          email: 'ada@example.org',
          age: 41,
          locationCode: 'L1',
          npi: '1234567893',
          visitTime: '2026-01-02T03:04:05Z',
          visitRecordId: 'V1',
          dataFeedId: 3,
          languageValue: 'en',
        },
      ])(),
    request: 'POST /gateway/api/service/visitrecord/create',
    header: 'accessToken',
    contentType: 'application/json',
    body: [
      {
        name: 'Ada Example',
        email: 'ada@example.org',
        age: 41,
        locationCode: 'L1',
        npi: '1234567893',
        visitTime: '2026-01-02T03:04:05Z',
        visitRecordId: 'V1',
        dataFeedId: 3,
        languageValue: 'en',
      },
    ],
    answer: { status: { code: 200, message: 'ok' }, records: { V1: 'Success', V2: 'Error' } },
  },
  '5. Sync locations': {
    call: (api) =>
      api.syncLocations([
        {
          code: 'L1',
          codeType: 'NPI',
          active: false,
          name: 'Clinic',
          profiles: [{ sourceName: 'Survey', url: 'https://example.org', id: '1' }],
          entityMappings: { region: 'North' },
        },
      ])(),
    request: 'POST /gateway/api/entity/sync/locations',
    header: 'accessToken',
    contentType: 'application/json',
    body: [
      {
        code: 'L1',
        codeType: 'NPI',
        active: false,
        name: 'Clinic',
        profiles: [{ sourceName: 'Survey', url: 'https://example.org', id: '1' }],
        entityMappings: { region: 'North' },
      },
    ],
    answer: {
      status: 'PARTIAL_SUCCESS',
      message: '1 failed',
      nonSyncableList: [{ code: 'L1', reason: 'sync is not enabled' }],
      totalRequests: 1,
      successfulRequests: 0,
      failedRequests: 1,
    },
  },
  '8. Lookups': {
    call: (api) => api.lookupSources({})(),
    request: 'POST /gateway/api/lookups/source',
    header: 'accessToken',
    contentType: 'application/json',
    body: {},
    answer: [{ id: 1, name: 'Survey' }],
  },
  'the token exchange': {
    call: (api) => api.issueToken({ appId: 'app', appSecret: 'secret' })(),
    request: 'POST /gateway/api/service/v1/token/create',
    contentType: 'application/x-www-form-urlencoded',
    body: 'appId=app&appSecret=secret',
    answer: { accessToken: 'fresh', expiresIn: 3600 },
  },
}

const lookups: LookupRoutes = { sources: { method: 'POST', path: '/api/lookups/source' } }

describe('an operation sends and reads what the specification of the service says', () => {
  test.each(Object.entries(exchanges))('%s', async (name, exchange) => {
    const { api, seen } = await startApi(exchange.answer, lookups)
    // Responses of operations 1 to 3 also have the time at which they were served, which is not in their body.
    const served = name.includes('Retrieve') ? { servedAt: expect.any(Number) } : undefined
    const expected = served === undefined ? exchange.answer : { ...Object(exchange.answer), ...served }
    expect(await exchange.call(api)).toEqual(E.right(expected))
    const [received] = seen
    expect(`${received?.method} ${received?.url}`).toBe(exchange.request)
    const headers = parseHeaders(received?.rawHeaders ?? [])
    expect([headers.get('accessToken'), headers.get('Access-Token')]).toEqual([
      exchange.header === 'accessToken' ? 'T0ken' : undefined,
      exchange.header === 'Access-Token' ? 'T0ken' : undefined,
    ])
    expect(headers.get('Content-Type')).toBe(exchange.contentType)
    const body = received?.body ?? ''
    expect(exchange.contentType === 'application/json' ? JSON.parse(body) : body).toEqual(exchange.body ?? '')
  })

  test.each([
    [
      '6. Export reviews',
      (api: Api) =>
        api.exportReviews({
          modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
          sources: [1, 2],
          mentionTimeAfter: '2025-01-01T00:00:00.000Z',
          mentionTimeBefore: '2026-01-01T00:00:00.000Z',
          offset: 0,
          limit: 1000,
          additionalFields: ['brand', 'visitRecordId'],
        })(),
      '/gateway/api/reputation/v1/reviews',
      {
        modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
        sources: [1, 2],
        mentionTimeAfter: '2025-01-01T00:00:00.000Z',
        mentionTimeBefore: '2026-01-01T00:00:00.000Z',
        offset: 0,
        limit: 1000,
        additionalFields: ['brand', 'visitRecordId'],
      },
    ],
    [
      '7. Export deleted reviews',
      (api: Api) => api.exportDeletedReviews({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset: 5 })(),
      '/gateway/api/reputation/v1/deleted-reviews',
      { modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset: 5 },
    ],
  ])('%s', async (_, call, url, body) => {
    const text =
      '{"reviews":[{"id":9007199254740993,"modifiedTime":"2026-01-02T00:00:00.000Z"}],"filter":{"limit":1000}}'
    const { api, seen } = await startApi(text)
    const page = await call(api)
    expect(E.isRight(page) && Buffer.from(page.right.body).toString()).toBe(text)
    expect(`${seen[0]?.method} ${seen[0]?.url}`).toBe(`POST ${url}`)
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual(body)
    const headers = parseHeaders(seen[0]?.rawHeaders ?? [])
    expect([headers.get('accessToken'), headers.get('Content-Type')]).toEqual(['T0ken', 'application/json'])
  })
})

describe('a transparency response', () => {
  const retrieve = async (body: unknown) => {
    const { api } = await startApi(body)
    return api.retrieveComments({ personId: '1' })()
  }

  test('keeps comment ids beyond 2^53', async () => {
    const response = await retrieve(
      '{"status":{"message":"success"},"data":{"entities":[{"id":"1","comments":' +
        '[{"id":9007199254740993,"mentionTime":"2026-01-02T00:00:00Z"}]}]}}',
    )
    expect(E.isRight(response) && response.right.data.entities[0]?.comments?.[0]?.id).toBe(9007199254740993n)
  })

  test.each([
    ['no message', { status: { code: 1, message: null }, data: { entities: [] } }],
    ['no status', { data: { entities: [] } }],
    ['Success', { status: { message: 'Success' }, data: { entities: [] } }],
  ])('is a success with %s', async (_, body) => expect(E.isRight(await retrieve(body))).toBe(true))

  test.each([
    ['another message', { status: { code: 7, message: 'No such entity' }, data: { entities: [] } }, '7'],
    ['no data', { status: { code: 'E1', message: 'success' }, data: null }, 'E1'],
    ['no code', { status: { message: 'failed' } }, 'none'],
  ])('is an application error with %s', async (_, body, code) =>
    expect(await retrieve(body)).toEqual(E.left(expect.objectContaining({ _tag: 'Application', code }))),
  )

  test.each([
    ['neither status nor data', { hello: 1 }],
    ['no JSON', '<html>'],
    ['an entity without id', { status: {}, data: { entities: [{ name: 'x' }] } }],
    ['a comment without time', { status: {}, data: { entities: [{ id: '1', comments: [{ id: 1 }] }] } }],
  ])('cannot be decoded with %s', async (_, body) =>
    expect(await retrieve(body)).toEqual(E.left(expect.objectContaining({ _tag: 'Decode' }))),
  )

  test('is an error with its message where it has an error status and the documented body', async () => {
    const { api } = await startApi({ status: { code: 403, message: 'no permission', type: 'ERROR' } }, {}, 403)
    expect(await api.retrieveComments({ personId: '1' })()).toEqual(
      E.left({ _tag: 'Http', status: 403, message: 'no permission' }),
    )
  })
})
