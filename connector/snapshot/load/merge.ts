import { quoteIdentifier } from '../store/database'
import { archiveSql } from '../store/history'
import { findTombstoneColumn, type ReviewReference, type Table } from '../store/tables'

// In all of these a rowid above `after` tells the rows that the transaction under way has brought.

/** Leaves one row for each key of the batch: of the newest generation the newest cursor, and of equals the later one. */
export const keepNewestSql = (
  table: Table,
  after: number,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const name = quoteIdentifier(table.name)
  const tombstone = findTombstoneColumn(table)
  const keys = key.map(quoteIdentifier).join(', ')
  const newest = [
    '_airbyte_generation_id DESC',
    ...(cursor === undefined ? [] : [`${quoteIdentifier(cursor)} DESC NULLS LAST`]),
    'row DESC',
  ].join(', ')
  return `
  CREATE OR REPLACE TEMP TABLE _lost AS
  SELECT row, winner, ended FROM (
    SELECT row, row_number() OVER best AS place, first_value(_airbyte_raw_id) OVER best AS winner,
      ${tombstone === undefined || cursor === undefined ? 'NULL' : `first_value(CASE WHEN ${quoteIdentifier(tombstone)} IS NOT NULL THEN ${quoteIdentifier(cursor)} END) OVER best`} AS ended
    FROM (SELECT *, rowid AS row FROM ${name})
    SEMI JOIN (SELECT ${keys} FROM ${name} WHERE rowid > ${after}) USING (${keys})
    WINDOW best AS (PARTITION BY ${keys} ORDER BY ${newest}))
  WHERE place > 1;
  ${archiveSql(table, `${name} AS t JOIN _lost ON t.rowid = _lost.row`, 't._airbyte_raw_id <> winner', '_lost.ended')}
  DELETE FROM ${name} WHERE rowid IN (SELECT row FROM _lost)`
}

/** Into `_gone`: the deletions of the batch that we did not hold yet. One held already has been applied, and its review may have come back since. */
export const newDeletionsSql = ({ table, id, time }: ReviewReference, after: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT new.${quoteIdentifier(id)} AS id, max(new.${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)} AS new
  WHERE new.rowid > ${after} AND NOT EXISTS (
    SELECT 1 FROM ${quoteIdentifier(table.name)} AS held
    WHERE held.rowid <= ${after} AND held.${quoteIdentifier(id)} = new.${quoteIdentifier(id)} AND held.${quoteIdentifier(time)} >= new.${quoteIdentifier(time)})
  GROUP BY 1`

/** Into `_gone`: the reviews that the batch's tombstones delete. */
export const tombstoneDeletionsSql = (
  { table, id, time }: ReviewReference,
  tombstone: string,
  after: number,
): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT ${quoteIdentifier(id)} AS id, max(${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)}
  WHERE rowid > ${after} AND ${quoteIdentifier(tombstone)} IS NOT NULL
  GROUP BY 1`

/** Into `_gone`: the reviews that a finished refresh did not meet again. */
export const refreshDeletionsSql = ({ table, id, time }: ReviewReference, minimum: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT ${quoteIdentifier(id)} AS id, max(${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)}
  WHERE _airbyte_generation_id < ${minimum}
  GROUP BY 1`

/** Removes what `_gone` deletes: the later event wins, so a version newer than its deletion stays. */
export const applyDeletionsSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(table, '_gone', `t.${quoteIdentifier(id)} = _gone.id AND t.${quoteIdentifier(time)} <= _gone.time`)

const removeRowsSql = (table: Table, by: '_gone' | '_version', where: string): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t, ${by}`, where, `${by}.time`)}
  DELETE FROM ${quoteIdentifier(table.name)} AS t USING ${by} WHERE ${where}`

/** Into `_version`: the newest version known of each review that the batches touch, from whichever table knows it. */
export const newestVersionsSql = (
  tables: ReadonlyArray<ReviewReference>,
  batches: ReadonlyArray<ReviewReference & { readonly after: number }>,
): string => {
  const rows = ({ table, id, time }: ReviewReference) =>
    `SELECT ${quoteIdentifier(id)} AS id, ${quoteIdentifier(time)} AS time FROM ${quoteIdentifier(table.name)}`
  return `
  CREATE OR REPLACE TEMP TABLE _version AS
  SELECT id, max(time) AS time FROM (${tables.map(rows).join(' UNION ALL ')})
  WHERE id IN (${batches.map(({ table, id, after }) => `SELECT ${quoteIdentifier(id)} FROM ${quoteIdentifier(table.name)} WHERE rowid > ${after}`).join(' UNION ')})
  GROUP BY 1`
}

/** Removes the children that an older version of their review left behind. */
export const removeOldVersionsSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(
    table,
    '_version',
    `t.${quoteIdentifier(id)} = _version.id AND t.${quoteIdentifier(time)} < _version.time`,
  )

/** Removes what a finished refresh did not meet again. `now`: milliseconds since 1970, when it ended for all we know. */
export const removeOldGenerationsSql = (table: Table, minimum: number, now: number): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t`, `t._airbyte_generation_id < ${minimum}`, `make_timestamptz(${Math.trunc(now)}::BIGINT * 1000)`)}
  DELETE FROM ${quoteIdentifier(table.name)} WHERE _airbyte_generation_id < ${minimum}`
