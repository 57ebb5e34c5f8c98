import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { maxJsonDepth } from '../json/scanner'
import { decodeValue, formatIssues } from '../json/validate'
import { addSchemaVersion, declaredProperties, type JsonSchema, toJsonSchema } from '../schema'
import { parseTexts } from './environment'
import { describeUnknownKey, findUnknownKeys } from './fields'

/** The format of a program's configuration. */
export type ConfigFormat<A> = {
  readonly codec: t.Type<A, unknown>
  /** JSON schema of the form that platforms show. */
  readonly spec: JsonSchema
  readonly documentationUrl: string
  /** The configuration and its keys that have no effect. A failure names the path of every wrong key. */
  readonly decode: (
    value: unknown,
  ) => E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }>
}

/** `title`: the name of the form. */
export const createConfigFormat = <A>(
  codec: t.Type<A, unknown>,
  { title, documentationUrl }: { readonly title: string; readonly documentationUrl: string },
): ConfigFormat<A> => {
  const spec = addSchemaVersion({ title, ...toJsonSchema(codec) })
  return {
    codec,
    spec,
    documentationUrl,
    decode: (given) => {
      const value = chooseKinds(spec, removeEmpty(spec, parseTexts(spec, given)))
      return pipe(
        decodeValue(codec, value),
        E.bimap(
          (issues) =>
            configFailure(
              [
                `The config is wrong: ${formatIssues(issues)}.`,
                ...findUnknownKeys(spec, value)
                  .slice(0, maxHints)
                  .map((key) => describeUnknownKey(spec, key)),
              ].join(' '),
            ),
          (config) => ({ config, unknownKeys: findUnknownKeys(spec, value) }),
        ),
      )
    },
  }
}

/** A config with more wrong keys than this is probably a different file. */
const maxHints = 5

/**
 * Adds the type of each group that has several, if its other keys leave no doubt. For example, `credentials` with only
 * an access token need no `auth_type`.
 */
const chooseKinds = (schema: JsonSchema, value: unknown): unknown => {
  if (!t.UnknownRecord.is(value)) return value
  const properties = declaredProperties(schema)
  const [kind, ...others] = listKinds(schema).filter(({ keys }) => keys.some((key) => value[key] !== undefined))
  const chosen = Object.entries(value).map(([key, inner]) => [
    key,
    Object.hasOwn(properties, key) ? chooseKinds(properties[key] ?? {}, inner) : inner,
  ])
  return {
    ...Object.fromEntries(chosen),
    ...(kind === undefined || others.length > 0 || value[kind.name] !== undefined ? {} : { [kind.name]: kind.value }),
  }
}

/**
 * The alternatives of a group: the key that distinguishes them, its value, and the keys that only this alternative has.
 */
const listKinds = (schema: JsonSchema) => {
  const alternatives = ((schema.oneOf ?? []) as ReadonlyArray<JsonSchema>).map(declaredProperties)
  return alternatives.flatMap((properties) => {
    const [name, constant] = Object.entries(properties).find(([, inner]) => 'const' in inner) ?? []
    const isShared = (key: string) => alternatives.some((other) => other !== properties && Object.hasOwn(other, key))
    const keys = Object.keys(properties).filter((key) => !isShared(key))
    return name === undefined ? [] : [{ name, value: constant?.const, keys }]
  })
}

/**
 * Removes null, empty strings and empty lists, which forms send for an empty field. Null stays if the schema gives it a
 * meaning (`nullable`). Values nested deeper than `maxJsonDepth` stay.
 */
const removeEmpty = (schema: JsonSchema, value: unknown, depth = 0): unknown => {
  if (Array.isArray(value)) return value.filter((item) => item !== '' && item !== null)
  if (!t.UnknownRecord.is(value) || depth >= maxJsonDepth) return value
  const properties = declaredProperties(schema)
  // If every key is null, nobody touched this part of the form.
  const isUntouched = Object.keys(properties).every((key) => value[key] === null)
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => {
      const inner = Object.hasOwn(properties, key) ? (properties[key] ?? {}) : {}
      const left = removeEmpty(inner, member, depth + 1)
      const isEmpty = left === '' || (Array.isArray(left) && left.length === 0)
      return isEmpty || (left === null && (isUntouched || inner.nullable !== true)) ? [] : [[key, left]]
    }),
  )
}

/** Puts the path of the wrong file in front of the failure's message. */
export const addFilePath =
  (path: string) =>
  ({ _tag, message }: Failure): Failure => ({ _tag, message: `${path}: ${message}` })
