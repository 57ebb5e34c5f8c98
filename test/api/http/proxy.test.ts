import net from 'node:net'
import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { toFailure } from '../../../connector/api/error'
import { type ClientConfig, createHttpClient } from '../../../connector/api/http/client'
import { createJsonClient } from '../../../connector/api/http/json-client'
import { findProxy } from '../../../connector/api/http/proxy'
import { createVisitRecords, lookupSources } from '../../../connector/api/routes'
import { createFakeClock } from '../../support/clock'
import { sendJson, startServer } from '../../support/listen'
import { type ProxySettings, startProxyProcess } from '../../support/proxy-process'

const service = new URL('https://feedback.example.com/api')

/** Host and port of the proxy for an address; undefined for none. */
const proxyFor = (env: Readonly<Record<string, string>>, url: string): string | undefined => {
  const found = findProxy(env, new URL(url))
  if (E.isLeft(found)) throw new Error(JSON.stringify(found.left))
  return found.right && `${found.right.protocol}//${found.right.hostname}:${found.right.port} ${found.right.variable}`
}

test.each<[Record<string, string>, string, string | undefined]>([
  [{}, 'https://a.example', undefined],
  [{ HTTPS_PROXY: 'http://p:3128' }, 'https://a.example', 'http://p:3128 HTTPS_PROXY'],
  [{ HTTPS_PROXY: 'http://p:3128', https_proxy: 'http://q:1' }, 'https://a.example', 'http://q:1 https_proxy'],
  [{ HTTPS_PROXY: 'http://p:3128', https_proxy: '' }, 'https://a.example', 'http://p:3128 HTTPS_PROXY'],
  [{ HTTPS_PROXY: 'http://p:3128' }, 'http://a.example', undefined],
  [{ HTTP_PROXY: 'http://p:3128' }, 'http://a.example', 'http://p:3128 HTTP_PROXY'],
  [{ http_proxy: 'http://p:3128' }, 'https://a.example', undefined],
  [{ ALL_PROXY: 'http://p:3128' }, 'https://a.example', 'http://p:3128 ALL_PROXY'],
  [{ all_proxy: 'socks5://p:1', HTTPS_PROXY: 'p:3128' }, 'https://a.example', 'http://p:3128 HTTPS_PROXY'],
  [{ HTTPS_PROXY: 'p' }, 'https://a.example', 'http://p:80 HTTPS_PROXY'],
  [{ HTTPS_PROXY: ' https://p/ ' }, 'https://a.example', 'https://p:443 HTTPS_PROXY'],
  [{ HTTPS_PROXY: 'HTTP://P:80' }, 'https://a.example', 'http://p:80 HTTPS_PROXY'],
  [{ HTTPS_PROXY: 'http://[fd00::1]:3128' }, 'https://a.example', 'http://fd00::1:3128 HTTPS_PROXY'],
  ...['http://localhost:1', 'https://a.localhost', 'http://127.0.0.7', 'http://[::1]:8080'].map(
    (url): [Record<string, string>, string, undefined] => [
      { HTTPS_PROXY: 'p', HTTP_PROXY: 'p', ALL_PROXY: 'p' },
      url,
      undefined,
    ],
  ),
])('with %j, %s goes through %s', (env, url, expected) => {
  expect(proxyFor(env, url)).toBe(expected)
})

test.each<[string, string, boolean]>([
  ['*', 'https://a.example', true],
  ['x.example, *', 'https://a.example', true],
  ['a.example', 'https://a.example', true],
  ['a.example', 'https://b.a.example', true],
  ['.a.example', 'https://a.example', true],
  ['.a.example', 'https://b.a.example', true],
  ['*.a.example', 'https://b.a.example', true],
  ['a.example', 'https://ba.example', false],
  ['b.a.example', 'https://a.example', false],
  ['A.Example', 'https://a.example', true],
  ['a.example.', 'https://a.example', true],
  ['a.example', 'https://a.example./', true],
  ['x.example ,  a.example', 'https://a.example', true],
  ['x.example a.example', 'https://a.example', true],
  [',, ,', 'https://a.example', false],
  ['.', 'https://a.example', false],
  ['a.example:443', 'https://a.example', true],
  ['a.example:8443', 'https://a.example', false],
  ['a.example:8443', 'https://a.example:8443', true],
  ['10.0.0.1', 'https://10.0.0.1', true],
  ['10.0.0.1', 'https://10.0.0.12', false],
  ['0.0.1', 'https://10.0.0.1', false],
  ['10.0.0.0/8', 'https://10.200.3.4', true],
  ['10.0.0.0/8', 'https://11.0.0.1', false],
  ['10.0.0.0/33', 'https://10.0.0.0', false],
  ['10.0.0.0/', 'https://11.0.0.0', false],
  ['10.0.0.0/8', 'https://a.example', false],
  ['fd00::/8', 'https://[fd12:3456::1]', true],
  ['[fd00::1]', 'https://[fd00::1]', true],
  ['[fd00::1]:8443', 'https://[fd00::1]', false],
  ['fd00:0:0:0::1', 'https://[fd00::1]', true],
  ['fd00::/8', 'https://10.0.0.1', false],
])('NO_PROXY=%j leaves %s out: %s', (noProxy, url, isExempt) => {
  for (const name of ['NO_PROXY', 'no_proxy'])
    expect(proxyFor({ HTTPS_PROXY: 'p:1', [name]: noProxy }, url) === undefined).toBe(isExempt)
})

test.each([
  'http://jane:p#s5word@p:3128',
  'http://jane:12/p4ss@p:3128',
  'http://corp\\jane:s3cret@p:3128',
  'http://',
  'socks5://jane:s3cret@p:1080',
])('the address %s of a proxy is refused, with the variable and without what it holds', (value) => {
  const found = findProxy({ HTTPS_PROXY: value }, service)
  const failure = E.isLeft(found) ? toFailure('export reviews', found.left) : undefined
  expect(failure).toMatchObject({ _tag: 'Config', message: expect.stringMatching(/variable HTTPS_PROXY .*Give one/) })
  expect(JSON.stringify(found)).not.toMatch(/jane|p#|:12|s3cret|s5word|p4ss/)
})

const startClient = (
  base_url: string,
  proxyVariables: Readonly<Record<string, string>>,
  config: Partial<ClientConfig> = {},
) => {
  const { clock } = createFakeClock()
  const client = createHttpClient(
    {
      base_url: new URL(base_url),
      credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
      rate_limit: { max_concurrency: 4 },
      timeouts: { connect_seconds: 5, response_seconds: 20, max_wait_seconds: 600 },
      max_response_mb: 1,
      ...config,
    },
    { clock: () => clock, attempts: 2, proxyVariables },
  )
  onTestFinished(client.close)
  return client
}

/** A client behind a proxy, which `variable` names. */
const startBehind = async (
  settings: ProxySettings,
  { base_url = 'https://feedback.test', variable = 'HTTPS_PROXY', user = '', config = {} } = {},
) => {
  const proxy = await startProxyProcess(settings)
  return { ...proxy, ...startClient(base_url, { [variable]: `http://${user}${proxy.address}` }, config) }
}

const failureOf = (result: E.Either<Parameters<typeof toFailure>[1], unknown>) => {
  if (E.isRight(result)) throw new Error('expected an error')
  return toFailure('look up sources', result.left)
}

const page = JSON.stringify({ sources: [{ id: 666 }] })
const glued = (status: string) =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${page.length}\r\n\r\n${page}`

describe('an answer of the proxy to CONNECT', () => {
  test.each<[string, string, 'Config' | 'Transient', RegExp, number]>([
    ['201 with a page', glued('201 Created'), 'Config', /answers 201 and a page of its own/, 1],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', 'Config', /answers 204/, 1],
    ['200 with a page glued behind', glued('200 OK'), 'Config', /answers 200 and a page of its own/, 1],
    ['302', 'HTTP/1.1 302 Found\r\nLocation: https://login.corp.test/\r\n\r\n', 'Config', /log-in first/, 1],
    ['403', glued('403 Forbidden'), 'Config', /refuses connections to feedback\.test:443 \(403\)/, 1],
    ['404', glued('404 Not Found'), 'Config', /answers 404/, 1],
    ['407', 'HTTP/1.1 407 Who\r\n\r\n', 'Config', /asks for user name and password \(407\)/, 1],
    [
      '407 for NTLM alone',
      'HTTP/1.1 407 Who\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n\r\n',
      'Config',
      /does not accept Basic authentication/,
      1,
    ],
    ['429', 'HTTP/1.1 429 Slow\r\n\r\n', 'Transient', /cannot connect to feedback\.test:443 \(429\)/, 2],
    ['502', glued('502 Bad Gateway'), 'Transient', /cannot connect to feedback\.test:443 \(502\)/, 2],
    ['511', glued('511 Log in'), 'Config', /answers 511/, 1],
    ['that is no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', 'Config', /does not answer as an HTTP proxy \(HPE_/, 1],
    ['that is none: it closes', '', 'Transient', /gives no connection \(ECONNRESET\)/, 2],
  ])('(%s) is never one of the service, and named', async (_, answer, tag, says, asked) => {
    const { address, listSeen, send } = await startBehind({ answer })
    const failure = failureOf(await send(lookupSources)({})())
    expect(failure).toMatchObject({ _tag: tag, message: expect.stringMatching(says) })
    expect(failure.message).toContain(`the proxy ${address} (HTTPS_PROXY)`)
    expect(failure.message).not.toMatch(/login\.corp|the token|base_url/)
    expect(failure.scope).toBe(tag === 'Config' ? 'run' : undefined)
    expect((await listSeen()).map(({ method, url }) => [method, url])).toEqual(
      Array.from({ length: asked }, () => ['CONNECT', 'feedback.test:443']),
    )
  })

  test('means the same to a write, which was not sent and so is tried again, and to a token exchange', async () => {
    const { listSeen, send } = await startBehind({ answer: glued('201 Created') })
    expect(failureOf(await send(createVisitRecords)([])())).toMatchObject({ message: expect.stringMatching(/ 201 /) })
    expect(await listSeen()).toHaveLength(1)
    const out = await startBehind({ answer: glued('503 Down') })
    expect(failureOf(await out.send(createVisitRecords)([])())._tag).toBe('Transient')
    expect(await out.listSeen()).toHaveLength(2)
    const credentials = {
      auth_type: 'application',
      application_id: 'app',
      application_secret: 'not-for-anybody',
      token_url: 'https://issuer.test/token',
    } as const
    const issuer = await startBehind({ answer: glued('403 No') }, { config: { credentials } })
    expect(failureOf(await issuer.send(lookupSources)({})()).message).toContain(
      'refuses connections to issuer.test:443',
    )
    expect(await issuer.listSeen()).toHaveLength(1)
  })
})

test('a tunnel that ends at something other than TLS names the proxy, too', async () => {
  const server = await startServer((_, response) => sendJson(response, 200, page))
  const { address, send } = await startBehind({ upstream: server.port })
  expect(failureOf(await send(lookupSources)({})())).toMatchObject({
    _tag: 'Config',
    message: expect.stringContaining(`feedback.test:443 through the proxy ${address} (HTTPS_PROXY) does not speak TLS`),
  })
  expect(server.seen).toEqual([])
})

test('a proxy gets user name and password decoded, and no message has them', async () => {
  const [name, password] = ['corp\\jane@x', 'p@ss:w/%rd=;1']
  const wrong = await startBehind(
    { user: 'someone:else' },
    { user: `${encodeURIComponent(name)}:${encodeURIComponent(password)}@` },
  )
  const failure = failureOf(await wrong.send(lookupSources)({})())
  expect(failure.message).toMatch(/refuses our user name and password \(407\)\. Correct those in HTTPS_PROXY/)
  expect(JSON.stringify(failure)).not.toMatch(/jane|p@ss|p%40ss/)
  const [seen] = await wrong.listSeen()
  const sent = seen?.headers['proxy-authorization']?.replace('Basic ', '')
  expect(Buffer.from(sent ?? '', 'base64').toString()).toBe(`${name}:${password}`)
  expect(seen?.headers).not.toHaveProperty('accesstoken')
})

test('connect_seconds holds for a proxy that says nothing, and closing the client does not wait for it', async () => {
  const timeouts = { connect_seconds: 0.2, response_seconds: 20, max_wait_seconds: 600 }
  const { listSeen, send } = await startBehind({ silent: true }, { config: { timeouts } })
  expect(failureOf(await send(lookupSources)({})()).message).toMatch(/gives no connection \(ECONNTIMEDOUT\)/)
  expect(await listSeen()).toHaveLength(2)
  const patient = await startBehind({ silent: true }, { config: { timeouts: { ...timeouts, connect_seconds: 600 } } })
  const answer = patient.send(lookupSources)({})()
  await vi.waitUntil(async () => (await patient.listSeen()).length > 0, { timeout: 10_000 })
  await patient.close()
  expect(await answer).toMatchObject({ left: { _tag: 'Network', code: 'ABORTED' } })
})

test('a proxy that is down is named, and no variable means nothing to it', async () => {
  const { server, port } = await startServer(() => undefined)
  await new Promise((resolve) => server.close(resolve))
  for (const [variable, base_url] of [
    ['HTTPS_PROXY', 'https://feedback.test'],
    ['http_proxy', 'http://feedback.test'],
  ] as const) {
    const failure = failureOf(
      await startClient(base_url, { [variable]: `127.0.0.1:${port}` }).send(lookupSources)({})(),
    )
    expect(failure.message).toBe(
      `look up sources: the proxy 127.0.0.1:${port} (${variable}) gives no ` +
        `connection (ECONNREFUSED). Check ${variable}, or run again later.`,
    )
  }
})

test('a proxy that is addressed over TLS but does not support it is distinguished from the service', async () => {
  const plain = net.createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void plain.close())
  const HTTPS_PROXY = `https://127.0.0.1:${(plain.address() as net.AddressInfo).port}`
  expect(
    failureOf(await startClient('https://feedback.test', { HTTPS_PROXY }).send(lookupSources)({})()),
  ).toMatchObject({
    _tag: 'Config',
    message: expect.stringMatching(/no secure connection to the proxy 127.*\(EPROTO\).*begins with http:\/\//),
  })
})

test('the client of the kit uses the proxies that it is given', async () => {
  const proxy = await startProxyProcess({ answer: glued('403 No') })
  const proxyVariables = { HTTPS_PROXY: proxy.address }
  const client = createJsonClient({ base_url: 'https://api.test', proxyVariables })
  onTestFinished(client.close)
  expect(await client.get('items', {}, t.unknown)()).toMatchObject({
    left: {
      _tag: 'Config',
      message: expect.stringContaining(`items: the proxy ${proxy.address} (HTTPS_PROXY) refuses`),
    },
  })
})

describe('plain http', () => {
  const base_url = 'http://feedback.test:8080/base'
  const variable = 'http_proxy'

  test('is forwarded, not tunnelled, over a connection that is kept', async () => {
    const server = await startServer((_, response) => sendJson(response, 200, { sources: [] }))
    const { listSeen, send } = await startBehind(
      { upstream: server.port, user: 'u:p' },
      { base_url, variable, user: 'u:p@' },
    )
    for (let n = 0; n < 3; n++) expect(await send(lookupSources)({})()).toMatchObject(E.right({ sources: [] }))
    expect((await listSeen()).map(({ method, url, headers }) => [method, url, headers.host])).toEqual(
      Array.from({ length: 3 }, () => ['GET', `${base_url}${lookupSources.path}`, 'feedback.test:8080']),
    )
    expect(server.seen.map(({ url, headers }) => [url, headers.accesstoken ?? headers['access-token']])).toEqual(
      Array.from({ length: 3 }, () => [`/base${lookupSources.path}`, 'not-for-anybody']),
    )
  })

  test.each<[string, RegExp]>([
    ['407 Who', /the proxy \S+ \(http_proxy\) asks for user name and password \(407\)/],
    ['403 No', /\(403\)\. The answer may be that of the proxy \S+ \(http_proxy\)\.$/],
    ['502 No', /answered 502\. Run again later\. The answer may be that of the proxy \S+ \(http_proxy\)\.$/],
    [
      '301 Go\r\nLocation: https://login.test/',
      /base_url, or the proxy \S+ \(http_proxy\) before it, redirects to https:\/\/login\.test\. Find out which/,
    ],
  ])("an answer %j may be the proxy's own", async (status, says) => {
    const answer = `HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`
    const { send } = await startBehind({ answer }, { base_url, variable })
    const failure = failureOf(await send(lookupSources)({})())
    expect(failure.message).toMatch(says)
    expect(failure.message).not.toContain('Configure the address')
  })
})
