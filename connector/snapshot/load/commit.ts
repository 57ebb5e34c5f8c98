import { type Database, quoteIdentifier } from '../store/database'
import { type CursorRange, cursorSql, saveStreamState, updateLoad, updateRowCounts } from '../store/metadata'
import {
  deletionsTableName,
  findReviewReference,
  hasTombstonesSql,
  type ReviewReference,
  reviewsTableName,
  type Table,
} from '../store/tables'
import { showRowId } from './evolve'
import {
  applyDeletionsSql,
  keepNewestSql,
  knownDeletionsSql,
  newestVersionsSql,
  type ReviewBatch,
  refreshDeletionsSql,
  removeOldGenerationsSql,
  removeOldVersionsSql,
  removeTombstonesSql,
  removeUnreadSql,
  tombstoneDeletionsSql,
} from './merge'
import { type Load, mapToColumns } from './stream-load'

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
  const currentTables = tables.map((table) => loads.find(({ stream }) => stream === table.name)?.table ?? table)
  const references = currentTables.map(findReviewReference).filter((reference) => reference !== undefined)
  const batches = loads.flatMap((load) => (load.lastRowId === undefined ? [] : [{ load, lastRowId: load.lastRowId }]))
  const ranges = new Map<string, CursorRange>()
  for (const { load, lastRowId } of batches) ranges.set(load.stream, await readCursorRange(db, load, lastRowId))
  for (const batch of batches) await mergeBatch(db, batch, references)
  const reviewBatches = batches.flatMap(({ load, lastRowId }): ReadonlyArray<ReviewBatch> => {
    const self = findReviewReference(load.table)
    return self === undefined ? [] : [{ ...self, lastRowId }]
  })
  await applyKnownDeletions(db, reviewBatches, references)
  await removeOldChildren(db, reviewBatches, references)
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
  for (const load of loads) load.table = await showRowId(db, load.table)
  await db.run('COMMIT')
}

const emptyRange: CursorRange = { from: undefined, to: undefined, type: 'VARCHAR' }

const readCursorRange = async (
  db: Database,
  { cursor: declared, stream, table, target }: Load,
  lastRowId: number,
): Promise<CursorRange> => {
  if (declared === undefined) return emptyRange
  const cursor = { ...declared, name: mapToColumns(table, target).cursor ?? declared.name }
  const [least, greatest] = ['min', 'max'].map((aggregate) =>
    cursorSql(cursor, `${aggregate}(t.${quoteIdentifier(cursor.name)})`),
  )
  const [row] = await db.query(
    `SELECT ${least} AS least, ${greatest} AS greatest FROM ${quoteIdentifier(stream)} AS t WHERE t.rowid > ${lastRowId}`,
  )
  return { from: row?.least?.toString(), to: row?.greatest?.toString(), type: cursor.type }
}

/** Merges the rows of a batch by their key. A tombstone takes its turn as a version of its review before it is removed. */
const mergeBatch = async (
  db: Database,
  { load: { table, target }, lastRowId }: LoadBatch,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  if (target.key.length === 0) return
  const { key, cursor } = mapToColumns(table, target)
  const self = table.name === reviewsTableName ? findReviewReference(table) : undefined
  const tombstone = hasTombstonesSql(table, 't')
  const hasTombstones = self !== undefined && tombstone !== undefined
  if (hasTombstones) await db.run(tombstoneDeletionsSql(self, tombstone, lastRowId))
  await db.run(keepNewestSql(table, lastRowId, key, cursor))
  if (!hasTombstones) return
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

/** Applies every deletion that is known of the reviews which the batches name: the deletion or the version may have come first. */
const applyKnownDeletions = async (
  db: Database,
  batches: ReadonlyArray<ReviewBatch>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  if (batches.length === 0) return
  const deletions = references.filter(({ table }) => table.name === deletionsTableName)
  await db.run(knownDeletionsSql(deletions, batches))
  if (Number(await db.scalar('SELECT count(*) FROM _gone')) > 0)
    await applyDeletions(db, references, [deletionsTableName])
}

const removeOldChildren = async (
  db: Database,
  batches: ReadonlyArray<ReviewBatch>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const children = references.filter(
    ({ table }) => table.name !== reviewsTableName && table.name !== deletionsTableName,
  )
  const versions = batches.filter(({ table }) => table.name !== deletionsTableName)
  if (children.length === 0 || versions.length === 0) return
  const parents = references.filter(({ table }) => table.name === reviewsTableName)
  await db.run(newestVersionsSql([...parents, ...children], versions))
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
