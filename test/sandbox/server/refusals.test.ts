import { describe, expect, it } from 'vitest'
import { refuseOperatorRequest } from '../../../connector/sandbox/server/pages'
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

const body = { modifiedTimeFrom: epochTime, limit: 1 }

/** One valid request of every operation that needs a token, with the header of the token. */
const requests = {
  retrieveReviews: [
    'Access-Token',
    (s: Sandbox, h = {}) => postJson(s, operationPaths.retrieveReviews, { locationId: '1001' }, h),
  ],
  retrieveComments: [
    'Access-Token',
    (s: Sandbox, h = {}) => getPath(s, `${operationPaths.comments}?locationId=1001`, h),
  ],
  retrieveCommentsByForm: [
    'Access-Token',
    (s: Sandbox, h = {}) =>
      postJson(s, operationPaths.comments, 'locationId=1001', {
        'Content-Type': 'application/x-www-form-urlencoded',
        ...h,
      }),
  ],
  createVisitRecords: ['accessToken', (s: Sandbox, h = {}) => postJson(s, operationPaths.createVisitRecords, [], h)],
  syncLocations: ['accessToken', (s: Sandbox, h = {}) => postJson(s, operationPaths.syncLocations, [], h)],
  exportReviews: ['accessToken', (s: Sandbox, h = {}) => postJson(s, operationPaths.exportReviews, body, h)],
  exportDeletedReviews: [
    'accessToken',
    (s: Sandbox, h = {}) => postJson(s, operationPaths.exportDeletedReviews, body, h),
  ],
  lookupSources: ['accessToken', (s: Sandbox, h = {}) => getPath(s, operationPaths.lookupSources, h)],
} as const
type Name = keyof typeof requests
const names = Object.keys(requests) as ReadonlyArray<Name>
const sendRequest = (name: Name, sandbox: Sandbox, headers: Record<string, string> = {}) =>
  requests[name][1](sandbox, headers)

const errorBody = (status: number) => ({
  status: { code: status, message: expect.any(String), type: expect.any(String) },
})

describe('a token', () => {
  it.each(names)('is needed by %s in the header of its group', async (name) => {
    const sandbox = await startSmallSandbox()
    const [header] = requests[name]
    expect((await sendRequest(name, sandbox)).status).toBe(200)
    const refused = await sendRequest(name, sandbox, { [header]: 'guess' })
    const status = name === 'syncLocations' ? 400 : 401
    expect(refused.status).toBe(status)
    expect(await readJsonAnswer(refused)).toEqual(errorBody(status))
    expect(
      (await sendRequest(name, sandbox, { [header === 'accessToken' ? 'Access-Token' : 'accessToken']: 'guess' }))
        .status,
    ).toBe(200)
  })

  it('can lack permission for an operation', async () => {
    const sandbox = await startSmallSandbox({
      denied: ['syncLocations', 'retrieveReviews'],
      granted: new Map([['guest', ['exportReviews']]]),
    })
    const statuses = async (headers: Record<string, string>) =>
      Object.fromEntries(
        await Promise.all(names.map(async (name) => [name, (await sendRequest(name, sandbox, headers)).status])),
      )
    const allowed = Object.fromEntries(names.map((name) => [name, 200]))
    expect(await statuses({})).toEqual({ ...allowed, syncLocations: 403, retrieveReviews: 403 })
    const forbidden = Object.fromEntries(names.map((name) => [name, 403]))
    expect(await statuses({ accessToken: 'guest', 'Access-Token': 'guest' })).toEqual({
      ...forbidden,
      exportReviews: 200,
    })
    expect(await readJsonAnswer(sendRequest('syncLocations', sandbox))).toEqual(errorBody(403))
  })

  it('that was exchanged expires after its lifetime', async () => {
    let now = Date.now()
    const sandbox = await startSmallSandbox({ tokenLifetime: 60, now: () => now })
    const { accessToken, expiresIn } = await readJsonAnswer<{ accessToken: string; expiresIn: number }>(
      requestToken(sandbox),
    )
    expect(expiresIn).toBe(60)
    expect((await sendRequest('exportReviews', sandbox, { accessToken })).status).toBe(200)
    now += 60_000
    expect((await sendRequest('exportReviews', sandbox, { accessToken })).status).toBe(401)
    expect((await sendRequest('exportReviews', sandbox)).status).toBe(200)
  })

  it('is not issued for a wrong secret', async () => {
    const sandbox = await startSmallSandbox()
    const refused = await requestToken(sandbox, '?')
    expect([refused.status, await readJsonAnswer(refused)]).toEqual([401, errorBody(401)])
  })
})

describe('the rate limit', () => {
  it('answers 429 with Retry-After until the window has passed', async () => {
    let now = Date.now()
    const sandbox = await startSmallSandbox({ rate: { requests: 2, seconds: 60 }, now: () => now })
    const statuses = async () => [
      await sendRequest('exportReviews', sandbox),
      await sendRequest('syncLocations', sandbox),
    ]
    expect((await statuses()).map(({ status }) => status)).toEqual([200, 200])
    now += 12_000
    const [refused] = await statuses()
    expect([refused?.status, refused?.headers.get('Retry-After')]).toEqual([429, '48'])
    expect(await refused?.json()).toEqual(errorBody(429))
    now += 48_000
    expect((await statuses()).map(({ status }) => status)).toEqual([200, 200])
  })

  it('does not count the token exchange', async () => {
    const sandbox = await startSmallSandbox({ rate: { requests: 1, seconds: 60 } })
    for (let n = 0; n < 3; n++) expect((await requestToken(sandbox)).status).toBe(200)
  })
})

describe('the Date header', () => {
  it('can be ahead of the clock for modification times', async () => {
    const now = Date.parse('2026-07-01T00:00:00Z')
    const sandbox = await startSmallSandbox({ now: () => now, clockSkew: 3_600_000 })
    await sandbox.churn({ change: 1 })
    const answer = await sendRequest('exportReviews', sandbox)
    expect(answer.headers.get('Date')).toBe('Wed, 01 Jul 2026 01:00:00 GMT')
    const { reviews } = await sandbox.truth()
    expect(
      reviews
        .map(({ modifiedTime }) => modifiedTime)
        .sort()
        .at(-1),
    ).toBe('2026-07-01T00:00:00.000Z')
  })
})

describe('a path or method that does not exist', () => {
  it.each([
    ['GET', '/nowhere', 404],
    ['GET', operationPaths.exportReviews, 405],
    ['PUT', operationPaths.comments, 405],
    ['POST', '//', 404],
  ])('is refused with the error body: %s %s', async (method, path, status) => {
    const answer = await fetch((await startSmallSandbox()).url + path, { method })
    expect([answer.status, await readJsonAnswer(answer)]).toEqual([status, errorBody(status)])
    if (path === operationPaths.comments) expect(answer.headers.get('Allow')).toBe('GET, POST')
  })
})

it('a JSON body needs its Content-Type', async () => {
  const sandbox = await startSmallSandbox()
  expect((await sendRequest('exportReviews', sandbox, { 'Content-Type': 'text/plain' })).status).toBe(400)
  expect(
    (await sendRequest('exportReviews', sandbox, { 'Content-Type': 'application/json; charset=utf-8' })).status,
  ).toBe(200)
})

it('the log has the requests without tokens, the statistics their numbers', async () => {
  const sandbox = await startSmallSandbox()
  await sendRequest('exportReviews', sandbox)
  await sendRequest('retrieveComments', sandbox)
  const log = await readJsonAnswer<ReadonlyArray<Record<string, unknown>>>(getPath(sandbox, '/__sandbox/log'))
  expect(log).toMatchObject([
    {
      n: 1,
      operation: 'exportReviews',
      method: 'POST',
      path: operationPaths.exportReviews,
      status: 200,
      request: body,
      fault: null,
    },
    {
      n: 2,
      operation: 'retrieveComments',
      method: 'GET',
      path: operationPaths.comments,
      request: { locationId: '1001' },
    },
  ])
  expect(JSON.stringify(log)).not.toContain(sandbox.accessToken)
  expect(await readJsonAnswer(getPath(sandbox, '/__sandbox/stats'))).toEqual({
    requests: { exportReviews: 1, retrieveComments: 1 },
    exports: 1,
    statuses: { 200: 2 },
    faults: {},
  })
})

describe('a page of the operator', () => {
  const own = { host: '127.0.0.1:8080', accesstoken: 'secret' }
  const statusOf = (headers: Record<string, string | undefined>, url = '/__sandbox/log', host = '127.0.0.1') =>
    refuseOperatorRequest({ headers, url }, { accessToken: 'secret', host })?.status ?? 200

  it.each<[string, number, Record<string, string | undefined>, string?, string?]>([
    ['with the token', 200, own],
    ['with the token in the other header', 200, { host: own.host, 'access-token': 'secret' }],
    ['with the token as a bearer', 200, { host: own.host, authorization: 'Bearer secret' }],
    ['with the token in the query', 200, { host: own.host }, '/__sandbox/log?access_token=secret'],
    ['from its own page', 200, { ...own, origin: 'http://127.0.0.1:8080', 'sec-fetch-site': 'same-origin' }],
    ['by another name of this machine', 200, { ...own, host: 'LOCALHOST:8080' }],
    ['by the address of version 6', 200, { ...own, host: '[::1]:8080' }],
    ['without a token', 401, { host: own.host }],
    ['with another token', 401, { ...own, accesstoken: 'guess' }],
    ['with an empty token', 401, { ...own, accesstoken: '' }],
    ['from another site', 403, { ...own, origin: 'https://evil.example' }],
    ['from another port', 403, { ...own, origin: 'http://127.0.0.1:9' }],
    ['from a file', 403, { ...own, origin: 'null' }],
    ['from a link of another site', 403, { ...own, 'sec-fetch-site': 'cross-site' }],
    ['from a sibling of the site', 403, { ...own, 'sec-fetch-site': 'same-site' }],
    ['by a name of somebody else', 403, { ...own, host: 'evil.example:8080' }],
    ['by a name that begins like ours', 403, { ...own, host: '127.0.0.1.evil.example' }],
    [
      'by a name of somebody else that is also the origin',
      403,
      { ...own, host: 'evil.example', origin: 'http://evil.example' },
    ],
    ['by a name without a dot', 403, { ...own, host: 'sandbox:8080' }],
    ['without a host', 403, { accesstoken: 'secret' }],
    ['by its address in a network, where it listens on all', 200, { ...own, host: '192.0.2.7:8080' }, '/', '0.0.0.0'],
    ['by the name of its container, where it listens on all', 200, { ...own, host: 'sandbox:8080' }, '/', '::'],
    ['by a name of somebody else, where it listens on all', 403, { ...own, host: 'evil.example' }, '/', '0.0.0.0'],
    ['by the name that it listens on', 200, { ...own, host: 'box.example' }, '/', 'box.example'],
  ])('called %s is answered %i', (_, status, headers, url, host) => {
    expect(statusOf(headers, url, host)).toBe(status)
  })

  it.each(['log', 'stats', 'truth', 'churn', 'clock'])('is not for everyone: %s', async (name) => {
    const sandbox = await startSmallSandbox()
    const method = ['churn', 'clock'].includes(name) ? 'POST' : 'GET'
    const { accessToken } = sandbox
    const ask = async (headers: Record<string, string>) =>
      (
        await fetch(`${sandbox.url}/__sandbox/${name}`, {
          method,
          headers,
          ...(method === 'POST' ? { body: '{"seconds":1}' } : {}),
        })
      ).status
    expect([await ask({}), await ask({ accessToken, Origin: 'https://evil.example' })]).toEqual([401, 403])
    expect(await ask({ accessToken })).not.toBe(401)
  })

  it('tells a stranger how to use the service, without a token', async () => {
    const { url } = await startSmallSandbox()
    for (const path of ['/docs', '/openapi.json']) expect((await fetch(url + path)).status).toBe(200)
  })
})

it('the operator reads ids and times of the data, and changes it', async () => {
  const sandbox = await startSmallSandbox()
  const readData = async () =>
    readJsonAnswer<Record<string, ReadonlyArray<object>>>(getPath(sandbox, '/__sandbox/truth'))
  const before = await readData()
  expect(before.reviews).toHaveLength(100)
  expect(before.reviews?.[0]).toEqual({ id: expect.any(String), modifiedTime: expect.any(String) })
  expect((await postJson(sandbox, '/__sandbox/churn', { add: 3, delete: 1 })).status).toBe(200)
  expect((await readData()).reviews).toHaveLength(102)
  for (const invalid of ['x', [], { add: -1 }, { add: 'many' }])
    expect((await postJson(sandbox, '/__sandbox/churn', invalid)).status).toBe(400)
})
