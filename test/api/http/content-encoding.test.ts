import zlib, { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import * as E from 'fp-ts/Either'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { toFailure } from '../../../connector/api/error'
import { type ClientConfig, createHttpClient } from '../../../connector/api/http/client'
import { createVisitRecords, exportReviews, lookupSources } from '../../../connector/api/routes'
import { createFakeClock } from '../../support/clock'
import { type Reply, sendJson, startServer } from '../../support/listen'

const sources = { sources: [{ id: 1, name: 'A' }] }
const page = '{"reviews":[],"filter":{}}'

const startClient = (url: string, config: Partial<ClientConfig> = {}) => {
  const time = createFakeClock()
  const client = createHttpClient(
    {
      base_url: new URL(url),
      credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
      rate_limit: { max_concurrency: 4 },
      timeouts: { connect_seconds: 5, response_seconds: 5, max_wait_seconds: 600 },
      max_response_mb: 1,
      ...config,
    },
    { clock: () => time.clock },
  )
  onTestFinished(client.close)
  return { ...client, ...time }
}

const leftOf = <A>(result: E.Either<A, unknown>): A => {
  if (E.isRight(result)) throw new Error('expected an error')
  return result.left
}

/** A service that answers with these bytes under this Content-Encoding. */
const encoded =
  (encoding: string | undefined, bytes: Buffer, status = 200): Reply =>
  (_, response) =>
    sendJson(response, status, bytes, encoding === undefined ? {} : { 'Content-Encoding': encoding })

const text = Buffer.from(JSON.stringify(sources))
const sentinel = vi.fn()

beforeEach(() => {
  sentinel.mockClear()
  for (const name of ['createBrotliDecompress', 'createZstdDecompress'] as const)
    if (name in zlib)
      vi.spyOn(zlib, name as 'createBrotliDecompress').mockImplementation(() => {
        sentinel()
        throw new Error(`${name} was called`)
      })
})
afterEach(() => {
  vi.restoreAllMocks()
  expect(sentinel).not.toHaveBeenCalled()
})

test.each<[string, string | undefined, Buffer]>([
  ['nothing', undefined, text],
  ['an empty header', '', text],
  ['identity', 'identity', text],
  ['gzip', 'gzip', gzipSync(text)],
  ['gzip in upper case', 'GZIP', gzipSync(text)],
  ['gzip by its former name', 'x-gzip', gzipSync(text)],
  ['gzip, and identity beside it', 'identity, gzip', gzipSync(text)],
  ['deflate', 'deflate', deflateSync(text)],
  ['deflate of the highest level', 'Deflate', deflateSync(text, { level: 9 })],
  ['deflate without the zlib header', 'deflate', deflateRawSync(text)],
  ['deflate without the zlib header, not compressed', 'deflate', deflateRawSync(text, { level: 0 })],
])('an answer with %s is read', async (_, encoding, bytes) => {
  const service = await startServer(encoded(encoding, bytes))
  expect(await startClient(service.url).send(lookupSources)({})()).toMatchObject(E.right(sources))
  expect(service.seen[0]?.headers['accept-encoding']).toBe('gzip, deflate')
})

test('deflate without the zlib header may come byte by byte', async () => {
  const service = await startServer(async (_, response) => {
    response.writeHead(200, { 'Content-Encoding': 'deflate' })
    for (const byte of deflateRawSync(text)) {
      response.write(Buffer.of(byte))
      await new Promise(setImmediate)
    }
    response.end()
  })
  expect(await startClient(service.url).send(lookupSources)({})()).toMatchObject(E.right(sources))
})

describe('an answer in an encoding that was not asked for', () => {
  const brotli = brotliCompressSync(text)
  test.each<[string, Buffer, string]>([
    ['br', brotli, 'br'],
    ['BR', brotli, 'br'],
    ['br', text, 'br'],
    ['zstd', text, 'zstd'],
    ['compress', gzipSync(text), 'compress'],
    ['x-compress', gzipSync(text), 'x-compress'],
    ['gzip, br', brotliCompressSync(gzipSync(text)), 'gzip, br'],
    ['br, gzip', gzipSync(brotli), 'br, gzip'],
    ['gzip, gzip', gzipSync(gzipSync(text)), 'gzip, gzip'],
    ['identity, br', brotli, 'br'],
  ])('(%s) is refused at once, by name', async (encoding, bytes, named) => {
    const service = await startServer(encoded(encoding, bytes))
    const error = leftOf(await startClient(service.url).send(lookupSources)({})())
    expect(toFailure('look up sources', error)).toEqual({
      _tag: 'Config',
      message:
        `look up sources: the answer is encoded with ${named}, which was not asked for. ` +
        'Set the service, or the proxy before it, to answer with gzip, deflate or no Content-Encoding.',
    })
    expect(service.seen).toHaveLength(1)
  })

  test('is refused for an export, a write and a token', async () => {
    const service = await startServer(encoded('br', brotliCompressSync(page)))
    const { send } = startClient(service.url)
    expect(leftOf(await send(exportReviews)({ modifiedTimeFrom: '2024-01-01T00:00:00Z' })())).toMatchObject({
      _tag: 'Encoding',
      encoding: 'br',
    })
    expect(leftOf(await send(createVisitRecords)([])())).toMatchObject({ _tag: 'Encoding', encoding: 'br' })
    expect(service.seen).toHaveLength(2)

    const issuer = await startServer(encoded('br', brotliCompressSync('{"accessToken":"t"}')))
    const credentials = {
      auth_type: 'application',
      application_id: 'app',
      application_secret: 'not-for-anybody',
      token_url: `${issuer.url}/token`,
    } as const
    const error = leftOf(await startClient(service.url, { credentials }).send(lookupSources)({})())
    expect(toFailure('look up sources', error)).toMatchObject({
      _tag: 'Config',
      message: expect.stringMatching(
        /^The answer of credentials\.token_url \(http:\S+\) is encoded with br, which was not asked for\. Set /,
      ),
    })
    expect([issuer.seen.length, service.seen.length]).toEqual([1, 2])
  })

  test('counts by its status where that is an error: it is waited for, and sent again', async () => {
    const service = await startServer((seen, response, count) =>
      count === 1
        ? sendJson(response, 429, brotli, { 'Content-Encoding': 'br', 'Retry-After': '7' })
        : encoded('gzip', gzipSync(text))(seen, response, count),
    )
    const { send, waits } = startClient(service.url)
    expect(await send(lookupSources)({})()).toMatchObject(E.right(sources))
    expect(waits[0]).toBeGreaterThanOrEqual(7000)
    const closed = await startServer(encoded('br', brotli, 401))
    expect(leftOf(await startClient(closed.url).send(lookupSources)({})())).toMatchObject({ _tag: 'Http', status: 401 })
  })

  test('is named only where it looks like one', async () => {
    for (const encoding of ['Ann@example.com', 'Not-For-Anybody', 'x'.repeat(50)]) {
      const service = await startServer(encoded(encoding, text))
      const credentials = { auth_type: 'access_token', access_token: 'Not-For-Anybody' } as const
      const error = leftOf(await startClient(service.url, { credentials }).send(lookupSources)({})())
      expect(toFailure('look up sources', error).message).toContain('encoded with something unknown, which')
    }
  })
})

test('an answer without content may name any encoding', async () => {
  for (const encoding of ['br', 'gzip', 'deflate']) {
    const service = await startServer(encoded(encoding, Buffer.alloc(0), 204))
    expect(
      await startClient(service.url).send(exportReviews)({ modifiedTimeFrom: '2024-01-01T00:00:00Z' })(),
    ).toMatchObject(E.right({ hasNoContent: true }))
  }
})

test.each<[string, Buffer]>([
  ['gzip', gzipSync(Buffer.alloc(5_000_000))],
  ['deflate', deflateSync(Buffer.alloc(5_000_000))],
  ['deflate', deflateRawSync(Buffer.alloc(5_000_000))],
])('max_response_mb bounds what %s unfolds to', async (encoding, bomb) => {
  const service = await startServer(encoded(encoding, bomb))
  expect(leftOf(await startClient(service.url).send(lookupSources)({})())).toEqual({
    _tag: 'TooLarge',
    bytes: 1_000_001,
    limit: 1_000_000,
  })
})

test.each<[string, Buffer]>([
  ['gzip', text],
  ['deflate', Buffer.from([0x78, 0x9c, 0xff, 0xff])],
])('a broken %s is asked for again, and then reported as such', async (encoding, bytes) => {
  const service = await startServer(encoded(encoding, bytes))
  const error = leftOf(await startClient(service.url).send(lookupSources)({})())
  expect(error).toMatchObject({
    _tag: 'Network',
    code: 'Z_DATA_ERROR',
    message: expect.stringContaining('the answer cannot be decompressed: '),
  })
  expect(service.seen).toHaveLength(6)
})

test('a compressed answer that is cut short is asked for again', async () => {
  const bytes = gzipSync(text)
  const service = await startServer((seen, response, count) => {
    if (count > 2) return encoded('gzip', bytes)(seen, response, count)
    response.writeHead(200, { 'Content-Encoding': 'gzip', ...(count === 1 ? { 'Content-Length': bytes.length } : {}) })
    response.write(bytes.subarray(0, 20))
    setImmediate(() => (count === 1 ? response.destroy() : response.end()))
  })
  expect(await startClient(service.url).send(lookupSources)({})()).toMatchObject(E.right(sources))
  expect(service.seen).toHaveLength(3)
})
