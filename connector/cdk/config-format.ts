import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { type CommandIo, getOrThrow, runOrThrow } from './command'
import { findUnknownKeys } from './config-fields'
import { configFailure, type Failure } from './failure'
import { decodeValue } from './json/decode'
import { mergeConfigs, readConfigFromEnvironment, readJsonFile } from './load'
import { findSecrets } from './redact'
import { type JsonSchema, toJsonSchema } from './schema'

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
    decode: (value) =>
      pipe(
        decodeValue(codec, removeNulls(value)),
        E.bimap(
          (errors) =>
            configFailure(
              `The config is wrong: ${errors.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
            ),
          (config) => ({ config, unknownKeys: findUnknownKeys(spec, value) }),
        ),
      ),
  }
}

/** Forms send null for a field that was left empty. */
const removeNulls = (value: unknown): unknown =>
  t.UnknownRecord.is(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, member]) => (member === null ? [] : [[key, removeNulls(member)]])),
      )
    : value

/** The failure, its message preceded by the path of the file that is wrong. */
export const addFilePath =
  (path: string) =>
  ({ _tag, message }: Failure): Failure => ({ _tag, message: `${path}: ${message}` })

/**
 * The configuration in these files, each merged over those before it. The path ENV stands for the variables whose names start
 * with `prefix` and an underscore. Secrets in it are hidden from now on; a key that has no effect is named on stderr.
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
      path === 'ENV' ? readConfigFromEnvironment(spec, prefix)(io.env) : await runOrThrow(readJsonFile('config', path)),
    )
  io.addSecrets(values.flatMap((value) => findSecrets(spec, value)))
  const pathList = paths.join(', ')
  const { config, unknownKeys } = getOrThrow(
    pipe(decode(values.reduce(mergeIfObjects)), E.mapLeft(addFilePath(pathList))),
  )
  for (const key of unknownKeys) io.printWarning(`${pathList}: ${key} is no key of the config and has no effect.`)
  return config
}

const mergeIfObjects = (under: unknown, over: unknown): unknown =>
  t.UnknownRecord.is(under) && t.UnknownRecord.is(over) ? mergeConfigs(under, over) : over
