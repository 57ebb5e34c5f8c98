import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { expect, onTestFinished, test } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { createExchangeTokenSource, createStaticTokenSource } from '../../../connector/api/http/token'
import type { TokenExchange } from '../../../connector/api/http/token-exchange'
import { createTransport } from '../../../connector/api/http/transport'
import { createFakeClock } from '../../support/clock'
import { type Reply, sendJson, startServer } from '../../support/listen'

const secret = 'p&s=w/ord'

const createTokens = async (reply: Reply, token_request: TokenExchange['token_request'] = {}) => {
  const issuer = await startServer(reply)
  const time = createFakeClock()
  const transport = createTransport(
    { connectSeconds: 1, responseSeconds: 1, maxResponseBytes: 1000 },
    time.clock,
    (text) => text,
    new AbortController().signal,
  )
  onTestFinished(transport.close)
  const source = createExchangeTokenSource(
    { application_id: 'my app', application_secret: secret, token_url: `${issuer.url}/oauth/token?x=1`, token_request },
    transport.exchange,
    time.clock,
  )
  return { source, issuer, ...time }
}

const sendToken: Reply = (_, response, count) => sendJson(response, 200, { accessToken: `t${count}`, expiresIn: 3600 })

const cause = (result: E.Either<ApiError, string>) =>
  pipe(
    result,
    E.fold(
      (error) => (error._tag === 'Token' ? error : expect.unreachable(error._tag)),
      (token) => expect.unreachable(token),
    ),
  )

test('a configured token is used as it is, without the line end of the file it came from', async () => {
  const source = createStaticTokenSource('abc\n')
  expect(await source.getToken()).toEqual(E.right('abc'))
  expect(source.isReady()).toBe(true)
  expect(source.invalidate('abc', 0)).toBe(false)
})

test('a configured token that no header can carry is refused with a message that names the config key', async () => {
  for (const token of ['', 'a\nb', 'ä'])
    expect(cause(await createStaticTokenSource(token).getToken()).cause.message).toMatch(/^credentials\.access_token/)
})

test.each([
  ['json', {}, 'application/json', `{"applicationId":"my app","applicationSecret":"${secret}"}`, undefined],
  [
    'form',
    { encoding: 'form', id_field: 'client_id', secret_field: 'client_secret' },
    'application/x-www-form-urlencoded',
    'client_id=my+app&client_secret=p%26s%3Dw%2Ford',
    undefined,
  ],
  [
    'basic',
    { encoding: 'basic' },
    'application/x-www-form-urlencoded',
    '',
    `Basic ${Buffer.from(`my app:${secret}`).toString('base64')}`,
  ],
] as const)(
  'a token request encoded as %s has the configured fields',
  async (_, request, type, body, authorization) => {
    const { source, issuer } = await createTokens(sendToken, request)
    expect(await source.getToken()).toEqual(E.right('t1'))
    expect(issuer.seen).toMatchObject([{ method: 'POST', url: '/oauth/token?x=1', body }])
    expect(issuer.seen[0]?.headers['content-type']).toBe(type)
    expect(issuer.seen[0]?.headers.authorization).toBe(authorization)
  },
)

test('token_field may be a path', async () => {
  const { source } = await createTokens(
    (_, response) => sendJson(response, 200, { data: { auth: { token: 'deep' } } }),
    {
      token_field: 'data.auth.token',
    },
  )
  expect(await source.getToken()).toEqual(E.right('deep'))
})

test('a token is used until a minute before it expires', async () => {
  const { source, issuer, pass } = await createTokens(sendToken)
  expect(source.isReady()).toBe(false)
  await source.getToken()
  pass(3_539_000)
  expect(source.isReady()).toBe(true)
  expect(await source.getToken()).toEqual(E.right('t1'))
  pass(2000)
  expect(source.isReady()).toBe(false)
  expect(await source.getToken()).toEqual(E.right('t2'))
  expect(issuer.seen).toHaveLength(2)
})

test.each([[{}], [{ expiresIn: 'soon' }], [{ expiresIn: 0 }], [{ expiresIn: null }]])(
  'a token without a lifetime (%o) is used until the service refuses it',
  async (rest) => {
    const { source, pass } = await createTokens((_, response, count) =>
      sendJson(response, 200, { accessToken: `t${count}`, ...rest }),
    )
    await source.getToken()
    pass(365 * 86_400_000)
    expect(await source.getToken()).toEqual(E.right('t1'))
    expect(source.invalidate('t1', 60_000)).toBe(true)
    expect(await source.getToken()).toEqual(E.right('t2'))
  },
)

test('a token does not expire by the wall clock', async () => {
  const issuer = await startServer(sendToken)
  const { clock } = createFakeClock()
  const transport = createTransport(
    { connectSeconds: 1, responseSeconds: 1, maxResponseBytes: 1000 },
    clock,
    (text) => text,
    new AbortController().signal,
  )
  onTestFinished(transport.close)
  let wall = 0
  const source = createExchangeTokenSource(
    { application_id: 'a', application_secret: 'b', token_url: issuer.url },
    transport.exchange,
    { ...clock, now: () => wall },
  )
  await source.getToken()
  for (wall of [1e15, -1e15]) expect(await source.getToken()).toEqual(E.right('t1'))
})

test('many requests that wait for a token make one exchange', async () => {
  const { source, issuer } = await createTokens(sendToken)
  const all = await Promise.all(Array.from({ length: 20 }, () => source.getToken()))
  expect(all).toEqual(all.map(() => E.right('t1')))
  expect(issuer.seen).toHaveLength(1)
})

test('a refusal of an older token keeps the newer one', async () => {
  const { source } = await createTokens(sendToken)
  await source.getToken()
  expect(source.invalidate('t1', 0)).toBe(true)
  await source.getToken()
  expect(source.invalidate('t1', 0)).toBe(true)
  expect(await source.getToken()).toEqual(E.right('t2'))
})

test('a refusal does not invalidate a token younger than the given age', async () => {
  const { source, pass } = await createTokens(sendToken)
  await source.getToken()
  pass(59_000)
  expect(source.invalidate('t1', 60_000)).toBe(false)
  pass(1000)
  expect(source.invalidate('t1', 60_000)).toBe(true)
})

test('a token is used to its end while the issuer is down', async () => {
  const { source, pass } = await createTokens((seen, response, count) =>
    count === 1 ? sendToken(seen, response, count) : sendJson(response, 503),
  )
  await source.getToken()
  pass(3_590_000)
  expect(await source.getToken()).toEqual(E.right('t1'))
  pass(20_000)
  expect(cause(await source.getToken()).cause._tag).toBe('Transient')
})

test('a failed exchange is tried again by the next request', async () => {
  const { source } = await createTokens((seen, response, count) =>
    count === 1 ? sendJson(response, 500) : sendToken(seen, response, count),
  )
  expect(E.isLeft(await source.getToken())).toBe(true)
  expect(await source.getToken()).toEqual(E.right('t2'))
})

test.each<[string, Reply, 'Config' | 'Transient', RegExp]>([
  ['a refusal', (_, response) => sendJson(response, 401, { secret }), 'Config', /application_id.*application_secret/],
  ['a wrong address', (_, response) => sendJson(response, 404), 'Config', /credentials\.token_url/],
  [
    'a redirect',
    (_, response) => sendJson(response, 302, '', { Location: 'http://elsewhere.example/' }),
    'Config',
    /credentials\.token_url redirects/,
  ],
  ['no JSON', (_, response) => sendJson(response, 200, '<html>'), 'Config', /without a token at "accessToken"/],
  ['no token', (_, response) => sendJson(response, 200, { accessToken: '' }), 'Config', /token_request\.token_field/],
  ['a fault', (_, response) => sendJson(response, 500), 'Transient', /answered 500/],
  ['a closed connection', (_, response) => response.destroy(), 'Transient', /did not answer \(ECONNRESET\)/],
  ['no answer in time', () => undefined, 'Transient', /did not answer \(ETIMEDOUT\)/],
])('an exchange that ends in %s fails with who must act, and without a secret', async (_, reply, tag, message) => {
  const { source } = await createTokens(reply)
  const error = cause(await source.getToken())
  expect(error.cause._tag).toBe(tag)
  expect(error.cause.message).toMatch(message)
  expect(JSON.stringify(error)).not.toContain(secret)
})

test('a 429 of the issuer says how long to wait', async () => {
  const { source } = await createTokens((_, response) => sendJson(response, 429, {}, { 'Retry-After': '9' }))
  expect(cause(await source.getToken()).retryAfter).toBe(9000)
})
