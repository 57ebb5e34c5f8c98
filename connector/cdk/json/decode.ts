import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type * as t from 'io-ts'
import { annotationsOf } from '../schema'

/** JSON text as a value; the error says at which line and column it breaks, and quotes nothing. */
export const parseJson = (text: string): E.Either<string, unknown> =>
  E.tryCatch(
    () => JSON.parse(text),
    () => {
      const at = findErrorPosition(text)
      if (at === undefined) return 'is not JSON: it ends too early or is empty'
      const before = text.slice(0, at - 1).split('\n')
      return `is not JSON: it breaks at line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
    },
  )

/** The engine's own message may quote the text, and says the place only sometimes: so the shortest broken beginning is searched. */
const findErrorPosition = (text: string): number | undefined => {
  if (isIncomplete(text)) return undefined
  let [low, high] = [0, text.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isIncomplete(text.slice(0, middle))) low = middle + 1
    else high = middle
  }
  return low
}

const isIncomplete = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const said = String(error)
    return (
      /Unexpected end|Unterminated/.test(said) ||
      said.includes(`position ${text.length} `) ||
      said.endsWith(`position ${text.length}`)
    )
  }
}

/** One error: the key path and what would be right. Never the value, which may be a secret. */
export type ValidationIssue = { readonly path: string; readonly problem: string }

/** Decodes and, where that fails, says for each key path what is wrong and what would be right. */
export const decodeValue = <A>(
  codec: t.Type<A, unknown>,
  value: unknown,
): E.Either<ReadonlyArray<ValidationIssue>, A> => pipe(codec.decode(value), E.mapLeft(toIssues))

const toIssues = (errors: t.Errors): ReadonlyArray<ValidationIssue> => {
  const all = errors.map(({ context, message, value }) => {
    const named = context.filter(({ key }, i) => key !== '' && !isCombinator(context[i - 1]?.type))
    const expected = [...context].reverse().find(({ type }) => Object.keys(annotationsOf(type as t.Any)).length > 0)
    const wanted = describeExpectation(expected?.type as t.Any | undefined)
    return {
      path: named.map(({ key }) => key).join('.'),
      problem:
        message ?? (typeof value === 'string' ? `must be ${wanted}` : `${describeKind(value)}, expected ${wanted}`),
    }
  })
  return all.filter(
    ({ path }, i) =>
      all.findIndex((other) => other.path === path) === i &&
      !all.some((other) => path !== '' && other.path.startsWith(`${path}.`)),
  )
}

/** Members of an intersection or a union are no step of a key path. */
const isCombinator = (type: t.Decoder<unknown, unknown> | undefined): boolean =>
  ['IntersectionType', 'UnionType'].includes(type?.constructor.name ?? '')

const describeKind = (value: unknown): string => {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  return Array.isArray(value) ? 'is an array' : `is ${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}

/** What a schema wants, in words. */
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
  const kind = Array.isArray(choices)
    ? `one of ${choices.join(', ')}`
    : `${format ?? type ?? codec?.name ?? 'object'}${range}${pattern === undefined || format !== undefined ? '' : ` that matches ${pattern}`}`
  const example = Array.isArray(examples) && examples.length > 0 ? `, such as ${JSON.stringify(examples[0])}` : ''
  return `${kind}${example}`
}
