import { tombstoneColumnNames } from '../../cdk'
import type { Database } from '../store/database'
import { isOutOfMemory } from '../store/failures'
import { updateLoadsSql, updateRowCountsSql } from '../store/metadata'
import {
  attributeOf,
  type Column,
  findReviewReference,
  isChildTable,
  listStreamTables,
  type Table,
} from '../store/tables'
import { activateGeneration, finishRefresh, saveLoadStatesSql } from './earlier-runs'
import { evolveTable, findUndeclaredColumns, hasTypes, mapToColumns } from './evolve'
import { pickColumnsSql, splitSpool, type TypedRows, typeColumnsSql, typeRows, typeValuesSql } from './insert'
import { type AddedRows, type KnownRows, learnTables, rememberRows } from './known-rows'
import { countStraysSql, findMetVersions, metKeysSql, type ReviewBatch, reviewPartsSql } from './lookups'
import { applyKnownDeletions, applyTombstones, insertRowsSql, keepNewestSql, removeOldChildren } from './merge'
import { type Change, countRecords, findCursorRange } from './stream-load'

type Changes = ReadonlyArray<Change>

/** A change whose records are in the table; `batch`: the temporary table with their keys, cursors and references to reviews. */
type Batch = { readonly change: Change; readonly table: Table; readonly batch: string; readonly staged?: TypedRows }

/** What is made of the records before the transaction begins: the columns that they bring, and their rows where those wait in a temporary table. */
type Prepared = { readonly undeclared: ReadonlyArray<Column>; readonly staged?: TypedRows & { readonly table: Table } }

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
  try {
    const prepared = await prepareChanges(db, changes, tables)
    const added = await db.transaction(() => commitWithin(db, changes, prepared, tables, now), undo)
    // The commit is made: what fails here is learned from the lake by the next one.
    await rememberRows(db, added).catch(() => undefined)
  } finally {
    const kept = changes.flatMap(({ load }, i) => (isOfShare(db, load) ? [stagedName(i), batchName(i)] : []))
    if (kept.length > 0) await db.run(kept.map((name) => `DROP TABLE IF EXISTS ${name}`).join('; '))
  }
}

const stagedName = (i: number): string => `temp._rows_${i}`
const batchName = (i: number): string => `temp._batch_${i}`

/** Whether several processes write side by side: only into a lake, each its share. */
const isOfShare = (db: Database, { share }: Change['load']): boolean => db.lake !== undefined && share !== undefined

/** What the lake has of the tables that these changes have records for. */
const learnChanged = async (
  db: Database,
  changes: Changes,
  tables: ReadonlyArray<Table>,
  isWithin: boolean,
): Promise<ReadonlyMap<string, KnownRows>> => {
  const keyed = changes
    .filter(({ spool }) => spool.count() > 0)
    .map(({ load: { table }, target }) => ({ table, key: mapToColumns(table, target).key }))
  return keyed.length === 0 ? new Map() : learnTables(db, keyed, tables, isWithin)
}

/** The same before the transaction, as far as it can be learned: not where a version was expired just now. The transaction learns the rest. */
const learnEarly = async (db: Database, changes: Changes, tables: ReadonlyArray<Table>): Promise<void> => {
  if (!changes.some(({ load }) => isOfShare(db, load))) return
  await learnChanged(db, changes, tables, false).catch((error: unknown) => {
    if (isOutOfMemory(error)) throw error
  })
}

/**
 * The other writers of a lake wait for as long as a transaction lasts. So a share types its rows here, which takes most of a commit, and learns what
 * the lake has, which takes a process that has just begun the longer the larger the lake is.
 */
const prepareChanges = async (
  db: Database,
  changes: Changes,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyArray<Prepared>> => {
  await learnEarly(db, changes, tables)
  const undeclared = await findUndeclaredColumns(
    db,
    changes.map(({ load: { table }, spool }) => ({ table, spool })),
  )
  const prepared: Prepared[] = []
  for (const [i, { load, spool, target }] of changes.entries()) {
    const columns = undeclared[i] ?? []
    const isStaged = isOfShare(db, load) && spool.count() > 0 && columns.length === 0
    if (!isStaged) {
      prepared.push({ undeclared: columns })
      continue
    }
    const { table } = load
    const rows = await typeRows(db, table, target.generation, spool.toSql())
    await db.run(`CREATE OR REPLACE TEMP TABLE ${stagedName(i)} AS ${rows.sql}`)
    prepared.push({ undeclared: columns, staged: { ...rows, table, sql: `SELECT * FROM ${stagedName(i)}` } })
  }
  return prepared
}

/** Returns what it has added to tables to which it has only added, of a share. */
const commitWithin = async (
  db: Database,
  changes: Changes,
  prepared: ReadonlyArray<Prepared>,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<ReadonlyArray<AddedRows>> => {
  // Another writer of a lake may have added columns: rows that are written anew would lose what these hold.
  const isShared = changes.some(({ load }) => isOfShare(db, load))
  const addsColumns = prepared.some(({ undeclared }) => undeclared.length > 0)
  const listed = isShared || (db.lake && addsColumns) ? await listStreamTables(db) : tables
  for (const [i, { load }] of changes.entries()) {
    if (listed !== tables) load.table = listed.find(({ name }) => name === load.stream) ?? load.table
    const columns = prepared[i]?.undeclared ?? []
    if (columns.length > 0) load.table = await evolveTable(db, load.table, columns)
  }
  const currentTables = listed.map(
    (table) => changes.find(({ load }) => load.stream === table.name)?.load.table ?? table,
  )
  const references = currentTables.map(findReviewReference).filter((reference) => reference !== undefined)
  const batches = changes
    .map((change, i): Batch => {
      const { table } = change.load
      const staged = prepared[i]?.staged
      // Where another writer has widened a column since, the records are typed again: a value may have another text in a wider column.
      return { change, table, batch: batchName(i), ...(staged && hasTypes(table, staged.table) ? { staged } : {}) }
    })
    .filter(({ change: { spool } }) => spool.count() > 0)
  const known = isShared ? await learnChanged(db, changes, currentTables, true) : new Map<string, KnownRows>()
  const merged = new Set<Table>()
  for (const batch of batches) if (await insertBatch(db, batch, known.get(batch.table.name))) merged.add(batch.table)
  for (const batch of batches) if (batch.change.target.key.length > 0) await applyTombstones(db, batch, references)
  const reviewBatches = batches.flatMap(({ table, batch }): ReadonlyArray<ReviewBatch> => {
    const self = findReviewReference(table)
    return self === undefined ? [] : [{ ...self, batch }]
  })
  const isWhole = isShared && Number(await db.scalar(countStraysSql(reviewBatches))) === 0
  // Where each row comes with its review, the reviews name all.
  const named = isWhole ? reviewBatches.filter(({ table }) => !isChildTable(table)) : reviewBatches
  const hasGone = await applyKnownDeletions(db, named, references)
  await removeOldChildren(db, named, references, known)
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
  // A share commits often: its tables are counted once it has ended.
  const counts = !isShared || changes.some(({ status }) => status !== 'running')
  const updates = changes.map((change) => {
    const { id, stream, table } = change.load
    const batch = batches.find((other) => other.change === change)
    return { ...change, id, stream, range: batch && findCursorRange(change, table, batch.batch) }
  })
  // Each statement waits for its turn on the thread that reads on, so these are sent as one.
  await db.run(
    [
      ...(states.length === 0 ? [] : saveLoadStatesSql(changes[0]?.load, states, now)),
      updateLoadsSql(updates, now, counts),
      ...updateRowCountsSql(
        [...changedTables],
        listed.filter(({ history }) => history).map(({ name }) => name),
        counts,
      ),
      // `rememberRows` needs those of a share.
      ...(isShared ? [] : batches.map(({ batch }) => `DROP TABLE ${batch}`)),
    ].join(';\n'),
  )
  const removes = changes.some(
    ({ load: { table }, activatesGeneration, status, target }) =>
      findReviewReference(table) !== undefined &&
      (activatesGeneration || (status === 'complete' && target.minimumGeneration > 0)),
  )
  if (!isWhole || addsColumns || hasGone || removes || reviewBatches.some(({ table }) => merged.has(table))) return []
  return [...known].flatMap(([name, rows]) => {
    const batch = batches.find(({ table }) => table.name === name)
    return batch !== undefined && merged.has(batch.table) ? [] : [{ known: rows, batch: batch?.batch }]
  })
}

/** Types the records of a batch into their table, one row for each key. Returns whether rows had keys that others have. */
const insertBatch = async (
  db: Database,
  { change: { target, spool }, table, batch, staged }: Batch,
  known: KnownRows | undefined,
): Promise<boolean> => {
  const { key, cursor } = mapToColumns(table, target)
  const self = findReviewReference(table)
  const wanted = new Set<string | undefined>([...key, cursor, self?.id, self?.time, ...tombstoneColumnNames])
  const columns = table.columns.filter((column) => wanted.has(column.name) && attributeOf(column) !== null)
  const valuesSql = staged ? pickColumnsSql(columns, staged.sql) : typeColumnsSql(columns, spool.toSql())
  const batchSql = `CREATE OR REPLACE TEMP TABLE ${batch} AS ${valuesSql}`
  const rows = staged ?? (await typeRows(db, table, target.generation, spool.toSql()))
  const knownByKey = known?.names.every((name) => key.includes(name)) ? known : undefined
  const hasMet =
    Number(
      await db.scalar(
        key.length === 0
          ? `${batchSql}; SELECT 0`
          : `${batchSql}; ${metKeysSql(table, batch, key, knownByKey)}; SELECT count(*) FROM _met`,
      ),
    ) > 0
  if (hasMet) {
    const scope = knownByKey && (await findMetVersions(db, table, key, knownByKey))
    await db.run(keepNewestSql(table, key, cursor, rows, scope))
  }
  await db.run(insertRowsSql(table, rows, hasMet ? key : []))
  return hasMet
}
