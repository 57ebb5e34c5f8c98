import { CommandError, type Failure, transientFailure } from '../cdk'
import { type Database, quoteLiteral } from '../snapshot/store'
import { type LakePlace, postgresPrefix } from './place'

// Locks of a lake are advisory locks of its PostgreSQL. They end with their connection, however the process ends.

const [lockSpace, makingLock, runLock, firstShareLock] = [0x66646c6b, 1, 2, 1000]

export type Locks = {
  /** Keeps other processes from creating the lake while `body` runs. */
  readonly whileMaking: <A>(body: () => Promise<A>) => Promise<A>
  readonly release: () => Promise<void>
}

export const noLocks: Locks = { whileMaking: (body) => body(), release: async () => undefined }

/** Another process is writing the lake, or the same share of it. */
const busyLakeFailure = (name: string, share: LakePlace['options']['share']): Failure => {
  const whose = share === undefined ? '' : `, for share ${share.index} or for all shares`
  return transientFailure(
    `${name} is in use by another run${whose}. Wait until it ends, or stop it, and try again; --wait 10m waits for it.`,
  )
}

/** What a run locks: the whole lake, or its share and, together with the other shares, the lake. */
const listLocks = ({ share }: LakePlace['options']): ReadonlyArray<readonly [name: string, lock: number]> =>
  share === undefined
    ? [['pg_try_advisory_xact_lock', runLock]]
    : [
        ['pg_try_advisory_xact_lock_shared', runLock],
        ['pg_try_advisory_xact_lock', firstShareLock + share.index],
      ]

const tryLockSql = (name: string, lock: number): string =>
  `SELECT got FROM postgres_query('lake_locks', 'SELECT ${name}(${lockSpace}, ${lock}) AS got')`

const waitForMakingSql = `
  SELECT got
  FROM postgres_query('lake_locks', 'SELECT pg_advisory_xact_lock(${lockSpace}, ${makingLock})::text AS got')`

/** A connection with an open transaction, which holds the locks taken within it. */
const beginTransaction = async (
  db: Database,
): Promise<{ readonly db: Database; readonly end: () => Promise<void> }> => {
  const connection = await db.connect()
  await connection.run('BEGIN')
  return {
    db: connection,
    end: async () => {
      await connection.run('ROLLBACK').catch(() => undefined)
      connection.close()
    },
  }
}

/**
 * Connects to the catalogue's PostgreSQL and takes the locks of this run. Rejects if another run has them. Runs that
 * share a lake only append, so they hold no locks between commits.
 */
export const openLocks = async (
  db: Database,
  { path, name, isPostgres, access, options }: LakePlace,
): Promise<Locks> => {
  if (!isPostgres || access === 'read') return noLocks
  const address = quoteLiteral(path.slice(postgresPrefix.length))
  await db.run(`ATTACH IF NOT EXISTS ${address} AS lake_locks (TYPE postgres, READ_ONLY)`)
  const held = await beginTransaction(db)
  try {
    for (const [lockName, lock] of listLocks(options))
      if ((await held.db.scalar(tryLockSql(lockName, lock))) !== true)
        throw new CommandError(busyLakeFailure(name, options.share))
  } catch (error) {
    await held.end()
    throw error
  }
  const whileMaking: Locks['whileMaking'] = async (body) => {
    const making = await beginTransaction(db)
    try {
      await making.db.scalar(waitForMakingSql)
      return await body()
    } finally {
      await making.end()
    }
  }
  return { whileMaking, release: held.end }
}
