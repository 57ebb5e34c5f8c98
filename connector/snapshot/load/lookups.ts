import { quoteIdentifier } from '../store/database'
import type { ReviewReference, Table } from '../store/tables'

// Finds what the tables already contain for the rows of a batch: their keys, the versions of their reviews, and known
// deletions.

/** The key of a table in SQL: under our names, and as a condition that joins the table `t` with `_met`. */
export const keySql = (key: ReadonlyArray<string>) => ({
  names: key.map((_, i) => `k${i}`).join(', '),
  columns: key.map((column, i) => `t.${quoteIdentifier(column)} AS k${i}`).join(', '),
  isMet: key.map((column, i) => `t.${quoteIdentifier(column)} = _met.k${i}`).join(' AND '),
  isWhole: key.map((column) => `t.${quoteIdentifier(column)} IS NOT NULL`).join(' AND '),
})

/**
 * Into `_met`: the keys that several rows have, all in the batch or some in the table. A key with a null equals no
 * other.
 */
export const metKeysSql = (table: Table, batch: string, key: ReadonlyArray<string>): string => {
  const { names, columns, isWhole } = keySql(key)
  return `
  CREATE OR REPLACE TEMP TABLE _met AS
  SELECT ${names} FROM (SELECT ${columns} FROM ${batch} AS t WHERE ${isWhole}) GROUP BY ${names} HAVING count(*) > 1
  UNION
  SELECT ${names} FROM (SELECT ${columns} FROM ${quoteIdentifier(table.name)} AS t)
  SEMI JOIN (SELECT ${columns} FROM ${batch} AS t) USING (${names})`
}

/**
 * A table that refers to reviews, and the temporary table with the ids and times that the open transaction adds to it.
 */
export type ReviewBatch = ReviewReference & { readonly batch: string }

const batchIdsSql = (batches: ReadonlyArray<ReviewBatch>): string =>
  batches.map(({ id, batch }) => `SELECT t.${quoteIdentifier(id)} AS id FROM ${batch} AS t`).join(' UNION ')

const referencesSql = ({ table, id, time }: ReviewReference): string =>
  `SELECT t.${quoteIdentifier(id)} AS id, t.${quoteIdentifier(time)} AS time FROM ${quoteIdentifier(table.name)} AS t`

/**
 * Into `_gone`: the last known deletion of each review in the batches. Deletions come from their stream's table or, if
 * they came as tombstones, from `_deletions`. They count in any order: a page older than the deletion may arrive after
 * it.
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
 * The slice (from 0) in which the review of each record is, by `batch` and `seq`. Reviews whose rows in the tables have
 * similar times share a slice, since rows written together are stored together. New reviews come last.
 */
export const reviewSlicesSql = (
  tables: ReadonlyArray<ReviewReference>,
  values: ReadonlyArray<string>,
  count: number,
): string => `
  CREATE OR REPLACE TEMP TABLE _value AS
  ${values.map((sql, batch) => `SELECT ${batch} AS batch, seq, value FROM (${sql})`).join(' UNION ALL ')};
  CREATE OR REPLACE TEMP TABLE _slice AS
  SELECT id, ntile(${count}) OVER (ORDER BY min(time) NULLS LAST, id) - 1 AS slice
  FROM (
    ${tables.map(referencesSql).join(' UNION ALL ')}
    UNION ALL SELECT DISTINCT value AS id, NULL AS time FROM _value)
  WHERE id IN (SELECT value FROM _value) GROUP BY id;
  SELECT batch::INTEGER, seq::INTEGER, coalesce(slice, 0)::INTEGER FROM _value LEFT JOIN _slice ON value = id`

/** Into `_version`: the newest version of each review in the batches of which the tables hold more than one. */
export const newestVersionsSql = (
  tables: ReadonlyArray<ReviewReference>,
  batches: ReadonlyArray<ReviewBatch>,
): string => `
  CREATE OR REPLACE TEMP TABLE _version AS
  SELECT id, max(time) AS time FROM (${tables.map(referencesSql).join(' UNION ALL ')})
  WHERE id IN (${batchIdsSql(batches)})
  GROUP BY id HAVING min(time) < max(time)`
