import { randomInt } from 'node:crypto'
import { type CommitLimits, fileLimits, type Load, type Loader } from '../snapshot/load'
import { hasForgotten, instantSql, type Snapshot } from '../snapshot/store'
import { type Appending, appendReceived } from './append'
import type { LakeShare } from './place'
import { nameShare } from './shares'
import { type Opening, openLakeStreams } from './streams'

/**
 * Each commit of a lake makes its own files, so it comes less often than that of a file; the processes that share
 * a backfill run side by side, and each needs memory in the proportion of its commits.
 */
const findLimits = (isShare: boolean): CommitLimits => ({
  ...fileLimits,
  bytes: isShare ? 30_000_000 : fileLimits.bytes,
  millis: 30_000,
  wholePages: true,
})

/** A number for a run that no other process takes: the time, and chance. Loads take those after it. */
const newRun = (now: number, last: bigint): bigint => {
  const run = (BigInt(Math.trunc(now)) << 22n) | BigInt(randomInt(2 ** 22))
  return run > last ? run : last + 1n
}

/**
 * Appends to the versions of a lake. What it asks the lake it asks as it begins; after that it knows nothing of what
 * others append, and need not. `share`: of the backfill, which this process reads.
 */
export const createLakeLoader = async (
  { db }: Snapshot,
  share: LakeShare | undefined,
  now: number,
): Promise<Loader> => {
  const shareName = share && nameShare(share)
  const forgets = await hasForgotten(db)
  const [found] = await db.query(`
    SELECT coalesce(max(load), 0)::VARCHAR AS load, coalesce(max(entry), 0)::VARCHAR AS entry
    FROM (
      SELECT load, entry FROM _loads_log UNION ALL SELECT NULL, entry FROM _streams_log
      UNION ALL SELECT NULL, entry FROM _states_log)`)
  const run = newRun(now, BigInt(String(found?.load)))
  let [entry, load] = [Math.max(Math.trunc(now) * 1000, Number(found?.entry)), run]
  const nextEntry = (): number => (entry += 1)
  const nextLoad = (): bigint => (load += 1n)
  await closeAbandonedLoads({ db }, shareName, nextEntry(), now)
  // Each thread writes a full group of rows at once, instead of holding five.
  await db.run('SET preserve_insertion_order = false; SET write_buffer_row_group_count = 1')
  const appending: Appending = { db, run, share: shareName, forgets, nextEntry, progress: new Map() }
  const toOpening = (loadOptions: Opening['loadOptions'], at: number): Opening => ({
    ...{ db, loadOptions, forgets, nextEntry, nextLoad },
    now: at,
  })
  return {
    run,
    limits: findLimits(share !== undefined),
    opensTogether: true,
    open: async (infos, { loadOptions }, at) => {
      const names = infos.map(({ name }) => name).join(', ')
      const opened: ReadonlyArray<Load> = await db.withMemory(`preparing the table of ${names}`, () =>
        db.transaction(() => openLakeStreams(toOpening(loadOptions, at), infos)),
      )
      for (const [i, each] of opened.entries())
        appending.progress.set(each, { syncMode: infos[i]?.syncMode ?? 'incremental', range: undefined })
      return opened
    },
    commit: (received, at) => appendReceived(appending, received, at),
  }
}

/**
 * Marks as incomplete what a killed run of the same share has left, or of everything where this run has the lake to
 * itself.
 */
const closeAbandonedLoads = async (
  { db }: Snapshot,
  share: string | undefined,
  entry: number,
  now: number,
): Promise<void> => {
  const isLeft = `status = 'running'${share === undefined ? '' : ` AND share = '${share}'`}`
  if ((await db.scalar(`SELECT count(*) FROM _loads WHERE ${isLeft}`)) === 0) return
  await db.transaction(() =>
    db.run(`
      INSERT INTO _loads_log
      SELECT ${entry}, load, run, share, stream, sync_mode, started,
        ${instantSql(now)} AS ended,
        records, source_records, 0, cursor_from, cursor_to, generation, 'incomplete'
      FROM _loads WHERE ${isLeft}`),
  )
}
