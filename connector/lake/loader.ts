import { randomInt } from 'node:crypto'
import { type CommitLimits, fileLimits, type Load, type Loader } from '../snapshot/load'
import { hasForgotten, instantSql, type Snapshot } from '../snapshot/store'
import { type Appending, appendReceived } from './append'
import type { LakeShare } from './place'
import { nameShare } from './shares'
import { type Opening, openLakeStreams } from './streams'

/**
 * Each commit of a lake creates files, so commits are rarer than in a file. Processes that share a backfill run side by
 * side, and the memory of each grows with its commits.
 */
const findLimits = (isShare: boolean): CommitLimits => ({
  ...fileLimits,
  bytes: isShare ? 30_000_000 : fileLimits.bytes,
  millis: 30_000,
  wholePages: true,
})

/**
 * A number for a run that no other process uses, made from the time and a random part. Its loads get the following
 * numbers.
 */
const newRun = (now: number, last: bigint): bigint => {
  const run = (BigInt(Math.trunc(now)) << 22n) | BigInt(randomInt(2 ** 22))
  return run > last ? run : last + 1n
}

/**
 * Appends to the versions of a lake. It queries the lake only at the start, and need not know what other processes
 * append. `share`: the share of the backfill that this process reads.
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

/** Marks the loads of killed runs as incomplete: those of the same share, or all if this run has the lake to itself. */
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
