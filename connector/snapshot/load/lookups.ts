import { type Database, quoteIdentifier } from '../store/database'
import { hasTombstonesSql, isChildTable, type ReviewReference, reviewsTableName, type Table } from '../store/tables'
import { hidesVersions, isOfVersionsSql, type KnownRows, keyHashSql, knownSql } from './known-rows'

// What the tables have already of the rows of a batch: their keys, the versions of their reviews, and known deletions.

/** The key of a table in SQL: under names of ours, and as a condition that joins the table `t` with `_met`. */
export const keySql = (key: ReadonlyArray<string>) => ({
  names: key.map((_, i) => `k${i}`).join(', '),
  columns: key.map((column, i) => `t.${quoteIdentifier(column)} AS k${i}`).join(', '),
  isMet: key.map((column, i) => `t.${quoteIdentifier(column)} = _met.k${i}`).join(' AND '),
  isWhole: key.map((column) => `t.${quoteIdentifier(column)} IS NOT NULL`).join(' AND '),
})

/**
 * A condition that is true for all rows of the table `t` whose keys are in `_met`: the versions that added them, or none yet where the open transaction
 * has written them anew, as it does for a wider column. DuckLake reads only the files of these. Undefined where the versions are not known.
 */
export const findMetVersions = async (
  db: Database,
  table: Table,
  key: ReadonlyArray<string>,
  { sets, names, isChild }: KnownRows,
): Promise<string | undefined> => {
  if (hidesVersions(table)) return undefined
  const hash = `hash(${names.map((name) => `k${key.indexOf(name)}`).join(', ')})`
  const isMoved = isChild ? 'version IN (SELECT version FROM _moved)' : 'false'
  const found = await db.query(
    `SELECT DISTINCT version, ${isMoved} AS is_moved FROM ${knownSql(sets)} AS known SEMI JOIN (SELECT ${hash} AS key FROM _met) USING (key)`,
  )
  const versionsSql = `SELECT DISTINCT t.snapshot_id::INTEGER AS version FROM ${quoteIdentifier(table.name)} AS t SEMI JOIN _met ON ${keySql(key).isMet} WHERE t.snapshot_id IS NOT NULL`
  const rows = found.some(({ is_moved }) => is_moved === true) ? await db.query(versionsSql) : found
  const versions = rows.map(({ version }) => version)
  return versions.includes(null) ? undefined : isOfVersionsSql(versions)
}

/**
 * Into `_met`: the keys that several rows have, all of the batch or some of the table. A key with a null meets no other. With `known`, also the keys
 * of rows that the table may have: such a key is merged too, with no other row.
 */
export const metKeysSql = (table: Table, batch: string, key: ReadonlyArray<string>, known?: KnownRows): string => {
  const { names, columns, isWhole } = keySql(key)
  const hash = known && keyHashSql(known.names)
  return `
  CREATE OR REPLACE TEMP TABLE _met AS
  SELECT ${names} FROM (SELECT ${columns} FROM ${batch} AS t WHERE ${isWhole}) GROUP BY ${names} HAVING count(*) > 1
  UNION
  ${
    known === undefined
      ? `SELECT ${names} FROM (SELECT ${columns} FROM ${quoteIdentifier(table.name)} AS t) SEMI JOIN (SELECT ${columns} FROM ${batch} AS t) USING (${names})`
      : `SELECT ${columns} FROM ${batch} AS t WHERE ${isWhole} AND ${hash} IN (SELECT key FROM ${knownSql(known.sets)} AS known SEMI JOIN (SELECT ${hash} AS key FROM ${batch} AS t) USING (key))`
  }`
}

/** Into `_met`: the keys that several rows of the table have. */
export const repeatedKeysSql = (table: Table, key: ReadonlyArray<string>): string => {
  const { names, columns } = keySql(key)
  return `
  CREATE OR REPLACE TEMP TABLE _met AS
  SELECT ${names} FROM (SELECT ${columns} FROM ${quoteIdentifier(table.name)} AS t) GROUP BY ${names} HAVING count(*) > 1`
}

/** A table that refers to reviews, and the temporary table with the ids and times that the open transaction adds to it. */
export type ReviewBatch = ReviewReference & { readonly batch: string }

const batchIdsSql = (batches: ReadonlyArray<ReviewBatch>): string =>
  batches.map(({ id, batch }) => `SELECT t.${quoteIdentifier(id)} AS id FROM ${batch} AS t`).join(' UNION ')

const referencesSql = ({ table, id, time }: ReviewReference): string =>
  `SELECT t.${quoteIdentifier(id)} AS id, t.${quoteIdentifier(time)} AS time FROM ${quoteIdentifier(table.name)} AS t`

/**
 * Into `_gone`: the last known deletion of each review that the batches name. Deletions are known from their stream's table and, if
 * they came as tombstones, from `_deletions`. They count whatever came first: a page that is older than the deletion may come after it.
 */
export const knownDeletionsSql = (
  deletions: ReadonlyArray<ReviewReference>,
  batches: ReadonlyArray<ReviewBatch>,
): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT id, max(time) AS time
  FROM (${[...deletions.map(referencesSql), 'SELECT id, time FROM _deletions'].join(' UNION ALL ')})
  WHERE id IN (${batchIdsSql(batches)})
  GROUP BY id`

/**
 * In which of so many parts, from 0, the review of each record is, by `batch` and `seq`. Reviews whose rows in the tables are of near times share a
 * part, since rows that were written together lie together; new reviews come last.
 */
export const reviewPartsSql = (
  tables: ReadonlyArray<ReviewReference>,
  values: ReadonlyArray<string>,
  count: number,
): string => `
  CREATE OR REPLACE TEMP TABLE _value AS ${values.map((sql, batch) => `SELECT ${batch} AS batch, seq, value FROM (${sql})`).join(' UNION ALL ')};
  CREATE OR REPLACE TEMP TABLE _part AS
  SELECT id, ntile(${count}) OVER (ORDER BY min(time) NULLS LAST, id) - 1 AS part
  FROM (${tables.map(referencesSql).join(' UNION ALL ')} UNION ALL SELECT DISTINCT value AS id, NULL AS time FROM _value)
  WHERE id IN (SELECT value FROM _value) GROUP BY id;
  SELECT batch::INTEGER, seq::INTEGER, coalesce(part, 0)::INTEGER FROM _value LEFT JOIN _part ON value = id`

/** Into `_version`: the newest version of each review that the batches name and of which the tables hold more than one. */
export const newestVersionsSql = (
  tables: ReadonlyArray<ReviewReference>,
  batches: ReadonlyArray<ReviewBatch>,
): string => `
  CREATE OR REPLACE TEMP TABLE _version AS
  SELECT id, max(time) AS time FROM (${tables.map(referencesSql).join(' UNION ALL ')})
  WHERE id IN (${batchIdsSql(batches)})
  GROUP BY id HAVING min(time) < max(time)`

/** How many versions of the batches' reviews the tables may have beside that of the batch, or the batches themselves. */
export const countVersionsSql = (batches: ReadonlyArray<ReviewBatch>, known: ReadonlyArray<KnownRows>): string => `
  CREATE OR REPLACE TEMP TABLE _named AS
  ${batches.map(({ id, time, batch }) => `SELECT t.${quoteIdentifier(id)} AS id, t.${quoteIdentifier(time)} AS time FROM ${batch} AS t`).join(' UNION ')};
  SELECT (SELECT count(*) FROM ${knownSql([...new Set(known.flatMap(({ sets }) => sets))])} AS known
      JOIN _named ON known.key = hash(_named.id) AND known.time <> _named.time)
    + (SELECT count(*) FROM (SELECT id FROM _named GROUP BY id HAVING min(time) < max(time)))`

/** How many rows that belong to reviews the batches have without a version of their review that stays. */
export const countStraysSql = (batches: ReadonlyArray<ReviewBatch>): string => {
  const pairsSql = ({ id, time, batch }: ReviewBatch) =>
    `SELECT t.${quoteIdentifier(id)} AS id, t.${quoteIdentifier(time)} AS time FROM ${batch} AS t`
  const children = batches.filter(({ table }) => isChildTable(table)).map(pairsSql)
  const reviews = batches.find(({ table }) => table.name === reviewsTableName)
  if (children.length === 0) return 'SELECT 0'
  if (reviews === undefined) return 'SELECT 1'
  const isGoneSql = hasTombstonesSql(reviews.table, 't') ?? 'false'
  return `SELECT count(*) FROM (${children.join(' UNION ALL ')}) ANTI JOIN (${pairsSql(reviews)} WHERE NOT ${isGoneSql}) USING (id, time)`
}
