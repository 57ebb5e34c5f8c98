import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { parseJson } from './json'
import type { JsonSchema } from './schema'

type EnvironmentVariables = Readonly<Record<string, string | undefined>>
type ConfigValues = Readonly<Record<string, unknown>>

/**
 * A config from variables named `PREFIX_KEY` in upper case. A nested key is `PREFIX_KEY_INNER` or `PREFIX_KEY__INNER`, or its
 * object is JSON text in `PREFIX_KEY`; lists are JSON text or words between commas. A text of the wrong type is left as it is, for the codec to refuse.
 */
export const readConfigFromEnvironment =
  (schema: JsonSchema, prefix: string) =>
  (env: EnvironmentVariables): ConfigValues =>
    readKeys(schema, [`${prefix}_`], env)

const declaredProperties = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  Object.assign(
    {},
    schema.properties,
    ...(Array.isArray(schema.oneOf) ? schema.oneOf : []).map((one: JsonSchema) => one.properties),
  )

const readKeys = (schema: JsonSchema, stems: ReadonlyArray<string>, env: EnvironmentVariables): ConfigValues =>
  Object.fromEntries(
    Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => {
      const names = stems.map((stem) => `${stem}${key.toUpperCase()}`)
      const value = readVariable(inner, names, env)
      return value === undefined ? [] : [[key, value]]
    }),
  )

const readVariable = (schema: JsonSchema, names: ReadonlyArray<string>, env: EnvironmentVariables): unknown => {
  // A variable that is set to nothing is how a platform leaves one out.
  const text = names.map((name) => env[name]).find((value) => value !== undefined && value !== '')
  const own = text === undefined ? undefined : parseVariable(schema, text)
  const inner = readKeys(
    schema,
    names.flatMap((name) => [`${name}_`, `${name}__`]),
    env,
  )
  return Object.keys(inner).length === 0 ? own : t.UnknownRecord.is(own) ? mergeConfigs(own, inner) : inner
}

const parseVariable = (schema: JsonSchema, text: string): unknown => {
  const types = [schema.type].flat()
  if (types.includes('string')) return text
  const value = pipe(
    parseJson(text),
    E.getOrElse((): unknown => text),
  )
  return types.includes('array') && !Array.isArray(value)
    ? text.split(',').map((word) => parseVariable((schema.items ?? {}) as JsonSchema, word.trim()))
    : value
}

/** `over` on top of `under`, objects key by key. */
export const mergeConfigs = (under: ConfigValues, over: ConfigValues): ConfigValues => ({
  ...under,
  ...Object.fromEntries(
    Object.entries(over).map(([key, value]) => {
      const below = under[key]
      return [key, t.UnknownRecord.is(below) && t.UnknownRecord.is(value) ? mergeConfigs(below, value) : value]
    }),
  ),
})
