import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { parseJson } from './json'
import type { JsonSchema } from './schema'

type Environment = Readonly<Record<string, string | undefined>>
type Config = Readonly<Record<string, unknown>>

/**
 * A config from variables named `PREFIX_KEY` in upper case. A nested key is `PREFIX_KEY_INNER` or `PREFIX_KEY__INNER`, or its
 * object is JSON text in `PREFIX_KEY`; lists are JSON text or words between commas. A text of the wrong type is left as it is, for the codec to refuse.
 */
export const configFromEnvironment =
  (schema: JsonSchema, prefix: string) =>
  (env: Environment): Config =>
    keysOf(schema, [`${prefix}_`], env)

const propertiesOf = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  Object.assign(
    {},
    schema.properties,
    ...(Array.isArray(schema.oneOf) ? schema.oneOf : []).map((one: JsonSchema) => one.properties),
  )

const keysOf = (schema: JsonSchema, stems: ReadonlyArray<string>, env: Environment): Config =>
  Object.fromEntries(
    Object.entries(propertiesOf(schema)).flatMap(([key, inner]) => {
      const names = stems.map((stem) => `${stem}${key.toUpperCase()}`)
      const value = valueOf(inner, names, env)
      return value === undefined ? [] : [[key, value]]
    }),
  )

const valueOf = (schema: JsonSchema, names: ReadonlyArray<string>, env: Environment): unknown => {
  // A variable that is set to nothing is how a platform leaves one out.
  const text = names.map((name) => env[name]).find((value) => value !== undefined && value !== '')
  const own = text === undefined ? undefined : typed(schema, text)
  const inner = keysOf(
    schema,
    names.flatMap((name) => [`${name}_`, `${name}__`]),
    env,
  )
  return Object.keys(inner).length === 0 ? own : t.UnknownRecord.is(own) ? merge(own, inner) : inner
}

const typed = (schema: JsonSchema, text: string): unknown => {
  const types = [schema.type].flat()
  if (types.includes('string')) return text
  const value = pipe(
    parseJson(text),
    E.getOrElse((): unknown => text),
  )
  return types.includes('array') && !Array.isArray(value)
    ? text.split(',').map((word) => typed((schema.items ?? {}) as JsonSchema, word.trim()))
    : value
}

/** `over` on top of `under`, objects key by key. */
export const merge = (under: Config, over: Config): Config => ({
  ...under,
  ...Object.fromEntries(
    Object.entries(over).map(([key, value]) => {
      const below = under[key]
      return [key, t.UnknownRecord.is(below) && t.UnknownRecord.is(value) ? merge(below, value) : value]
    }),
  ),
})
