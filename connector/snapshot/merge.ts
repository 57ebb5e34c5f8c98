import { quoted } from './database'
import { archive } from './history'
import { tombstoneColumn, type Versioned } from './relations'
import type { Table } from './table'

// In all of these a rowid above `after` tells the rows that the transaction under way has brought.

/** Leaves one row for each key of the batch: of the newest generation the newest cursor, and of equals the later one. */
export const keepNewest = (
  table: Table,
  after: number,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const name = quoted(table.name)
  const tombstone = tombstoneColumn(table)
  const keys = key.map(quoted).join(', ')
  const newest = [
    '_airbyte_generation_id DESC',
    ...(cursor === undefined ? [] : [`${quoted(cursor)} DESC NULLS LAST`]),
    'row DESC',
  ].join(', ')
  return `
  CREATE OR REPLACE TEMP TABLE _lost AS
  SELECT row, winner, ended FROM (
    SELECT row, row_number() OVER best AS place, first_value(_airbyte_raw_id) OVER best AS winner,
      ${tombstone === undefined || cursor === undefined ? 'NULL' : `first_value(CASE WHEN ${quoted(tombstone)} IS NOT NULL THEN ${quoted(cursor)} END) OVER best`} AS ended
    FROM (SELECT *, rowid AS row FROM ${name})
    SEMI JOIN (SELECT ${keys} FROM ${name} WHERE rowid > ${after}) USING (${keys})
    WINDOW best AS (PARTITION BY ${keys} ORDER BY ${newest}))
  WHERE place > 1;
  ${archive(table, `${name} AS t JOIN _lost ON t.rowid = _lost.row`, 't._airbyte_raw_id <> winner', '_lost.ended')}
  DELETE FROM ${name} WHERE rowid IN (SELECT row FROM _lost)`
}

/** Into `_gone`: the deletions of the batch that we did not hold yet. One held already has been applied, and its review may have come back since. */
export const newDeletions = ({ table, id, time }: Versioned, after: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT new.${quoted(id)} AS id, max(new.${quoted(time)}) AS time
  FROM ${quoted(table.name)} AS new
  WHERE new.rowid > ${after} AND NOT EXISTS (
    SELECT 1 FROM ${quoted(table.name)} AS held
    WHERE held.rowid <= ${after} AND held.${quoted(id)} = new.${quoted(id)} AND held.${quoted(time)} >= new.${quoted(time)})
  GROUP BY 1`

/** Into `_gone`: the reviews that the batch's tombstones delete. */
export const buriedReviews = ({ table, id, time }: Versioned, tombstone: string, after: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT ${quoted(id)} AS id, max(${quoted(time)}) AS time
  FROM ${quoted(table.name)}
  WHERE rowid > ${after} AND ${quoted(tombstone)} IS NOT NULL
  GROUP BY 1`

/** Into `_gone`: the reviews that a finished refresh did not meet again. */
export const notRefreshed = ({ table, id, time }: Versioned, minimum: number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT ${quoted(id)} AS id, max(${quoted(time)}) AS time
  FROM ${quoted(table.name)}
  WHERE _airbyte_generation_id < ${minimum}
  GROUP BY 1`

/** Removes what `_gone` deletes: the later event wins, so a version newer than its deletion stays. */
export const bury = ({ table, id, time }: Versioned): string =>
  remove(table, '_gone', `t.${quoted(id)} = _gone.id AND t.${quoted(time)} <= _gone.time`)

const remove = (table: Table, by: '_gone' | '_version', where: string): string => `
  ${archive(table, `${quoted(table.name)} AS t, ${by}`, where, `${by}.time`)}
  DELETE FROM ${quoted(table.name)} AS t USING ${by} WHERE ${where}`

/** Into `_version`: the newest version known of each review that the batches touch, from whichever table knows it. */
export const newestVersions = (
  tables: ReadonlyArray<Versioned>,
  batches: ReadonlyArray<Versioned & { readonly after: number }>,
): string => {
  const rows = ({ table, id, time }: Versioned) =>
    `SELECT ${quoted(id)} AS id, ${quoted(time)} AS time FROM ${quoted(table.name)}`
  return `
  CREATE OR REPLACE TEMP TABLE _version AS
  SELECT id, max(time) AS time FROM (${tables.map(rows).join(' UNION ALL ')})
  WHERE id IN (${batches.map(({ table, id, after }) => `SELECT ${quoted(id)} FROM ${quoted(table.name)} WHERE rowid > ${after}`).join(' UNION ')})
  GROUP BY 1`
}

/** Removes the children that an older version of their review left behind. */
export const removeOutdated = ({ table, id, time }: Versioned): string =>
  remove(table, '_version', `t.${quoted(id)} = _version.id AND t.${quoted(time)} < _version.time`)

/** Removes what a finished refresh did not meet again. `now`: milliseconds since 1970, when it ended for all we know. */
export const removeOlder = (table: Table, minimum: number, now: number): string => `
  ${archive(table, `${quoted(table.name)} AS t`, `t._airbyte_generation_id < ${minimum}`, `make_timestamptz(${Math.trunc(now)}::BIGINT * 1000)`)}
  DELETE FROM ${quoted(table.name)} WHERE _airbyte_generation_id < ${minimum}`
