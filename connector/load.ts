import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import { readCatalog, readState } from './cdk/airbyte'
import type { Catalog, State } from './cdk/catalog'
import { type Io, Stopped } from './cdk/cli'
import { configFailure, type Failure } from './cdk/failure'
import { readJson, readStateFile } from './cdk/file'
import { readConfig, type SourceConfig } from './config'

export const configOption = { type: 'string', value: 'FILE', help: 'The configuration, JSON', required: true } as const

/** The value, or the failure on its way to the edge. */
export const orStop = <A>(result: E.Either<Failure, A>): A => {
  if (E.isLeft(result)) throw new Stopped(result.left)
  return result.right
}

/** The value of an effect, or its failure on its way to the edge. */
export const runOrStop = async <A>(effect: TaskEither<Failure, A>): Promise<A> => orStop(await effect())

/** The failure names the file it is about. */
const inFile =
  (path: string) =>
  ({ _tag, message }: Failure): Failure => ({ _tag, message: `${path}: ${message}` })

/** The configuration in a file; keys that mean nothing are named on stderr. */
export const loadConfig = async (io: Io, path: string): Promise<SourceConfig> => {
  const { config, unknownKeys } = orStop(
    pipe(readConfig(await runOrStop(readJson('config', path))), E.mapLeft(inFile(path))),
  )
  for (const key of unknownKeys) io.warn(`${path}: ${key} is no key of the config and has no effect.`)
  return config
}

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
