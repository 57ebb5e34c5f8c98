import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { annotations } from '../cdk/schema'
import type { ApiError } from './error'
import { parseJson, printJson } from './json-text'

/** An answer as it came: the body's bytes, and the service's clock when it began to answer, where known (milliseconds). */
export type Answer = {
  readonly body: Uint8Array
  readonly servedAt?: number
  /** Nobody looks at the body any more: another answer may take its place. */
  readonly release?: () => void
}

/** How an answer's bytes become a value, and back: the sandbox writes what the client reads. */
export type Body<O> = {
  readonly codec: t.Any
  readonly decode: (answer: Answer) => E.Either<ApiError, O>
  readonly encode: (value: O) => Answer
}

/** An operation of the service as a value; client, server and description are read off it. */
export type Route<I, O> = {
  /** As it is called in messages. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The header that carries the token; none for the exchange that issues it (Authentication 3). */
  readonly token: 'accessToken' | 'Access-Token' | undefined
  /** Where the request goes: a JSON body, a form body or the query; arrays as repeated keys in the last two. */
  readonly send: 'json' | 'form' | 'query'
  readonly request: t.Type<I, unknown>
  readonly response: Body<O>
  /** May it be asked again when no answer came? */
  readonly idempotent: boolean
}

export const route = <I, O>(value: Route<I, O>): Route<I, O> => value

/** A JSON answer, decoded; failures name the key path and never the value. */
export const json = <A>(codec: t.Type<A, unknown>): Body<A> => ({
  codec,
  decode: ({ body }) => {
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
    let value: unknown
    try {
      value = parseJson(text)
    } catch {
      return E.left({ _tag: 'Decode', path: '$', message: 'not JSON' })
    }
    return E.mapLeft(toDecodeError)(codec.decode(value))
  },
  encode: (value) => ({ body: Buffer.from(printJson(codec.encode(value))) }),
})

/** A JSON answer left as bytes, for `cut` to walk; `codec` describes its records. */
export const bytes = (codec: t.Any): Body<Answer> => ({ codec, decode: E.right, encode: (answer) => answer })

const isComposed = (codec: t.Decoder<unknown, unknown> | undefined): boolean =>
  codec instanceof t.IntersectionType || codec instanceof t.UnionType

/** The key path of the first error and what was expected there. */
export const toDecodeError = (errors: t.Errors): Extract<ApiError, { _tag: 'Decode' }> => {
  const context = errors[0]?.context ?? []
  // The members of an intersection or a union are steps of the codec and not of the value.
  const path = context.filter(({ key }, n) => key !== '' && !isComposed(context[n - 1]?.type)).map(({ key }) => key)
  const expected = context[context.length - 1]?.type
  return {
    _tag: 'Decode',
    path: ['$', ...path].join('.'),
    message:
      errors[0]?.message ??
      `expected ${expected === undefined ? 'something else' : (annotations(expected as t.Any).type ?? expected.name)}`,
  }
}
