import { quoteIdentifier } from '../store/database'
import { findTombstoneColumn, type ReviewReference, type Table } from '../store/tables'
import { archiveSql } from '../store/views'

// In all of these, rows with a rowid above `lastRowId` are those that the open transaction has inserted.

/**
 * Keeps one row for each key of the batch: the newest generation, then the newest cursor, then the row that came last. A review
 * wins over a tombstone of its own millisecond: it has been restored.
 */
export const keepNewestSql = (
  table: Table,
  lastRowId: number,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const name = quoteIdentifier(table.name)
  const tombstone = findTombstoneColumn(table)
  const keys = key.map(quoteIdentifier).join(', ')
  const newest = [
    '_airbyte_generation_id DESC',
    ...(cursor === undefined ? [] : [`${quoteIdentifier(cursor)} DESC NULLS LAST`]),
    ...(tombstone === undefined ? [] : [`${quoteIdentifier(tombstone)} IS NULL DESC`]),
    'row DESC',
  ].join(', ')
  return `
  CREATE OR REPLACE TEMP TABLE _lost AS
  SELECT row, winner, ended FROM (
    SELECT row, row_number() OVER best AS place, first_value(_airbyte_raw_id) OVER best AS winner,
      ${tombstone === undefined || cursor === undefined ? 'NULL' : `first_value(CASE WHEN ${quoteIdentifier(tombstone)} IS NOT NULL THEN ${quoteIdentifier(cursor)} END) OVER best`} AS ended
    FROM (SELECT *, rowid AS row FROM ${name})
    SEMI JOIN (SELECT ${keys} FROM ${name} WHERE rowid > ${lastRowId}) USING (${keys})
    WINDOW best AS (PARTITION BY ${keys} ORDER BY ${newest}))
  WHERE place > 1;
  ${archiveSql(table, `${name} AS t JOIN _lost ON t.rowid = _lost.row`, 't._airbyte_raw_id <> winner', '_lost.ended')}
  DELETE FROM ${name} WHERE rowid IN (SELECT row FROM _lost)`
}

/** Into `_gone`: the deletions of the batch that the table did not have. Known deletions have been applied, and their reviews may have come back since. */
export const newDeletionsSql = ({ table, id, time }: ReviewReference, lastRowId: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT new.${quoteIdentifier(id)} AS id, max(new.${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)} AS new
  WHERE new.rowid > ${lastRowId} AND NOT EXISTS (
    SELECT 1 FROM ${quoteIdentifier(table.name)} AS known
    WHERE known.rowid <= ${lastRowId} AND known.${quoteIdentifier(id)} = new.${quoteIdentifier(id)} AND known.${quoteIdentifier(time)} >= new.${quoteIdentifier(time)})
  GROUP BY 1`

/** Into `_gone`: the reviews that the batch's tombstones delete. */
export const tombstoneDeletionsSql = (
  { table, id, time }: ReviewReference,
  tombstone: string,
  lastRowId: number,
): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT ${quoteIdentifier(id)} AS id, max(${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)}
  WHERE rowid > ${lastRowId} AND ${quoteIdentifier(tombstone)} IS NOT NULL
  GROUP BY 1`

/** Into `_gone`: the reviews that a finished full refresh did not read again. */
export const refreshDeletionsSql = ({ table, id, time }: ReviewReference, minimumGeneration: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT ${quoteIdentifier(id)} AS id, max(${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)}
  WHERE _airbyte_generation_id < ${minimumGeneration}
  GROUP BY 1`

/**
 * Removes the rows that `_gone` deletes. The later event wins: a version that is newer than the deletion stays, and so does one
 * of its millisecond, since only a restored review is served with it.
 */
export const applyDeletionsSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(table, '_gone', `t.${quoteIdentifier(id)} = _gone.id AND t.${quoteIdentifier(time)} < _gone.time`)

/** Removes the rows of the reviews in `_gone`, versions of the last time included: the refresh has not read them again. */
export const removeUnreadSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(table, '_gone', `t.${quoteIdentifier(id)} = _gone.id AND t.${quoteIdentifier(time)} <= _gone.time`)

/** Removes the tombstones themselves, once they are applied. */
export const removeTombstonesSql = (table: Table, tombstone: string): string =>
  `DELETE FROM ${quoteIdentifier(table.name)} WHERE ${quoteIdentifier(tombstone)} IS NOT NULL`

const removeRowsSql = (table: Table, events: '_gone' | '_version', where: string): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t, ${events}`, where, `${events}.time`)}
  DELETE FROM ${quoteIdentifier(table.name)} AS t USING ${events} WHERE ${where}`

/** Into `_version`: the newest version of each review that the batches name, from all tables that refer to reviews. */
export const newestVersionsSql = (
  tables: ReadonlyArray<ReviewReference>,
  batches: ReadonlyArray<ReviewReference & { readonly lastRowId: number }>,
): string => {
  const rows = ({ table, id, time }: ReviewReference) =>
    `SELECT ${quoteIdentifier(id)} AS id, ${quoteIdentifier(time)} AS time FROM ${quoteIdentifier(table.name)}`
  return `
  CREATE OR REPLACE TEMP TABLE _version AS
  SELECT id, max(time) AS time FROM (${tables.map(rows).join(' UNION ALL ')})
  WHERE id IN (${batches.map(({ table, id, lastRowId }) => `SELECT ${quoteIdentifier(id)} FROM ${quoteIdentifier(table.name)} WHERE rowid > ${lastRowId}`).join(' UNION ')})
  GROUP BY 1`
}

/** Removes the rows that belong to an older version of their review. */
export const removeOldVersionsSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(
    table,
    '_version',
    `t.${quoteIdentifier(id)} = _version.id AND t.${quoteIdentifier(time)} < _version.time`,
  )

/** Removes the rows that a finished full refresh did not read again. `now`: milliseconds since 1970, taken as the time they ended. */
export const removeOldGenerationsSql = (table: Table, minimumGeneration: number, now: number): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t`, `t._airbyte_generation_id < ${minimumGeneration}`, `make_timestamptz(${Math.trunc(now)}::BIGINT * 1000)`)}
  DELETE FROM ${quoteIdentifier(table.name)} WHERE _airbyte_generation_id < ${minimumGeneration}`
