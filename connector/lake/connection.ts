import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, configFailure, type Failure, runOrThrow } from '../cdk'
import {
  busyLakeFailure,
  type Database,
  type DatabaseOptions,
  databaseOpenFailure,
  lakeAuthor,
  openDatabase,
  quoteLiteral,
} from '../snapshot/store'
import {
  attachSql,
  describeLake,
  isRemote,
  type LakeOptions,
  type LakePlace,
  lakeErrorFailure,
  limitRowGroups,
  loadExtension,
  makeDataFolder,
  postgresPrefix,
  prepareSpillFolder,
  removeFolder,
  storageSecretSql,
} from './access'
import { freezeLake } from './freeze'
import { lakeMetadata } from './metadata'

/** The locks of a lake are advisory locks of its PostgreSQL: they end with their connection, however the process ends. */
const [lockSpace, makingLock, runLock, firstShareLock] = [0x66646c6b, 1, 2, 1000]

const tryLockSql = (name: string, lock: number): string => `
  SELECT got FROM postgres_query('lake_locks', 'SELECT ${name}(${lockSpace}, ${lock}) AS got')`

type Locks = {
  /** Keeps every other process from making the lake while `body` runs. */
  readonly whileMaking: <A>(body: () => Promise<A>) => Promise<A>
  readonly release: () => Promise<void>
}

const noLocks: Locks = { whileMaking: (body) => body(), release: async () => undefined }

/**
 * Connects to the catalogue's PostgreSQL and takes the lock of this run, or of this share of it. Nothing is locked between the commits of
 * runs that share a lake: they only append.
 */
const openLocks = async (db: Database, { path, name, access, options }: LakePlace): Promise<Locks> => {
  if (!path.startsWith(postgresPrefix) || access === 'read') return noLocks
  const address = quoteLiteral(path.slice(postgresPrefix.length))
  await db.run(`ATTACH IF NOT EXISTS ${address} AS lake_locks (TYPE postgres, READ_ONLY)`)
  const connection = await db.connect()
  const release = async (): Promise<void> => {
    await connection.run('ROLLBACK').catch(() => undefined)
    connection.close()
  }
  try {
    const { share } = options
    await connection.run('BEGIN')
    const wanted: ReadonlyArray<readonly [string, number]> =
      share === undefined
        ? [['pg_try_advisory_xact_lock', runLock]]
        : [
            ['pg_try_advisory_xact_lock_shared', runLock],
            ['pg_try_advisory_xact_lock', firstShareLock + share.index],
          ]
    for (const [lockName, lock] of wanted)
      if ((await connection.scalar(tryLockSql(lockName, lock))) !== true)
        throw new CommandError(busyLakeFailure(name, share))
  } catch (error) {
    await release()
    throw error
  }
  const whileMaking: Locks['whileMaking'] = async (body) => {
    const making = await db.connect()
    try {
      await making.run('BEGIN')
      await making.scalar(`
        SELECT true FROM postgres_query('lake_locks', 'SELECT pg_advisory_xact_lock(${lockSpace}, ${makingLock})::text')`)
      return await body()
    } finally {
      await making.run('ROLLBACK').catch(() => undefined)
      making.close()
    }
  }
  return { whileMaking, release }
}

/** For how long a commit is tried again while PostgreSQL or the storage cannot be reached, and how long between two tries at most. */
const [retryMillis, longestDelay] = [120_000, 10_000]
/** How often a commit that conflicts is tried again, and a statement outside a transaction. */
const [mostConflicts, lostTries] = [20, 5]

const isConflict = (error: unknown): boolean =>
  error instanceof Error && /Transaction conflict|could not serialize access|deadlock detected/i.test(error.message)

const isTransient = (error: unknown): boolean => error instanceof CommandError && error.failure._tag === 'Transient'

/**
 * Opens a DuckLake with the methods of a file. A commit that fails by a conflict or a lost connection is tried again, and one whose answer was
 * lost is not made twice.
 */
export const openLakeDatabase = (
  path: string,
  access: LakePlace['access'],
  options: LakeOptions,
  opening: DatabaseOptions,
): TaskEither<Failure, Database> => {
  const place = { path, name: describeLake(path), isPostgres: path.startsWith(postgresPrefix), access, options }
  return TE.tryCatch(
    () => openPlace(place, opening),
    (error) =>
      error instanceof CommandError
        ? error.failure
        : (lakeErrorFailure(place.name, error) ?? databaseOpenFailure(place.name, error)),
  )
}

const withLake = (db: Database, dataPath: string): Database => ({
  ...db,
  lake: { ...lakeMetadata(db, dataPath), freeze: () => freezeLake(db) },
})

const openPlace = async (place: LakePlace, opening: DatabaseOptions): Promise<Database> => {
  const { path, name, isPostgres, access, options } = place
  if (/^ducklake:(sqlite|mysql):/.test(path))
    throw new CommandError(
      configFailure(
        `${name}: a lake's catalogue is in PostgreSQL (ducklake:postgres:…) or in a DuckDB file (ducklake:FILE).`,
      ),
    )
  const base = await runOrThrow(openDatabase(':memory:', opening))
  let spillFolder: string | undefined
  const close = (): void => {
    base.close()
    if (spillFolder !== undefined) removeFolder(spillFolder)
  }
  const { env = {} } = options
  try {
    // By default DuckDB keeps 128 MB of what a writer has freed.
    if (access !== 'read')
      await base.run(`SET allocator_flush_threshold = '8MB'; SET allocator_bulk_deallocation_flush_threshold = '8MB'`)
    await loadExtension(base, 'ducklake', options)
    if (isPostgres) await loadExtension(base, 'postgres_scanner', options)
    let hasStorage = false
    const openStorage = async (dataPath: string): Promise<void> => {
      if (hasStorage || !isRemote(dataPath)) return
      hasStorage = true
      await loadExtension(base, 'httpfs', options)
      // A commit looks for its keys in each file of a table; files never change, so that each is asked for once.
      // An upload holds one part of its file in memory, by default 80 MB: much where several processes share a machine, whose files are smaller.
      const upload = options.share === undefined ? '' : `; SET s3_uploader_max_filesize = '100GB'`
      await base.run(`SET enable_external_file_cache = true${upload}`)
      const secret = storageSecretSql(env)
      if (secret !== undefined) await base.run(secret)
    }
    if (options.dataPath !== undefined) {
      await openStorage(options.dataPath)
      if (!isRemote(options.dataPath) && access === 'write') makeDataFolder(name, options.dataPath)
    }
    let locks = noLocks
    let dataPath = ''
    const attach = async (): Promise<void> => {
      locks = await openLocks(base, place)
      // Two processes that make one lake would each make half of it; one that is made, to its last option, is opened beside its writers.
      const madeSql = `SELECT made FROM postgres_query('lake_locks', 'SELECT count(*)::int AS made FROM ducklake_metadata WHERE key LIKE ''parquet_row_group_size%''')`
      const made = isPostgres && access === 'write' ? await base.scalar(madeSql).catch(() => 0) : 0
      await (made === 0 ? locks : noLocks).whileMaking(async () => {
        const sql = attachSql(place, options.version)
        await base.run(sql).catch(async (error: unknown) => {
          // Only the catalogue knows where the rows of an existing lake are.
          if (hasStorage || !/requires the extension httpfs/.test(String(error))) throw error
          await openStorage('s3://')
          await base.run(sql)
        })
        if (access === 'write') await limitRowGroups(base)
      })
      dataPath = String(await base.scalar(`SELECT value FROM ducklake_options('lake') WHERE option_name = 'data_path'`))
      await openStorage(dataPath)
      if (spillFolder === undefined) {
        spillFolder = prepareSpillFolder(dataPath, place)
        await base.run(`SET temp_directory = ${quoteLiteral(spillFolder)}`)
      }
      if (access !== 'read' || options.version !== undefined) return
      // All that a verb reads is of one version, whatever is committed meanwhile.
      const version = Number(await base.scalar(`SELECT id FROM ducklake_current_snapshot('lake')`))
      await base.run(`USE memory; DETACH lake; ${attachSql(place, version)}`)
    }
    /** The attached lake with its locks, which all statements wait for; undefined from where its connection was lost. */
    let attached: Promise<void> | undefined
    const reattach = async (): Promise<void> => {
      await locks.release()
      locks = noLocks
      await base.run('USE memory')
      for (const database of ['lake', 'lake_locks']) await base.run(`DETACH DATABASE IF EXISTS ${database}`)
      await attach()
    }
    const requireLake = (): Promise<void> => {
      attached ??= reattach().catch((error: unknown) => {
        attached = undefined
        throw error
      })
      return attached
    }
    const explain = async <A>(work: () => Promise<A>): Promise<A> => {
      try {
        return await work()
      } catch (error) {
        const failure = error instanceof CommandError ? undefined : lakeErrorFailure(name, error)
        throw failure === undefined ? error : new CommandError(failure)
      }
    }
    let isInTransaction = false
    /** Runs a statement of a writer again where the connection was lost; a transaction is run again as a whole. */
    const runAgain = async <A>(work: () => Promise<A>, tries = lostTries): Promise<A> => {
      const lake = requireLake()
      try {
        return await explain(() => lake.then(work))
      } catch (error) {
        if (isInTransaction || access === 'read' || !isTransient(error) || tries === 0) throw error
        if (attached === lake) attached = undefined
        await sleep(500)
        return runAgain(work, tries - 1)
      }
    }
    /** A question outside a transaction takes what memory it needs: the answer of a catalogue grows with the lake. */
    const ask = <A>(question: () => Promise<A>): Promise<A> =>
      runAgain(() => (isInTransaction ? question() : base.withMemory('reading the catalogue', question)))
    await runAgain(async () => undefined)
    const commitOnce = <A>(body: () => Promise<A>, id: string): Promise<A> =>
      explain(async () => {
        const commit = async (): Promise<A> => {
          const result = await body()
          await base.run(`CALL lake.set_commit_message('${lakeAuthor}', '', extra_info => ${quoteLiteral(id)})`)
          return result
        }
        // From here on no statement is run again alone: the transaction is, as a whole.
        isInTransaction = true
        try {
          return await base.transaction(commit)
        } finally {
          isInTransaction = false
        }
      })
    const isCommitted = async (id: string): Promise<boolean> => {
      const sql = `SELECT count(*) FROM ducklake_snapshots('lake') WHERE commit_extra_info = ${quoteLiteral(id)}`
      return Number(await base.scalar(sql)) > 0
    }
    /** Runs `body` to its commit, again where that may help. */
    const transaction: Database['transaction'] = async (body, undo) => {
      const id = randomUUID()
      const until = performance.now() + retryMillis
      let result: { readonly value: Awaited<ReturnType<typeof body>> } | undefined
      const run = async () => {
        const value = await body()
        result = { value }
        return value
      }
      for (let attempt = 0; ; attempt += 1) {
        const lake = requireLake()
        try {
          await explain(() => lake)
          if (attempt > 0 && result !== undefined && (await explain(() => isCommitted(id)))) return result.value
          if (attempt > 0) undo?.()
          return await commitOnce(run, id)
        } catch (error) {
          const isLost = isTransient(error)
          if (!(isLost ? performance.now() < until : isConflict(error) && attempt < mostConflicts)) {
            undo?.()
            throw error
          }
          if (isLost && attached === lake) attached = undefined
          await sleep(Math.min(longestDelay, 200 * 2 ** attempt) * (0.5 + Math.random() / 2))
        }
      }
    }
    const lakeDatabase: Database = {
      ...base,
      path: name,
      transaction,
      run: (...statement) => runAgain(() => base.run(...statement)),
      query: (...statement) => ask(() => base.query(...statement)),
      scalar: (...statement) => ask(() => base.scalar(...statement)),
      stream: (...statement) => explain(() => requireLake().then(() => base.stream(...statement))),
      connect: async () => {
        const other = { ...(await base.connect()), path: name }
        await other.run('USE lake')
        return withLake(other, dataPath)
      },
      close: () => {
        void locks.release().finally(close)
      },
    }
    return withLake(lakeDatabase, dataPath)
  } catch (error) {
    close()
    throw error
  }
}
