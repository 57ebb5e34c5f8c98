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
  const notices: string[] = []
  const transport = createTransport(
    { connectSeconds: 1, responseSeconds: 1, maxResponseBytes: 1000, proxyVariables: {} },
    time.clock,
    (text) => text,
    new AbortController().signal,
  )
  onTestFinished(transport.close)
  const source = createExchangeTokenSource(
    { application_id: 'my app', application_secret: secret, token_url: `${issuer.url}/oauth/token?x=1`, token_request },
    transport.exchange,
    time.clock,
    { notify: (notice) => notices.push(notice) },
  )
  return { source, issuer, notices, ...time }
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
  expect(source.refuse('abc', 0)).toBe(false)
})

test('a configured token that no header can carry is refused with a message that names the config key', async () => {
  for (const token of ['', 'a\nb', 'ä'])
    expect(cause(await createStaticTokenSource(token).getToken()).cause.message).toMatch(/^credentials\.access_token/)
})

test.each([
  ['form by default', {}, 'application/x-www-form-urlencoded', 'appId=my+app&appSecret=p%26s%3Dw%2Ford', undefined],
  ['json', { encoding: 'json' }, 'application/json', `{"appId":"my app","appSecret":"${secret}"}`, undefined],
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

test('a token is used until 5 minutes before it expires', async () => {
  const { source, issuer, pass } = await createTokens(sendToken)
  await source.getToken()
  pass(3_299_000)
  expect(await source.getToken()).toEqual(E.right('t1'))
  pass(2000)
  expect(await source.getToken()).toEqual(E.right('t2'))
  expect(issuer.seen).toHaveLength(2)
})

test('a short-lived token is used for three quarters of its lifetime', async () => {
  const { source, pass } = await createTokens((_, response, count) =>
    sendJson(response, 200, { accessToken: `t${count}`, expiresIn: 400 }),
  )
  await source.getToken()
  pass(299_000)
  expect(await source.getToken()).toEqual(E.right('t1'))
  pass(2000)
  expect(await source.getToken()).toEqual(E.right('t2'))
})

test.each([
  ['none', {}, false],
  ['null', { expiresIn: null }, false],
  ['a word', { expiresIn: 'soon' }, true],
  ['zero', { expiresIn: 0 }, true],
  ['a time that has passed', { expiresIn: '2019-10-01 17:44:46' }, true],
  ['a time far ahead', { expiresIn: '2999-10-01T17:44:46Z' }, true],
])(
  'a token whose expiry is %s is renewed after 25 minutes, and logs that once if one was given',
  async (_, rest, told) => {
    const { source, notices, pass } = await createTokens((_, response, count) =>
      sendJson(response, 200, { accessToken: `t${count}`, ...rest }),
    )
    await source.getToken()
    pass(1_499_000)
    expect(await source.getToken()).toEqual(E.right('t1'))
    pass(2000)
    expect(await source.getToken()).toEqual(E.right('t2'))
    expect(notices).toEqual(told ? [expect.stringContaining('expires_in_field ("expiresIn")')] : [])
  },
)

const servedAt = Date.parse('2019-10-01T17:14:46Z')
test('the expiry counts by the Date of the answer, not by our clock', async () => {
  const { source, notices, pass } = await createTokens((_, response, count) =>
    sendJson(
      response,
      200,
      { accessToken: `t${count}`, status: { code: 200, message: 'Success' }, expiresIn: '2019-10-01 17:44:46' },
      { Date: new Date(servedAt).toUTCString() },
    ),
  )
  await source.getToken()
  pass(1_499_000)
  expect(await source.getToken()).toEqual(E.right('t1'))
  pass(2000)
  expect(await source.getToken()).toEqual(E.right('t2'))
  expect(notices).toEqual([])
})

test('a refused application is asked about once', async () => {
  const { source, issuer } = await createTokens((_, response) =>
    sendJson(response, 200, { status: { code: 401, message: 'Invalid application' } }),
  )
  expect(cause(await source.getToken()).cause.message).toMatch(/refused the application \(200, status\.code 401\)/)
  expect(issuer.seen).toHaveLength(1)
})

test.each([
  ['an outage', { code: 503, message: 'Service temporarily unavailable' }],
  ['a rate limit', { code: 'E1', message: 'Too many requests' }],
])('%s inside a 200 is transient', async (_, status) => {
  const { source, issuer } = await createTokens((_, response) =>
    sendJson(response, 200, { status }, { 'Retry-After': '9' }),
  )
  const error = cause(await source.getToken())
  expect(error.cause).toMatchObject({ _tag: 'Transient', message: expect.stringMatching(/status\.code .*Run again/) })
  expect(error.retryAfter).toBe(9000)
  expect(issuer.seen).toHaveLength(1)
})

test.each([
  ['no body', ''],
  ['a body cut short', '{"accessToken": "abc'],
  ['a page', '<html>maintenance</html>'],
])('an answer with %s may pass, unlike one without a token', async (_, body) => {
  const unreadable = await createTokens((_, response) => sendJson(response, 200, body))
  expect(cause(await unreadable.source.getToken())).toMatchObject({ cause: { _tag: 'Config' }, isUnreadable: true })
  const withoutToken = await createTokens((_, response) => sendJson(response, 200, {}))
  expect(cause(await withoutToken.source.getToken())).not.toHaveProperty('isUnreadable')
})

test('a token does not expire by the wall clock', async () => {
  const issuer = await startServer(sendToken)
  const { clock } = createFakeClock()
  const transport = createTransport(
    { connectSeconds: 1, responseSeconds: 1, maxResponseBytes: 1000, proxyVariables: {} },
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
  expect(source.refuse('t1', 0)).toBe(true)
  await source.getToken()
  expect(source.refuse('t1', 0)).toBe(true)
  expect(await source.getToken()).toEqual(E.right('t2'))
})

test('a refusal does not invalidate a token younger than the given age', async () => {
  const { source, pass } = await createTokens(sendToken)
  await source.getToken()
  pass(59_000)
  expect(source.refuse('t1', 60_000)).toBe(false)
  pass(1000)
  expect(source.refuse('t1', 60_000)).toBe(true)
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
    count === 1 ? sendJson(response, 503) : sendToken(seen, response, count),
  )
  expect(E.isLeft(await source.getToken())).toBe(true)
  expect(await source.getToken()).toEqual(E.right('t2'))
})

test.each<[string, Reply, 'Config' | 'Transient', RegExp]>([
  ['a refusal', (_, response) => sendJson(response, 401, { secret }), 'Config', /application_id.*application_secret/],
  ['a wrong address', (_, response) => sendJson(response, 404), 'Config', /base_url and credentials\.token_url/],
  [
    'a refusal inside a 200',
    (_, response) => sendJson(response, 200, { accessToken: 'x', status: { code: 500, message: secret } }),
    'Config',
    /refused the application \(200, status\.code 500\)/,
  ],
  [
    'a redirect',
    (_, response) => sendJson(response, 302, '', { Location: 'http://elsewhere.example/' }),
    'Config',
    /credentials\.token_url redirects/,
  ],
  ['a redirect to nowhere', (_, response) => sendJson(response, 302, ''), 'Transient', /answered 302\. Run again/],
  ['no JSON', (_, response) => sendJson(response, 200, '<html>'), 'Config', /without a token at "accessToken"/],
  ['no token', (_, response) => sendJson(response, 200, { accessToken: '' }), 'Config', /token_request\.token_field/],
  ['a fault', (_, response) => sendJson(response, 500), 'Transient', /answered 500/],
  ['a closed connection', (_, response) => response.destroy(), 'Transient', /did not answer \(ECONNRESET\)/],
  ['no answer in time', () => undefined, 'Transient', /did not answer completely in time \(ETIMEDOUT\)/],
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
