import net from 'node:net'
import { inspect } from 'node:util'
import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toFailure } from '../../../connector/api/error'
import { type ClientConfig, type ClientOptions, createHttpClient } from '../../../connector/api/http/client'
import { minInterval, type Throttle } from '../../../connector/api/http/rate-limit'
import { createSend } from '../../../connector/api/http/send'
import { createExchangeTokenSource } from '../../../connector/api/http/token'
import type { Transport } from '../../../connector/api/http/transport'
import { bytesResponse, defineRoute, jsonResponse, type Route } from '../../../connector/api/route'
import { createApi, createVisitRecords, exportReviews, lookupSources } from '../../../connector/api/routes'
import { defined } from '../../../connector/cdk/schema'
import { createReviewFetcher } from '../../../connector/export/fetch-page'
import { createFakeClock } from '../../support/clock'
import { type Reply, sendJson, startServer } from '../../support/listen'

const AskInput = t.partial({ text: t.string, ids: t.readonlyArray(t.string), page: t.number, none: t.null })
const askRoute = defineRoute({
  name: 'ask',
  method: 'POST',
  path: '/api/ask',
  tokenHeader: 'accessToken',
  encoding: 'json',
  request: AskInput,
  response: jsonResponse(t.type({ ok: t.boolean })),
  idempotent: true,
})
const tellRoute: typeof askRoute = { ...askRoute, name: 'tell', idempotent: false }
const transparencyRoute: typeof askRoute = { ...askRoute, tokenHeader: 'Access-Token' }

const secret = 's3cr3t/Token+Value='

const startClient = (url: string, config: Partial<ClientConfig> = {}, options: ClientOptions = {}) => {
  const time = createFakeClock()
  const { send, close } = createHttpClient(
    {
      base_url: new URL(url),
      credentials: { auth_type: 'access_token', access_token: secret },
      rate_limit: { max_concurrency: 4 },
      timeouts: { connect_seconds: 5, response_seconds: 5, max_wait_seconds: 600 },
      max_response_mb: 1,
      ...config,
    },
    { clock: () => time.clock, ...options },
  )
  onTestFinished(close)
  return { send, close, ...time }
}

const applicationCredentials = (token_url: string) =>
  ({
    auth_type: 'application',
    application_id: 'app',
    application_secret: secret,
    token_url,
  }) as const

const leftOf = <A>(result: E.Either<A, unknown>): A => {
  if (E.isRight(result)) throw new Error('expected an error')
  return result.left
}

describe('a request', () => {
  test.each<
    [Route<t.TypeOf<typeof AskInput>, unknown>['encoding'], 'GET' | 'POST', string, string, string | undefined]
  >([
    ['json', 'POST', '/root/api/ask', '{"text":"a b","ids":["1","2"],"page":0,"none":null}', 'application/json'],
    ['form', 'POST', '/root/api/ask', 'text=a+b&ids=1&ids=2&page=0', 'application/x-www-form-urlencoded'],
    ['query', 'GET', '/root/api/ask?text=a+b&ids=1&ids=2&page=0', '', undefined],
  ])('is sent as %s in a %s', async (encoding, method, url, body, type) => {
    const service = await startServer((_, response) => sendJson(response, 200, { ok: true }))
    const result = await startClient(`${service.url}/root/`).send({ ...askRoute, encoding, method })({
      text: 'a b',
      ids: ['1', '2'],
      page: 0,
      none: null,
    })()
    expect(result).toEqual(E.right({ ok: true }))
    expect(service.seen).toMatchObject([{ method, url, body }])
    expect(service.seen[0]?.headers['content-type']).toBe(type)
  })

  test.each(['accessToken', 'Access-Token'] as const)(
    'carries the token in the header %s, with that capitalisation',
    async (tokenHeader) => {
      const service = await startServer((_, response) => sendJson(response, 200, { ok: true }))
      await startClient(service.url).send({ ...askRoute, tokenHeader })({})()
      const { rawHeaders = [] } = service.seen[0] ?? {}
      expect(rawHeaders[rawHeaders.indexOf(tokenHeader) + 1]).toBe(secret)
    },
  )

  test('goes to the host of base_url whatever its path', async () => {
    const service = await startServer((_, response) => sendJson(response, 200, { ok: true }))
    await startClient(service.url).send({ ...askRoute, path: '//elsewhere.example/api' })({})()
    expect(service.seen).toMatchObject([{ url: '//elsewhere.example/api' }])
  })

  test('reuses the connection of the one before', async () => {
    const service = await startServer((_, response) => sendJson(response, 200, { ok: true }))
    const connections = new Set<number | undefined>()
    service.server.on('request', ({ socket }) => connections.add(socket.remotePort))
    const { send } = startClient(service.url)
    for (let i = 0; i < 3; i++) await send(askRoute)({})()
    expect(connections.size).toBe(1)
  })

  test('is reported with its status, duration and headers', async () => {
    const service = await startServer((_, response) =>
      sendJson(response, 200, { ok: true }, { 'X-RateLimit-Limit': 60 }),
    )
    const observed: unknown[] = []
    await startClient(service.url, {}, { onRequest: (request) => observed.push(request) }).send(askRoute)({})()
    expect(observed).toEqual([
      {
        operation: 'ask',
        status: 200,
        millis: expect.any(Number),
        headers: expect.objectContaining({ 'x-ratelimit-limit': '60' }),
      },
    ])
  })
})

describe('the time at which the service began to answer', () => {
  const bytesRoute = { ...askRoute, response: bytesResponse(t.unknown) }
  test.each([
    [{ Date: 'Thu, 01 Jan 2026 10:00:00 GMT' }, Date.parse('2026-01-01T10:00:00Z') - 700],
    [{ Date: 'Thu, 01 Jan 2026 10:00:00 GMT', Age: '0' }, Date.parse('2026-01-01T10:00:00Z') - 700],
    [{ Date: 'Thu, 01 Jan 2026 10:00:00 GMT', Age: '3' }, undefined],
    [{ Date: 'yesterday' }, undefined],
  ])('with the headers %o is %s', async (headers, servedAt) => {
    const service = await startServer((_, response) => {
      time.pass(700)
      sendJson(response, 200, {}, headers)
    })
    const time = startClient(service.url)
    expect(await time.send(bytesRoute)({})()).toMatchObject(E.right(defined({ servedAt })))
  })
})

describe('a request fails', () => {
  test('with the message of the error body, on one line, without the texts of the request', async () => {
    const service = await startServer((_, response) =>
      sendJson(response, 403, {
        status: {
          code: 7,
          message: `Ann Smith\n<ann@x.org> may not read: ${secret} ${encodeURIComponent(secret)} (code 7)`,
        },
      }),
    )
    const error = leftOf(await startClient(service.url).send(askRoute)({ text: 'Ann Smith' })())
    expect(error).toEqual({ _tag: 'Http', status: 403, message: '***> may not read: *** (code 7)' })
    expect(service.seen).toHaveLength(1)
  })

  test('with the status where the response has no error body', async () => {
    const service = await startServer((_, response) => sendJson(response, 404, `<html>${secret}</html>`))
    expect(leftOf(await startClient(service.url).send(askRoute)({})())).toEqual({
      _tag: 'Http',
      status: 404,
      basePath: '/',
      message: 'the service answered 404',
    })
  })

  test('on a redirect, which is not followed', async () => {
    const elsewhere = await startServer((_, response) => sendJson(response, 200, { ok: true }))
    const service = await startServer((_, response) =>
      sendJson(response, 307, '', { Location: `${elsewhere.url}/api/ask` }),
    )
    expect(leftOf(await startClient(service.url).send(askRoute)({})())).toEqual({
      _tag: 'Http',
      status: 307,
      message: `base_url redirects to ${elsewhere.url}. Configure the address it redirects to`,
    })
    expect(elsewhere.seen).toEqual([])
  })

  const stray: Readonly<Record<string, Reply>> = {
    'a 302 that names no address': (_, response) => sendJson(response, 302, ''),
    'a 304': (_, response) => void response.writeHead(304, { Location: '/elsewhere' }).end(),
    'a 302 to a page of a gateway': (_, response) => sendJson(response, 302, '', { Location: '/down' }),
    'a 303 to another host': (_, response) => sendJson(response, 303, '', { Location: 'https://down.example/' }),
    'a 301 that names no address': (_, response) => sendJson(response, 301, ''),
  }

  test('not on redirects that pass', async () => {
    const replies = Object.values(stray)
    const service = await startServer((seen, response, count) =>
      count > replies.length ? sendJson(response, 200, { ok: true }) : replies[count - 1]?.(seen, response, count),
    )
    expect(await startClient(service.url).send(askRoute)({})()).toEqual(E.right({ ok: true }))
  })

  test.each([
    ['a 302 that names no address', 'Transient', /the service answered 302\. Run again later/],
    ['a 304', 'Transient', /the service answered 304\. Run again later/],
    ['a 302 to a page of a gateway', 'Config', /base_url redirects to http:\/\/127\.0\.0\.1:\d+\..*\(302\)/],
    ['a 303 to another host', 'Config', /base_url redirects to https:\/\/down\.example\..*\(303\)/],
  ])('on %s that stays, after as many attempts as in an outage', async (name, tag, message) => {
    const service = await startServer(stray[name] as Reply)
    const failure = toFailure('ask', leftOf(await startClient(service.url).send(askRoute)({})()))
    expect(failure).toMatchObject({ _tag: tag, message: expect.stringMatching(message) })
    expect(service.seen).toHaveLength(6)
  })

  test('on a redirect for good, or of what may not be sent twice, at once', async () => {
    const moved = await startServer((_, response) => sendJson(response, 308, '', { Location: 'https://new.example/' }))
    expect(leftOf(await startClient(moved.url).send(askRoute)({})())).toMatchObject({ status: 308 })
    const service = await startServer(stray['a 304'] as Reply)
    expect(leftOf(await startClient(service.url).send(tellRoute)({})())).toMatchObject({ status: 304 })
    expect([moved.seen, service.seen]).toMatchObject([{ length: 1 }, { length: 1 }])
  })

  test('on a response longer than max_response_mb, without a second attempt', async () => {
    const service = await startServer((_, response) => sendJson(response, 200, `"${'x'.repeat(1_000_000)}"`))
    expect(leftOf(await startClient(service.url).send(askRoute)({})())).toEqual({
      _tag: 'TooLarge',
      bytes: 1_000_001,
      limit: 1_000_000,
    })
    expect(service.seen).toHaveLength(1)
  })
})

describe('a request that meets faults', () => {
  test('is sent again after 5xx, resets and responses cut short', async () => {
    const service = await startServer((_, response, count) => {
      if (count === 1) return sendJson(response, 503)
      if (count === 2) return response.destroy()
      if (count === 3) {
        response.writeHead(200, { 'Content-Length': 11 })
        response.write('{"ok"')
        return setImmediate(() => response.destroy())
      }
      if (count === 4) return sendJson(response, 200, '{"ok"')
      sendJson(response, 200, { ok: true })
    })
    const { send, waits } = startClient(service.url)
    expect(await send(askRoute)({})()).toEqual(E.right({ ok: true }))
    expect(waits).toEqual([250, 500, 1000, 250])
  })

  test('is not sent again where it is not idempotent and may have arrived', async () => {
    for (const reply of [503, 0]) {
      const service = await startServer((_, response) => (reply === 0 ? response.destroy() : sendJson(response, reply)))
      expect(leftOf(await startClient(service.url).send(tellRoute)({})())).toMatchObject(
        reply === 0 ? { _tag: 'Network', code: 'ECONNRESET' } : { _tag: 'Http', status: 503 },
      )
      expect(service.seen).toHaveLength(1)
    }
  })

  test('is sent again where it is not idempotent but was never sent', async () => {
    const closed = await startServer(() => undefined)
    closed.server.close()
    const { send, waits } = startClient(closed.url)
    expect(leftOf(await send(tellRoute)({})())).toMatchObject({ _tag: 'Network', code: 'ECONNREFUSED' })
    expect(waits).toHaveLength(5)
  })

  test('is sent again after the wait that a 429 asks for', async () => {
    const service = await startServer((_, response, count) =>
      count === 1 ? sendJson(response, 429, {}, { 'Retry-After': '30' }) : sendJson(response, 200, { ok: true }),
    )
    const until: number[] = []
    const { send, waits, clock } = startClient(service.url, {}, { onWait: (time) => until.push(time) })
    const start = clock.now()
    expect(await send(tellRoute)({})()).toEqual(E.right({ ok: true }))
    expect(until).toEqual([start + 30_250])
    expect(waits[0]).toBe(30_250)
  })

  const tellFirst =
    (times: number, status: object, headers = {}): Reply =>
    (_, response, count) =>
      count <= times ? sendJson(response, 200, { status }, headers) : sendJson(response, 200, { reviews: [] })

  test.each<[string, object, object, ReadonlyArray<number>]>([
    ['an outage', { code: 503, message: 'Service unavailable' }, {}, [250, 500, 1000, 2000]],
    ['a rate limit', { code: 429, message: 'Too many requests' }, {}, [250, 500, 1000, 2000]],
    ['a rate limit with a wait', { code: 429 }, { 'Retry-After': '30' }, [30_250, 30_500, 31_000, 32_000]],
    ['an outage with a wait', { code: 'UNAVAILABLE_503' }, { 'Retry-After': '9' }, [9_250, 9_500, 10_000, 11_000]],
  ])(
    'is sent again with growing waits after %s in the body of an export with status 200',
    async (_, status, headers, expected) => {
      const service = await startServer(tellFirst(4, status, headers))
      const { send, waits } = startClient(service.url)
      const answer = await send(exportReviews)({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z' })()
      expect(E.isRight(answer)).toBe(true)
      expect(waits.filter((wait) => expected.includes(wait))).toEqual(expected)
    },
  )

  test('says until when it waits for a rate limit reported in a body', async () => {
    const service = await startServer(tellFirst(1, { code: 429 }, { 'Retry-After': '30' }))
    const until: number[] = []
    const { send, clock } = startClient(service.url, {}, { onWait: (time) => until.push(time) })
    const start = clock.now()
    await send(exportReviews)({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z' })()
    expect(until).toEqual([start + 30_250])
  })

  test('is sent three times where an export reports another error in its body', async () => {
    const service = await startServer((_, response) =>
      sendJson(response, 200, { status: { code: 'X', message: 'no' } }),
    )
    const { send, waits } = startClient(service.url)
    const fetchPage = createReviewFetcher(createApi(send), () => expect.unreachable('the body is no page'))
    const error = leftOf(await fetchPage({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset: 0, limit: 9 })())
    expect(error).toMatchObject({ _tag: 'Application', code: 'X' })
    expect(waits).toEqual([250, 500])
    expect(service.seen).toHaveLength(3)
  })

  test.each([
    ['rows and a status of success', { reviews: [{ id: 1 }], status: { code: 200, message: 'Success' } }],
    ['rows and a code of its own', { reviews: [{ id: 1 }], status: { code: 7, message: 'partial' } }],
    ['no rows and a status of success', { reviews: [], status: { code: 0, message: 'success' } }],
  ])('is not sent again after an export with %s', async (_, page) => {
    const service = await startServer((_, response) => sendJson(response, 200, page))
    const answer = await startClient(service.url).send(exportReviews)({
      modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
    })()
    expect(E.isRight(answer) && JSON.parse(Buffer.from(answer.right.body).toString())).toEqual(page)
    expect(service.seen).toHaveLength(1)
  })

  test('fails where the service asks to wait longer than max_wait_seconds', async () => {
    const service = await startServer((_, response) => sendJson(response, 429, {}, { 'Retry-After': '601' }))
    const { send, waits } = startClient(service.url)
    expect(leftOf(await send(askRoute)({})())).toEqual({ _tag: 'Wait', wait: 601_000, limit: 600_000 })
    expect(waits).toEqual([])
  })

  test('fails after repeated 429 before it has waited longer than max_wait_seconds', async () => {
    const service = await startServer((_, response) => sendJson(response, 429, {}, { 'Retry-After': '100' }))
    const { send, clock } = startClient(service.url)
    const start = clock.ticks()
    expect(leftOf(await send(askRoute)({})())).toMatchObject({ _tag: 'Http', status: 429 })
    expect(service.seen).toHaveLength(6)
    expect(clock.ticks() - start).toBeLessThanOrEqual(600_000)
  })
})

describe('an error holds no secret', () => {
  const hidden = [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64'), 't0k3n']
  test.each<[string, Reply]>([
    ['a response cut short', (_, response) => response.destroy()],
    [
      'an error body that repeats the request',
      (seen, response) => sendJson(response, 400, { status: { message: JSON.stringify(seen) } }),
    ],
    [
      'a redirect to an address with the token',
      (seen, response) => sendJson(response, 302, '', { Location: `/${seen.headers.accesstoken}` }),
    ],
    ['a response too large', (_, response) => sendJson(response, 200, 'x'.repeat(1_000_001))],
    ['a broken compression', (_, response) => sendJson(response, 200, 'x', { 'Content-Encoding': 'gzip' })],
    ['something other than HTTP', (_, response) => void response.socket?.end('hello')],
    ['headers too large', (_, response) => sendJson(response, 200, {}, { 'X-Large': 'x'.repeat(100_000) })],
  ])('where the service answers with %s', async (_, reply) => {
    const service = await startServer((seen, response, count) =>
      seen.url === '/token' ? sendJson(response, 200, { accessToken: 't0k3n' }) : reply(seen, response, count),
    )
    const { send } = startClient(service.url, { credentials: applicationCredentials(`${service.url}/token`) })
    const error = inspect(leftOf(await send(askRoute)({})()), { depth: 9, showHidden: true })
    for (const text of hidden) expect(error).not.toContain(text)
  })
})

describe('a request gives up', () => {
  const shortTimeouts = { timeouts: { connect_seconds: 0.2, response_seconds: 0.2, max_wait_seconds: 1 } }

  test('where the service never answers', async () => {
    const service = await startServer(() => undefined)
    expect(leftOf(await startClient(service.url, shortTimeouts, { attempts: 1 }).send(askRoute)({})())).toEqual({
      _tag: 'Network',
      code: 'ETIMEDOUT',
      message: 'no complete answer within 0.2 s (timeouts.response_seconds)',
    })
  })

  test('where the response comes byte by byte for longer than the time-out', async () => {
    const service = await startServer((_, response) => {
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(timer))
    })
    expect(leftOf(await startClient(service.url, shortTimeouts, { attempts: 1 }).send(askRoute)({})())).toMatchObject({
      code: 'ETIMEDOUT',
    })
  })

  test('where the service accepts the connection but does not speak TLS', async () => {
    const silent = net.createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as net.AddressInfo
    const longResponse = { timeouts: { ...shortTimeouts.timeouts, response_seconds: 5 } }
    const { send, close } = startClient(`https://127.0.0.1:${port}`, longResponse, { attempts: 1 })
    expect(leftOf(await send(askRoute)({})())).toEqual({
      _tag: 'Network',
      code: 'ECONNTIMEDOUT',
      message: 'no connection within 0.2 s (timeouts.connect_seconds)',
    })
    await close()
  })

  test('when the client is closed, and so does a later one', async () => {
    const { send, close } = startClient((await startServer(() => void close())).url)
    expect(leftOf(await send(askRoute)({})())).toMatchObject({ _tag: 'Network', code: 'ABORTED' })
    expect(leftOf(await send(askRoute)({})())).toMatchObject({ _tag: 'Network', code: 'ABORTED' })
  })
})

describe('a token is renewed', () => {
  const startService = (refusal: number) =>
    startServer(({ url, headers }, response) => {
      if (url === '/token') return sendJson(response, 200, { accessToken: `t${++issued}` })
      const token = headers.accesstoken ?? headers['access-token']
      return token === 't1' ? sendJson(response, refusal) : sendJson(response, 200, { ok: true })
    })
  let issued = 0

  test.each([
    ['after a 401 of a transparency operation, at any age', transparencyRoute, 401, 0, true],
    ['not after a 400 of a transparency operation', transparencyRoute, 400, 120_000, false],
    ['after a 400 of another operation', askRoute, 400, 120_000, true],
    ['after a 401 of another operation', askRoute, 401, 120_000, true],
    ['after a 403 of another operation', askRoute, 403, 120_000, true],
    ['after a 401 of another operation, at any age', askRoute, 401, 0, true],
    ['not after a 403 of another operation while it is new', askRoute, 403, 1000, false],
    ['after a 401 of an operation that is not idempotent, which is sent again', tellRoute, 401, 120_000, true],
  ])('%s', async (_, operation, status, age, renewed) => {
    issued = 0
    const { url, seen } = await startService(status)
    const { send, pass } = startClient(url, { credentials: applicationCredentials(`${url}/token`) })
    const first = send({ ...operation, path: '/token', response: jsonResponse(t.unknown) })({})
    await first()
    pass(age)
    const before = seen.length
    const result = await send(operation)({})()
    expect(E.isRight(result)).toBe(renewed)
    expect(seen.slice(before).map(({ url }) => url)).toEqual(
      renewed ? ['/api/ask', '/token', '/api/ask'] : ['/api/ask'],
    )
  })

  test.each([
    ['a number', { code: 401, message: 'expired' }],
    ['text', { code: '401', message: null }],
    ['a word', { code: 'TOKEN_EXPIRED', message: 'log in again' }],
  ])('after a 401 in the body of an export with status 200, its code %s', async (_, status) => {
    let tokens = 0
    const { url, seen } = await startServer(({ url, headers }, response) =>
      url === '/token'
        ? sendJson(response, 200, { accessToken: `t${++tokens}` })
        : sendJson(response, 200, headers.accesstoken === 't1' ? { status } : { reviews: [] }),
    )
    const { send } = startClient(url, { credentials: applicationCredentials(`${url}/token`) })
    const result = await send(exportReviews)({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z' })()
    expect(E.isRight(result) && Buffer.from(result.right.body).toString()).toBe('{"reviews":[]}')
    expect(seen.map(({ url }) => url)).toEqual(['/token', exportReviews.path, '/token', exportReviews.path])
  })

  test.each([
    ['a lookup', 50_000, { code: 'SESSION', message: 'over' }, false],
    ['a lookup', 60_000, { code: 'SESSION', message: 'over' }, true],
    ['an export', 50_000, { code: 1003, message: 'Access token has expired' }, false],
    ['an export', 60_000, { code: 1003, message: 'Access token has expired' }, true],
    // Another token mends neither.
    ['an export', 60_000, { code: 503, message: 'Service unavailable' }, false],
    ['a lookup', 60_000, { code: 'E1', message: 'rate limit exceeded' }, false],
  ])('after an error in a body of %s, a token of %i ms, %j: %s', async (name, age, status, isRenewed) => {
    const { url, seen } = await startServer(({ url, headers }, response, count) =>
      sendJson(
        response,
        200,
        url === '/token' ? { accessToken: `t${count}` } : headers.accesstoken === 't1' ? { status } : { reviews: [] },
      ),
    )
    const limits = { timeouts: { connect_seconds: 5, response_seconds: 5, max_wait_seconds: 1 } }
    const { send, pass, waits } = startClient(url, { credentials: applicationCredentials(`${url}/token`), ...limits })
    const ask = (): Promise<E.Either<unknown, unknown>> =>
      name === 'a lookup'
        ? send(lookupSources)({})()
        : send(exportReviews)({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z' })()
    await ask()
    pass(age - waits.reduce((sum, wait) => sum + wait, 0))
    const before = seen.length
    const answer = await ask()
    expect(E.isRight(answer)).toBe(isRenewed)
    expect(seen.slice(before).some(({ url }) => url === '/token')).toBe(isRenewed)
  })

  test.each([400, 403, 500])('not after a %i in a body with status 200, which is about the request', async (code) => {
    const { url, seen } = await startServer(({ url }, response) =>
      sendJson(response, 200, url === '/token' ? { accessToken: 't' } : { status: { code, message: 'no' } }),
    )
    const { send, pass } = startClient(url, { credentials: applicationCredentials(`${url}/token`) })
    await send({ ...askRoute, path: '/token', response: jsonResponse(t.unknown) })({})()
    pass(120_000)
    const before = seen.length
    expect(leftOf(await send(createVisitRecords)([])())).toMatchObject({ _tag: 'Application', code: String(code) })
    expect(seen.slice(before).map(({ url }) => url)).toEqual([createVisitRecords.path])
  })

  test.each([
    // The new token is tried once more, since it may be too new.
    [
      'that can be renewed, once',
      true,
      ['/token', exportReviews.path, '/token', exportReviews.path, exportReviews.path],
    ],
    ['that is configured, not at all', false, [exportReviews.path]],
  ])('after a 401 in every body with status 200, for a token %s', async (_, renewable, expected) => {
    const { url, seen } = await startServer(({ url }, response) =>
      sendJson(response, 200, url === '/token' ? { accessToken: 't' } : { status: { code: 401, message: 'no' } }),
    )
    const credentials = renewable ? { credentials: applicationCredentials(`${url}/token`) } : {}
    const api = createApi(startClient(url, credentials).send)
    const fetchPage = createReviewFetcher(api, () => expect.unreachable('the body is no page'))
    const error = leftOf(await fetchPage({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset: 0, limit: 9 })())
    expect(toFailure('export reviews', error)).toMatchObject({
      _tag: 'Config',
      message: expect.stringMatching(/token.*expired\. Check credentials/),
    })
    expect(seen.map(({ url }) => url)).toEqual(expected)
  })
})

describe('a token that the service does not know yet when it is issued', () => {
  const startService = (delay: number, refusal: 'status' | 'body') => {
    const issuedAt = new Map<string, number>()
    let now = () => 0
    const started = startServer(({ url, headers }, response) => {
      if (url === '/token') {
        const accessToken = `t${issuedAt.size}`
        issuedAt.set(accessToken, now())
        return sendJson(response, 200, { accessToken })
      }
      const token = String(headers.accesstoken ?? headers['access-token'])
      if (now() - (issuedAt.get(token) ?? 0) >= delay) return sendJson(response, 200, { ok: true, reviews: [] })
      return refusal === 'status' ? sendJson(response, 401) : sendJson(response, 200, { status: { code: 401 } })
    })
    return { started, useClock: (ticks: () => number) => (now = ticks) }
  }
  const ask = async (delay: number, route: typeof askRoute | typeof exportReviews, refusal: 'status' | 'body') => {
    const { started, useClock } = startService(delay, refusal)
    const { url, seen } = await started
    const { send, clock, waits } = startClient(url, { credentials: applicationCredentials(`${url}/token`) })
    useClock(clock.ticks)
    const answer: E.Either<unknown, unknown> =
      route === exportReviews
        ? await send(exportReviews)({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z' })()
        : await send(route as typeof askRoute)({})()
    return { answer, waits, exchanges: seen.filter((one) => one.url === '/token').length }
  }

  test.each([
    ['an operation', askRoute, 'status'],
    ['a transparency operation', transparencyRoute, 'status'],
    ['an operation that is not idempotent', tellRoute, 'status'],
    ['an export, told in a body', exportReviews, 'body'],
  ] as const)('is sent again with %s', async (_, route, refusal) => {
    for (const delay of [100, 400, 1500]) {
      const { answer, waits, exchanges } = await ask(delay, route, refusal)
      expect(answer).toMatchObject({ _tag: 'Right' })
      expect(exchanges).toBe(2)
      expect(waits).toEqual([2000])
    }
  })

  test('is exchanged few times for many requests', async () => {
    const { started, useClock } = startService(400, 'status')
    const { url, seen } = await started
    const { send, clock } = startClient(url, { credentials: applicationCredentials(`${url}/token`) })
    useClock(clock.ticks)
    const sendTen = async () => {
      const answers: E.Either<unknown, unknown>[] = []
      for (let i = 0; i < 10; i += 1) answers.push(await send(askRoute)({})())
      return answers
    }
    const answers = (await Promise.all(Array.from({ length: 8 }, sendTen))).flat()
    expect(answers.filter(E.isLeft)).toEqual([])
    expect(seen.filter((one) => one.url === '/token').length).toBeLessThanOrEqual(3)
  })

  test('is wrong after some seconds', async () => {
    const { answer, waits, exchanges } = await ask(60_000, askRoute, 'status')
    expect(answer).toMatchObject({ left: { _tag: 'Http', status: 401 } })
    expect(exchanges).toBe(2)
    expect(waits).toEqual([2000])
  })
})

describe('a token exchange takes a turn of the rate limit', () => {
  test.each([
    ['lives long', 3600, 60, true],
    ['expires while other requests wait', 5, 60, true],
    ['expires while other requests wait, few of which there are a minute', 160, 2, true],
    ['expires before the next turn, so that the service refuses it', 0.5, 60, false],
  ])('where a token %s: %d s, %d requests a minute', async (_, expiresIn, perMinute, isEnough) => {
    const { clock } = createFakeClock()
    const interval = minInterval(perMinute)
    const sentAt: number[] = []
    const expiries = new Map<string, number>()
    let turns: Promise<unknown> = Promise.resolve()
    const throttle: Throttle = {
      run: (request) => () => {
        const turn = turns.then(async () => {
          await clock.wait(interval)()
          return request()
        })
        turns = turn
        return turn
      },
    }
    const concurrency = 4
    const transport: Pick<Transport, 'exchange'> = {
      exchange: ({ url, headers }) => {
        sentAt.push(clock.ticks())
        const token = `t${sentAt.length}`
        const isValid = clock.ticks() < (expiries.get(headers?.accessToken ?? '') ?? 0)
        if (url.pathname === '/token') expiries.set(token, clock.ticks() + expiresIn * 1000)
        const body = url.pathname === '/token' ? { accessToken: token, expiresIn } : { ok: true }
        const status = url.pathname === '/token' || isValid ? 200 : 401
        return TE.right({ status, headers: {}, body: Buffer.from(JSON.stringify(body)), millis: 1 })
      },
    }
    const exchange = { application_id: 'a', application_secret: 'b', token_url: 'https://issuer.example/token' }
    const send = createSend({
      baseUrl: new URL('https://service.example'),
      token: createExchangeTokenSource(exchange, transport.exchange, clock, { waitForTurn: throttle.run }),
      throttle,
      transport,
      retryLimits: { maxAttempts: 1, maxWait: 0 },
      clock,
      secrets: [],
      observer: {},
    })
    const sendTen = async () => {
      const answers: E.Either<unknown, unknown>[] = []
      for (let i = 0; i < 10; i += 1) answers.push(await send(askRoute)({})())
      return answers
    }
    const answers = (await Promise.all(Array.from({ length: concurrency }, sendTen))).flat()
    expect(answers.every(E.isRight)).toBe(isEnough)
    if (!isEnough) expect(answers.filter(E.isLeft)[0]).toMatchObject({ left: { _tag: 'Http', status: 401 } })
    for (const from of sentAt)
      expect(sentAt.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(perMinute)
  })
})
