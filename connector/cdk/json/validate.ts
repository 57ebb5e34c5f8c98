import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type * as t from 'io-ts'
import { annotationsOf } from '../schema'

/** One error: the key path and what is expected there. Never holds the value, which may be a secret. */
type ValidationIssue = { readonly path: string; readonly problem: string }

/** The decoded value, or the expected type for each wrong key path. */
export const decodeValue = <A>(
  codec: t.Type<A, unknown>,
  value: unknown,
): E.Either<ReadonlyArray<ValidationIssue>, A> => pipe(codec.decode(value), E.mapLeft(toIssues))

/** The issues as the end of a sentence: `start_date is missing; it is null, expected object`. */
export const formatIssues = (issues: ReadonlyArray<ValidationIssue>): string =>
  issues.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')

const toIssues = (errors: t.Errors): ReadonlyArray<ValidationIssue> => {
  const all = errors.map(({ context, message, value }) => {
    const named = context.filter(({ key }, i) => key !== '' && !isCombinator(context[i - 1]?.type))
    const expected = [...context].reverse().find(({ type }) => Object.keys(annotationsOf(type as t.Any)).length > 0)
    const expectation = describeExpectation(expected?.type as t.Any | undefined)
    return {
      path: named.map(({ key }) => key).join('.'),
      problem:
        message ??
        (typeof value === 'string' ? `must be ${expectation}` : `${describeKind(value)}, expected ${expectation}`),
    }
  })
  return all.filter(
    ({ path }, i) =>
      all.findIndex((other) => other.path === path) === i &&
      !all.some((other) => path !== '' && other.path.startsWith(`${path}.`)),
  )
}

/** Members of an intersection or a union add no step to a key path. */
const isCombinator = (type: t.Decoder<unknown, unknown> | undefined): boolean =>
  ['IntersectionType', 'UnionType'].includes(type?.constructor.name ?? '')

const describeKind = (value: unknown): string => {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  return Array.isArray(value) ? 'is an array' : `is ${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}

const formatNames: Readonly<Record<string, string>> = { uri: 'a URL', 'date-time': 'a date, or a time with its zone' }

/** What a schema expects, in words. */
const describeExpectation = (codec: t.Any | undefined): string => {
  const {
    type,
    enum: choices,
    minimum,
    maximum,
    format,
    pattern,
    examples,
  } = codec === undefined ? {} : annotationsOf(codec)
  const range = [minimum === undefined ? '' : ` from ${minimum}`, maximum === undefined ? '' : ` to ${maximum}`].join(
    '',
  )
  const kind = formatNames[String(format)] ?? format ?? type ?? codec?.name ?? 'object'
  const match = pattern === undefined || format !== undefined ? '' : ` that matches ${pattern}`
  const expected = Array.isArray(choices) ? `one of ${choices.join(', ')}` : `${kind}${range}${match}`
  const example = Array.isArray(examples) && examples.length > 0 ? `, such as ${JSON.stringify(examples[0])}` : ''
  return `${expected}${example}`
}
