import { type Database, quoteIdentifier, quoteLiteral, reviewsTableName, type Table } from '../store'
import { listStreamMetadata } from '../store/metadata'
import type { ReviewReference } from '../store/tables'
import { removeOldRows } from './merge'

/**
 * The file has rows of some of these streams. Deletions do not remove the rows of `locations` and the like, so if an
 * earlier run has read `reviews`, only `reviews` counts.
 */
export const hasRowsOf = async (
  db: Database,
  streams: ReadonlyArray<string>,
  run: number | bigint,
): Promise<boolean> => {
  const known = (await listStreamMetadata(db)).map(({ stream }) => stream).filter((stream) => streams.includes(stream))
  const hasReadReviews =
    known.includes(reviewsTableName) &&
    (await db.scalar(
      `SELECT count(*) FROM _loads WHERE stream = ${quoteLiteral(reviewsTableName)} AND records > 0 AND run < ${run}`,
    )) !== 0
  for (const stream of hasReadReviews ? [reviewsTableName] : known)
    if ((await db.scalar(`SELECT count(*) FROM (FROM ${quoteIdentifier(stream)} LIMIT 1)`)) !== 0) return true
  return false
}

/** Makes a generation of a stream the current one, and removes the rows of older ones. */
export const activateGeneration = async (
  db: Database,
  table: Table,
  generation: number,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  await finishRefresh(db, table, generation, references, now)
  await db.run('UPDATE _streams SET generation = $generation::BIGINT WHERE stream = $stream', {
    generation,
    stream: table.name,
  })
}

/** Removes the rows of older generations, and ends the refresh. */
export const finishRefresh = async (
  db: Database,
  table: Table,
  minimumGeneration: number,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  await removeOldRows(db, table, minimumGeneration, references, now)
  await db.run('UPDATE _streams SET refreshing = false WHERE stream = $stream', { stream: table.name })
}
