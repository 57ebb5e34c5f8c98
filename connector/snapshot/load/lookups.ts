import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { lakeCatalogue } from '../store/lake-access'
import {
  deletionsTableName,
  findReviewReference,
  hasTombstonesSql,
  type ReviewReference,
  reviewsTableName,
  type Table,
} from '../store/tables'

// What the tables have already of the rows of a batch: their keys, the versions of their reviews, and known deletions.

/** The key of a table in SQL: under names of ours, and as a condition that joins the table `t` with `_met`. */
export const keySql = (key: ReadonlyArray<string>) => ({
  names: key.map((_, i) => `k${i}`).join(', '),
  columns: key.map((column, i) => `t.${quoteIdentifier(column)} AS k${i}`).join(', '),
  isMet: key.map((column, i) => `t.${quoteIdentifier(column)} = _met.k${i}`).join(' AND '),
  isWhole: key.map((column) => `t.${quoteIdentifier(column)} IS NOT NULL`).join(' AND '),
})

/**
 * Temporary tables about the rows that a table has or had: `key`, the hash of the columns `names`; `version`, that of the lake which added the row, null
 * where a column hides it; and `time`, that of the column `time`. `number`: of the one for this table alone; `rowsSql`: what it would hold of the
 * rows of a source, which have this version.
 */
export type KnownRows = {
  readonly number: number
  readonly sets: ReadonlyArray<string>
  readonly names: ReadonlyArray<string>
  readonly isChild: boolean
  readonly rowsSql: (source: string, version: string) => string
}

const knownSql = (sets: ReadonlyArray<string>): string => `(${sets.map((set) => `FROM ${set}`).join(' UNION ALL ')})`

/** The hash of some columns of the table `t`. */
const hashSql = (names: ReadonlyArray<string>): string =>
  `hash(${names.map((name) => `t.${quoteIdentifier(name)}`).join(', ')})`

const knownRowsSql =
  ({ names, time }: Pick<Wanted, 'names' | 'time'>): KnownRows['rowsSql'] =>
  (source, version) =>
    `SELECT ${hashSql(names)} AS key, ${version}::INTEGER AS version${time === undefined ? '' : `, t.${quoteIdentifier(time)} AS time`} FROM ${source} AS t`

/** Whether a column of the table hides the version that DuckLake gives for each row. */
const hidesVersions = ({ columns }: Table): boolean => columns.some(({ name }) => name.toLowerCase() === 'snapshot_id')

/**
 * Which rows are to be known, of which table. `isChild`: they belong to reviews, so that they are known by their review where the commit which added
 * them has added that too.
 */
type Wanted = {
  readonly table: Table
  readonly names: ReadonlyArray<string>
  readonly time: string | undefined
  readonly isChild: boolean
}

/** The message of a commit whose rows of reviews all came with their review. */
export const wholeReviewsMessage = 'Adds reviews, each with all rows that belong to it.'

/** What `ducklake_snapshot_changes` calls changes that add no rows. */
const addsNoRows = /^(created|dropped|altered)_(schema|table|view)$|^(deleted_from_table|inlined_delete)$/

/** A version of a lake: what it has changed, and whether each row of a review that it has added came with the review. */
type Version = { readonly version: number; readonly changes: string; readonly isWhole: boolean }

const listVersions = async (db: Database, from: number): Promise<ReadonlyArray<Version>> => {
  // The function `ducklake_snapshots` reads all versions, which a lake of many writers has more of after each commit.
  const found = await db.query(
    `SELECT snapshot_id::INTEGER AS version, changes_made, commit_message FROM ${lakeCatalogue}.ducklake_snapshot_changes WHERE snapshot_id >= ${from} ORDER BY 1`,
  )
  return found.map(({ version, changes_made, commit_message }) => ({
    version: Number(version),
    changes: String(changes_made),
    isWhole: commit_message === wholeReviewsMessage,
  }))
}

/** Of some versions, those that may have added rows to a table of the lake, by the ids that its name has had. */
const selectAdding = (versions: ReadonlyArray<Version>, tableIds: ReadonlyArray<string>): ReadonlyArray<Version> => {
  const adds = (change: string): boolean => {
    const [kind = '', id = ''] = change.split(':')
    return /^(inserted_into_table|inlined_insert)$/.test(kind) ? tableIds.includes(id) : !addsNoRows.test(kind)
  }
  return versions.filter(({ changes }) => changes.split(',').some(adds))
}

/** A condition for the rows `t` that these versions have added, or the open transaction. DuckLake reads the files of these alone. */
const isOfVersionsSql = (versions: ReadonlyArray<unknown>): string =>
  versions.length === 0
    ? 't.snapshot_id IS NULL'
    : `(t.snapshot_id IN (${versions.join(', ')}) OR t.snapshot_id IS NULL)`

/**
 * By table: learns the rows that the tables of a lake have before the open transaction writes to them. A share of a backfill commits often, and all its commits
 * would read the keys of ever more files: so each file is read once, as what its version has added, and of rows that came with their review none. Rows
 * that were removed since stay known. What the transaction has learned is forgotten where it fails, since temporary tables are part of it.
 */
const learnRows = async (db: Database, wanted: ReadonlyArray<Wanted>): Promise<ReadonlyMap<string, KnownRows>> => {
  const learned = await db.query(`
    CREATE TEMP TABLE IF NOT EXISTS _known (number INTEGER, description VARCHAR, version BIGINT);
    SELECT number, description, version::INTEGER AS version FROM _known`)
  const free = 1 + Math.max(-1, ...learned.map(({ number }) => Number(number)))
  const described = wanted.map((each, i) => {
    const { table, names, time, isChild } = each
    // Values of another type have other hashes.
    const types = names.map((column) => table.columns.find(({ name }) => name === column)?.type)
    const description = JSON.stringify([table.name, names, time, types, isChild])
    const before = learned.find((other) => other.description === description)
    return {
      ...each,
      description,
      version: before && Number(before.version),
      number: Number(before?.number ?? free + i),
    }
  })
  const versions = await listVersions(db, Math.min(...described.map(({ version }) => version ?? 0)))
  const current = versions.at(-1)?.version ?? 0
  const ids = await db.query(
    `SELECT table_id::VARCHAR AS id, table_name AS name FROM ${lakeCatalogue}.ducklake_table WHERE end_snapshot IS NULL`,
  )
  const statements: string[] = []
  for (const { table, names, time, isChild, description, version, number } of described) {
    if (version === current) continue
    const rowsOf = (source: string) =>
      knownRowsSql({ names, time })(source, hidesVersions(table) ? 'NULL' : 't.snapshot_id')
    const from = version ?? -1
    const since = versions.filter((each) => each.version > from)
    // A version that was expired tells nothing of itself.
    const isKept = since.length === current - from
    const adding = selectAdding(
      since,
      ids.flatMap(({ id, name }) => (name === table.name ? [String(id)] : [])),
    )
    const open = isChild ? adding.flatMap((each) => (each.isWhole ? [] : [each.version])) : []
    const openRows = `${rowsOf(quoteIdentifier(table.name))} WHERE ${isOfVersionsSql(open)}`
    if (version === undefined || !isKept)
      statements.push(
        `CREATE OR REPLACE TEMP TABLE _known_${number} AS ${isChild && isKept ? openRows : rowsOf(quoteIdentifier(table.name))}`,
        `DELETE FROM _known WHERE number = ${number}`,
        `INSERT INTO _known VALUES (${number}, ${quoteLiteral(description)}, ${current})`,
      )
    else {
      if (open.length > 0) statements.push(`INSERT INTO temp._known_${number} ${openRows}`)
      else if (!isChild && adding.length > 0)
        statements.push(
          `INSERT INTO temp._known_${number} ${rowsOf(`ducklake_table_insertions('lake', 'main', ${quoteLiteral(table.name)}, ${version + 1}, ${current})`)}`,
        )
      statements.push(`UPDATE _known SET version = ${current} WHERE number = ${number}`)
    }
  }
  if (statements.length > 0) await db.run(statements.join(';\n'))
  const parent = described.find(({ table }) => table.name === reviewsTableName)
  return new Map(
    described.map(({ table, names, time, isChild, number }) => {
      const sets = (isChild && parent !== undefined ? [parent.number, number] : [number]).map(
        (each) => `temp._known_${each}`,
      )
      return [table.name, { number, names, isChild, sets, rowsSql: knownRowsSql({ names, time }) }]
    }),
  )
}

/** What the transaction that was committed last has added to a table; `batch`: with the keys of its rows, undefined where there are none. */
export type AddedRows = { readonly known: KnownRows; readonly batch: string | undefined }

/**
 * Spares a share the reading of what it has written itself. `added`: of each table that the last commit has learned of and to which it has only added
 * rows. To be called outside of a transaction.
 */
export const rememberRows = async (db: Database, added: ReadonlyArray<AddedRows>): Promise<void> => {
  if (added.length === 0) return
  const version = Number(await db.scalar(`SELECT coalesce(id, 0) FROM ducklake_last_committed_snapshot('lake')`))
  // Where another program has committed meanwhile, all is learned from the lake.
  const isNext = (number: number) => `number = ${number} AND version = ${version - 1}`
  const statements = added.flatMap(({ known: { number, isChild, rowsSql }, batch }) => [
    ...(batch === undefined || isChild
      ? []
      : [
          `INSERT INTO temp._known_${number} ${rowsSql(batch, String(version))} WHERE EXISTS (FROM _known WHERE ${isNext(number)})`,
        ]),
    `UPDATE _known SET version = ${version} WHERE ${isNext(number)}`,
  ])
  if (version > 0) await db.run(statements.join(';\n'))
}

/** What `learnRows` says of each table that belongs to reviews, by review, and of other `keyed` ones by their key. */
export const learnTables = async (
  db: Database,
  keyed: ReadonlyArray<{ readonly table: Table; readonly key: ReadonlyArray<string> }>,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyMap<string, KnownRows>> => {
  const wanted = new Map<string, Wanted>()
  const references = tables.flatMap((each) => findReviewReference(each) ?? [])
  const hasVersions = ({ table }: ReviewReference): boolean => !hidesVersions(table)
  const hasParent = references.some((each) => each.table.name === reviewsTableName && hasVersions(each))
  for (const { table, id, time } of references) {
    const isChild = hasParent && isChildTable(table) && !hidesVersions(table)
    wanted.set(table.name, { table, names: [id], time, isChild })
  }
  for (const { table, key } of keyed)
    if (!wanted.has(table.name) && key.length > 0)
      wanted.set(table.name, { table, names: key, time: undefined, isChild: false })
  return wanted.size === 0 ? new Map() : learnRows(db, [...wanted.values()])
}

/**
 * A condition that is true for all rows of the table `t` whose keys are in `_met`: the versions that added them, or none yet where the open transaction
 * has written them anew, as it does for a wider column. DuckLake reads only the files of these. Undefined where the versions are not known.
 */
export const findMetVersions = async (
  db: Database,
  table: Table,
  key: ReadonlyArray<string>,
  { sets, names }: KnownRows,
): Promise<string | undefined> => {
  if (hidesVersions(table)) return undefined
  const hash = `hash(${names.map((name) => `k${key.indexOf(name)}`).join(', ')})`
  const found = await db.query(
    `SELECT DISTINCT version FROM ${knownSql(sets)} AS known SEMI JOIN (SELECT ${hash} AS key FROM _met) USING (key)`,
  )
  const versions = found.map(({ version }) => version)
  return versions.includes(null) ? undefined : isOfVersionsSql(versions)
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
      : `SELECT ${columns} FROM ${batch} AS t WHERE ${isWhole} AND ${hash} IN (SELECT key FROM ${knownSql(known.sets)} AS known SEMI JOIN (SELECT ${hash} AS key FROM ${batch} AS t) USING (key))`
  }`
}

/** Whether the rows of a table that refers to reviews belong to them. */
export const isChildTable = ({ name }: Table): boolean => name !== reviewsTableName && name !== deletionsTableName

/** A table that refers to reviews, and the temporary table with the ids and times that the open transaction adds to it. */
export type ReviewBatch = ReviewReference & { readonly batch: string }

/** The ids of the reviews that the batches name. */
export const batchIdsSql = (batches: ReadonlyArray<ReviewBatch>): string =>
  batches.map(({ id, batch }) => `SELECT t.${quoteIdentifier(id)} AS id FROM ${batch} AS t`).join(' UNION ')

/** The ids and times of the reviews that the rows of a table are of. */
export const referencesSql = ({ table, id, time }: ReviewReference): string =>
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
  const reviews = batches
    .filter(({ table }) => table.name === reviewsTableName)
    .map((each) => `${pairsSql(each)} WHERE NOT ${hasTombstonesSql(each.table, 't') ?? 'false'}`)
  if (children.length === 0) return 'SELECT 0'
  if (reviews.length === 0) return 'SELECT 1'
  return `SELECT count(*) FROM (${children.join(' UNION ALL ')}) ANTI JOIN (${reviews.join(' UNION ALL ')}) USING (id, time)`
}
