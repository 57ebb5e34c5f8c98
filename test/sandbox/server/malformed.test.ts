import net from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routes } from '../../../connector/api/routes'
import { toJsonSchema } from '../../../connector/cdk/schema'
import { createHandlers } from '../../../connector/sandbox/server/handlers'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { valueFor } from '../../support/arbitrary'
import { draws } from '../../support/draws'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 50, locations: 3 })
})
afterAll(() => sandbox.close())

/** Expects an answer in JSON, and the documented error body where the status is not 200; returns the status. */
const expectAnswer = async (response: Response): Promise<number> => {
  const text = await response.text()
  const value = JSON.parse(text)
  if (response.status === 200) return 200
  expect([400, 401, 403, 404, 405, 413], text).toContain(response.status)
  expect(value).toEqual({ status: { code: response.status, message: expect.any(String), type: 'ERROR' } })
  return response.status
}

const schemas: Readonly<Record<string, ReturnType<typeof toJsonSchema>>> = Object.fromEntries(
  Object.entries(routes).map(([operation, { request }]) => [operation, toJsonSchema(request)]),
)
const handlers = createHandlers({} as Sandbox['api'])

const anyText = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.string({ unit: 'binary' }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  fc.constantFrom(
    '',
    '[]',
    '{}',
    'null',
    '"',
    '{"modifiedTimeFrom":',
    '[[[[[[[[[[',
    '1e999',
    '{"__proto__":1}',
    '\u0000',
    `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    `[{"name":${'['.repeat(20_000)}${']'.repeat(20_000)}}]`,
  ),
)

const extremeValue = fc.constantFrom(
  ...[
    -1,
    0,
    1,
    2 ** 31,
    2 ** 53 - 1,
    1e15,
    -(2 ** 53 - 1),
    0.1,
    '',
    ' ',
    "'; DROP TABLE review; --",
    '%',
    '\\',
    '\ud800',
    '\udc00\ud800',
    'nul\u0000',
    '\u{1f600}',
    null,
    '0001-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
    '2026-01-01T00:00:00.000Z',
    '+275760-09-13T00:00:00Z',
  ],
)

/** A request that is valid, or that has extreme values at some of its keys. */
const almostValidRequest = (operation: string): fc.Arbitrary<unknown> =>
  fc
    .tuple(
      valueFor(schemas[operation] ?? {}, 3),
      fc.dictionary(fc.constantFrom(...keysOf(operation)), extremeValue, { maxKeys: 3 }),
    )
    .map(([value, changes]) =>
      Array.isArray(value)
        ? value.map((item) => (typeof item === 'object' && item !== null ? { ...item, ...changes } : item))
        : typeof value === 'object' && value !== null
          ? { ...value, ...changes }
          : value,
    )

/** The keys of the operation, more often than the keys of other operations. */
const keysOf = (operation: string): ReadonlyArray<string> => {
  const keys = Object.values(schemas).map((schema) => {
    const { properties, items } = schema as { properties?: object; items?: { properties?: object } }
    return Object.keys(properties ?? items?.properties ?? {})
  })
  const own = keys[Object.keys(schemas).indexOf(operation)] ?? []
  return ['any', ...own, ...own, ...own, ...keys.flat()]
}

const toQuery = (value: unknown): string =>
  new URLSearchParams(
    Object.entries(Object(value)).flatMap(([key, field]) =>
      [field].flat().map((item): [string, string] => [key, String(item)]),
    ),
  ).toString()

describe('malformed input gets the error body', () => {
  it.each(handlers)('from $operation', async ({ operation, method, path }) => {
    const sendRequest = (query: string, body: string, contentType: string) =>
      fetch(`${sandbox.url}${path}${query}`, {
        method,
        headers: {
          accessToken: sandbox.accessToken,
          'Access-Token': sandbox.accessToken,
          ...(method === 'GET' ? {} : { 'Content-Type': contentType }),
        },
        ...(method === 'GET' ? {} : { body }),
      })
    let refusedCount = 0
    const json = 'application/json'
    const form = 'application/x-www-form-urlencoded'
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          anyText.map((text) => ['', text, json] as const),
          anyText.map((text) => ['', text, form] as const),
          anyText.map((text) => [`?${encodeURIComponent(Buffer.from(text).toString())}`, '', json] as const),
          almostValidRequest(operation).map((value) => ['', JSON.stringify(value) ?? '', json] as const),
          almostValidRequest(operation).map((value) => ['', toQuery(value), form] as const),
          almostValidRequest(operation).map((value) => [`?${toQuery(value)}`, '{}', json] as const),
        ),
        async ([query, body, contentType]) => {
          if ((await expectAnswer(await sendRequest(query, body, contentType))) !== 200) refusedCount += 1
        },
      ),
      draws(250),
    )
    // A lookup takes no input and ignores what it gets, so it refuses only a few requests.
    expect(refusedCount).toBeGreaterThan(operation.startsWith('lookup') ? 0 : 100)
  })

  it('if the request is not HTTP', async () => {
    const { hostname, port } = new URL(sandbox.url)
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ minLength: 1 }),
          fc.constantFrom('GET / HTTP/9\r\n\r\n', 'POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n'),
        ),
        async (text) => {
          const socket = net.connect(Number(port), hostname)
          socket.write(`${text}\r\n\r\n`)
          const chunks: Buffer[] = []
          for await (const chunk of socket) chunks.push(chunk as Buffer)
          const answer = Buffer.concat(chunks).toString()
          expect(answer).toMatch(/^HTTP\/1\.1 400 /)
          expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ status: { code: 400 } })
        },
      ),
      draws(50),
    )
  })

  it('if its headers are malformed', async () => {
    for (const token of ['', ' ', 'x'.repeat(5000), '\u00ff'])
      expect(
        await expectAnswer(
          await fetch(sandbox.url + routes.exportReviews.path, {
            method: 'POST',
            headers: { accessToken: token, 'Content-Type': token },
          }),
        ),
      ).not.toBe(200)
  })
})
