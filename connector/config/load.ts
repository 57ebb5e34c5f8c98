import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import {
  type Catalog,
  CommandError,
  type CommandIo,
  configFailure,
  decodeAirbyteState,
  decodeConfiguredCatalog,
  type Failure,
  findSecrets,
  getOrThrow,
  mergeConfigs,
  readConfigFromEnvironment,
  readJsonFile,
  readStateFile,
  runOrThrow,
  type SourceState,
  toSelections,
} from '../cdk'
import type { ConfigFormat } from './format'

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
  prefix = 'FEEDBACK',
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

/** The configured catalog in a file. */
export const loadAirbyteCatalog = async (path: string): Promise<Catalog> => {
  const catalog = getOrThrow(
    pipe(
      decodeConfiguredCatalog('source')(await runOrThrow(readJsonFile('catalog', path))),
      E.bimap(addFilePath(path), toSelections),
    ),
  )
  if (catalog.length === 0)
    throw new CommandError(configFailure(`${path}: The catalog selects no stream. Choose at least one.`))
  return catalog
}

/** The state in a file; empty without a file. */
export const loadAirbyteState = async (path: string | undefined): Promise<SourceState> =>
  path === undefined
    ? {}
    : getOrThrow(pipe(decodeAirbyteState(await runOrThrow(readStateFile(path))), E.mapLeft(addFilePath(path))))
