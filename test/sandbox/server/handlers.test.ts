import { describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../connector/sandbox/start'
import {
  epochTime,
  getPath,
  operationPaths,
  postJson,
  readJsonAnswer,
  requestToken,
  startSmallSandbox,
} from '../../support/sandbox'

const startPublished = (options = {}) => startSmallSandbox({ like: 'published', ...options })

type TokenAnswer = {
  readonly accessToken?: string
  readonly status: { readonly code: number; readonly message: string }
  readonly expiresIn?: string
}
const exchangeToken = (sandbox: Sandbox): Promise<TokenAnswer> => readJsonAnswer(requestToken(sandbox))

const exportPage = (sandbox: Sandbox, accessToken: string) =>
  postJson({ ...sandbox, accessToken }, operationPaths.exportReviews, { modifiedTimeFrom: epochTime, limit: 1 })

describe('a token of a published deployment', () => {
  it('is issued for a form, until a time in UTC without a zone', async () => {
    const now = Date.parse('2026-03-01T10:00:00Z')
    const sandbox = await startPublished({ now: () => now })
    expect(sandbox.tokenUrl).toBe(`${sandbox.url}/api/service/v1/token/create`)
    expect(await exchangeToken(sandbox)).toEqual({
      accessToken: expect.any(String),
      status: { message: 'Success', code: 200 },
      expiresIn: '2026-03-01 10:30:00',
    })
  })

  it('is refused inside a 200 for a wrong secret', async () => {
    const sandbox = await startPublished()
    const answer = await requestToken(sandbox, 'guess')
    expect(answer.status).toBe(200)
    const { status, accessToken } = await readJsonAnswer<TokenAnswer>(answer)
    expect([status.code, accessToken]).toEqual([401, undefined])
  })

  it('is issued for a query, too, and for no other form', async () => {
    const sandbox = await startPublished()
    const { tokenUrl, applicationId: appId, applicationSecret: appSecret } = sandbox
    const inQuery = await fetch(`${tokenUrl}?${new URLSearchParams({ appId, appSecret })}`, { method: 'POST' })
    expect(await readJsonAnswer(inQuery)).toHaveProperty('accessToken')
    const headers = { 'Content-Type': 'application/json' }
    const inJson = await fetch(tokenUrl, { method: 'POST', headers, body: JSON.stringify({ appId, appSecret }) })
    expect([inJson.status, await readJsonAnswer(inJson)]).toEqual([400, { status: expect.anything() }])
    const body = new URLSearchParams({ applicationId: appId, applicationSecret: appSecret })
    expect((await fetch(tokenUrl, { method: 'POST', body })).status).toBe(400)
  })

  it('expires 30 minutes later by the clock that the operator moves, in a 200; a guessed one is a 401', async () => {
    const sandbox = await startPublished()
    const { accessToken = '' } = await exchangeToken(sandbox)
    const forward = (body: unknown) => postJson(sandbox, '/__sandbox/clock', body)
    expect((await forward({ seconds: 1790 })).status).toBe(200)
    expect(await readJsonAnswer(exportPage(sandbox, accessToken))).toHaveProperty('reviews')
    await forward({ seconds: 11 })
    const refused = await exportPage(sandbox, accessToken)
    expect(refused.status).toBe(200)
    expect(await readJsonAnswer(refused)).toMatchObject({ status: { code: 401 } })
    expect((await exportPage(sandbox, 'guess')).status).toBe(401)
    expect(
      await Promise.all([{ seconds: -1 }, { seconds: 'x' }, 'no'].map(async (body) => (await forward(body)).status)),
    ).toEqual([400, 400, 400])
  })

  it('expires within a few requests where each moves the clock', async () => {
    const sandbox = await startPublished({ secondsPerRequest: 600 })
    const { accessToken = '' } = await exchangeToken(sandbox)
    const answers: Array<boolean> = []
    for (const _ of [1, 2, 3])
      answers.push('reviews' in (await readJsonAnswer<object>(exportPage(sandbox, accessToken))))
    expect(answers).toEqual([true, true, false])
  })
})

type ReviewsAnswer = {
  readonly data: {
    readonly entities: ReadonlyArray<{ readonly reviews: ReadonlyArray<{ readonly documentId: number }> }>
    readonly filter: { readonly scrollKey: string | null; readonly fromDate: string | null }
  }
}

describe('the reviews of a published deployment', () => {
  const readReviews = (sandbox: Sandbox, request: object): Promise<ReviewsAnswer> =>
    readJsonAnswer(
      postJson(sandbox, operationPaths.retrieveReviews, { locationId: '1001', minRatingCount: -1, ...request }),
    )
  const ids = ({ data }: ReviewsAnswer) =>
    data.entities.flatMap(({ reviews }) => reviews.map(({ documentId }) => documentId))

  it('ignore page, fromDate and toDate, and go on by scrollKey', async () => {
    const sandbox = await startPublished({ reviews: 400 })
    const window = { fromDate: '2001-01-01T00:00:00Z', toDate: '2001-01-02T00:00:00Z' }
    const first = await readReviews(sandbox, { perPage: 2, days: 3650 })
    expect(ids(first)).toHaveLength(2)
    const ignored = await readReviews(sandbox, { perPage: 2, days: 3650, page: 1, ...window })
    expect(ids(ignored)).toEqual(ids(first))
    expect(ignored.data.filter.fromDate).toBe(null)
    const next = await readReviews(sandbox, { perPage: 2, days: 3650, scrollKey: first.data.filter.scrollKey })
    expect(ids(next)).toHaveLength(2)
    expect(ids(next)).not.toContain(ids(first)[0])
  })

  it('of operations 2 and 3 use page, and fromDate and toDate rather than days', async () => {
    const sandbox = await startPublished({ reviews: 400, years: 1, locations: 4 })
    type Comments = {
      readonly data: {
        readonly entities: ReadonlyArray<{ readonly comments: ReadonlyArray<{ readonly mentionTime: string }> }>
      }
    }
    const times = async (filters: Record<string, string>, method = 'GET') => {
      const query = new URLSearchParams({ locationId: '1001', minRatingCount: '-1', perPage: '2', ...filters })
      const answer =
        method === 'GET'
          ? getPath(sandbox, `${operationPaths.comments}?${query}`)
          : fetch(sandbox.url + operationPaths.comments, {
              method,
              headers: { 'Access-Token': sandbox.accessToken },
              body: query,
            })
      const { data } = await readJsonAnswer<Comments>(answer)
      return data.entities.flatMap(({ comments }) => comments.map(({ mentionTime }) => mentionTime))
    }
    const [first, second] = [await times({ page: '1' }), await times({ page: '2' })]
    expect([first.length, second.length]).toEqual([2, 2])
    expect((second[0] ?? '') < (first[1] ?? '')).toBe(true)
    const toDate = `${second[0]?.slice(0, 19)}Z`
    const window = { fromDate: '2001-01-01T00:00:00Z', toDate, days: '1' }
    for (const method of ['GET', 'POST']) {
      const inWindow = await times(window, method)
      expect(inWindow).toHaveLength(2)
      expect(inWindow.every((time) => time <= toDate)).toBe(true)
    }
    expect(await times({ ...window, toDate: '2001-01-02T00:00:00Z' })).toEqual([])
  })

  it('are not shown of an entity with fewer than 30 ratings unless minRatingCount says so', async () => {
    const sandbox = await startPublished({ reviews: 100 })
    const shown = async (request: object) =>
      (await readReviews(sandbox, { days: 3650, ...request })).data.entities.length
    expect([await shown({ minRatingCount: undefined }), await shown({})]).toEqual([0, 1])
    const comments = getPath(sandbox, `${operationPaths.comments}?locationId=1001&days=3650`)
    expect((await readJsonAnswer<ReviewsAnswer>(comments)).data.entities).toEqual([])
  })

  it.each([
    ['2024-01-01T00:00:00Z', 200],
    ['2024-01-01T00:00:00.000Z', 400],
    ['2024-01-01T00:00:00.5Z', 400],
  ])('are refused for fromDate %s: %i', async (fromDate, status) => {
    const sandbox = await startPublished()
    const request = { locationId: '1001', fromDate, toDate: '2024-02-01T00:00:00Z' }
    expect((await postJson(sandbox, operationPaths.retrieveReviews, request)).status).toBe(status)
    const query = new URLSearchParams(request).toString()
    expect((await getPath(sandbox, `${operationPaths.comments}?${query}`)).status).toBe(status)
  })
})

describe('the lookups of a published deployment', () => {
  it('are an array of sources at a separate path, and no categories', async () => {
    const sandbox = await startPublished()
    const sources = await readJsonAnswer<ReadonlyArray<object>>(getPath(sandbox, '/api/reputation/v1/sources'))
    expect(sources[0]).toEqual({ id: expect.any(Number), name: expect.any(String) })
    expect((await getPath(sandbox, operationPaths.lookupSources)).status).toBe(404)
    expect((await getPath(sandbox, '/api/reputation/v1/lookup/categories')).status).toBe(404)
  })

  it('list the active locations in pages of at most 100, with what location sync has changed', async () => {
    const sandbox = await startPublished({ locations: 120 })
    await postJson(sandbox, operationPaths.syncLocations, [
      { code: 'NEW', codeType: 'INTERNAL', active: true, name: 'Annex', city: 'Bern', labels: ['a'] },
      { code: 'LOC-1001', active: false },
    ])
    type Page = { readonly data: ReadonlyArray<{ readonly code: string }>; readonly totalPages: number }
    const read = (query: string) => readJsonAnswer<Page>(getPath(sandbox, `/api/v2/entity/locations?${query}`))
    const pages = [await read('page=1&size=1000&sortBy=id&sortDirection=ASC'), await read('page=2&size=100')]
    expect(pages.map(({ data }) => data.length)).toEqual([100, 20])
    expect(pages[0]).toMatchObject({ totalCount: 120, totalPages: 2, currentPage: 1, pageSize: 100 })
    const locations = pages.flatMap(({ data }) => data)
    expect(locations.map(({ code }) => code)).not.toContain('LOC-1001')
    expect(locations.find(({ code }) => code === 'NEW')).toMatchObject({
      displayName: 'Annex',
      codeType: 'INTERNAL',
      city: 'Bern',
      labels: ['a'],
      phone: null,
      modifiedTime: expect.any(String),
    })
    expect((await getPath(sandbox, '/api/v2/entity/locations?page=0')).status).toBe(400)
  })

  it('list the persons or locations that the token may ask for, by codes that other operations take', async () => {
    const sandbox = await startPublished({ reviews: 200, locations: 3, providers: 4 })
    await postJson(sandbox, operationPaths.syncLocations, [{ code: 'LOC-1001', active: false }])
    type Listed = { readonly entities: ReadonlyArray<{ name: string; code: string; type: string }> }
    const list = (type: string) =>
      readJsonAnswer<Listed>(getPath(sandbox, `/api/service/v1/access/entities?type=${type}`))
    const [{ entities: persons }, { entities: locations }] = [await list('Person'), await list('Location')]
    expect(locations.map(({ code, type }) => `${type} ${code}`)).toEqual(['Location LOC-1002', 'Location LOC-1003'])
    expect(persons).toHaveLength(4)
    for (const [family, listed] of [
      ['personId', persons[0]],
      ['locationId', locations[0]],
    ] as const) {
      const request = { [family]: listed?.code, days: 3650, minRatingCount: -1 }
      const answer = await readJsonAnswer<{ data: { entities: ReadonlyArray<{ name: string }> } }>(
        postJson(sandbox, operationPaths.retrieveReviews, request),
      )
      expect(answer.data.entities.map((entity) => entity.name)).toEqual([listed?.name])
    }
    const path = '/api/service/v1/access/entities'
    expect((await getPath(sandbox, `${path}?type=Region`)).status).toBe(400)
    expect((await fetch(`${sandbox.url}${path}?type=Person`)).status).toBe(401)
    expect((await getPath(await startSmallSandbox({ like: 'specification' }), `${path}?type=Person`)).status).toBe(404)
  })

  it('are described as they are served', async () => {
    const sandbox = await startPublished()
    const { paths } = await readJsonAnswer<{ readonly paths: object }>(getPath(sandbox, '/openapi.json'))
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining([
        '/api/service/v1/token/create',
        '/api/reputation/v1/sources',
        '/api/v2/entity/locations',
        '/api/service/v1/access/entities',
      ]),
    )
  })
})
