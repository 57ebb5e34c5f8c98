import { quoteIdentifier } from '../store/database'
import { deletedAtSql, hasTombstonesSql, type ReviewReference, type Table } from '../store/tables'
import { archiveSql } from '../store/views'

// In all of these, rows with a rowid above `lastRowId` are those that the open transaction has inserted. Attributes may have any
// name, so a foreign column is always qualified or renamed before it stands beside a name of ours.

/**
 * Keeps one row for each key of the batch: the newest generation, then the newest cursor, then the row that came last. A review
 * wins over a tombstone of its own millisecond: it has been restored. A cursor of text that is a number counts as one: 10 is newer
 * than 9.
 */
export const keepNewestSql = (
  table: Table,
  lastRowId: number,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const name = quoteIdentifier(table.name)
  const tombstone = hasTombstonesSql(table, 't')
  const keys = key.map((_, i) => `k${i}`).join(', ')
  const keyColumns = key.map((column, i) => `t.${quoteIdentifier(column)} AS k${i}`).join(', ')
  const cursorSql = cursor === undefined ? 'NULL' : `t.${quoteIdentifier(cursor)}`
  const cursorType = table.columns.find((column) => column.name === cursor)?.type
  const cursorText = cursorType === 'JSON' ? `json_extract_string(${cursorSql}, '$')` : cursorSql
  const cursorNumber =
    cursorType === 'VARCHAR' || cursorType === 'JSON'
      ? `CASE WHEN regexp_full_match(${cursorText}, '-?[0-9]{1,28}([.][0-9]{1,9})?') THEN TRY_CAST(${cursorText} AS DECIMAL(38, 9)) END`
      : 'NULL'
  const isTime = ['TIMESTAMPTZ', 'DATE'].includes(cursorType ?? '')
  const ended =
    tombstone === undefined
      ? 'NULL'
      : `CASE WHEN ${tombstone} THEN ${isTime ? cursorSql : 't._airbyte_extracted_at'} END`
  return `
  CREATE OR REPLACE TEMP TABLE _lost AS
  SELECT row, winner, ended FROM (
    SELECT row, row_number() OVER best AS place, first_value(raw) OVER best AS winner, first_value(tombstone) OVER best AS ended
    FROM (
      SELECT ${keyColumns}, t.rowid AS row, t._airbyte_raw_id AS raw, t._airbyte_generation_id AS generation,
        ${cursorSql} AS cursor, ${cursorNumber} AS number, ${ended} AS tombstone, ${tombstone ?? 'false'} AS marked
      FROM ${name} AS t)
    SEMI JOIN (SELECT ${keyColumns} FROM ${name} AS t WHERE t.rowid > ${lastRowId}) USING (${keys})
    WINDOW best AS (PARTITION BY ${keys} ORDER BY generation DESC, number DESC NULLS LAST, cursor DESC NULLS LAST, marked, row DESC))
  WHERE place > 1;
  ${archiveSql(table, `${name} AS t JOIN _lost ON t.rowid = _lost.row`, 't._airbyte_raw_id <> _lost.winner', '_lost.ended')}
  DELETE FROM ${name} AS t WHERE t.rowid IN (SELECT row FROM _lost)`
}

/** A table that refers to reviews, and the last row that it had before the open transaction. */
export type ReviewBatch = ReviewReference & { readonly lastRowId: number }

const batchIdsSql = (batches: ReadonlyArray<ReviewBatch>): string =>
  batches
    .map(
      ({ table, id, lastRowId }) =>
        `SELECT t.${quoteIdentifier(id)} AS id FROM ${quoteIdentifier(table.name)} AS t WHERE t.rowid > ${lastRowId}`,
    )
    .join(' UNION ')

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
 * Into `_gone`: the reviews that the batch's tombstones delete. `_deletions` remembers when, which is the earlier of a tombstone's
 * cursor and its mark: a mark that is earlier than the cursor removes a version that was wrong, and lets a true one come later.
 */
export const tombstoneDeletionsSql = (
  { table, id, time }: ReviewReference,
  tombstone: string,
  lastRowId: number,
): string => {
  const timeSql = `t.${quoteIdentifier(time)}`
  const markSql = deletedAtSql(table, 't')
  return `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT t.${quoteIdentifier(id)} AS id, max(coalesce(${timeSql}, ${markSql})) AS time, max(least(${timeSql}, ${markSql})) AS since
  FROM ${quoteIdentifier(table.name)} AS t WHERE t.rowid > ${lastRowId} AND ${tombstone} GROUP BY 1;
  DELETE FROM _deletions WHERE EXISTS (SELECT 1 FROM _gone WHERE _gone.id = _deletions.id AND _gone.since >= _deletions.time);
  INSERT INTO _deletions SELECT id, since FROM _gone WHERE since IS NOT NULL AND id NOT IN (SELECT id FROM _deletions)`
}

/** Removes the tombstones themselves, once they are applied. */
export const removeTombstonesSql = ({ name }: Table, tombstone: string): string =>
  `DELETE FROM ${quoteIdentifier(name)} AS t WHERE ${tombstone}`

/** Into `_gone`: the reviews that a finished full refresh did not read again. */
export const refreshDeletionsSql = ({ table, id, time }: ReviewReference, minimumGeneration: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT t.${quoteIdentifier(id)} AS id, max(t.${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)} AS t
  WHERE t._airbyte_generation_id < ${minimumGeneration}
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

const removeRowsSql = (table: Table, events: '_gone' | '_version', where: string): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t, ${events}`, where, `${events}.time`)}
  DELETE FROM ${quoteIdentifier(table.name)} AS t USING ${events} WHERE ${where}`

/** Into `_version`: the newest version of each review that the batches name, from all tables that refer to reviews. */
export const newestVersionsSql = (
  tables: ReadonlyArray<ReviewReference>,
  batches: ReadonlyArray<ReviewBatch>,
): string => `
  CREATE OR REPLACE TEMP TABLE _version AS
  SELECT id, max(time) AS time FROM (${tables.map(referencesSql).join(' UNION ALL ')})
  WHERE id IN (${batchIdsSql(batches)})
  GROUP BY id`

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
  DELETE FROM ${quoteIdentifier(table.name)} AS t WHERE t._airbyte_generation_id < ${minimumGeneration}`
