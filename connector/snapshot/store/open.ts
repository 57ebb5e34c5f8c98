import { chmodSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, configFailure, type Failure } from '../../cdk'
import { type Database, type DatabaseOptions, openDatabase, type Snapshot } from './database'
import { databaseOpenFailure } from './failures'
import { chooseMemoryLimit, listMemorySteps } from './memory'
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
