import * as E from 'fp-ts/Either'
import { CommandError, parseJson, systemFailure } from '../../cdk'
import { type Database, isOutOfMemory, quoteIdentifier } from '../store/database'
import { type CursorRange, cursorSql, saveStreamState, updateLoad, updateRowCounts } from '../store/metadata'
import {
  attributeOf,
  deletionsTableName,
  findReviewReference,
  hasTombstonesSql,
  type ReviewReference,
  reviewsTableName,
  type Table,
  tombstoneColumnNames,
} from '../store/tables'
import { evolveTable, findUndeclaredColumns } from './evolve'
import type { Spool } from './insert'
import { typeColumnsSql, typeRows } from './insert'
import {
  applyDeletionsSql,
  insertRowsSql,
  keepNewestSql,
  knownDeletionsSql,
  metKeysSql,
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

/** What one stream has received since the commit before. */
export type Change = {
  readonly load: Load
  readonly spool: Spool
  readonly target: Load['target']
  readonly activatesGeneration: boolean
  readonly status: Load['status']
  readonly records: number
  readonly sourceRecords: number | undefined
  readonly state: string | undefined
}

/** Takes from a load what it has received, and gives it an empty spool. */
export const takeChange = (load: Load, spool: Spool): Change => {
  const { target, activatesGeneration, status, records, sourceRecords, state } = load
  const change = { load, spool: load.spool, target, activatesGeneration, status, records, sourceRecords, state }
  Object.assign(load, { spool, state: undefined, hasChanges: false })
  return change
}

/** A change whose records are in the table; `batch`: the temporary table with their keys, cursors and references to reviews. */
type Batch = { readonly change: Change; readonly table: Table; readonly batch: string }

/**
 * In one transaction: types the records and merges them by their key, applies deletions, saves the states that cover them. If it
 * rejects, nothing has changed and it may be called again.
 */
export const commitChanges = async (
  db: Database,
  changes: ReadonlyArray<Change>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const oldTables = changes.map(({ load }) => load.table)
  await db.run('BEGIN')
  try {
    await commitWithin(db, changes, tables, now)
    await db.run('COMMIT')
  } catch (error) {
    await db.run('ROLLBACK').catch(() => undefined)
    for (const [i, { load }] of changes.entries()) load.table = oldTables[i] ?? load.table
    throw error
  }
}

const commitWithin = async (
  db: Database,
  changes: ReadonlyArray<Change>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  for (const { load, spool } of changes) {
    if (spool.count() === 0) continue
    const undeclared = await explainInvalidRecords(changes, () => findUndeclaredColumns(db, load.table, spool))
    if (undeclared.length > 0) load.table = await evolveTable(db, load.table, undeclared)
  }
  const currentTables = tables.map(
    (table) => changes.find(({ load }) => load.stream === table.name)?.load.table ?? table,
  )
  const references = currentTables.map(findReviewReference).filter((reference) => reference !== undefined)
  const batches = changes
    .filter(({ spool }) => spool.count() > 0)
    .map((change, i): Batch => ({ change, table: change.load.table, batch: `temp._batch_${i}` }))
  const ranges = new Map<string, CursorRange>()
  for (const batch of batches) {
    await explainInvalidRecords(changes, () => insertBatch(db, batch))
    ranges.set(batch.table.name, await readCursorRange(db, batch))
  }
  for (const batch of batches) await applyTombstones(db, batch, references)
  const reviewBatches = batches.flatMap(({ table, batch }): ReadonlyArray<ReviewBatch> => {
    const self = findReviewReference(table)
    return self === undefined ? [] : [{ ...self, batch }]
  })
  await applyKnownDeletions(db, reviewBatches, references)
  await removeOldChildren(db, reviewBatches, references)
  for (const { batch } of batches) await db.run(`DROP TABLE ${batch}`)
  for (const change of changes) {
    const { load, target, status, state } = change
    if (change.activatesGeneration) await activateGeneration(db, load.table, target.generation, references, now)
    if (status === 'complete' && target.minimumGeneration > 0)
      await finishRefresh(db, load.table, target.minimumGeneration, references, now)
    if (state !== undefined) await saveStreamState(db, load.stream, state, now)
    await updateLoad(db, { ...change, id: load.id, stream: load.stream }, ranges.get(load.stream) ?? emptyRange, now)
  }
  await updateRowCounts(
    db,
    [...new Set([...changes.map(({ load }) => load.stream), ...references.map(({ table }) => table.name)])],
    tables.filter(({ history }) => history).map(({ name }) => name),
  )
}

/** The records are JSON in all but a few files, so that they are looked through only once DuckDB has refused them. */
const explainInvalidRecords = async <A>(changes: ReadonlyArray<Change>, body: () => Promise<A>): Promise<A> => {
  try {
    return await body()
  } catch (error) {
    if (isOutOfMemory(error)) throw error
    for (const { load, spool, records } of changes) {
      let number = records - spool.count()
      for (const text of spool.texts()) {
        number += 1
        const parsed = parseJson(text)
        if (E.isLeft(parsed))
          throw new CommandError(systemFailure(`Record ${number} of the stream ${load.stream} ${parsed.left}.`))
      }
    }
    throw error
  }
}

/** Types the records of a batch into their table, one row for each key. */
const insertBatch = async (db: Database, { change: { target, spool }, table, batch }: Batch): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const self = findReviewReference(table)
  const wanted = new Set<string | undefined>([...key, cursor, self?.id, self?.time, ...tombstoneColumnNames])
  const columns = table.columns.filter((column) => wanted.has(column.name) && attributeOf(column) !== null)
  await db.run(`CREATE OR REPLACE TEMP TABLE ${batch} AS ${typeColumnsSql(columns, spool.toSql())}`)
  const rows = await typeRows(db, table, target.generation, spool.toSql())
  if (key.length > 0) await db.run(metKeysSql(table, batch, key))
  const hasMet = key.length > 0 && Number(await db.scalar('SELECT count(*) FROM _met')) > 0
  if (hasMet) await db.run(keepNewestSql(table, key, cursor, rows))
  await db.run(insertRowsSql(table, rows, hasMet ? key : []))
}

/** A tombstone of a review has taken its turn as a version; now it deletes what refers to the review, and is removed. */
const applyTombstones = async (
  db: Database,
  { change: { target }, table, batch }: Batch,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const self = table.name === reviewsTableName && target.key.length > 0 ? findReviewReference(table) : undefined
  const tombstone = hasTombstonesSql(table, 't')
  if (self === undefined || tombstone === undefined) return
  await db.run(tombstoneDeletionsSql({ ...self, batch }, tombstone))
  await applyDeletions(db, references, [deletionsTableName])
  await db.run(removeTombstonesSql(table, tombstone))
}

const emptyRange: CursorRange = { from: undefined, to: undefined, type: 'VARCHAR' }

const readCursorRange = async (
  db: Database,
  { change: { load, target }, table, batch }: Batch,
): Promise<CursorRange> => {
  const name = mapToColumns(table, target).cursor
  if (load.cursor === undefined || name === undefined) return emptyRange
  const cursor = { ...load.cursor, name }
  const [least, greatest] = ['min', 'max'].map((aggregate) =>
    cursorSql(cursor, `${aggregate}(t.${quoteIdentifier(cursor.name)})`),
  )
  const [row] = await db.query(`SELECT ${least} AS least, ${greatest} AS greatest FROM ${batch} AS t`)
  return { from: row?.least?.toString(), to: row?.greatest?.toString(), type: cursor.type }
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
  if (Number(await db.scalar('SELECT count(*) FROM _version')) === 0) return
  for (const child of children) await db.run(removeOldVersionsSql(child))
}

const activateGeneration = async (
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

/** Removes the rows of older generations. */
const finishRefresh = async (
  db: Database,
  table: Table,
  minimumGeneration: number,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  const self = findReviewReference(table)
  if (table.name === reviewsTableName && self !== undefined) {
    await db.run(refreshDeletionsSql(self, minimumGeneration))
    await applyDeletions(db, references, [reviewsTableName, deletionsTableName], removeUnreadSql)
  }
  await db.run(removeOldGenerationsSql(table, minimumGeneration, now))
  await db.run('UPDATE _streams SET refreshing = false WHERE stream = $stream', { stream: table.name })
}
