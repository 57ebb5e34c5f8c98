import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, type Failure, runOrThrow } from '../cdk'
import { type Database, type DatabaseOptions, databaseOpenFailure, openDatabase, quoteLiteral } from '../snapshot/store'
import { type Attachment, createAttachment } from './attachment'
import { lakeErrorFailure } from './errors'
import { loadExtension } from './extensions'
import { freezeLake } from './freeze'
import { lakeMetadata } from './metadata'
import type { LakePlace } from './place'

/** The author of lake versions made by this program. */
const lakeAuthor = 'feedback-connector'

/**
 * How long a commit is retried while PostgreSQL or the storage cannot be reached, and the longest pause between tries.
 */
const [retryMillis, longestDelay] = [120_000, 10_000]
/** How often a conflicting commit is retried, and a statement outside a transaction. */
const [mostConflicts, lostTries] = [20, 5]

const conflictPattern = /Transaction conflict|could not serialize access|deadlock detected|maximum retry count/i
const isConflict = (error: unknown): boolean => error instanceof Error && conflictPattern.test(error.message)

const isTransient = (error: unknown): boolean => error instanceof CommandError && error.failure._tag === 'Transient'

/**
 * Opens a DuckLake with the interface of a file. A commit that conflicts or loses its connection is retried; one whose
 * answer was lost is not made twice.
 */
export const openLakeDatabase = (place: LakePlace, opening: DatabaseOptions): TaskEither<Failure, Database> =>
  TE.tryCatch(
    () => openPlace(place, opening),
    (error) =>
      error instanceof CommandError
        ? error.failure
        : (lakeErrorFailure(place.name, error) ?? databaseOpenFailure(place.name, error)),
  )

const openPlace = async (place: LakePlace, opening: DatabaseOptions): Promise<Database> => {
  const base = await runOrThrow(openDatabase(':memory:', opening))
  let attachment: Attachment | undefined
  try {
    // By default DuckDB keeps 128 MB of what a writer has freed.
    if (place.access !== 'read')
      await base.run(`SET allocator_flush_threshold = '8MB'; SET allocator_bulk_deallocation_flush_threshold = '8MB'`)
    await loadExtension(base, 'ducklake', place.options)
    if (place.isPostgres) await loadExtension(base, 'postgres_scanner', place.options)
    attachment = await createAttachment(base, place)
    const db = createLakeDatabase(base, place, attachment)
    await db.run('SELECT 1')
    return withLake(db, attachment.dataPath())
  } catch (error) {
    if (attachment === undefined) base.close()
    else await attachment.close()
    throw error
  }
}

const withLake = (db: Database, dataPath: string): Database => {
  let frozen: Promise<void> | undefined
  return { ...db, lake: { ...lakeMetadata(db, dataPath), freeze: () => (frozen ??= freezeLake(db)) } }
}

/** The methods of a database over a lake. They attach it first, and again if its connection was lost. */
const createLakeDatabase = (base: Database, { name, access }: LakePlace, attachment: Attachment): Database => {
  /** Runs work on the attached lake, and explains failures of its catalogue or storage. */
  const useLake = async <A>(work: () => Promise<A>): Promise<A> => {
    try {
      await attachment.attach()
      return await work()
    } catch (error) {
      const failure = error instanceof CommandError ? undefined : lakeErrorFailure(name, error)
      throw failure === undefined ? error : new CommandError(failure)
    }
  }
  let isInTransaction = false
  /** Reruns a writer's statement if the connection was lost. A transaction is rerun as a whole. */
  const runAgain = async <A>(work: () => Promise<A>, tries = lostTries): Promise<A> => {
    const attached = attachment.attach()
    try {
      return await useLake(work)
    } catch (error) {
      if (isInTransaction || access === 'read' || !isTransient(error) || tries === 0) throw error
      attachment.lose(attached)
      await sleep(500)
      return runAgain(work, tries - 1)
    }
  }
  /** A query outside a transaction takes the memory it needs: the catalogue's answer grows with the lake. */
  const ask = <A>(question: () => Promise<A>): Promise<A> =>
    runAgain(() => (isInTransaction ? question() : base.withMemory('reading the catalogue', question)))
  const commit = async <A>(body: () => Promise<A>): Promise<A> => {
    isInTransaction = true
    try {
      return await base.transaction(body)
    } finally {
      isInTransaction = false
    }
  }
  return {
    ...base,
    path: name,
    transaction: createTransaction(base, attachment, useLake, commit),
    run: (...statement) => runAgain(() => base.run(...statement)),
    query: (...statement) => ask(() => base.query(...statement)),
    scalar: (...statement) => ask(() => base.scalar(...statement)),
    stream: (...statement) => useLake(() => base.stream(...statement)),
    connect: async () => {
      const other = { ...(await base.connect()), path: name }
      await other.run('USE lake')
      return withLake(other, attachment.dataPath())
    },
    close: () => void attachment.close(),
  }
}

/** A transaction that is rerun as long as that may help. Its version carries a number of ours by which it is found. */
const createTransaction = (
  base: Database,
  attachment: Attachment,
  useLake: <A>(work: () => Promise<A>) => Promise<A>,
  commit: <A>(body: () => Promise<A>) => Promise<A>,
): Database['transaction'] => {
  const isCommitted = async (id: string): Promise<boolean> => {
    const sql = `SELECT count(*) FROM ducklake_snapshots('lake') WHERE commit_extra_info = ${quoteLiteral(id)}`
    return Number(await base.scalar(sql)) > 0
  }
  return async (body, undo) => {
    const id = randomUUID()
    const until = performance.now() + retryMillis
    let result: { readonly value: Awaited<ReturnType<typeof body>> } | undefined
    const run = async () => {
      const value = await body()
      result = { value }
      await base.run(`CALL lake.set_commit_message('${lakeAuthor}', '', extra_info => ${quoteLiteral(id)})`)
      return value
    }
    for (let attempt = 0; ; attempt += 1) {
      const attached = attachment.attach()
      try {
        const done = result
        if (done !== undefined && (await useLake(() => isCommitted(id)))) return done.value
        if (attempt > 0) undo?.()
        return await useLake(() => commit(run))
      } catch (error) {
        const isLost = isTransient(error)
        if (!(isLost ? performance.now() < until : isConflict(error) && attempt < mostConflicts)) {
          undo?.()
          throw error
        }
        if (isLost) attachment.lose(attached)
        await sleep(Math.min(longestDelay, 200 * 2 ** attempt) * (0.5 + Math.random() / 2))
      }
    }
  }
}
