import { type Database, quoteIdentifier } from '../store/database'
import { type CursorRange, cursorSql, saveStreamState, updateLoad, updateRowCounts } from '../store/metadata'
import {
  deletionsTableName,
  findReviewReference,
  findTombstoneColumn,
  type ReviewReference,
  reviewsTableName,
  type Table,
} from '../store/tables'
import {
  applyDeletionsSql,
  keepNewestSql,
  newDeletionsSql,
  newestVersionsSql,
  refreshDeletionsSql,
  removeOldGenerationsSql,
  removeOldVersionsSql,
  removeTombstonesSql,
  removeUnreadSql,
  tombstoneDeletionsSql,
} from './merge'
import type { Load } from './stream-load'

/**
 * Limits DuckDB's memory while rows are inserted, since it would fill all it may use with pages of the file. What it needs grows
 * with the tables: 64 MB for each million rows is enough, as measured.
 */
export const limitLoadMemory = async (db: Database): Promise<void> => {
  await db.run('DROP TABLE IF EXISTS temp._lost; DROP TABLE IF EXISTS temp._gone; DROP TABLE IF EXISTS temp._version')
  const rows = Number(await db.scalar('SELECT coalesce(sum(rows), 0) FROM _streams'))
  await db.run(`SET memory_limit = '${56 + Math.ceil(rows / 15_625)}MB'`)
}

/** Joining a batch with large tables needs more memory for a short time. */
export const raiseMergeMemory = (db: Database): Promise<void> => db.run(`SET memory_limit = '2GB'`)

/** A load with rows in the open transaction; these are the rows above `lastRowId`. */
type LoadBatch = { readonly load: Load; readonly lastRowId: number }

/** Merges the rows that the open transaction has inserted, saves the states that cover them, and commits the transaction. */
export const commitLoads = async (
  db: Database,
  loads: ReadonlyArray<Load>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const references = tables.map(findReviewReference).filter((reference) => reference !== undefined)
  const batches = loads.flatMap((load) => (load.lastRowId === undefined ? [] : [{ load, lastRowId: load.lastRowId }]))
  const ranges = new Map<string, CursorRange>()
  for (const { load, lastRowId } of batches) ranges.set(load.stream, await readCursorRange(db, load, lastRowId))
  for (const batch of batches) await mergeBatch(db, batch, references)
  await removeOldChildren(db, batches, references)
  for (const load of loads) {
    if (load.activatesGeneration) await activateGeneration(db, load, references, now)
    if (load.status === 'complete' && load.target.minimumGeneration > 0) await finishRefresh(db, load, references, now)
    if (load.state !== undefined) await saveStreamState(db, load.stream, load.state, now)
    await updateLoad(db, load, ranges.get(load.stream) ?? emptyRange, now)
  }
  await updateRowCounts(
    db,
    [...new Set([...loads.map(({ stream }) => stream), ...references.map(({ table }) => table.name)])],
    tables.filter(({ history }) => history).map(({ name }) => name),
  )
  await db.run('COMMIT')
}

const emptyRange: CursorRange = { from: undefined, to: undefined, type: 'VARCHAR' }

const readCursorRange = async (db: Database, { cursor, stream }: Load, lastRowId: number): Promise<CursorRange> => {
  if (cursor === undefined) return emptyRange
  const [least, greatest] = ['min', 'max'].map((aggregate) =>
    cursorSql(cursor, `${aggregate}(${quoteIdentifier(cursor.name)})`),
  )
  const [row] = await db.query(
    `SELECT ${least} AS least, ${greatest} AS greatest FROM ${quoteIdentifier(stream)} WHERE rowid > ${lastRowId}`,
  )
  return { from: row?.least?.toString(), to: row?.greatest?.toString(), type: cursor.type }
}

/** Applies deletions before merging their rows by key, since a known deletion is recognised by its row. */
const mergeBatch = async (
  db: Database,
  { load, lastRowId }: LoadBatch,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const { table, target } = load
  const self = findReviewReference(table)
  if (table.name === deletionsTableName && self !== undefined) {
    await db.run(newDeletionsSql(self, lastRowId))
    await applyDeletions(db, references, [deletionsTableName])
  }
  if (target.key.length === 0) return
  await db.run(keepNewestSql(table, lastRowId, target.key, target.cursor))
  const tombstone = findTombstoneColumn(table)
  if (table.name !== reviewsTableName || self === undefined || tombstone === undefined) return
  await db.run(tombstoneDeletionsSql(self, tombstone, lastRowId))
  await applyDeletions(db, references, [deletionsTableName])
  await db.run(removeTombstonesSql(table, tombstone))
}

/** Applies the deletions in `_gone` to every table that refers to reviews, except these. */
const applyDeletions = async (
  db: Database,
  references: ReadonlyArray<ReviewReference>,
  exceptions: ReadonlyArray<string>,
  removeSql = applyDeletionsSql,
): Promise<void> => {
  for (const reference of references) if (!exceptions.includes(reference.table.name)) await db.run(removeSql(reference))
}

const removeOldChildren = async (
  db: Database,
  batches: ReadonlyArray<LoadBatch>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const children = references.filter(
    ({ table }) => table.name !== reviewsTableName && table.name !== deletionsTableName,
  )
  const reviewBatches = batches.flatMap(({ load, lastRowId }) => {
    const self = findReviewReference(load.table)
    return self === undefined || load.stream === deletionsTableName ? [] : [{ ...self, lastRowId }]
  })
  if (children.length === 0 || reviewBatches.length === 0) return
  const parents = references.filter(({ table }) => table.name === reviewsTableName)
  await db.run(newestVersionsSql([...parents, ...children], reviewBatches))
  for (const child of children) await db.run(removeOldVersionsSql(child))
}

const activateGeneration = async (
  db: Database,
  load: Load,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  const { generation } = load.target
  await finishRefresh(db, { ...load, target: { ...load.target, minimumGeneration: generation } }, references, now)
  await db.run('UPDATE _streams SET generation = $generation::BIGINT WHERE stream = $stream', {
    generation,
    stream: load.stream,
  })
}

const finishRefresh = async (
  db: Database,
  { table, target }: Load,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  const self = findReviewReference(table)
  if (table.name === reviewsTableName && self !== undefined) {
    await db.run(refreshDeletionsSql(self, target.minimumGeneration))
    await applyDeletions(db, references, [reviewsTableName, deletionsTableName], removeUnreadSql)
  }
  await db.run(removeOldGenerationsSql(table, target.minimumGeneration, now))
  await db.run('UPDATE _streams SET refreshing = false WHERE stream = $stream', { stream: table.name })
}
