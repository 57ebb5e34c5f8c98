import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { readCatalog, readState } from './cdk/airbyte-given'
import type { Catalog, State } from './cdk/catalog'
import { type Io, Stopped } from './cdk/cli'
import { configFromEnvironment, merge } from './cdk/environment'
import { configFailure, type Failure } from './cdk/failure'
import { readJson, readStateFile } from './cdk/file'
import type { JsonSchema } from './cdk/schema'
import { secretsIn } from './cdk/secrets'
import { readConfig, type SourceConfig, sourceSpec } from './config'
import { type DestinationConfig, destinationSpec, readDestinationConfig } from './destination-config'

export const configOption = { type: 'string', value: 'FILE', help: 'The configuration, JSON', required: true } as const

/** The value, or the failure on its way to the edge. */
export const orStop = <A>(result: E.Either<Failure, A>): A => {
  if (E.isLeft(result)) throw new Stopped(result.left)
  return result.right
}

/** The value of an effect, or its failure on its way to the edge. */
export const runOrStop = async <A>(effect: TaskEither<Failure, A>): Promise<A> => orStop(await effect())

/** The failure names the file it is about. */
export const inFile =
  (path: string) =>
  ({ _tag, message }: Failure): Failure => ({ _tag, message: `${path}: ${message}` })

/** The configuration in a file, or in variables `FEEDBACK_…` where the path is ENV; keys that mean nothing are named on stderr. */
export const loadConfig = (io: Io, path: string): Promise<SourceConfig> => loadConfigs(io, [path], 'FEEDBACK')

/** Several configurations, the later over the earlier. `prefix`: of the variables that ENV stands for. */
export const loadConfigs = (io: Io, paths: ReadonlyArray<string>, prefix: string): Promise<SourceConfig> =>
  loadSettings(io, paths, prefix, sourceSpec, readConfig)

/** The same for the destination. */
export const loadDestinationConfigs = (
  io: Io,
  paths: ReadonlyArray<string>,
  prefix: string,
): Promise<DestinationConfig> => loadSettings(io, paths, prefix, destinationSpec, readDestinationConfig)

/** The destination's configuration in a file, or in variables `FEEDBACK_…` where the path is ENV. */
export const loadDestinationConfig = (io: Io, path: string): Promise<DestinationConfig> =>
  loadDestinationConfigs(io, [path], 'FEEDBACK')

const loadSettings = async <A>(
  io: Io,
  paths: ReadonlyArray<string>,
  prefix: string,
  spec: JsonSchema,
  read: (value: unknown) => E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }>,
): Promise<A> => {
  const given: unknown[] = []
  for (const path of paths)
    given.push(path === 'ENV' ? configFromEnvironment(spec, prefix)(io.env) : await runOrStop(readJson('config', path)))
  io.hide(given.flatMap((one) => secretsIn(spec, one)))
  const named = paths.join(', ')
  const { config, unknownKeys } = orStop(pipe(read(given.reduce(over)), E.mapLeft(inFile(named))))
  for (const key of unknownKeys) io.warn(`${named}: ${key} is no key of the config and has no effect.`)
  return config
}

const over = (under: unknown, given: unknown): unknown =>
  t.UnknownRecord.is(under) && t.UnknownRecord.is(given) ? merge(under, given) : given

/** A configured catalog in a file. */
export const loadCatalog = async (path: string): Promise<Catalog> => {
  const catalog = orStop(pipe(readCatalog(await runOrStop(readJson('catalog', path))), E.mapLeft(inFile(path))))
  if (catalog.length === 0)
    throw new Stopped(configFailure(`${path}: The catalog selects no stream. Choose at least one.`))
  return catalog
}

/** The state in a file; no file is no state. */
export const loadState = async (path: string | undefined): Promise<State> =>
  path === undefined ? {} : orStop(pipe(readState(await runOrStop(readStateFile(path))), E.mapLeft(inFile(path))))
