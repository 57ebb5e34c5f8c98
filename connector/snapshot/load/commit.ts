import { tombstoneColumnNames } from '../../cdk'
import type { Database } from '../store/database'
import { type CursorRange, cursorSql, updateLoadsSql, updateRowCountsSql } from '../store/metadata'
import { type Column, findReviewReference, type Table } from '../store/tables'
import { saveLoadStatesSql } from './earlier-runs'
import { addColumns, findUndeclaredColumns, mapToColumns } from './evolve'
import { activateGeneration, finishRefresh } from './generations'
import { metKeysSql, type ReviewBatch, reviewPartsSql } from './lookups'
import { applyKnownDeletions, applyTombstones, insertRowsSql, keepNewestSql, removeOldChildren } from './merge'
import { findUndeclaredMembers, loadsOf, type SharedResult, writeShared } from './shared'
import { type Spool, splitSpool } from './spool'
import { type Change, countRecords, findCursorRange, type Load, type Received } from './stream-load'
import { typeColumnsSql, typeRows, typeValuesSql } from './typed-rows'

const spoolsOf = ({ changes, shared }: Received): ReadonlyArray<Spool> =>
  [...changes, ...shared].map(({ spool }) => spool)

/**
 * A change whose records are in the table; `batch`: the temporary table with their keys, cursors and references to
 * reviews.
 */
type Batch = { readonly change: Change; readonly table: Table; readonly batch: string }

/** Into how many parts a commit is cut, and how often; fewer records are not cut. */
const [partCount, mostCuts, leastCut] = [8, 3, 2000]

/**
 * Commits changes; if they need more memory than DuckDB may use, in parts of some reviews each, with all that belongs
 * to them. Rows that have no review, and the states, which cover all of it, are in the last one: whenever a run is
 * killed, a state in the file covers rows in the file only.
 */
export const commitWithinMemory = (
  db: Database,
  name: string,
  received: Received,
  tables: ReadonlyArray<Table>,
  now: number,
  cuts = 0,
): Promise<void> => {
  const isLarge = countRecords(spoolsOf(received)) >= leastCut
  const commitParts = async (): Promise<void> => {
    const parts = await db.withMemory(name, () => cutReceived(db, received, tables))
    try {
      for (const part of parts) {
        await commitWithinMemory(db, name, part, tables, now, parts.length > 1 ? cuts + 1 : mostCuts)
        await db.release()
      }
    } finally {
      const whole = spoolsOf(received)
      for (const spool of parts.flatMap(spoolsOf)) if (!whole.includes(spool)) spool.close()
    }
  }
  const parts = isLarge && cuts < mostCuts ? commitParts : undefined
  return db.withMemory(name, () => commitReceived(db, received, tables, now), parts)
}

/** What was received in parts; the last one has what is in no other, and the states. */
const cutReceived = async (
  db: Database,
  received: Received,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyArray<Received>> => {
  const { changes, shared } = received
  const references = tables.map(findReviewReference).flatMap((reference) => reference ?? [])
  const cutChanges = changes.flatMap((change) => {
    const { table } = change.load
    const id = table.columns.find(({ name }) => name === findReviewReference(table)?.id)
    // Versions of one row belong into one part.
    return id !== undefined && change.spool.count() > 0 && mapToColumns(table, change.target).key.includes(id.name)
      ? [{ change, id, spool: change.spool }]
      : []
  })
  const cut = [...cutChanges, ...shared.map(({ spool }) => ({ id: reviewIdColumn, spool }))]
  if (cut.length === 0) return [received]
  const values = cut.map(({ id, spool }) => typeValuesSql(id, spool.toSql()))
  const places = cut.map(({ spool }) => new Uint8Array(spool.count()))
  const found = await db.stream(reviewPartsSql(references, values, partCount))
  for await (const rows of found.chunks)
    for (const [batch, seq, part] of rows) places[Number(batch)]?.set([Number(part)], Number(seq))
  await db.run('DROP TABLE _value; DROP TABLE _part')
  const spools = cut.map(({ spool }, i) => splitSpool(spool, db.path, places[i] ?? new Uint8Array(), partCount))
  const others = changes.filter((change) => cutChanges.every((each) => each.change !== change))
  return Array.from({ length: partCount }, (_, part) => {
    const own = cutChanges.flatMap(({ change }, i) => {
      const [spool, ...later] = spools[i]?.slice(part) ?? []
      return spool === undefined ? [] : [{ ...change, spool, records: change.records - countRecords(later) }]
    })
    const sharedPart = shared.flatMap((each, i) => {
      const spool = spools[cutChanges.length + i]?.[part]
      return spool === undefined || spool.count() === 0 ? [] : [{ ...each, spool }]
    })
    if (part === partCount - 1) return { changes: [...own, ...others], shared: sharedPart }
    const filled = sharedPart.flatMap((each) => loadsOf(each, others))
    const unfinished = [...own, ...others.filter(({ load }) => filled.includes(load))]
    return { changes: unfinished.map(withoutEnd), shared: sharedPart }
  })
}

/** A change whose stream goes on: its state and its end come with the last part. */
const withoutEnd = (change: Change): Change => ({
  ...change,
  state: undefined,
  status: 'running',
  activatesGeneration: false,
})

/** The key of reviews, as it stands in what was received once for several streams. */
const reviewIdColumn: Column = { name: 'id', type: 'BIGINT' }

/**
 * In one transaction: types the records and merges them by their key, applies deletions, saves the states that cover
 * them. If it rejects, nothing has changed and it may be called again.
 */
const commitReceived = async (
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

/** How many rows of a stream were made of the reviews. */
const countMade = (results: ReadonlyArray<SharedResult>, { stream }: Load): number =>
  results.reduce((sum, { made }) => sum + (made.get(stream) ?? 0), 0)

const uniqueByName = (columns: ReadonlyArray<Column>): ReadonlyArray<Column> =>
  columns.filter(({ name }, i) => columns.findIndex((other) => other.name === name) === i)

/** The columns that the records of each change bring, and members of the objects in shared reviews. */
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

/** The tables, those of these streams with the columns that their loads know. */
export const withLoads = (tables: ReadonlyArray<Table>, changes: ReadonlyArray<Change>): ReadonlyArray<Table> =>
  tables.map((table) => changes.find(({ load }) => load.stream === table.name)?.load.table ?? table)

/** `undeclared`: the columns that each change brings. */
const commitWithin = async (
  db: Database,
  { changes, shared }: Received,
  undeclared: ReadonlyArray<ReadonlyArray<Column>>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<ReadonlyArray<SharedResult>> => {
  for (const [i, { load }] of changes.entries()) {
    const columns = undeclared[i] ?? []
    if (columns.length > 0) load.table = await addColumns(db, load.table, columns)
  }
  const currentTables = withLoads(tables, changes)
  const references = currentTables.map(findReviewReference).filter((reference) => reference !== undefined)
  const batches = changes
    .map((change, i): Batch => ({ change, table: change.load.table, batch: `temp._batch_${i}` }))
    .filter(({ change: { spool } }) => spool.count() > 0)
  const results: SharedResult[] = []
  for (const [i, each] of shared.entries())
    results.push(await writeShared(db, each, loadsOf(each, changes), currentTables, `_shared_${i}`))
  for (const batch of batches) await insertBatch(db, batch)
  for (const batch of batches) if (batch.change.target.key.length > 0) await applyTombstones(db, batch, references)
  const reviewBatches = batches.flatMap(({ table, batch }): ReadonlyArray<ReviewBatch> => {
    const self = findReviewReference(table)
    return self === undefined ? [] : [{ ...self, batch }]
  })
  await applyKnownDeletions(db, [...reviewBatches, ...results.map(({ batch }) => batch)], references)
  const withOthers = results.filter(({ hasOthers }) => hasOthers).map(({ batch }) => batch)
  await removeOldChildren(db, [...reviewBatches, ...withOthers], references)
  for (const change of changes) {
    const { load, target, status } = change
    if (change.activatesGeneration) await activateGeneration(db, load.table, target.generation, references, now)
    if (status === 'complete' && target.minimumGeneration > 0)
      await finishRefresh(db, load.table, target.minimumGeneration, references, now)
  }
  const changedTables = new Set([
    ...changes.map(({ load }) => load.stream),
    ...references.map(({ table }) => table.name),
  ])
  const states = changes.flatMap(({ load: { stream }, state }) => (state === undefined ? [] : [{ stream, state }]))
  const updates = changes.map((change) => {
    const { id, stream, table } = change.load
    const batch = batches.find((other) => other.change === change)
    const records = change.records + change.load.made + countMade(results, change.load)
    const result = results.find(({ streams }) => streams.includes(stream))
    const range = batch ? findCursorRange(change, table, batch.batch) : result && timesOf(result)
    return { ...change, id, stream, records, range }
  })
  // Each statement waits for its turn on the thread that reads on, so these are sent as one.
  await db.run(
    [
      ...(states.length === 0 ? [] : saveLoadStatesSql(changes[0]?.load, states, now)),
      updateLoadsSql(updates, now),
      ...updateRowCountsSql(
        [...changedTables],
        tables.filter(({ history }) => history).map(({ name }) => name),
      ),
      ...batches.map(({ batch }) => `DROP TABLE ${batch}`),
      ...results.map(({ batch: { batch } }) => `DROP TABLE ${batch}`),
    ].join(';\n'),
  )
  return results
}

/** The versions of the reviews that rows were made of. */
const timesOf = ({ batch: { batch, time } }: SharedResult): CursorRange => {
  const column: Column = { name: time, type: 'TIMESTAMPTZ' }
  const [least = '', greatest = ''] = ['min', 'max'].map((aggregate) => cursorSql(column, `${aggregate}(t.${time})`))
  return { table: batch, least, greatest, type: column.type }
}

/** Types the records of a batch into their table, one row for each key. */
const insertBatch = async (db: Database, { change: { target, spool }, table, batch }: Batch): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const self = findReviewReference(table)
  const wanted = new Set<string | undefined>([...key, cursor, self?.id, self?.time, ...tombstoneColumnNames])
  const columns = table.columns.filter((column) => wanted.has(column.name))
  const batchSql = `CREATE OR REPLACE TEMP TABLE ${batch} AS ${typeColumnsSql(columns, spool.toSql())}`
  const rows = typeRows(table, target.generation, spool.toSql())
  const hasMet =
    Number(
      await db.scalar(
        key.length === 0
          ? `${batchSql}; SELECT 0`
          : `${batchSql}; ${metKeysSql(table, batch, key)}; SELECT count(*) FROM _met`,
      ),
    ) > 0
  if (hasMet) await db.run(keepNewestSql(table, key, cursor, rows))
  await db.run(insertRowsSql(table, rows, hasMet ? key : []))
}
