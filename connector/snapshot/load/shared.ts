import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { attributeOf, type Column, chooseColumns, listReviewReferences, type Table } from '../store/tables'
import {
  createSeenSql,
  type DerivedStream,
  findSql,
  forgetSeenSql,
  memberNamesSql,
  omittedMembers,
  type Reviews,
  repeatedPartsSql,
  reviewsOf,
  typeStream,
} from './derive'
import { mapToColumns } from './evolve'
import type { ReviewBatch } from './lookups'
import { insertRowsSql, mergeRows } from './merge'
import type { SharedSpool } from './spool'
import type { Load } from './stream-load'
import type { TypedRows } from './typed-rows'

/** What a commit has made from shared reviews. */
export type SharedResult = {
  readonly streams: ReadonlyArray<string>
  /** How many rows of each stream were made from parts of reviews. Reviews themselves are counted as they arrive. */
  readonly made: ReadonlyMap<string, number>
  /** The reviews and their versions. */
  readonly batch: ReviewBatch
  /** The tables may have other versions of these reviews, or a review is here more than once. */
  readonly hasOthers: boolean
}

const toStream = ({ table, derivation, target }: Load): ReadonlyArray<DerivedStream> =>
  derivation === undefined ? [] : [{ table, derivation, generation: target.generation }]

/** By stream, the columns for undeclared members of objects inside the reviews that the tables lack. */
export const findUndeclaredMembers = async (
  db: Database,
  { spool, hasUndeclared }: SharedSpool,
  loads: ReadonlyArray<Load>,
): Promise<ReadonlyMap<string, ReadonlyArray<Column>>> => {
  const found = new Map<string, ReadonlyArray<Column>>()
  if (!hasUndeclared) return found
  for (const stream of loads.flatMap(toStream)) {
    const { table, derivation } = stream
    const sql = memberNamesSql(reviewsOf(spool.toSql(), [], true), stream)
    if (sql === undefined) continue
    const known = new Set([...table.columns.map(attributeOf), ...omittedMembers(derivation)])
    const names = (await db.query(sql)).map(({ name }) => String(name)).filter((name) => !known.has(name))
    const columns = names.sort().map((name): Column => ({ name, type: 'JSON' }))
    if (columns.length > 0) found.set(table.name, chooseColumns(columns, table.columns))
  }
  return found
}

/** The tables of streams with rows of the reviews in `batch`, and if a review is in it more than once. */
const findOthers = async (
  db: Database,
  batch: string,
  tables: ReadonlyArray<Table>,
): Promise<{ readonly known: ReadonlySet<string>; readonly isRepeated: boolean }> => {
  const known = listReviewReferences(tables).map(
    ({ table, id }) => `
    SELECT ${quoteLiteral(table.name)} AS name WHERE EXISTS (
      FROM ${quoteIdentifier(table.name)} AS t WHERE t.${quoteIdentifier(id)} IN (SELECT _review FROM ${batch}))`,
  )
  const repeated = `SELECT NULL AS name WHERE (SELECT count(DISTINCT _review) < count(*) FROM ${batch})`
  const found = await db.query([...known, repeated].join(' UNION ALL '))
  return {
    known: new Set(found.flatMap(({ name }) => (name === null ? [] : [String(name)]))),
    isRepeated: found.some(({ name }) => name === null),
  }
}

/** Merges rows into a table that may already have some of their keys. Resolves to the number of rows. */
const mergeStream = async (db: Database, { table, target }: Load, rows: TypedRows): Promise<number> => {
  const staged = { ...rows, sql: 'SELECT * FROM temp._rows' }
  await mergeRows(db, table, mapToColumns(table, target), staged, { name: 'temp._rows', sql: rows.sql })
  return Number(await db.scalar('SELECT count(*) FROM temp._rows'))
}

/** Writes the rows that one stream makes from the reviews. Resolves to the number of rows. */
const writeStream = async (
  db: Database,
  {
    load,
    spool,
    reviews,
    mayMeet,
  }: {
    readonly load: Load
    readonly spool: string
    readonly reviews: Reviews
    /** Its table may have rows of these reviews, or several rows have the same key. */
    readonly mayMeet: boolean
  },
): Promise<number> => {
  const { table, target } = load
  const [stream] = toStream(load)
  if (stream === undefined) return 0
  const seen = { load: load.id, commit: 0 }
  const find = findSql(reviews, stream, seen)
  if (find !== undefined) {
    await db.run(`${createSeenSql(seen)}; ${find}`)
    return mergeStream(db, load, typeStream(reviews, stream, spool, false))
  }
  const hasKey = target.key.length > 0
  const repeated = mayMeet || !hasKey ? undefined : repeatedPartsSql(reviews, stream)
  const merges = hasKey && (mayMeet || (repeated !== undefined && (await db.scalar(repeated)) === true))
  const rows = typeStream(reviews, stream, spool, merges)
  return merges ? mergeStream(db, load, rows) : db.change(insertRowsSql(table, rows, []))
}

/**
 * Types reviews once and writes the rows of all their streams in the open transaction. `batch`: a name for a temporary
 * table.
 */
export const writeShared = async (
  db: Database,
  { streams, spool, hasUndeclared }: SharedSpool,
  loads: ReadonlyArray<Load>,
  tables: ReadonlyArray<Table>,
  batch: string,
): Promise<SharedResult> => {
  const sql = spool.toSql()
  const parsed = reviewsOf(sql, loads.flatMap(toStream), hasUndeclared)
  await db.run(`CREATE OR REPLACE TEMP TABLE ${batch} AS ${parsed.sql}`)
  const reviews = { ...parsed, sql: `FROM temp.${batch}` }
  const { known, isRepeated } = await findOthers(db, `temp.${batch}`, tables)
  const made = new Map<string, number>()
  for (const load of loads) {
    const mayMeet = isRepeated || known.has(load.stream)
    const rows = await writeStream(db, { load, spool: sql, reviews, mayMeet })
    if (load.derivation?._tag !== 'record') made.set(load.stream, rows)
  }
  const [first] = loads
  if (first === undefined) throw new Error('Shared reviews belong to a stream')
  return {
    streams,
    made,
    batch: { table: first.table, id: '_review', time: '_time', batch: `temp.${batch}` },
    hasOthers: isRepeated || known.size > 0,
  }
}

/**
 * Types reviews once, and the rows of all their streams into temporary tables, for an append-only store. `commit`: the
 * number of the commit, which may be retried.
 */
export const stageShared = async (
  db: Database,
  { spool, hasUndeclared }: SharedSpool,
  loads: ReadonlyArray<Load>,
  { commit, toName }: { readonly commit: number; readonly toName: (load: Load) => string },
): Promise<ReadonlyMap<Load, TypedRows>> => {
  const sql = spool.toSql()
  const parsed = reviewsOf(sql, loads.flatMap(toStream), hasUndeclared)
  await db.run(`CREATE OR REPLACE TEMP TABLE _shared AS ${parsed.sql}`)
  const reviews = { ...parsed, sql: 'FROM temp._shared' }
  const staged = new Map<Load, TypedRows>()
  for (const load of loads) {
    const [stream] = toStream(load)
    if (stream === undefined) continue
    const seen = { load: load.id, commit }
    const find = findSql(reviews, stream, seen)
    if (find !== undefined) await db.run(`${createSeenSql(seen)}; ${forgetSeenSql(seen)}; ${find}`)
    const rows = typeStream(reviews, stream, sql, false)
    await db.run(`CREATE OR REPLACE TEMP TABLE ${toName(load)} AS ${rows.sql}`)
    staged.set(load, { ...rows, sql: `SELECT * FROM temp.${toName(load)}` })
  }
  await db.run('DROP TABLE temp._shared')
  return staged
}
