import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import type { Failure } from '../failure'
import type { CommandIo } from '../program/command'
import { getOrThrow, runOrThrow } from '../program/error'
import { findNearestName } from '../program/names'
import { findSecrets } from '../redact'
import { findUnknownVariables, listVariables, mergeConfigs, parseTexts, readConfigFromEnvironment } from './environment'
import { describeUnknownKey } from './fields'
import { readJsonFile, readStateFile } from './files'
import { addFilePath, type ConfigFormat } from './format'
import { nameSecretVariables, readVariableFiles } from './secret-files'

/**
 * Loads the configuration from these files, each merged over the ones before it. The path ENV means the variables that
 * start with `prefix` and an underscore, or the files that they name. From then on, its secrets are redacted. Prints a
 * warning on stderr for each key that has no effect.
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
    io.printWarning(`${name} does not match any key of the config and has no effect.${meant}`)
  }
  return config
}

/** Decodes a catalog file. A failure names the file. Throws a `CommandError`. */
export const loadCatalogFile = <A>(path: string, decode: Decoder<A>): Promise<A> =>
  decodeFile(path, readJsonFile('catalog', path), decode)

/** The same for a state file. */
export const loadStateFile = <A>(path: string, decode: Decoder<A>): Promise<A> =>
  decodeFile(path, readStateFile(path), decode)

type Decoder<A> = (value: unknown) => E.Either<Failure, A>

const decodeFile = async <A>(path: string, read: TaskEither<Failure, unknown>, decode: Decoder<A>): Promise<A> =>
  getOrThrow(pipe(decode(await runOrThrow(read)), E.mapLeft(addFilePath(path))))

const mergeIfObjects = (under: unknown, over: unknown): unknown =>
  t.UnknownRecord.is(under) && t.UnknownRecord.is(over) ? mergeConfigs(under, over) : over
