import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { findReviewReference, type ReviewReference, type Table } from '../store/tables'

// What the tables have already of the rows of a batch: their keys, the versions of their reviews, and known deletions.

/** The key of a table in SQL: under names of ours, and as a condition that joins the table `t` with `_met`. */
export const keySql = (key: ReadonlyArray<string>) => ({
  names: key.map((_, i) => `k${i}`).join(', '),
  columns: key.map((column, i) => `t.${quoteIdentifier(column)} AS k${i}`).join(', '),
  isMet: key.map((column, i) => `t.${quoteIdentifier(column)} = _met.k${i}`).join(' AND '),
  isWhole: key.map((column) => `t.${quoteIdentifier(column)} IS NOT NULL`).join(' AND '),
})

/**
 * A temporary table about the rows that a table has or had: `key`, the hash of the columns `names`; `version`, that of the lake which added the row, null
 * where a column hides it; and `time`, that of the column `time`.
 */
export type KnownRows = { readonly set: string; readonly names: ReadonlyArray<string> }

/** The hash of some columns of the table `t`. */
const hashSql = (names: ReadonlyArray<string>): string =>
  `hash(${names.map((name) => `t.${quoteIdentifier(name)}`).join(', ')})`

/** Whether a column of the table hides the version that DuckLake gives for each row. */
const hidesVersions = ({ columns }: Table): boolean => columns.some(({ name }) => name.toLowerCase() === 'snapshot_id')

/** Which rows are to be known, of which table. */
type Wanted = { readonly table: Table; readonly names: ReadonlyArray<string>; readonly time: string | undefined }

/**
 * By table: learns the rows that the tables of a lake have before the open transaction writes to them. A share of a backfill commits often, and all its commits
 * would read the keys of ever more files: so each file is read once, as what its version has added. Rows that were removed since stay known.
 * What the transaction has learned is forgotten where it fails, since temporary tables are part of it.
 */
const learnRows = async (db: Database, wanted: ReadonlyArray<Wanted>): Promise<ReadonlyMap<string, KnownRows>> => {
  const found = await db.query(`
    CREATE TEMP TABLE IF NOT EXISTS _known (number INTEGER, description VARCHAR, version BIGINT);
    SELECT current.id::INTEGER AS current, number, description, version::INTEGER AS version,
      version = current.id OR version + 1 IN (SELECT snapshot_id FROM ducklake_snapshots('lake')) AS is_kept
    FROM ducklake_current_snapshot('lake') AS current LEFT JOIN _known ON true`)
  const current = Number(found[0]?.current)
  const learned = found.filter(({ number }) => number !== null)
  const free = 1 + Math.max(-1, ...learned.map(({ number }) => Number(number)))
  const statements: string[] = []
  const known = wanted.map(({ table, names, time }, i): readonly [string, KnownRows] => {
    // Values of another type have other hashes.
    const types = names.map((column) => table.columns.find(({ name }) => name === column)?.type)
    const description = JSON.stringify([table.name, names, time, types])
    const before = learned.find((other) => other.description === description)
    const number = Number(before?.number ?? free + i)
    const set = `temp._known_${number}`
    const version = hidesVersions(table) ? 'NULL::INTEGER' : 't.snapshot_id::INTEGER'
    const rowsOf = (source: string) =>
      `SELECT ${hashSql(names)} AS key, ${version} AS version${time === undefined ? '' : `, t.${quoteIdentifier(time)} AS time`} FROM ${source} AS t`
    if (before?.is_kept !== true)
      statements.push(
        `CREATE OR REPLACE TEMP TABLE _known_${number} AS ${rowsOf(quoteIdentifier(table.name))}`,
        `DELETE FROM _known WHERE number = ${number}`,
        `INSERT INTO _known VALUES (${number}, ${quoteLiteral(description)}, ${current})`,
      )
    else if (Number(before.version) < current)
      statements.push(
        `INSERT INTO ${set} ${rowsOf(`ducklake_table_insertions('lake', 'main', ${quoteLiteral(table.name)}, ${Number(before.version) + 1}, ${current})`)}`,
        `UPDATE _known SET version = ${current} WHERE number = ${number}`,
      )
    return [table.name, { set, names }]
  })
  if (statements.length > 0) await db.run(statements.join(';\n'))
  return new Map(known)
}

/** What `learnRows` says of each table that belongs to reviews, by review, and of other `keyed` ones by their key. */
export const learnTables = async (
  db: Database,
  keyed: ReadonlyArray<{ readonly table: Table; readonly key: ReadonlyArray<string> }>,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyMap<string, KnownRows>> => {
  const wanted = new Map<string, Wanted>()
  for (const { table, id, time } of tables.flatMap((each) => findReviewReference(each) ?? []))
    wanted.set(table.name, { table, names: [id], time })
  for (const { table, key } of keyed)
    if (!wanted.has(table.name) && key.length > 0) wanted.set(table.name, { table, names: key, time: undefined })
  return learnRows(db, [...wanted.values()])
}

/**
 * A condition that is true for all rows of the table `t` whose keys are in `_met`: the versions that added them, or none yet where the open transaction
 * has written them anew, as it does for a wider column. DuckLake reads only the files of these. Undefined where the versions are not known.
 */
export const findMetVersions = async (
  db: Database,
  table: Table,
  key: ReadonlyArray<string>,
  { set, names }: KnownRows,
): Promise<string | undefined> => {
  if (hidesVersions(table)) return undefined
  const hash = `hash(${names.map((name) => `k${key.indexOf(name)}`).join(', ')})`
  const found = await db.query(
    `SELECT DISTINCT version FROM ${set} SEMI JOIN (SELECT ${hash} AS key FROM _met) USING (key)`,
  )
  if (found.some(({ version }) => version === null)) return undefined
  const versions = found.map(({ version }) => version).join(', ')
  return versions === '' ? 't.snapshot_id IS NULL' : `(t.snapshot_id IN (${versions}) OR t.snapshot_id IS NULL)`
}

/**
 * Into `_met`: the keys that several rows have, all of the batch or some of the table. A key with a null meets no other. With `known`, also the keys
 * of rows that the table may have: such a key is merged too, with no other row.
 */
export const metKeysSql = (table: Table, batch: string, key: ReadonlyArray<string>, known?: KnownRows): string => {
  const { names, columns, isWhole } = keySql(key)
  const hash = known && hashSql(known.names)
  return `
  CREATE OR REPLACE TEMP TABLE _met AS
  SELECT ${names} FROM (SELECT ${columns} FROM ${batch} AS t WHERE ${isWhole}) GROUP BY ${names} HAVING count(*) > 1
  UNION
  ${
    known === undefined
      ? `SELECT ${names} FROM (SELECT ${columns} FROM ${quoteIdentifier(table.name)} AS t) SEMI JOIN (SELECT ${columns} FROM ${batch} AS t) USING (${names})`
      : `SELECT ${columns} FROM ${batch} AS t WHERE ${isWhole} AND ${hash} IN (SELECT key FROM ${known.set} SEMI JOIN (SELECT ${hash} AS key FROM ${batch} AS t) USING (key))`
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
  SELECT (SELECT count(*) FROM (${known.map(({ set }) => `FROM ${set}`).join(' UNION ALL ')}) AS known
      JOIN _named ON known.key = hash(_named.id) AND known.time <> _named.time)
    + (SELECT count(*) FROM (SELECT id FROM _named GROUP BY id HAVING min(time) < max(time)))`
