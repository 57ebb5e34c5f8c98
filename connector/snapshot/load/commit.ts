import { tombstoneColumnNames } from '../../cdk'
import type { Database } from '../store/database'
import { updateLoadsSql, updateRowCountsSql } from '../store/metadata'
import { attributeOf, type Column, findReviewReference, type Table } from '../store/tables'
import { activateGeneration, finishRefresh, saveLoadStatesSql } from './earlier-runs'
import { evolveTable, findUndeclaredColumns, mapToColumns } from './evolve'
import { splitSpool, typeColumnsSql, typeRows, typeValuesSql } from './insert'
import { metKeysSql, type ReviewBatch, reviewPartsSql } from './lookups'
import { applyKnownDeletions, applyTombstones, insertRowsSql, keepNewestSql, removeOldChildren } from './merge'
import { type Change, countRecords, findCursorRange } from './stream-load'

type Changes = ReadonlyArray<Change>

/** A change whose records are in the table; `batch`: the temporary table with their keys, cursors and references to reviews. */
type Batch = { readonly change: Change; readonly table: Table; readonly batch: string }

/** Into how many parts a commit is cut, and how often; fewer records are not cut. */
const [partCount, mostCuts, leastCut] = [8, 3, 2000]

/**
 * Commits changes; if they need more memory than DuckDB may use, in parts of some reviews each, with all that belongs to them. Rows that have no
 * review, and the states, which cover all of it, are in the last one: whenever a run is killed, a state in the file covers rows in the file only.
 */
export const commitWithinMemory = (
  db: Database,
  name: string,
  changes: Changes,
  tables: ReadonlyArray<Table>,
  now: number,
  cuts = 0,
): Promise<void> => {
  const isLarge = countRecords(changes.map(({ spool }) => spool)) >= leastCut
  const commitParts = async (): Promise<void> => {
    const parts = await db.withMemory(name, () => cutChanges(db, changes, tables))
    try {
      for (const part of parts) {
        await commitWithinMemory(db, name, part, tables, now, parts.length > 1 ? cuts + 1 : mostCuts)
        await db.release()
      }
    } finally {
      for (const change of parts.flat()) if (!changes.includes(change)) change.spool.close()
    }
  }
  const parts = isLarge && cuts < mostCuts ? commitParts : undefined
  return db.withMemory(name, () => commitChanges(db, changes, tables, now), parts)
}

/** The changes in parts; the last one has what is in no other, and the states. */
const cutChanges = async (
  db: Database,
  changes: Changes,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyArray<Changes>> => {
  const references = tables.map(findReviewReference).flatMap((reference) => reference ?? [])
  const cut = changes.flatMap((change) => {
    const { table } = change.load
    const id = table.columns.find(({ name }) => name === findReviewReference(table)?.id)
    // Versions of one row belong into one part.
    return id !== undefined && change.spool.count() > 0 && mapToColumns(table, change.target).key.includes(id.name)
      ? [{ change, values: typeValuesSql(id, change.spool.toSql()), parts: new Uint8Array(change.spool.count()) }]
      : []
  })
  if (cut.length === 0) return [changes]
  const values = cut.map((each) => each.values)
  const found = await db.stream(reviewPartsSql(references, values, partCount))
  for await (const rows of found.chunks)
    for (const [batch, seq, part] of rows) cut[Number(batch)]?.parts.set([Number(part)], Number(seq))
  await db.run('DROP TABLE _value; DROP TABLE _part')
  const spools = cut.map(({ change, parts }) => splitSpool(change.spool, db.path, parts, partCount))
  const others = changes.filter((change) => cut.every((each) => each.change !== change))
  return Array.from({ length: partCount }, (_, part) => {
    const own = cut.flatMap(({ change }, i) => {
      const [spool, ...later] = spools[i]?.slice(part) ?? []
      return spool === undefined ? [] : [{ ...change, spool, records: change.records - countRecords(later) }]
    })
    if (part === partCount - 1) return [...own, ...others]
    return own.map((change) => ({ ...change, state: undefined, status: 'running', activatesGeneration: false }))
  })
}

/**
 * In one transaction: types the records and merges them by their key, applies deletions, saves the states that cover them. If it
 * rejects, nothing has changed and it may be called again.
 */
const commitChanges = async (
  db: Database,
  changes: Changes,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const oldTables = changes.map(({ load }) => load.table)
  const undo = () => changes.map(({ load }, i) => Object.assign(load, { table: oldTables[i] ?? load.table }))
  const undeclared = await findUndeclaredColumns(
    db,
    changes.map(({ load: { table }, spool }) => ({ table, spool })),
  )
  await db.transaction(() => commitWithin(db, changes, undeclared, tables, now), undo)
}

/** `undeclared`: the columns that the records of each change bring. */
const commitWithin = async (
  db: Database,
  changes: Changes,
  undeclared: ReadonlyArray<ReadonlyArray<Column>>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  for (const [i, { load }] of changes.entries()) {
    const columns = undeclared[i] ?? []
    if (columns.length > 0) load.table = await evolveTable(db, load.table, columns)
  }
  const currentTables = tables.map(
    (table) => changes.find(({ load }) => load.stream === table.name)?.load.table ?? table,
  )
  const references = currentTables.map(findReviewReference).filter((reference) => reference !== undefined)
  const batches = changes
    .map((change, i): Batch => ({ change, table: change.load.table, batch: `temp._batch_${i}` }))
    .filter(({ change: { spool } }) => spool.count() > 0)
  for (const batch of batches) await insertBatch(db, batch)
  for (const batch of batches) if (batch.change.target.key.length > 0) await applyTombstones(db, batch, references)
  const reviewBatches = batches.flatMap(({ table, batch }): ReadonlyArray<ReviewBatch> => {
    const self = findReviewReference(table)
    return self === undefined ? [] : [{ ...self, batch }]
  })
  await applyKnownDeletions(db, reviewBatches, references)
  await removeOldChildren(db, reviewBatches, references)
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
    return { ...change, id, stream, range: batch && findCursorRange(change, table, batch.batch) }
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
    ].join(';\n'),
  )
}

/** Types the records of a batch into their table, one row for each key. */
const insertBatch = async (db: Database, { change: { target, spool }, table, batch }: Batch): Promise<void> => {
  const { key, cursor } = mapToColumns(table, target)
  const self = findReviewReference(table)
  const wanted = new Set<string | undefined>([...key, cursor, self?.id, self?.time, ...tombstoneColumnNames])
  const columns = table.columns.filter((column) => wanted.has(column.name) && attributeOf(column) !== null)
  const batchSql = `CREATE OR REPLACE TEMP TABLE ${batch} AS ${typeColumnsSql(columns, spool.toSql())}`
  const rows = await typeRows(db, table, target.generation, spool.toSql())
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
