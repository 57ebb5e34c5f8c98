import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, configFailure, defined, type Failure, pathFailure } from '../../cdk'
import { type Database, type DatabaseOptions, openDatabase, type Snapshot } from './database'
import { databaseOpenFailure, foreignFileFailure, storageVersion } from './failures'
import { chooseMemoryLimit, listMemorySteps } from './memory'
import { firstFormat, metadataTablesSql, snapshotFormat } from './metadata'

/** `write` creates the file if it is missing; `change` and `read` need an existing file. */
export type SnapshotAccess = 'write' | 'change' | 'read'

/**
 * With these DuckDB attaches a file to write it. A full group of rows goes straight to the file instead of through
 * the log, so small groups suit small commits; by default one has 122,880. Since this storage version a log tells to
 * which checkpoint of which file it belongs: DuckDB refuses one of another time, which a disk may leave that loses
 * what was synced, where it would otherwise commit some rows twice or without others.
 */
export const snapshotAttachOptions = `ROW_GROUP_SIZE 4096, STORAGE_VERSION '${storageVersion}'`

/** What DuckDB has at first to write, in bytes, and how many times as much at each further step. */
export const writerMemory = { leastMemory: 64e6, memoryGrowth: 2 } as const

/**
 * `leastMemory`: what DuckDB has at first, in bytes; without it the whole limit. `memoryGrowth`: how many times as
 * much it has at each further step.
 */
const accessOptions: Readonly<
  Record<SnapshotAccess, DatabaseOptions & { readonly leastMemory?: number; readonly memoryGrowth?: number }>
> = {
  // A second thread would mostly wait, and takes a third more CPU for it.
  write: { ...writerMemory, threads: 1, attachOptions: snapshotAttachOptions },
  change: {},
  read: { leastMemory: 192e6, memoryGrowth: 2, readOnly: true },
}

export type SnapshotOptions = {
  /** How long to wait while another process uses the file; not at all if left out. */
  readonly wait?: FileWait | undefined
  /** What DuckDB may use at most, in bytes; `chooseMemoryLimit` if left out. */
  readonly memoryLimit?: number | undefined
  /** How many threads DuckDB has to read a file; one for each processor if left out. */
  readonly threads?: number | undefined
}

/** For how long to wait for a file that another process uses. */
type FileWait = {
  readonly millis: number
  readonly stop: AbortSignal
  /** Called with the failure of each attempt before the next. */
  readonly onAttempt: (failure: Failure) => void
}

const attemptInterval = 500

/**
 * Makes the file, its log and the folder into which DuckDB spills readable to their owner only. Another owner's file
 * stays as it is. DuckDB makes a new log after each checkpoint, so this is repeated; the programs also have a umask.
 */
export const protectFiles = (path: string): void => {
  if (path === ':memory:') return
  for (const [file, mode] of [
    [path, 0o600],
    [`${path}.wal`, 0o600],
    [`${path}.tmp`, 0o700],
  ] as const)
    try {
      chmodSync(file, mode)
    } catch {}
}

/** Opens a snapshot. Refuses any other file, and does not change it. */
export const openSnapshot = (
  path: string,
  access: SnapshotAccess = 'write',
  { wait, memoryLimit = chooseMemoryLimit(), threads }: SnapshotOptions = {},
): TaskEither<Failure, Snapshot> => openWaiting(openOnce(path, access, { memoryLimit, threads }), wait)

/** Opens what another process may use, again and again for as long as `wait` says. */
export const openWaiting =
  <A>(open: TaskEither<Failure, A>, wait: FileWait | undefined): TaskEither<Failure, A> =>
  async () => {
    const until = performance.now() + (wait?.millis ?? 0)
    for (;;) {
      const opened = await open()
      // A file in use is the only failure that passes by itself.
      const mayPass = E.isLeft(opened) && opened.left._tag === 'Transient'
      if (!mayPass || wait === undefined || wait.stop.aborted || performance.now() >= until) return opened
      wait.onAttempt(opened.left)
      await sleep(attemptInterval, undefined, { signal: wait.stop }).catch(() => undefined)
    }
  }

/** Whether a file begins as those of DuckDB do. */
const isDatabaseFile = (path: string): boolean => {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(12)
    return start.toString('latin1', 8, readSync(file, start)) === 'DUCK'
  } finally {
    closeSync(file)
  }
}

/**
 * An address of a database or a server, given instead of a path: it may hold a password, and is never shown.
 */
export const findAddressProblem = (path: string): Failure | undefined =>
  /^(?!duckdb:)[a-z]\w+:.|passw\w*\s*=/is.test(path) && path !== ':memory:' && !existsSync(path)
    ? configFailure(
        'An address was given as the path of a DuckDB file; it is not shown, since a ' +
          'password may be in it. Give a path, or for a lake --lake ducklake:postgres:dbname=….',
      )
    : undefined

/**
 * What is wrong with a path, if it is not that of a DuckDB file or of one to be made. DuckDB itself opens an empty
 * path and the files that it reads as tables, such as CSV, as a database in memory: what is written there is lost.
 */
export const findPathProblem = (path: string): Failure | undefined => {
  if (path === '') return configFailure('The path of the DuckDB file is empty. Give the path of a file.')
  const problem = findAddressProblem(path)
  if (problem !== undefined) return problem
  try {
    const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true
    return isFile && !isDatabaseFile(path) ? foreignFileFailure(path) : undefined
  } catch (error) {
    return pathFailure(path, error)
  }
}

/** The pages that DuckDB writes as it makes a file. */
const [firstPages, pageBytes] = [3, 4096]

/**
 * Whether the machine stopped, or the disk was full, while DuckDB made this file: it has no log, and of its first
 * pages, which are all, one is missing, cut short or empty. It holds nothing, and DuckDB would refuse it for ever.
 */
const isUnfinished = (path: string): boolean => {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true || found.size > firstPages * pageBytes || existsSync(`${path}.wal`)) return false
  const bytes = readFileSync(path)
  const pages = Array.from({ length: firstPages }, (_, n) => bytes.subarray(n * pageBytes, (n + 1) * pageBytes))
  const isEmpty = (page: Buffer): boolean => page.every((byte) => byte === 0)
  const [first = bytes] = pages
  const isCut = (page: Buffer): boolean => page.length < pageBytes
  return (
    pages.some((page) => isCut(page) || isEmpty(page)) && (isEmpty(first) || first.toString('latin1', 8, 12) === 'DUCK')
  )
}

const canRead = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

const unfinishedFileFailure = (path: string): Failure =>
  configFailure(
    `${path} holds nothing: the machine stopped, or the disk was full, while it was made. ` +
      'feedback sync makes it again.',
  )

type HowToOpen = Pick<SnapshotOptions, 'threads'> & { readonly memoryLimit: number }

/** Opens a file; makes one again that was left half made. */
const openOnce = (path: string, access: SnapshotAccess, how: HowToOpen): TaskEither<Failure, Snapshot> =>
  pipe(
    openExisting(path, access, how),
    TE.orElse((failure) => {
      if (failure._tag === 'Transient' || !canRead(path) || !isUnfinished(path)) return TE.left(failure)
      if (access !== 'write') return TE.left(unfinishedFileFailure(path))
      rmSync(path)
      return openExisting(path, access, how)
    }),
  )

const openExisting = (
  path: string,
  access: SnapshotAccess,
  { memoryLimit, threads }: HowToOpen,
): TaskEither<Failure, Snapshot> => {
  const problem = findPathProblem(path)
  if (problem !== undefined) return TE.left(problem)
  if (access !== 'write' && !existsSync(path))
    return TE.left(configFailure(`${path}: no such file. Check the path given with --db; feedback sync creates one.`))
  const { leastMemory = memoryLimit, memoryGrowth, ...options } = accessOptions[access]
  return pipe(
    openDatabase(path, {
      ...options,
      ...defined({ threads: access === 'read' ? threads : undefined }),
      memory: listMemorySteps(leastMemory, memoryLimit, memoryGrowth),
    }),
    TE.flatMap((db) => prepare(db, access)),
  )
}

const prepare = (db: Database, access: SnapshotAccess): TaskEither<Failure, Snapshot> =>
  pipe(
    prepareWith(db, () => prepareTables(db, access)),
    TE.tapIO(() => () => access !== 'read' && protectFiles(db.path)),
  )

/** Makes sure that what was opened holds our tables, and closes it if it does not. */
export const prepareWith = (
  db: Database,
  prepareOpened: () => Promise<E.Either<Failure, Snapshot>>,
): TaskEither<Failure, Snapshot> =>
  pipe(
    TE.tryCatch(
      () => db.withMemory('opening the file', prepareOpened),
      (error) => (error instanceof CommandError ? error.failure : databaseOpenFailure(db.path, error)),
    ),
    TE.flatMapEither((result) => {
      if (E.isLeft(result)) db.close()
      return result
    }),
  )

export const listTableNames = async (db: Database): Promise<ReadonlyArray<string>> =>
  (await db.query('SELECT table_name AS name FROM duckdb_tables() WHERE database_name = current_database()')).map(
    ({ name }) => String(name),
  )

const foreignTablesFailure = ({ path }: Database, tables: ReadonlyArray<string>): Failure =>
  configFailure(
    `${path} is a DuckDB file, but not a snapshot: it holds the tables ` +
      `${tables.slice(0, 5).join(', ')} and no _loads. It was not changed; give another path with --db.`,
  )

const prepareTables = async (db: Database, access: SnapshotAccess): Promise<E.Either<Failure, Snapshot>> => {
  const tables = await listTableNames(db)
  if (tables.length === 0 && access !== 'read') await db.transaction(() => db.run(metadataTablesSql))
  else if (!tables.includes('_meta') || !tables.includes('_loads')) return E.left(foreignTablesFailure(db, tables))
  return checkFormat(db)
}

/** Refuses what a version of this package with another layout has written. */
export const checkFormat = async (db: Database): Promise<E.Either<Failure, Snapshot>> => {
  const format = Number(await db.scalar(`SELECT value FROM _meta WHERE name = 'format'`))
  if (!(format >= firstFormat))
    return E.left(
      configFailure(
        `${db.path} has an older layout, which this version does not read. Start over: give another path with --db, ` +
          'or remove the file and read everything again.',
      ),
    )
  return format > snapshotFormat
    ? E.left(
        configFailure(
          `${db.path} has the snapshot format ${format}; this version ` +
            `supports ${snapshotFormat}. Upgrade feedback-connector.`,
        ),
      )
    : E.right({ db })
}

/** Closes the file once the work on its connection has ended, even if its caller no longer awaits it. */
export const closeSnapshot = async ({ db }: Snapshot): Promise<void> => {
  await db.waitForWork()
  db.close()
}
