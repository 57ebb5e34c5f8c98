import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, configFailure, type Failure } from '../cdk'
import {
  checkFormat,
  chooseMemoryLimit,
  type Database,
  findPathProblem,
  listMemorySteps,
  listTableNames,
  openWaiting,
  prepareWith,
  type Snapshot,
  type SnapshotAccess,
  type SnapshotOptions,
  writerMemory,
} from '../snapshot/store'
import { openLakeDatabase } from './connection'
import { createLogs, logTableNames, setLogOptions } from './metadata'
import { describeLake, type LakeOptions, type LakePlace, toLakePlace } from './place'
import { firstViewsSql } from './relations'
import { isRemote, requireOwnFolder } from './storage'

/** How to open a place that may be a lake. */
export type PlaceOptions = SnapshotOptions & { readonly lake?: LakeOptions | undefined }

/**
 * DuckDB's initial memory for writing a share of a backfill, in bytes, and the factor of each further step. Kept small
 * because many processes run side by side.
 */
const [shareMemory, shareMemoryGrowth] = [40e6, 1.25]

/**
 * What is wrong with the catalogue file of a lake or with the place of its rows. DuckDB would otherwise create them or
 * read them as a table.
 */
const findLakeProblem = ({ path, options: { dataPath = '' } }: LakePlace): Failure | undefined => {
  if (/^[a-z][\w+.-]+:\//i.test(dataPath) && !isRemote(dataPath))
    return configFailure(
      `--data ${dataPath} is neither a folder nor an address of storage that a lake can use. ` +
        'Give a folder, or an address that begins with s3://, gs://, gcs://, r2:// or https://.',
    )
  const [, file] = /^ducklake:(?!(?:postgres|sqlite|mysql):)(?:duckdb:)?(.+)$/s.exec(path) ?? []
  return file !== undefined && findPathProblem(file) !== undefined
    ? configFailure(
        `${describeLake(path)}: the file is not the catalogue of a lake, or may not be read. ` +
          'It was not changed; give another --lake.',
      )
    : undefined
}

/** Opens a lake, which has the tables of a snapshot as views. Refuses any other lake without changing it. */
export const openLake = (
  path: string,
  access: SnapshotAccess = 'write',
  { wait, memoryLimit = chooseMemoryLimit(), lake = {} }: PlaceOptions = {},
): TaskEither<Failure, Snapshot> =>
  pipe(
    E.tryCatch(() => toLakePlace(path, access, lake), toFailure),
    TE.fromEither,
    TE.flatMap((place) => openWaiting(openOnce(place, memoryLimit), wait)),
  )

const toFailure = (error: unknown): Failure => {
  if (error instanceof CommandError) return error.failure
  throw error
}

const openOnce = (place: LakePlace, memoryLimit: number): TaskEither<Failure, Snapshot> => {
  const problem = findLakeProblem(place)
  if (problem !== undefined) return TE.left(problem)
  // A reader gets all memory at once, since a database in memory does not retry its statements with more.
  const isRead = place.access === 'read'
  const [least, growth] =
    place.options.share === undefined
      ? [writerMemory.leastMemory, writerMemory.memoryGrowth]
      : [shareMemory, shareMemoryGrowth]
  const memory = isRead ? [memoryLimit] : listMemorySteps(least, memoryLimit, growth)
  return pipe(
    // A writer uses one thread besides the reading one: a second would mostly wait and take a tenth of the CPU for it.
    // With one thread, the rows of a commit also stay in the order in which they were received.
    openLakeDatabase(place, { memory, ...(isRead ? {} : { threads: 1 }) }),
    TE.flatMap((db) => prepareWith(db, () => prepareLogs(db, place.access))),
  )
}

const foreignLakeFailure = (path: string, tables: ReadonlyArray<string>): Failure => {
  if (tables.length === 0)
    return configFailure(
      `${path} has no tables at this version: nothing was written yet. ` +
        'Give a later one with --at; feedback sync writes the first.',
    )
  if (tables.includes('_loads'))
    return configFailure(
      `${path} is a lake of an older layout, which this version neither reads nor writes. ` +
        'Start over: give an empty catalogue with --lake and an empty folder with --data.',
    )
  return configFailure(
    `${path} is a lake, but not a snapshot: it holds the tables ${tables.slice(0, 5).join(', ')} and no _loads_log. ` +
      'It was not changed; give another path with --lake.',
  )
}

const prepareLogs = async (db: Database, access: SnapshotAccess): Promise<E.Either<Failure, Snapshot>> => {
  const tables = await listTableNames(db)
  if (tables.length === 0 && access !== 'read') await makeLake(db)
  else if (!logTableNames.every((name) => tables.includes(name))) return E.left(foreignLakeFailure(db.path, tables))
  return checkFormat(db)
}

const makeLake = async (db: Database): Promise<void> => {
  await db.transaction(async () => {
    // Another writer of the lake may have created them meanwhile.
    if ((await listTableNames(db)).length > 0) return
    if (db.lake !== undefined) await requireOwnFolder(db, db.lake.dataPath)
    await createLogs(db)
    await db.run(firstViewsSql())
  })
  await setLogOptions(db)
}
