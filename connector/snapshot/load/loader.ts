import type { StreamInfo } from '../../cdk'
import type { Database } from '../store/database'
import { protectFiles } from '../store/file'
import { listStreamTables, type Table } from '../store/tables'
import { describeCommit, forgetArrivals, type Received, removeForgotten, withLoads } from './changes'
import { closeAbandonedLoadsSql } from './load-rows'
import { hasManyOldRows, removeOldRowsInSteps } from './merge'
import { type OpenOptions, openLoads } from './open-loads'
import { commitWithinMemory } from './slices'
import type { Load } from './stream-load'

/**
 * How much may be received after a commit before the next one starts; `millis`: the allowed age at the end of a page.
 */
export type CommitLimits = {
  readonly rows: number
  readonly bytes: number
  /** For reviews from which several streams make their rows. */
  readonly sharedBytes: number
  readonly millis: number
  /** Commits before a page that would exceed the limit, so that everything that belongs to a review comes with it. */
  readonly wholePages: boolean
}

/** Larger commits cost less per row; smaller ones lose less when a run is killed. */
export const fileLimits: CommitLimits = {
  rows: 250_000,
  bytes: 64_000_000,
  sharedBytes: 32_000_000,
  millis: 5_000,
  wholePages: false,
}

/** Where a writer puts its rows: a file merges them into its tables, a lake appends them to its versions. */
export type Loader = {
  /** The number of this run in `_loads`, higher than those of all earlier runs. */
  readonly run: number | bigint
  readonly limits: CommitLimits
  /** Streams that start together are opened together, since each opening takes a commit. */
  readonly opensTogether: boolean
  /** Prepares the tables of streams. Rejects with `CommandError` if one cannot be written. */
  readonly open: (infos: ReadonlyArray<StreamInfo>, options: OpenOptions, now: number) => Promise<ReadonlyArray<Load>>
  /** Commits what was received at once: rows, states, and the progress of the loads. */
  readonly commit: (received: Received, now: number) => Promise<void>
  /**
   * Removes rows of older generations before the commit that ends a refresh, if they are too many for it. A lake only
   * hides them.
   */
  readonly oldRows?: {
    readonly areMany: (load: Load, minimumGeneration: number) => Promise<boolean>
    readonly remove: (load: Load, minimumGeneration: number, now: number) => Promise<void>
  }
}

/**
 * The log is written into the file once it has grown to this size, after some 100,000 reviews. This also frees what
 * DuckDB remembers about written row groups.
 */
const maxLogBytes = 4_000_000

/** Merges rows into the tables of a file. `forgets`: something was forgotten in it. */
export const createFileLoader = async (db: Database, forgets: boolean): Promise<Loader> => {
  await db.transaction(() => db.run(closeAbandonedLoadsSql))
  const run = Number(await db.scalar('SELECT coalesce(max(run), 0) + 1 FROM _loads'))
  // Each thread writes a full group of rows at once, instead of holding five. A checkpoint joins groups with replaced
  // rows, a few at a time; by default it would rewrite most rows of a first load just because the last group of each
  // commit is not full. With Zstandard, texts take a third less space than with DuckDB's default methods, and a quarter
  // less time to write.
  await db.run(`
    SET force_compression = 'zstd';
    SET preserve_insertion_order = false;
    SET write_buffer_row_group_count = 1;
    SET max_vacuum_tasks = ${run === 1 ? 0 : 2}`)
  /** Undefined after a stream was opened. */
  let tables: ReadonlyArray<Table> | undefined
  const readTables = async (): Promise<ReadonlyArray<Table>> => (tables ??= await listStreamTables(db))
  return {
    run,
    limits: fileLimits,
    opensTogether: false,
    open: async (infos, options, now) => {
      const names = infos.map(({ name }) => name).join(', ')
      const loads = await db.withMemory(`preparing the table of ${names}`, () =>
        openLoads(db, run, infos, options, now),
      )
      tables = undefined
      return loads
    },
    commit: async (received, now) => {
      const current = await readTables()
      if (forgets) await forgetArrivals(db, received, () => removeForgotten(db, current), now)
      await commitWithinMemory(db, describeCommit(received), received, current, now)
      // The next commit must know what this one added to a table, even if it has no rows for it.
      tables = withLoads(current, received.changes)
      if (await db.checkpoint(maxLogBytes)) await db.release()
      protectFiles(db.path)
    },
    oldRows: {
      areMany: (load, minimumGeneration) => hasManyOldRows(db, load.table, minimumGeneration),
      remove: async (load, minimumGeneration, now) =>
        removeOldRowsInSteps(db, load.table, minimumGeneration, await readTables(), now),
    },
  }
}
