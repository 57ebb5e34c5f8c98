import type { Database } from './database'

/**
 * As rows come in DuckDB gets little memory, since it would fill what it has with pages of the file. What it cannot do
 * without grows with the tables: measured, 64 MB for each million rows do.
 */
export const limitLoadMemory = async (db: Database): Promise<void> => {
  await db.run('DROP TABLE IF EXISTS temp._lost; DROP TABLE IF EXISTS temp._gone; DROP TABLE IF EXISTS temp._version')
  const rows = Number(await db.scalar('SELECT coalesce(sum(rows), 0) FROM _streams'))
  await db.run(`SET memory_limit = '${56 + Math.ceil(rows / 15_625)}MB'`)
}

/** Joining a batch with large tables wants more, for a moment. */
export const raiseMergeMemory = (db: Database): Promise<void> => db.run(`SET memory_limit = '2GB'`)
