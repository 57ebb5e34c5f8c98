import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, configFailure, type Failure, runOrThrow, systemFailure, transientFailure } from '../../cdk'
import {
  type Database,
  type DatabaseOptions,
  openDatabase,
  quoteIdentifier,
  quoteLiteral,
  type Snapshot,
} from './database'
import { chooseMemoryLimit, databaseOpenFailure, databaseWriteFailure, listMemorySteps } from './failures'
import { metadataTablesSql, snapshotFormat } from './metadata'

/** `write` creates the file if it is missing; `change` and `read` need an existing file. */
export type SnapshotAccess = 'write' | 'change' | 'read'

/** How many rows DuckDB writes together. A full group goes straight to the file, so small groups suit small commits. */
export const snapshotRowGroupSize = 4096

/** `leastMemory`: what DuckDB has at first, in bytes; without it the whole limit. `memoryGrowth`: how many times as much it has at each further step. */
const accessOptions: Readonly<
  Record<SnapshotAccess, DatabaseOptions & { readonly leastMemory?: number; readonly memoryGrowth?: number }>
> = {
  write: { leastMemory: 64e6, memoryGrowth: 2, threads: 2, rowGroupSize: snapshotRowGroupSize },
  change: {},
  read: { leastMemory: 192e6, memoryGrowth: 2, readOnly: true },
}

export type SnapshotOptions = {
  /** How long to wait while another process uses the file; not at all if left out. */
  readonly wait?: FileWait | undefined
  /** What DuckDB may use at most, in bytes; `chooseMemoryLimit` if left out. */
  readonly memoryLimit?: number | undefined
}

/** For how long to wait for a file that another process uses. */
export type FileWait = {
  readonly millis: number
  readonly stop: AbortSignal
  /** Called with the failure of each attempt before the next. */
  readonly onAttempt: (failure: Failure) => void
}

const attemptInterval = 500

/**
 * Makes the file, its log and the folder into which DuckDB spills readable to their owner only. Another owner's file stays as it is.
 * DuckDB makes a new log after each checkpoint, so this is repeated; the programs also have a umask.
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
export const openSnapshot =
  (
    path: string,
    access: SnapshotAccess = 'write',
    { wait, memoryLimit }: SnapshotOptions = {},
  ): TaskEither<Failure, Snapshot> =>
  async () => {
    const until = performance.now() + (wait?.millis ?? 0)
    for (;;) {
      const opened = await openOnce(path, access, memoryLimit ?? chooseMemoryLimit())()
      // A file in use is the only failure that passes by itself.
      const mayPass = E.isLeft(opened) && opened.left._tag === 'Transient'
      if (!mayPass || wait === undefined || wait.stop.aborted || performance.now() >= until) return opened
      wait.onAttempt(opened.left)
      await sleep(attemptInterval, undefined, { signal: wait.stop }).catch(() => undefined)
    }
  }

const openOnce = (path: string, access: SnapshotAccess, memoryLimit: number): TaskEither<Failure, Snapshot> => {
  if (access !== 'write' && !existsSync(path))
    return TE.left(configFailure(`${path}: no such file. Check the path given with --db; feedback sync creates one.`))
  const { leastMemory = memoryLimit, memoryGrowth, ...options } = accessOptions[access]
  return pipe(
    openDatabase(path, { ...options, memory: listMemorySteps(leastMemory, memoryLimit, memoryGrowth) }),
    TE.flatMap((db) =>
      pipe(
        TE.tryCatch(
          () => db.withMemory('opening the file', () => prepareTables(db)),
          (error) => (error instanceof CommandError ? error.failure : databaseOpenFailure(path, error)),
        ),
        TE.flatMapEither((result) => {
          if (E.isLeft(result)) db.close()
          else if (access !== 'read') protectFiles(path)
          return result
        }),
      ),
    ),
  )
}

const prepareTables = async (db: Database): Promise<E.Either<Failure, Snapshot>> => {
  const tables = (
    await db.query('SELECT table_name AS name FROM duckdb_tables() WHERE database_name = current_database()')
  ).map(({ name }) => String(name))
  if (tables.length === 0) await db.run(`BEGIN; ${metadataTablesSql}; COMMIT`)
  else if (!tables.includes('_meta') || !tables.includes('_loads'))
    return E.left(
      configFailure(
        `${db.path} is a DuckDB file, but not a snapshot: it holds the tables ${tables.slice(0, 5).join(', ')} and no _loads. It was not changed; give another path with --db.`,
      ),
    )
  const format = Number(await db.scalar(`SELECT value FROM _meta WHERE name = 'format'`))
  return format > snapshotFormat
    ? E.left(
        configFailure(
          `${db.path} has the snapshot format ${format}; this version supports ${snapshotFormat}. Upgrade feedback-connector.`,
        ),
      )
    : E.right({ db })
}

/** Closes the file once the work on its connection has ended, even if its caller no longer awaits it. */
export const closeSnapshot = async ({ db }: Snapshot): Promise<void> => {
  await db.waitForWork()
  db.close()
}

/** The size of a file in bytes, before and after. */
export type CompactResult = { readonly before: number; readonly after: number }

/**
 * Writes a snapshot anew beside itself, compares every table, and puts the new file, if it is smaller, in its place at once. Whenever it is stopped, the path
 * leads to a whole file. DuckDB reuses the place of what it has replaced, but gives it back to the disk only at the end of the file, and a
 * block that several tables share only once none of them needs it.
 */
export const compactSnapshot = async (path: string, options: SnapshotOptions = {}): Promise<CompactResult> => {
  // The name may be a link: what it leads to is replaced. Its log is brought into it, since a log beside another file would be lost.
  const snapshot = await runOrThrow(openSnapshot(path, 'change', options))
  try {
    await snapshot.db.checkpoint()
  } finally {
    await closeSnapshot(snapshot)
  }
  const target = realpathSync(path)
  // One thread writes the rows in their order and fills every block; two leave more of them half empty.
  const copy = `${target}.compact`
  const db = await runOrThrow(
    openDatabase(':memory:', { memory: [options.memoryLimit ?? chooseMemoryLimit()], spillPath: target, threads: 1 }),
  )
  try {
    // Other processes may read the file, but none can write it until this one is closed.
    await db
      .run(`ATTACH ${quoteLiteral(target)} AS old (READ_ONLY)`)
      .catch(throwAs((e) => databaseOpenFailure(path, e)))
    if (statSync(`${target}.wal`, { throwIfNoEntry: false })?.size)
      throw new CommandError(transientFailure(`${path} has just been changed by another process. Try again.`))
    // What a run before has left that was killed.
    for (const left of [copy, `${copy}.wal`]) rmSync(left, { force: true })
    await db
      .withMemory(`the copy of ${path}`, () => copyTables(db, copy))
      .catch(throwAs((e) => databaseWriteFailure(path, e)))
    const before = statSync(target).size
    if (statSync(copy).size < before) replaceFile(copy, target)
    return { before, after: statSync(target).size }
  } finally {
    db.close()
    for (const left of [copy, `${copy}.wal`]) rmSync(left, { force: true })
  }
}

const throwAs =
  (explain: (error: unknown) => Failure) =>
  (error: unknown): never => {
    throw error instanceof CommandError ? error : new CommandError(explain(error))
  }

/** Copies the database `old` into a new file, and compares both. */
const copyTables = async (db: Database, copy: string): Promise<void> => {
  await db.run(`ATTACH ${quoteLiteral(copy)} AS new (ROW_GROUP_SIZE ${snapshotRowGroupSize})`)
  chmodSync(copy, 0o600)
  await db.run('COPY FROM DATABASE old TO new; CHECKPOINT new')
  const [before, after] = [await describeDatabase(db, 'old'), await describeDatabase(db, 'new')]
  await db.run('DETACH new')
  if (before !== after)
    throw new CommandError(systemFailure('The copy is not equal to the file, so it was thrown away. Please report it.'))
}

/** The tables of a database with their columns, rows and a hash of all values, and its views, as text. */
const describeDatabase = async (db: Database, name: string): Promise<string> => {
  const lines: string[] = []
  const columns = await db.query(`
    SELECT table_name AS name, string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index) AS columns FROM duckdb_columns()
    WHERE database_name = ${quoteLiteral(name)} AND schema_name = 'main' AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE database_name = ${quoteLiteral(name)})
    GROUP BY ALL ORDER BY ALL`)
  for (const table of columns) {
    const rows = `${name}.${quoteIdentifier(String(table.name))}`
    const [sums] = await db.query(
      `SELECT count(*) AS n, sum(hash(_compared_row)::HUGEINT)::VARCHAR AS hash FROM ${rows} AS _compared_row`,
    )
    lines.push(`${table.name} (${table.columns}) ${sums?.n} ${sums?.hash}`)
  }
  const views = await db.query(
    `SELECT view_name AS name, column_count AS columns FROM duckdb_views() WHERE database_name = ${quoteLiteral(name)} AND NOT internal ORDER BY ALL`,
  )
  return [...lines, ...views.map((view) => `${view.name} ${view.columns}`)].join('\n')
}

/** Puts one file in the place of another; both are on one disk. */
const replaceFile = (from: string, to: string): void => {
  try {
    flush(from)
    renameSync(from, to)
    flush(dirname(to))
  } catch (error) {
    throw new CommandError(
      configFailure(`${to} cannot be replaced. ${(error as NodeJS.ErrnoException).code}: check the folder.`),
    )
  }
}

const flush = (path: string): void => {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
