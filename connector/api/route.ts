import { isUtf8 } from 'node:buffer'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { annotationsOf, parseExactJson, printExactJson } from '../cdk'
import type { ApiError } from './error'

/** A response before it is decoded. */
export type RawResponse = {
  readonly body: Uint8Array
  /** The status was 204, so an empty `body` is intended. */
  readonly hasNoContent?: boolean
  /** The service's clock when it began to answer, if known; milliseconds since 1970. */
  readonly servedAt?: number
  /** Call it when `body` is no longer read, so that its memory can be reused. */
  readonly release?: () => void
}

/** Converts the bytes of a response into a value, and back: the sandbox writes what the client reads. */
export type ResponseCodec<O> = {
  /** Describes the value, or the records in the response, for the API description. */
  readonly codec: t.Any
  readonly decode: (response: RawResponse) => E.Either<ApiError, O>
  readonly encode: (value: O) => RawResponse
}

/** An operation of the service as a value. Client, sandbox and API description are derived from it. */
export type Route<I, O> = {
  /** Its name in messages. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The header that carries the token; none for the operation that issues it. */
  readonly tokenHeader: 'accessToken' | 'Access-Token' | undefined
  /** Where the input goes: a JSON body, a form body or the query. In the last two, a list is a repeated key. */
  readonly encoding: 'json' | 'form' | 'query'
  readonly request: t.Type<I, unknown>
  readonly response: ResponseCodec<O>
  /** It may be sent again if no response came. */
  readonly idempotent: boolean
}

/** Sends a request to the service and decodes the response. */
export type SendRequest = <I, O>(route: Route<I, O>) => (input: I) => TaskEither<ApiError, O>

export const defineRoute = <I, O>(value: Route<I, O>): Route<I, O> => value

/**
 * Parses a body as JSON; integers keep all their digits. Invalid UTF-8 is an error, since it would be replaced
 * silently.
 */
export const parseBody = (body: Uint8Array): E.Either<ApiError, unknown> =>
  isUtf8(body) ? parseBodyLoosely(body) : E.left(unreadableBodyError(body, 'not UTF-8'))

/** Like `parseBody`, but replaces invalid UTF-8 with U+FFFD. Enough to read the status in an error. */
export const parseBodyLoosely = (body: Uint8Array): E.Either<ApiError, unknown> =>
  E.tryCatch(
    () => parseExactJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')),
    () => unreadableBodyError(body, 'not JSON'),
  )

const unreadableBodyError = (body: Uint8Array, message: string): ApiError => {
  const isPage = /^\uFEFF?\s*</.test(Buffer.from(body.subarray(0, 1000)).toString('utf8'))
  return { _tag: 'Decode', path: '$', message, ...(isPage ? { isPage } : {}) }
}

/** Decodes with a codec. A failure names the key path and never the value. */
export const decodeWith =
  <A>(codec: t.Type<A, unknown>) =>
  (value: unknown): E.Either<ApiError, A> =>
    E.mapLeft(toDecodeError)(codec.decode(value))

/** A JSON response. */
export const jsonResponse = <A>(codec: t.Type<A, unknown>): ResponseCodec<A> => ({
  codec,
  decode: ({ body }) => pipe(parseBody(body), E.flatMap(decodeWith(codec))),
  encode: (value) => ({ body: Buffer.from(printExactJson(codec.encode(value))) }),
})

/** A JSON response left as bytes, because an export is read record by record. `codec` describes a record. */
export const bytesResponse = (codec: t.Any): ResponseCodec<RawResponse> => ({
  codec,
  decode: E.right,
  encode: (response) => response,
})

/** The key path of the first error, and what was expected there. */
export const toDecodeError = (errors: t.Errors): Extract<ApiError, { _tag: 'Decode' }> => {
  const context = errors[0]?.context ?? []
  // The members of an intersection or a union are steps of the codec, not of the value.
  const path = context
    .filter(({ key }, index) => key !== '' && !isComposite(context[index - 1]?.type))
    .map(({ key }) => key)
  const expected = context[context.length - 1]?.type
  return {
    _tag: 'Decode',
    path: ['$', ...path].join('.'),
    message:
      errors[0]?.message ??
      'expected ' +
        (expected === undefined ? 'something else' : (annotationsOf(expected as t.Any).type ?? expected.name)),
  }
}

const isComposite = (codec: t.Decoder<unknown, unknown> | undefined): boolean =>
  codec instanceof t.IntersectionType || codec instanceof t.UnionType
