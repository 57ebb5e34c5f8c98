import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { parseJson } from '../json/parse'
import { maxJsonDepth } from '../json/scanner'
import { declaredProperties, type JsonSchema } from '../schema'

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>
type ConfigValues = Readonly<Record<string, unknown>>

/**
 * Reads a config from variables named `PREFIX_KEY` in upper case. A nested key is `PREFIX_KEY_INNER` or
 * `PREFIX_KEY__INNER`, or its whole object is JSON in `PREFIX_KEY`. Lists are JSON or comma-separated words. A value of
 * the wrong type is kept for the codec to reject.
 */
export const readConfigFromEnvironment =
  (schema: JsonSchema, prefix: string) =>
  (env: EnvironmentVariables): ConfigValues =>
    readKeys(schema, [`${prefix}_`], env)

/** The variables that start with `prefix` and an underscore but match no key. They are probably misspelled. */
export const findUnknownVariables = (
  schema: JsonSchema,
  prefix: string,
  env: EnvironmentVariables,
): ReadonlyArray<string> => {
  const known = new Set(listVariables(schema, prefix))
  return Object.keys(env).filter((name) => name.startsWith(`${prefix}_`) && isGiven(env[name]) && !known.has(name))
}

/** Platforms set a variable to the empty string when it has no value. */
export const isGiven = (text: string | undefined): text is string => text !== undefined && text !== ''

const variableNames = (stems: ReadonlyArray<string>, key: string): ReadonlyArray<string> =>
  stems.map((stem) => `${stem}${key.toUpperCase()}`)

const innerStems = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.flatMap((name) => [`${name}_`, `${name}__`])

/** For each key at any depth, the variables that can set it. */
export const listKeys = (schema: JsonSchema, stems: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => {
    const names = variableNames(stems, key)
    return [names, ...listKeys(inner, innerStems(names))]
  })

export const fileVariables = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.map((name) => `${name}_FILE`)

export const listVariables = (schema: JsonSchema, prefix: string): ReadonlyArray<string> =>
  listKeys(schema, [`${prefix}_`]).flatMap((names) => [...names, ...fileVariables(names)])

const readKeys = (schema: JsonSchema, stems: ReadonlyArray<string>, env: EnvironmentVariables): ConfigValues =>
  Object.fromEntries(
    Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => {
      const value = readVariable(inner, variableNames(stems, key), env)
      return value === undefined ? [] : [[key, value]]
    }),
  )

const readVariable = (schema: JsonSchema, names: ReadonlyArray<string>, env: EnvironmentVariables): unknown => {
  const text = names.map((name) => env[name]).find(isGiven)
  const own = text === undefined ? undefined : parseSetting(schema, text)
  const inner = readKeys(schema, innerStems(names), env)
  if (own === undefined) return Object.keys(inner).length === 0 ? undefined : inner
  // Anything but an object stays, so that the codec names it.
  return t.UnknownRecord.is(own) ? mergeConfigs(own, inner) : own
}

const isObjectSchema = (schema: JsonSchema): boolean => schema.type === 'object' || Array.isArray(schema.oneOf)

/** Parses a setting given as a string: a list or an object is JSON; a list may also be comma-separated words. */
const parseSetting = (schema: JsonSchema, text: string): unknown => {
  const types = [schema.type].flat()
  if (types.includes('string')) return text
  // Python prints True.
  const value = pipe(
    parseJson(/^\s*(true|false)\s*$/i.test(text) ? text.toLowerCase() : text),
    E.getOrElse((): unknown => text),
  )
  return types.includes('array') && !Array.isArray(value) && !/^\s*[[{]/.test(text)
    ? text.split(',').map((word) => parseSetting((schema.items ?? {}) as JsonSchema, word.trim()))
    : value
}

const isText = (schema: JsonSchema): boolean => [schema.type].flat().includes('string')

/**
 * True for strings of a fixed form, such as an address, a time or one of several words. Spaces around these are typing
 * errors.
 */
const hasFixedForm = (schema: JsonSchema): boolean => ['pattern', 'enum', 'const'].some((keyword) => keyword in schema)

/** Parses every setting that is a string, because some platforms store all settings as strings. */
export const parseTexts = (schema: JsonSchema, value: unknown): unknown => {
  if (typeof value === 'string' && isText(schema)) return hasFixedForm(schema) ? value.trim() : value
  if (typeof value === 'string' && value !== '' && (schema.type !== undefined || isObjectSchema(schema))) {
    const parsed = parseSetting(schema, value)
    return typeof parsed === 'string' ? value : parseTexts(schema, parsed)
  }
  if (Array.isArray(value)) return value.map((item) => parseTexts((schema.items ?? {}) as JsonSchema, item))
  if (!t.UnknownRecord.is(value)) return value
  const properties = declaredProperties(schema)
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      Object.hasOwn(properties, key) ? parseTexts(properties[key] ?? {}, inner) : inner,
    ]),
  )
}

/** Merges `over` into `under`, objects key by key. */
export const mergeConfigs = (under: ConfigValues, over: ConfigValues, depth = 0): ConfigValues => ({
  ...under,
  ...Object.fromEntries(
    Object.entries(over).map(([key, value]) => {
      const below = under[key]
      const isMerged = t.UnknownRecord.is(below) && t.UnknownRecord.is(value) && depth < maxJsonDepth
      return [key, isMerged ? mergeConfigs(below, value, depth + 1) : value]
    }),
  ),
})
