import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type CommandIo, findNearestName, getOrThrow, runOrThrow } from './command'
import { describeUnknownKey, findUnknownKeys } from './config-fields'
import { configFailure, type Failure, findSecrets } from './failure'
import { decodeValue, parseJson } from './json/decode'
import { maxJsonDepth } from './json/scanner'
import { declaredProperties, type JsonSchema, toJsonSchema } from './schema'

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

/**
 * The variables, each `NAME_FILE` of a key replaced by NAME: the text of the file that it names, without the newline at its
 * end. A failure where a key is given both ways, or where a file cannot be read or is empty.
 */
export const readVariableFiles =
  (schema: JsonSchema, prefix: string, env: EnvironmentVariables): TaskEither<Failure, EnvironmentVariables> =>
  async () => {
    const keys = listKeys(schema, [`${prefix}_`])
    const declared = new Set(keys.flat())
    const texts: Record<string, string> = {}
    for (const names of keys) {
      const files = fileVariables(names).filter((name) => isGiven(env[name]) && !declared.has(name))
      const [first = '', second] = [...files, ...names.filter((name) => isGiven(env[name]))]
      if (files.length === 0) continue
      if (second !== undefined) return E.left(configFailure(`${first} and ${second} are both set. Unset one of them.`))
      const text = await readTextFile(first, env[first] ?? '')()
      if (E.isLeft(text)) return text
      const value = text.right.replace(/\r?\n$/, '')
      if (value === '') return E.left(configFailure(`The ${first} file ${env[first]} is empty.`))
      texts[names[0] ?? ''] = value
    }
    return E.right({ ...env, ...texts })
  }

/** The variables whose names start with `prefix` and an underscore that stand for no key; they are probably misspelt. */
export const findUnknownVariables = (
  schema: JsonSchema,
  prefix: string,
  env: EnvironmentVariables,
): ReadonlyArray<string> => {
  const known = new Set(listVariables(schema, prefix))
  return Object.keys(env).filter((name) => name.startsWith(`${prefix}_`) && isGiven(env[name]) && !known.has(name))
}

/** A variable that is set to nothing is how a platform leaves one out. */
const isGiven = (text: string | undefined): text is string => text !== undefined && text !== ''

const variableNames = (stems: ReadonlyArray<string>, key: string): ReadonlyArray<string> =>
  stems.map((stem) => `${stem}${key.toUpperCase()}`)

const innerStems = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.flatMap((name) => [`${name}_`, `${name}__`])

/** For each key at any depth, the variables that can give it. */
const listKeys = (schema: JsonSchema, stems: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => {
    const names = variableNames(stems, key)
    return [names, ...listKeys(inner, innerStems(names))]
  })

const fileVariables = (names: ReadonlyArray<string>): ReadonlyArray<string> => names.map((name) => `${name}_FILE`)

const listVariables = (schema: JsonSchema, prefix: string): ReadonlyArray<string> =>
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
  // A text that is no object stays, so that the codec names it.
  return t.UnknownRecord.is(own) ? mergeConfigs(own, inner) : own
}

const isObjectSchema = (schema: JsonSchema): boolean => schema.type === 'object' || Array.isArray(schema.oneOf)

/** A setting that was given as text: a list or an object is JSON text, a list also words between commas. */
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

/** A text of a fixed form, such as an address, a time or one of several words: spaces around it are a slip of the hand. */
const hasFixedForm = (schema: JsonSchema): boolean => ['pattern', 'enum', 'const'].some((keyword) => keyword in schema)

/** The config with every setting that came as text as what it means: some platforms keep each setting as text. */
const parseTexts = (schema: JsonSchema, value: unknown): unknown => {
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

/** `over` on top of `under`, objects key by key. */
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

const fileErrorReasons: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'may not be read',
  EISDIR: 'is a folder',
}

/** A text file; `what` is its name in the failure, such as "config". */
export const readTextFile =
  (what: string, path: string): TaskEither<Failure, string> =>
  async () => {
    try {
      const bytes = await readFile(path)
      return isUtf8(bytes)
        ? E.right(bytes.toString('utf8').replace(/^\uFEFF/, ''))
        : E.left(configFailure(`The ${what} file ${path} is not UTF-8. Save it as such.`))
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      // It may hold a token.
      if (/^\s*[{[]/.test(path))
        return E.left(configFailure(`--${what} wants the path of a file, and JSON was given. Write it into a file.`))
      return E.left(configFailure(`The ${what} file ${path} ${fileErrorReasons[code] ?? `cannot be read (${code})`}.`))
    }
  }

/** A JSON file. */
export const readJsonFile =
  (what: string, path: string): TaskEither<Failure, unknown> =>
  async () => {
    const text = await readTextFile(what, path)()
    if (E.isLeft(text)) return text
    return E.mapLeft((problem: string) => configFailure(`The ${what} file ${path} ${problem}.`))(parseJson(text.right))
  }

/** A state file: JSON, or lines of it as they were printed; an empty file is no state. */
export const readStateFile =
  (path: string): TaskEither<Failure, unknown> =>
  async () => {
    const text = await readTextFile('state', path)()
    if (E.isLeft(text)) return text
    if (text.right.trim() === '') return E.right(null)
    const whole = parseJson(text.right)
    if (E.isRight(whole)) return whole
    const lines = text.right.split('\n').filter((line) => line.trim() !== '')
    const parsed = E.traverseArray(parseJson)(lines)
    return lines.length > 1 && E.isRight(parsed)
      ? parsed
      : E.left(configFailure(`The state file ${path} ${E.isLeft(whole) ? whole.left : 'is wrong'}.`))
  }

/** Everything that is known of a program's configuration. */
export type ConfigFormat<A> = {
  readonly codec: t.Type<A, unknown>
  /** JSON schema of the form that platforms draw. */
  readonly spec: JsonSchema
  readonly documentationUrl: string
  /** The configuration and its keys that have no effect; a failure names the path of every wrong key. */
  readonly decode: (
    value: unknown,
  ) => E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }>
}

/** `title`: the name of the form. */
export const createConfigFormat = <A>(
  codec: t.Type<A, unknown>,
  { title, documentationUrl }: { readonly title: string; readonly documentationUrl: string },
): ConfigFormat<A> => {
  const spec: JsonSchema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title,
    ...toJsonSchema(codec),
  }
  return {
    codec,
    spec,
    documentationUrl,
    decode: (given) => {
      const value = chooseKinds(spec, removeEmpty(spec, parseTexts(spec, given)))
      return pipe(
        decodeValue(codec, value),
        E.bimap(
          (errors) =>
            configFailure(
              [
                `The config is wrong: ${errors.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
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

/** A config with more wrong keys than this is another file. */
const maxHints = 5

/**
 * The config with the kind of each group that has several, where its other keys leave no doubt: `credentials` with an access token
 * alone need no `auth_type`.
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

/** The alternatives of a group: the key that tells them apart, its value, and the keys that belong to this one alone. */
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
 * Forms send null, an empty text or an empty list for a field that was left empty. Null stays where the schema gives it a meaning
 * (`nullable`), and what is nested deeper than `maxJsonDepth` stays.
 */
const removeEmpty = (schema: JsonSchema, value: unknown, depth = 0): unknown => {
  if (Array.isArray(value)) return value.filter((item) => item !== '' && item !== null)
  if (!t.UnknownRecord.is(value) || depth >= maxJsonDepth) return value
  const properties = declaredProperties(schema)
  // Null for each of them is a form that nobody has touched.
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

/** The failure, its message preceded by the path of the file that is wrong. */
export const addFilePath =
  (path: string) =>
  ({ _tag, message }: Failure): Failure => ({ _tag, message: `${path}: ${message}` })

/** The path of each key that is marked as a secret, and its variable. */
const listSecretKeys = (
  schema: JsonSchema,
  path: string,
  stem: string,
): ReadonlyArray<readonly [path: string, variable: string]> =>
  Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => {
    const [innerPath, variable] = [`${path}${key}`, `${stem}_${key.toUpperCase()}`]
    return inner.airbyte_secret === true
      ? [[innerPath, variable] as const]
      : listSecretKeys(inner, `${innerPath}.`, variable)
  })

/** The failure, which names the variables of the secrets that are missing: they are often meant to come from there. */
const nameSecretVariables = (
  schema: JsonSchema,
  prefix: string,
  paths: ReadonlyArray<string>,
  failure: Failure,
): Failure => {
  const missing = listSecretKeys(schema, '', prefix).filter(([path]) => failure.message.includes(`${path} is missing`))
  if (missing.length === 0) return failure
  const names = missing.map(([, variable]) => variable).join(' and ')
  const where = paths.includes('ENV') ? `${names} is not set` : `With --config ENV the secret is read from ${names}`
  return { ...failure, message: `${failure.message} ${where}.` }
}

/**
 * The configuration in these files, each merged over those before it. The path ENV stands for the variables whose names start
 * with `prefix` and an underscore, or the files that they name. Secrets in it are hidden from now on; a key that has no effect is named on stderr.
 */
export const loadConfig = async <A>(
  io: CommandIo,
  { spec, decode }: ConfigFormat<A>,
  paths: ReadonlyArray<string>,
  prefix: string,
): Promise<A> => {
  const values: unknown[] = []
  for (const path of paths)
    values.push(
      path === 'ENV'
        ? readConfigFromEnvironment(spec, prefix)(await runOrThrow(readVariableFiles(spec, prefix, io.env)))
        : parseTexts(spec, await runOrThrow(readJsonFile('config', path))),
    )
  io.addSecrets(values.flatMap((value) => findSecrets(spec, value)))
  const pathList = paths.join(', ')
  const { config, unknownKeys } = getOrThrow(
    pipe(
      decode(values.reduce(mergeIfObjects)),
      E.mapLeft((failure) => addFilePath(pathList)(nameSecretVariables(spec, prefix, paths, failure))),
    ),
  )
  for (const key of unknownKeys) io.printWarning(`${pathList}: ${describeUnknownKey(spec, key)}`)
  for (const name of paths.includes('ENV') ? findUnknownVariables(spec, prefix, io.env) : []) {
    const nearest = findNearestName(name, listVariables(spec, prefix))
    const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`
    io.printWarning(`${name} stands for no key of the config and has no effect.${meant}`)
  }
  return config
}

const mergeIfObjects = (under: unknown, over: unknown): unknown =>
  t.UnknownRecord.is(under) && t.UnknownRecord.is(over) ? mergeConfigs(under, over) : over
