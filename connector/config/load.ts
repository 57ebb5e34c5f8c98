import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import {
  type Catalog,
  CommandError,
  type CommandIo,
  configFailure,
  decodeAirbyteState,
  decodeSourceCatalog,
  type Failure,
  findSecrets,
  type JsonSchema,
  mergeConfigs,
  readConfigFromEnvironment,
  readJsonFile,
  readStateFile,
  type SourceState,
} from '../cdk'
import { type DestinationConfig, decodeDestinationConfig, destinationSpec } from './destination'
import { decodeSourceConfig, type SourceConfig, sourceSpec } from './source'

export const configOption = { type: 'string', value: 'FILE', help: 'The configuration, JSON', required: true } as const

/** The value, or the failure on its way to the edge. */
export const getOrThrow = <A>(result: E.Either<Failure, A>): A => {
  if (E.isLeft(result)) throw new CommandError(result.left)
  return result.right
}

/** The value of an effect, or its failure on its way to the edge. */
export const runOrThrow = async <A>(effect: TaskEither<Failure, A>): Promise<A> => getOrThrow(await effect())

/** The failure names the file it is about. */
export const addFilePath =
  (path: string) =>
  ({ _tag, message }: Failure): Failure => ({ _tag, message: `${path}: ${message}` })

/** The configuration in a file, or in variables `FEEDBACK_…` where the path is ENV; keys that mean nothing are named on stderr. */
export const loadSourceConfig = (io: CommandIo, path: string): Promise<SourceConfig> =>
  loadSourceConfigs(io, [path], 'FEEDBACK')

/** Several configurations, the later over the earlier. `prefix`: of the variables that ENV stands for. */
export const loadSourceConfigs = (io: CommandIo, paths: ReadonlyArray<string>, prefix: string): Promise<SourceConfig> =>
  loadMergedConfig(io, paths, prefix, sourceSpec, decodeSourceConfig)

/** The same for the destination. */
export const loadDestinationConfigs = (
  io: CommandIo,
  paths: ReadonlyArray<string>,
  prefix: string,
): Promise<DestinationConfig> => loadMergedConfig(io, paths, prefix, destinationSpec, decodeDestinationConfig)

/** The destination's configuration in a file, or in variables `FEEDBACK_…` where the path is ENV. */
export const loadDestinationConfig = (io: CommandIo, path: string): Promise<DestinationConfig> =>
  loadDestinationConfigs(io, [path], 'FEEDBACK')

const loadMergedConfig = async <A>(
  io: CommandIo,
  paths: ReadonlyArray<string>,
  prefix: string,
  spec: JsonSchema,
  read: (value: unknown) => E.Either<Failure, { readonly config: A; readonly unknownKeys: ReadonlyArray<string> }>,
): Promise<A> => {
  const given: unknown[] = []
  for (const path of paths)
    given.push(
      path === 'ENV' ? readConfigFromEnvironment(spec, prefix)(io.env) : await runOrThrow(readJsonFile('config', path)),
    )
  io.addSecrets(given.flatMap((one) => findSecrets(spec, one)))
  const named = paths.join(', ')
  const { config, unknownKeys } = getOrThrow(pipe(read(given.reduce(overlayConfig)), E.mapLeft(addFilePath(named))))
  for (const key of unknownKeys) io.printWarning(`${named}: ${key} is no key of the config and has no effect.`)
  return config
}

const overlayConfig = (under: unknown, given: unknown): unknown =>
  t.UnknownRecord.is(under) && t.UnknownRecord.is(given) ? mergeConfigs(under, given) : given

/** A configured catalog in a file. */
export const loadAirbyteCatalog = async (path: string): Promise<Catalog> => {
  const catalog = getOrThrow(
    pipe(decodeSourceCatalog(await runOrThrow(readJsonFile('catalog', path))), E.mapLeft(addFilePath(path))),
  )
  if (catalog.length === 0)
    throw new CommandError(configFailure(`${path}: The catalog selects no stream. Choose at least one.`))
  return catalog
}

/** The state in a file; no file is no state. */
export const loadAirbyteState = async (path: string | undefined): Promise<SourceState> =>
  path === undefined
    ? {}
    : getOrThrow(pipe(decodeAirbyteState(await runOrThrow(readStateFile(path))), E.mapLeft(addFilePath(path))))
