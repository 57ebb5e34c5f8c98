import { quoted } from './database'
import type { Versioned } from './relations'

/** Rows with a rowid above `after` are those the current batch has appended. */
export type Batch = { readonly table: string; readonly after: bigint | number }

/** Leaves one row for each key of the batch: of the newest generation the newest cursor, and of equals the later one. */
export const keepNewest = ({ table, after }: Batch, key: ReadonlyArray<string>, cursor: string | undefined): string => {
  const keys = key.map(quoted).join(', ')
  const newest = [
    '_airbyte_generation_id DESC',
    ...(cursor === undefined ? [] : [`${quoted(cursor)} DESC NULLS LAST`]),
    'row DESC',
  ].join(', ')
  return `
  DELETE FROM ${quoted(table)} WHERE rowid IN (
    SELECT row FROM (
      SELECT row, row_number() OVER (PARTITION BY ${keys} ORDER BY ${newest}) AS place
      FROM (SELECT *, rowid AS row FROM ${quoted(table)})
      SEMI JOIN (SELECT ${keys} FROM ${quoted(table)} WHERE rowid > ${after}) USING (${keys}))
    WHERE place > 1)`
}

/** Into `_gone`: the deletions of the batch that we did not hold yet. One held already has been applied, and its review may have come back since. */
export const newDeletions = ({ table, id, time }: Versioned, after: bigint | number): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT new.${quoted(id)} AS id, max(new.${quoted(time)}) AS time
  FROM ${quoted(table.name)} AS new
  WHERE new.rowid > ${after} AND NOT EXISTS (
    SELECT 1 FROM ${quoted(table.name)} AS held
    WHERE held.rowid <= ${after} AND held.${quoted(id)} = new.${quoted(id)} AND held.${quoted(time)} >= new.${quoted(time)})
  GROUP BY 1`

/** Into `_gone`: the reviews that the batch's tombstones delete. */
export const buriedReviews = ({ table, id, time }: Versioned, tombstone: string, after: bigint | number): string => `
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
export const bury = ({ table, id, time }: Versioned): string => `
  DELETE FROM ${quoted(table.name)} AS t USING _gone
  WHERE t.${quoted(id)} = _gone.id AND t.${quoted(time)} <= _gone.time`

/** Into `_version`: the newest version known of each review that the batches touch, from whichever table knows it. */
export const newestVersions = (
  tables: ReadonlyArray<Versioned>,
  batches: ReadonlyArray<Versioned & Pick<Batch, 'after'>>,
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
export const removeOutdated = ({ table, id, time }: Versioned): string => `
  DELETE FROM ${quoted(table.name)} AS t USING _version
  WHERE t.${quoted(id)} = _version.id AND t.${quoted(time)} < _version.time`
