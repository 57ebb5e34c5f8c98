import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import type * as TE from 'fp-ts/TaskEither'
import type * as t from 'io-ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { createHttpClient, type HttpClient } from '../../../connector/api/http/client'
import type { RawResponse, Route } from '../../../connector/api/route'
import { type Api, createApi, routes } from '../../../connector/api/routes'
import { parseExactJson, printExactJson } from '../../../connector/cdk/json/exact'
import { toJsonSchema } from '../../../connector/cdk/schema'
import { createTokenRegistry } from '../../../connector/sandbox/operations/operation'
import { createRequestLog } from '../../../connector/sandbox/server/pages'
import { type SandboxServer, startServer } from '../../../connector/sandbox/server/server'
import { valueFor } from '../../support/arbitrary'
import { createFakeClock } from '../../support/clock'
import { draws } from '../../support/draws'

const now = () => Date.parse('2026-01-01T00:00:00Z')

/** The last input of the service, and its next answer. */
let lastInput: unknown
let nextAnswer: E.Either<ApiError, unknown>

const answerNext =
  (input: unknown): TE.TaskEither<ApiError, unknown> =>
  async () => {
    lastInput = input
    return nextAnswer
  }

const operationNames = Object.keys(routes) as ReadonlyArray<keyof Api>
const service = Object.fromEntries(operationNames.map((name) => [name, answerNext])) as Api

let server: SandboxServer
let client: HttpClient
let api: Api
beforeAll(async () => {
  const tokenRegistry = createTokenRegistry({
    createText: () => 'token',
    now,
    lifetimeSeconds: 60,
    denied: [],
    granted: new Map(),
  })
  server = await startServer(service, {
    host: '127.0.0.1',
    port: 0,
    tokenRegistry,
    rules: [],
    seed: 1,
    requestRate: { requests: Number.POSITIVE_INFINITY, seconds: 1 },
    latency: () => 0,
    lookups: { locations: { method: 'GET', path: routes.lookupLocations.path } },
    pages: [],
    log: createRequestLog(),
    now,
    headerClock: now,
  })
  client = createHttpClient(
    {
      base_url: new URL(server.url),
      credentials: { auth_type: 'access_token', access_token: tokenRegistry.accessToken },
      rate_limit: { max_concurrency: 1 },
      timeouts: { connect_seconds: 5, response_seconds: 5, max_wait_seconds: 5 },
      max_response_mb: 10,
    },
    // After a 429, the client waits before its next request; a fake clock ends the wait at once.
    { attempts: 1, clock: () => createFakeClock().clock },
  )
  api = createApi(client.send)
})
afterAll(async () => {
  await client.close()
  await server.close()
})

type AnyRoute = Pick<Route<unknown, unknown>, 'encoding' | 'response'> & { readonly request: t.Any }
const routesByName: Readonly<Record<keyof Api, unknown>> = { ...routes }
const routeOf = (operation: keyof Api): AnyRoute => routesByName[operation] as AnyRoute
const call = (operation: keyof Api, input: unknown) =>
  (api[operation] as (input: unknown) => TE.TaskEither<ApiError, unknown>)(input)()

/** A request can be encoded: a form has no empty lists, and neither a form nor JSON keeps the sign of zero. */
const isEncodable = (route: AnyRoute, input: unknown): boolean =>
  !printExactJson(input).includes('-0') &&
  (route.encoding === 'json' ||
    Object.values(Object(input)).every((value) => !Array.isArray(value) || value.length > 0)) &&
  !JSON.stringify(input, (_, value) => (Object.is(value, -0) ? 'minus zero' : value)).includes('minus zero')

const requestFor = (route: AnyRoute): fc.Arbitrary<unknown> =>
  valueFor(toJsonSchema(route.request), 1e6).filter((value) => route.request.is(value) && isEncodable(route, value))

/** Answers that the codec of the route accepts; those of operations 1 to 3 report success. */
const answerFor = (operation: keyof Api): fc.Arbitrary<unknown> => {
  const { codec, decode } = routeOf(operation).response
  if (operation === 'exportReviews' || operation === 'exportDeletedReviews')
    return fc.string().map((text): RawResponse => ({ body: Buffer.from(printExactJson({ reviews: [], text })) }))
  const answer = valueFor(toJsonSchema(codec), 1e6)
  return answer
    .map((value) =>
      operation.startsWith('retrieve')
        ? { ...(value as object), status: { code: 200, message: 'SUCCESS', type: null } }
        : value,
    )
    .map((value) => parseExactJson(printExactJson(value)))
    .filter((value) => E.isRight(decode({ body: Buffer.from(printExactJson(value)) })))
}

/** An answer without `servedAt`, which the client adds. */
const withoutServedAt = (operation: keyof Api, value: unknown): unknown => {
  if (operation.startsWith('export')) return Buffer.from((value as RawResponse).body).toString()
  const { servedAt: _, ...rest } = Object(value)
  return operation.startsWith('retrieve') ? rest : value
}

describe('the client gets through the server what the service answers', () => {
  test.each(operationNames)('for random requests and answers of %s', async (operation) => {
    await fc.assert(
      fc.asyncProperty(requestFor(routeOf(operation)), answerFor(operation), async (request, answer) => {
        nextAnswer = E.right(answer)
        const result = await call(operation, request)
        expect(lastInput).toEqual(request)
        if (E.isLeft(result)) throw new Error(JSON.stringify(result.left))
        expect(withoutServedAt(operation, result.right)).toEqual(withoutServedAt(operation, answer))
      }),
      draws(50),
    )
  })

  const errors: ReadonlyArray<ApiError> = [
    ...[400, 401, 403, 413, 500].map((status): ApiError => ({ _tag: 'Http', status, message: 'refused' })),
    { _tag: 'Http', status: 429, message: 'request limit exceeded', retryAfter: 3000 },
  ]
  test.each(operationNames.flatMap((operation) => errors.map((error) => ({ operation, error }))))(
    'for $error.status of $operation',
    async ({ operation, error }) => {
      nextAnswer = E.left(error)
      const [input] = fc.sample(requestFor(routeOf(operation)), { numRuns: 1, seed: 1 })
      expect(await call(operation, input)).toEqual(E.left(error))
    },
  )

  test.each(['retrieveReviews', 'retrieveComments', 'retrieveCommentsByForm'] as const)(
    'for an application error of %s',
    async (operation) => {
      const error: ApiError = {
        ...{ _tag: 'Application', code: 'E7', message: 'not available' },
        missing: '$.data.entities',
      }
      nextAnswer = E.left(error)
      expect(await call(operation, { personId: operation === 'retrieveCommentsByForm' ? ['1'] : '1' })).toEqual(
        E.left(error),
      )
    },
  )

  test('for integers beyond 2^53', async () => {
    const comments = [{ id: 2n ** 63n - 1n, mentionTime: '2026-01-01T00:00:00Z' }]
    const answer = { status: { message: 'success' }, data: { entities: [{ id: '1', comments }] } }
    nextAnswer = E.right(answer)
    expect(await call('retrieveComments', { personId: '1' })).toEqual(
      E.right({ ...answer, servedAt: expect.any(Number) }),
    )
  })

  test('for a broken connection', async () => {
    nextAnswer = E.left({ _tag: 'Network', code: 'ECONNRESET', message: 'connection reset' })
    expect(await call('exportReviews', { modifiedTimeFrom: 'x' })).toEqual(
      E.left(expect.objectContaining({ _tag: 'Network' })),
    )
  })
})
