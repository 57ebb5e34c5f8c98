import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { annotationsOf, parseExactJson, printExactJson } from '../cdk'
import type { ApiError } from './error'

/** An answer as it came: the body's bytes, and the service's clock when it began to answer, where known (milliseconds). */
export type RawResponse = {
  readonly body: Uint8Array
  readonly servedAt?: number
  /** Nobody looks at the body any more: another answer may take its place. */
  readonly release?: () => void
}

/** How an answer's bytes become a value, and back: the sandbox writes what the client reads. */
export type ResponseCodec<O> = {
  readonly codec: t.Any
  readonly decode: (answer: RawResponse) => E.Either<ApiError, O>
  readonly encode: (value: O) => RawResponse
}

/** An operation of the service as a value; client, server and description are read off it. */
export type Route<I, O> = {
  /** As it is called in messages. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The header that carries the token; none for the exchange that issues it (Authentication 3). */
  readonly tokenHeader: 'accessToken' | 'Access-Token' | undefined
  /** Where the request goes: a JSON body, a form body or the query; arrays as repeated keys in the last two. */
  readonly encoding: 'json' | 'form' | 'query'
  readonly request: t.Type<I, unknown>
  readonly response: ResponseCodec<O>
  /** May it be asked again when no answer came? */
  readonly idempotent: boolean
}

export const defineRoute = <I, O>(value: Route<I, O>): Route<I, O> => value

/** A JSON answer, decoded; failures name the key path and never the value. */
export const jsonResponse = <A>(codec: t.Type<A, unknown>): ResponseCodec<A> => ({
  codec,
  decode: ({ body }) => {
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
    let value: unknown
    try {
      value = parseExactJson(text)
    } catch {
      return E.left({ _tag: 'Decode', path: '$', message: 'not JSON' })
    }
    return E.mapLeft(toDecodeError)(codec.decode(value))
  },
  encode: (value) => ({ body: Buffer.from(printExactJson(codec.encode(value))) }),
})

/** A JSON answer left as bytes, for `cut` to walk; `codec` describes its records. */
export const bytesResponse = (codec: t.Any): ResponseCodec<RawResponse> => ({
  codec,
  decode: E.right,
  encode: (answer) => answer,
})

const isComposite = (codec: t.Decoder<unknown, unknown> | undefined): boolean =>
  codec instanceof t.IntersectionType || codec instanceof t.UnionType

/** The key path of the first error and what was expected there. */
export const toDecodeError = (errors: t.Errors): Extract<ApiError, { _tag: 'Decode' }> => {
  const context = errors[0]?.context ?? []
  // The members of an intersection or a union are steps of the codec and not of the value.
  const path = context.filter(({ key }, n) => key !== '' && !isComposite(context[n - 1]?.type)).map(({ key }) => key)
  const expected = context[context.length - 1]?.type
  return {
    _tag: 'Decode',
    path: ['$', ...path].join('.'),
    message:
      errors[0]?.message ??
      `expected ${expected === undefined ? 'something else' : (annotationsOf(expected as t.Any).type ?? expected.name)}`,
  }
}
