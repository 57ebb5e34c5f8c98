import { tombstoneColumnNames } from '../../cdk'
import type { Database } from '../store/database'
import { updateRowCountsSql } from '../store/metadata'
import {
  type Column,
  findReviewReference,
  listReviewReferences,
  type ReviewReference,
  type Table,
} from '../store/tables'
import { type Change, findCursorRange, loadsOf, type Received, withLoads } from './changes'
import { saveLoadStatesSql } from './earlier-runs'
import { addColumns, findUndeclaredColumns, mapToColumns } from './evolve'
import { activateGeneration, finishRefresh } from './generations'
import { toCursorRange, updateLoadsSql } from './load-rows'
import type { ReviewBatch } from './lookups'
import { applyKnownDeletions, applyTombstones, mergeRows, removeOldChildren } from './merge'
import { findUndeclaredMembers, type SharedResult, writeShared } from './shared'
import type { Load } from './stream-load'
import { typeColumnsSql, typeRows } from './typed-rows'

/**
 * In one transaction: types the records, merges them by key, applies deletions, and saves the states that cover them.
 * If it rejects, nothing has changed and it may be called again.
 */
export const commitReceived = async (
  db: Database,
  received: Received,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const { changes } = received
  const oldTables = changes.map(({ load }) => load.table)
  const undo = () => changes.map(({ load }, i) => Object.assign(load, { table: oldTables[i] ?? load.table }))
  const undeclared = await findNewColumns(db, received)
  const results = await db.transaction(() => commitWithin(db, received, undeclared, tables, now), undo)
  for (const { load } of changes) load.made += countMade(results, load)
}

/** How many rows of a stream were made from the reviews. */
const countMade = (results: ReadonlyArray<SharedResult>, { stream }: Load): number =>
  results.reduce((sum, { made }) => sum + (made.get(stream) ?? 0), 0)

const uniqueByName = (columns: ReadonlyArray<Column>): ReadonlyArray<Column> =>
  columns.filter(({ name }, i) => columns.findIndex((other) => other.name === name) === i)

/** The columns that the records of each change add, including members of the objects in shared reviews. */
export const findNewColumns = async (
  db: Database,
  { changes, shared }: Received,
): Promise<ReadonlyArray<ReadonlyArray<Column>>> => {
  const members: ReadonlyMap<string, ReadonlyArray<Column>>[] = []
  for (const each of shared) members.push(await findUndeclaredMembers(db, each, loadsOf(each, changes)))
  const undeclared = await findUndeclaredColumns(
    db,
    changes.map(({ load: { table }, spool }) => ({ table, spool })),
  )
  return changes.map(({ load: { stream } }, i) => [
    ...(undeclared[i] ?? []),
    ...uniqueByName(members.flatMap((each) => each.get(stream) ?? [])),
  ])
}

/**
 * A change whose records are in the table; `batch`: the temporary table with their keys, cursors and review references.
 */
type Batch = { readonly change: Change; readonly table: Table; readonly batch: string }

/** `undeclared`: the columns that each change adds. */
const commitWithin = async (
  db: Database,
  received: Received,
  undeclared: ReadonlyArray<ReadonlyArray<Column>>,
  oldTables: ReadonlyArray<Table>,
  now: number,
): Promise<ReadonlyArray<SharedResult>> => {
  const { changes, shared } = received
  for (const [i, { load }] of changes.entries()) load.table = await addColumns(db, load.table, undeclared[i] ?? [])
  const tables = withLoads(oldTables, changes)
  const references = listReviewReferences(tables)
  const results: SharedResult[] = []
  for (const [i, each] of shared.entries())
    results.push(await writeShared(db, each, loadsOf(each, changes), tables, `_shared_${i}`))
  const batches = changes
    .map((change, i): Batch => ({ change, table: change.load.table, batch: `temp._batch_${i}` }))
    .filter(({ change: { spool } }) => spool.count() > 0)
  for (const batch of batches) await insertBatch(db, batch)
  for (const batch of batches) if (batch.change.target.key.length > 0) await applyTombstones(db, batch, references)
  await settleVersions(db, batches, results, references)
  for (const change of changes) await endGenerations(db, change, references, now)
  // Each statement waits for its turn on the reading thread, so these are sent as one.
  await db.run(
    [
      ...saveStatesSql(changes, now),
      updateLoadsSql(
        changes.map((change) => describeLoad(change, batches, results)),
        now,
      ),
      ...updateRowCountsSql(
        tables.filter((table) => findReviewReference(table) !== undefined || hasChange(changes, table)),
      ),
      ...[...batches, ...results.map((result) => result.batch)].map(({ batch }) => `DROP TABLE ${batch}`),
    ].join(';\n'),
  )
  return results
}

const hasChange = (changes: ReadonlyArray<Change>, { name }: Table): boolean =>
  changes.some(({ load }) => load.stream === name)

/** Applies known deletions to the written reviews, and removes what belongs to their older versions. */
const settleVersions = async (
  db: Database,
  batches: ReadonlyArray<Batch>,
  results: ReadonlyArray<SharedResult>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const reviewBatches = batches.flatMap(({ table, batch }): ReadonlyArray<ReviewBatch> => {
    const self = findReviewReference(table)
    return self === undefined ? [] : [{ ...self, batch }]
  })
  await applyKnownDeletions(db, [...reviewBatches, ...results.map(({ batch }) => batch)], references)
  const withOthers = results.filter(({ hasOthers }) => hasOthers).map(({ batch }) => batch)
  await removeOldChildren(db, [...reviewBatches, ...withOthers], references)
}

const endGenerations = async (
  db: Database,
  { load, target, status, activatesGeneration }: Change,
  references: ReadonlyArray<ReviewReference>,
  now: number,
): Promise<void> => {
  if (activatesGeneration) await activateGeneration(db, load.table, target.generation, references, now)
  if (status === 'complete' && target.minimumGeneration > 0)
    await finishRefresh(db, load.table, target.minimumGeneration, references, now)
}

const saveStatesSql = (changes: ReadonlyArray<Change>, now: number): ReadonlyArray<string> => {
  const states = changes.flatMap(({ load: { stream }, state }) => (state === undefined ? [] : [{ stream, state }]))
  return states.length === 0 ? [] : saveLoadStatesSql(changes[0]?.load, states, now)
}

/** What the commit changes in a load's row in `_loads`. */
const describeLoad = (change: Change, batches: ReadonlyArray<Batch>, results: ReadonlyArray<SharedResult>) => {
  const { id, stream, table, made } = change.load
  const batch = batches.find((other) => other.change === change)
  const result = results.find(({ streams }) => streams.includes(stream))
  return {
    ...change,
    id,
    stream,
    records: change.records + made + countMade(results, change.load),
    range: batch ? findCursorRange(change, table, batch.batch) : result && timesOf(result),
  }
}

/** The versions of the reviews from which rows were made. */
const timesOf = ({ batch: { batch, time } }: SharedResult) => toCursorRange({ name: time, type: 'TIMESTAMPTZ' }, batch)

/** Types the records of a batch into their table, one row for each key. */
const insertBatch = async (db: Database, { change: { target, spool }, table, batch }: Batch): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const self = findReviewReference(table)
  const wanted = new Set<string | undefined>([...key, cursor, self?.id, self?.time, ...tombstoneColumnNames])
  const columns = table.columns.filter((column) => wanted.has(column.name))
  const rows = typeRows(table, target.generation, spool.toSql())
  await mergeRows(db, table, { key, cursor }, rows, { name: batch, sql: typeColumnsSql(columns, spool.toSql()) })
}
