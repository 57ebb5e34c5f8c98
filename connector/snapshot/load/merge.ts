import { type Database, instantSql, quoteIdentifier } from '../store/database'
import { updateRowCountsSql } from '../store/metadata'
import {
  airbyteColumns,
  deletedAtSql,
  deletionsTableName,
  findFreeName,
  findReviewReference,
  hasTombstonesSql,
  historyTableName,
  isChildTable,
  listReviewReferences,
  type ReviewReference,
  reviewsTableName,
  type Table,
} from '../store/tables'
import { keySql, knownDeletionsSql, metKeysSql, newestVersionsSql, type ReviewBatch } from './lookups'
import type { LoadTarget } from './target'
import type { TypedRows } from './typed-rows'

// Attributes may have any name, so a foreign column is always qualified or renamed before it appears next to one of our
// names. Nothing here depends on the order in which a table stores its rows.

/**
 * SQL to run before rows are deleted. Copies the rows that `where` selects into the history table, if there is one.
 * `source`: the table as `t`, joined with the tables that `ended` (the time at which a row ended) and `where` need. A
 * row that the history already has is not copied again, and a tombstone is never copied.
 */
export const archiveSql = (table: Table, source: string, where: string, ended: string): string => {
  if (!table.history) return ''
  const tombstone = hasTombstonesSql(table, 't')
  const columns = [...table.columns.map(({ name }) => name), ...airbyteColumns.map(([name]) => name)]
  return `
  INSERT INTO ${quoteIdentifier(historyTableName(table.name))} BY NAME
  SELECT DISTINCT ON (t._airbyte_raw_id)
    ${columns.map((name) => `t.${quoteIdentifier(name)}`).join(', ')}, ${ended} AS _ended
  FROM ${source}
  WHERE ${where}${tombstone === undefined ? '' : ` AND NOT ${tombstone}`} AND NOT EXISTS (
    SELECT 1 FROM ${quoteIdentifier(historyTableName(table.name))} AS archived
    WHERE archived._airbyte_raw_id = t._airbyte_raw_id);`
}

/** Adds the rows of a batch to the table, except those whose key is in `_met`. */
export const insertRowsSql = (table: Table, { sql, names }: TypedRows, metKey: ReadonlyArray<string>): string => `
  INSERT INTO ${quoteIdentifier(table.name)} (${names})
  SELECT ${names} FROM (${sql}) AS t
  ${metKey.length === 0 ? '' : `ANTI JOIN _met ON ${keySql(metKey).isMet}`}`

/** Leaves one row for each key in `_met`, out of those in the table and the batch. Rows of the table count as older. */
export const keepNewestSql = (
  table: Table,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
  rows: TypedRows,
): string => {
  const name = quoteIdentifier(table.name)
  const seq = quoteIdentifier(findFreeName(table.columns, '_seq'))
  const { columns: keyColumns, names: keys, isMet } = keySql(key)
  const tombstone = hasTombstonesSql(table, 't')
  const cursorSql = cursor === undefined ? 'NULL' : `t.${quoteIdentifier(cursor)}`
  const isTime = table.columns.find((column) => column.name === cursor)?.type === 'TIMESTAMPTZ'
  const ended =
    tombstone === undefined
      ? 'NULL'
      : `CASE WHEN ${tombstone} THEN ${isTime ? cursorSql : 't._airbyte_extracted_at'} END`
  const columns = [...table.columns.map((column) => column.name), ...airbyteColumns.map(([column]) => column)].map(
    quoteIdentifier,
  )
  const ranked = `_stage AS t JOIN _ranked ON t.${seq} = _ranked.seq`
  return `
  CREATE OR REPLACE TEMP TABLE _stage AS
  SELECT t.*, -row_number() OVER () AS ${seq} FROM ${name} AS t SEMI JOIN _met ON ${isMet};
  INSERT INTO _stage (${rows.names}, ${seq})
  SELECT ${rows.names}, ${seq} FROM (${rows.sql}) AS t SEMI JOIN _met ON ${isMet};
  CREATE OR REPLACE TEMP TABLE _ranked AS
  SELECT seq, row_number() OVER best AS place, first_value(raw) OVER best AS winner,
    first_value(tombstone) OVER best AS ended
  FROM (
    SELECT ${keyColumns}, t.${seq} AS seq, t._airbyte_raw_id AS raw, t._airbyte_generation_id AS generation,
      ${cursorSql} AS cursor, ${ended} AS tombstone, ${tombstone ?? 'false'} AS marked
    FROM _stage AS t)
  WINDOW best AS (PARTITION BY ${keys} ORDER BY generation DESC, cursor DESC NULLS LAST, marked, seq DESC);
  ${archiveSql(table, ranked, '_ranked.place > 1 AND t._airbyte_raw_id <> _ranked.winner', '_ranked.ended')}
  DELETE FROM ${name} AS t USING _met WHERE ${isMet};
  INSERT INTO ${name} (${columns.join(', ')})
  SELECT ${columns.map((column) => `t.${column}`).join(', ')} FROM ${ranked} WHERE _ranked.place = 1;
  DROP TABLE _stage; DROP TABLE _ranked`
}

/**
 * Writes rows into their table, one for each key. `batch`: a temporary table with the keys of the rows, which its SQL
 * creates.
 */
export const mergeRows = async (
  db: Database,
  table: Table,
  { key, cursor }: Pick<LoadTarget, 'key' | 'cursor'>,
  rows: TypedRows,
  batch: { readonly name: string; readonly sql: string },
): Promise<void> => {
  const batchSql = `CREATE OR REPLACE TEMP TABLE ${batch.name} AS ${batch.sql}`
  const metSql = key.length === 0 ? 'SELECT 0' : `${metKeysSql(table, batch.name, key)}; SELECT count(*) FROM _met`
  const hasMet = Number(await db.scalar(`${batchSql}; ${metSql}`)) > 0
  if (hasMet) await db.run(keepNewestSql(table, key, cursor, rows))
  await db.run(insertRowsSql(table, rows, hasMet ? key : []))
}

/**
 * Into `_gone`: the reviews that the batch's tombstones delete. `_deletions` stores when: the earlier of a tombstone's
 * cursor and its mark. A mark before the cursor removes a wrong version, and lets a true one come later.
 */
export const tombstoneDeletionsSql = ({ table, id, time, batch }: ReviewBatch, tombstone: string): string => {
  const timeSql = `t.${quoteIdentifier(time)}`
  const markSql = deletedAtSql(table, 't')
  return `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT t.${quoteIdentifier(id)} AS id, max(coalesce(${timeSql}, ${markSql})) AS time,
    max(least(${timeSql}, ${markSql})) AS since
  FROM ${batch} AS t WHERE ${tombstone} GROUP BY 1;
  DELETE FROM _deletions
  WHERE EXISTS (SELECT 1 FROM _gone WHERE _gone.id = _deletions.id AND _gone.since >= _deletions.time);
  INSERT INTO _deletions
  SELECT id, since FROM _gone WHERE since IS NOT NULL AND id NOT IN (SELECT id FROM _deletions)`
}

/** Removes the tombstones themselves once they are applied. */
export const removeTombstonesSql = ({ name }: Table, tombstone: string): string =>
  `DELETE FROM ${quoteIdentifier(name)} AS t WHERE ${tombstone}`

/** The rows that a finished full refresh did not read again; with `selected`, only those in `_old`. */
const isOldSql = (minimumGeneration: number, selected: boolean): string =>
  `t._airbyte_generation_id < ${minimumGeneration}${selected ? ' AND t._airbyte_raw_id IN (SELECT raw FROM _old)' : ''}`

/** Into `_old`: the fingerprints of some rows that a finished full refresh did not read again. */
const selectOldSql = (table: Table, minimumGeneration: number, limit: number): string => `
  CREATE OR REPLACE TEMP TABLE _old AS
  SELECT t._airbyte_raw_id AS raw
  FROM ${quoteIdentifier(table.name)} AS t WHERE ${isOldSql(minimumGeneration, false)} LIMIT ${limit}`

/** Into `_gone`: the reviews that a finished full refresh did not read again; with `selected`, only those in `_old`. */
const refreshDeletionsSql = (
  { table, id, time }: ReviewReference,
  minimumGeneration: number,
  selected: boolean,
): string => `
  CREATE OR REPLACE TEMP TABLE _gone AS
  SELECT t.${quoteIdentifier(id)} AS id, max(t.${quoteIdentifier(time)}) AS time
  FROM ${quoteIdentifier(table.name)} AS t
  WHERE ${isOldSql(minimumGeneration, selected)}
  GROUP BY 1`

/**
 * Removes the rows that `_gone` deletes. The later event wins: a version newer than the deletion stays, and so does one
 * from the same millisecond, since the service returns it only if the review was restored.
 */
const applyDeletionsSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(table, '_gone', `t.${quoteIdentifier(id)} = _gone.id AND t.${quoteIdentifier(time)} < _gone.time`)

/**
 * Removes the rows of the reviews in `_gone`, including versions with the deletion's time, since the refresh has not
 * read them again.
 */
const removeUnreadSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(table, '_gone', `t.${quoteIdentifier(id)} = _gone.id AND t.${quoteIdentifier(time)} <= _gone.time`)

const removeRowsSql = (table: Table, events: '_gone' | '_version', where: string): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t, ${events}`, where, `${events}.time`)}
  DELETE FROM ${quoteIdentifier(table.name)} AS t USING ${events} WHERE ${where}`

/** Removes the rows that belong to an older version of their review. */
export const removeOldVersionsSql = ({ table, id, time }: ReviewReference): string =>
  removeRowsSql(
    table,
    '_version',
    `t.${quoteIdentifier(id)} = _version.id AND t.${quoteIdentifier(time)} < _version.time`,
  )

/**
 * Removes the rows that a finished full refresh did not read again, at `now` (milliseconds); with `selected`, only
 * those in `_old`.
 */
const removeOldGenerationsSql = (table: Table, minimumGeneration: number, now: number, selected: boolean): string => `
  ${archiveSql(table, `${quoteIdentifier(table.name)} AS t`, isOldSql(minimumGeneration, selected), instantSql(now))}
  DELETE FROM ${quoteIdentifier(table.name)} AS t WHERE ${isOldSql(minimumGeneration, selected)}`

/** Applies the deletions in `_gone` to every table that refers to reviews, except these. */
export const applyDeletions = async (
  db: Database,
  references: ReadonlyArray<ReviewReference>,
  exceptions: ReadonlyArray<string>,
  removeSql = applyDeletionsSql,
): Promise<void> => {
  for (const reference of references) if (!exceptions.includes(reference.table.name)) await db.run(removeSql(reference))
}

/**
 * How many old rows one transaction removes. Together with the rows that refer to them, they fit into a commit's
 * initial memory.
 */
const maxOldRows = 20_000

const countOldRows = async (db: Database, { name }: Table, minimumGeneration: number): Promise<number> =>
  Number(
    await db.scalar(
      `SELECT count(*) FROM ${quoteIdentifier(name)} WHERE _airbyte_generation_id < ${minimumGeneration}`,
    ),
  )

/** The rows of older generations are too many for one transaction. */
export const hasManyOldRows = async (db: Database, table: Table, minimumGeneration: number): Promise<boolean> =>
  (await countOldRows(db, table, minimumGeneration)) > maxOldRows

/**
 * Removes the rows of older generations in several transactions, since the memory of a single one would grow with their
 * number. The file is consistent after each: a refresh that is stopped here has read everything, and ends when it is
 * rerun.
 */
export const removeOldRowsInSteps = async (
  db: Database,
  table: Table,
  minimumGeneration: number,
  tables: ReadonlyArray<Table>,
  now: number,
): Promise<void> => {
  const references = listReviewReferences(tables)
  const counted = tables.filter((each) => each.name === table.name || findReviewReference(each) !== undefined)
  for (
    let left = await countOldRows(db, table, minimumGeneration), before = Number.POSITIVE_INFINITY;
    left > 0 && left < before;
  ) {
    await db.withMemory(`removing the old rows of ${table.name}`, () =>
      db.transaction(async () => {
        await db.run(selectOldSql(table, minimumGeneration, maxOldRows))
        await removeOldRows(db, table, minimumGeneration, references, now, true)
        await db.run(updateRowCountsSql(counted).join(';\n'))
      }),
    )
    before = left
    left = await countOldRows(db, table, minimumGeneration)
  }
}

/** Removes the rows of older generations and what refers to them; with `selected`, only those in `_old`. */
export const removeOldRows = async (
  db: Database,
  table: Table,
  minimumGeneration: number,
  references: ReadonlyArray<ReviewReference>,
  now: number,
  selected = false,
): Promise<void> => {
  const self = findReviewReference(table)
  if (table.name === reviewsTableName && self !== undefined) {
    await db.run(refreshDeletionsSql(self, minimumGeneration, selected))
    await applyDeletions(db, references, [reviewsTableName, deletionsTableName], removeUnreadSql)
  }
  await db.run(removeOldGenerationsSql(table, minimumGeneration, now, selected))
}

/** Applies all known deletions of the reviews in the batches, whether the deletion or the version came first. */
export const applyKnownDeletions = async (
  db: Database,
  batches: ReadonlyArray<ReviewBatch>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  if (batches.length === 0) return
  const deletions = references.filter(({ table }) => table.name === deletionsTableName)
  const hasGone = Number(await db.scalar(`${knownDeletionsSql(deletions, batches)}; SELECT count(*) FROM _gone`)) > 0
  if (hasGone) await applyDeletions(db, references, [deletionsTableName])
}

/** Removes the rows of older versions of the reviews in the batches. */
export const removeOldChildren = async (
  db: Database,
  batches: ReadonlyArray<ReviewBatch>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const children = references.filter(({ table }) => isChildTable(table))
  const versions = batches.filter(({ table }) => table.name !== deletionsTableName)
  if (children.length === 0 || versions.length === 0) return
  const parents = references.filter(({ table }) => table.name === reviewsTableName)
  const versionsSql = newestVersionsSql([...parents, ...children], versions)
  if (Number(await db.scalar(`${versionsSql}; SELECT count(*) FROM _version`)) === 0) return
  for (const child of children) await db.run(removeOldVersionsSql(child))
}

/** A review's tombstone has been merged as a version. Now it deletes what refers to the review, and is removed. */
export const applyTombstones = async (
  db: Database,
  { table, batch }: Pick<ReviewBatch, 'table' | 'batch'>,
  references: ReadonlyArray<ReviewReference>,
): Promise<void> => {
  const self = table.name === reviewsTableName ? findReviewReference(table) : undefined
  const tombstone = hasTombstonesSql(table, 't')
  if (self === undefined || tombstone === undefined) return
  await db.run(tombstoneDeletionsSql({ ...self, batch }, tombstone))
  await applyDeletions(db, references, [deletionsTableName])
  await db.run(removeTombstonesSql(table, tombstone))
}
