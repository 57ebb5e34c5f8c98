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
 * DuckDB attaches a file with these options to write it. A full group of rows goes straight to the file instead of
 * through the log, so small groups suit small commits; by default a group has 122,880 rows. Since this storage version
 * a log names its file and checkpoint, so DuckDB refuses one that does not match, which a disk that loses synced data
 * may leave. Otherwise DuckDB could commit some rows twice, or lose others.
 */
export const snapshotAttachOptions = `ROW_GROUP_SIZE 4096, STORAGE_VERSION '${storageVersion}'`

/** DuckDB's initial memory for writing, in bytes, and the factor of each further step. */
export const writerMemory = { leastMemory: 64e6, memoryGrowth: 2 } as const

/**
 * `leastMemory`: DuckDB's initial memory in bytes; without it, the whole limit. `memoryGrowth`: the factor of each
 * further step.
 */
const accessOptions: Readonly<
  Record<SnapshotAccess, DatabaseOptions & { readonly leastMemory?: number; readonly memoryGrowth?: number }>
> = {
  // A second thread would mostly wait, and take a third more CPU for it.
  write: { ...writerMemory, threads: 1, attachOptions: snapshotAttachOptions },
  change: {},
  read: { leastMemory: 192e6, memoryGrowth: 2, readOnly: true },
}

export type SnapshotOptions = {
  /** How long to wait while another process uses the file; without it, not at all. */
  readonly wait?: FileWait | undefined
  /** The most memory for DuckDB, in bytes; by default that of `chooseMemoryLimit`. */
  readonly memoryLimit?: number | undefined
  /** How many threads DuckDB uses to read a file; by default one per processor. */
  readonly threads?: number | undefined
}

/** How long to wait for a file that another process uses. */
type FileWait = {
  readonly millis: number
  readonly stop: AbortSignal
  /** Called with the failure of each attempt before the next one. */
  readonly onAttempt: (failure: Failure) => void
}

const attemptInterval = 500

/**
 * Makes the file, its log and DuckDB's spill folder readable only by their owner. Leaves another owner's file alone.
 * DuckDB creates a new log after each checkpoint, so this is repeated; the programs also set a umask.
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

/** Opens a snapshot. Refuses any other file without changing it. */
export const openSnapshot = (
  path: string,
  access: SnapshotAccess = 'write',
  { wait, memoryLimit = chooseMemoryLimit(), threads }: SnapshotOptions = {},
): TaskEither<Failure, Snapshot> => openWaiting(openOnce(path, access, { memoryLimit, threads }), wait)

/** Opens something that another process may use, trying again for as long as `wait` says. */
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

/** The file starts like a DuckDB file. */
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
 * Detects the address of a database or server given instead of a path. It may contain a password, so it is never
 * printed.
 */
export const findAddressProblem = (path: string): Failure | undefined =>
  /^(?!duckdb:)[a-z]\w+:.|passw\w*\s*=/is.test(path) && path !== ':memory:' && !existsSync(path)
    ? configFailure(
        'An address was given as the path of a DuckDB file; it is not shown, since a ' +
          'password may be in it. Give a path, or for a lake --lake ducklake:postgres:dbname=….',
      )
    : undefined

/**
 * What is wrong with a path that is neither a DuckDB file nor a new one. DuckDB itself opens an empty path, and files
 * that it reads as tables such as CSV, as a database in memory, so everything written there is lost.
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

/** The first pages that DuckDB writes when it creates a file. */
const [firstPages, pageBytes] = [3, 4096]

/**
 * The machine stopped, or the disk was full, while DuckDB created this file: it has no log, and one of its first pages,
 * which are all, is missing, truncated or empty. It contains nothing, and DuckDB would refuse it forever.
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
    `${path} is empty: the machine stopped, or the disk was full, while it was created. ` +
      'feedback sync creates it again.',
  )

type HowToOpen = Pick<SnapshotOptions, 'threads'> & { readonly memoryLimit: number }

/** Opens a file; recreates one that was only partly created. */
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

/** Checks that what was opened has our tables, and closes it otherwise. */
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

/** Refuses a file with a layout of another version of this package. */
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
