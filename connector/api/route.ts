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
  /** The status was 204, so that `body` is empty on purpose. */
  readonly hasNoContent?: boolean
  /** The service's clock when it began to answer, where known; milliseconds since 1970. */
  readonly servedAt?: number
  /** Call it when `body` is no longer read: its memory is used again. */
  readonly release?: () => void
}

/** How the bytes of a response become a value, and back: the sandbox writes what the client reads. */
export type ResponseCodec<O> = {
  /** Describes the value, or the records in the response, for the API description. */
  readonly codec: t.Any
  readonly decode: (response: RawResponse) => E.Either<ApiError, O>
  readonly encode: (value: O) => RawResponse
}

/** An operation of the service as a value; client, sandbox and API description are derived from it. */
export type Route<I, O> = {
  /** Its name in messages. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The header that carries the token; none for the operation that issues it. */
  readonly tokenHeader: 'accessToken' | 'Access-Token' | undefined
  /** Where the input goes: a JSON body, a form body or the query; a list is a repeated key in the last two. */
  readonly encoding: 'json' | 'form' | 'query'
  readonly request: t.Type<I, unknown>
  readonly response: ResponseCodec<O>
  /** Whether it may be sent again when no response came. */
  readonly idempotent: boolean
}

/** Sends a request to the service and decodes the response. */
export type SendRequest = <I, O>(route: Route<I, O>) => (input: I) => TaskEither<ApiError, O>

export const defineRoute = <I, O>(value: Route<I, O>): Route<I, O> => value

/**
 * The JSON value of a body; integers keep all their digits. Bytes that are not UTF-8 are an error: they would be
 * replaced untold.
 */
export const parseBody = (body: Uint8Array): E.Either<ApiError, unknown> =>
  isUtf8(body) ? parseBodyLoosely(body) : E.left(unreadableBodyError(body, 'not UTF-8'))

/** As `parseBody`, with U+FFFD for bytes that are not UTF-8: enough to read the status in an error. */
export const parseBodyLoosely = (body: Uint8Array): E.Either<ApiError, unknown> =>
  E.tryCatch(
    () => parseExactJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')),
    () => unreadableBodyError(body, 'not JSON'),
  )

const unreadableBodyError = (body: Uint8Array, message: string): ApiError => {
  const isPage = /^\uFEFF?\s*</.test(Buffer.from(body.subarray(0, 1000)).toString('utf8'))
  return { _tag: 'Decode', path: '$', message, ...(isPage ? { isPage } : {}) }
}

/** Decodes with a codec; a failure names the key path and never the value. */
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

/** A JSON response left as bytes, since the export reads them record by record; `codec` describes a record. */
export const bytesResponse = (codec: t.Any): ResponseCodec<RawResponse> => ({
  codec,
  decode: E.right,
  encode: (response) => response,
})

/** The key path of the first error and what was expected there. */
export const toDecodeError = (errors: t.Errors): Extract<ApiError, { _tag: 'Decode' }> => {
  const context = errors[0]?.context ?? []
  // The parts of an intersection or a union are steps of the codec, not of the value.
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
