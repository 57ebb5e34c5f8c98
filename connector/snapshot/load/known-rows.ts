import { type Database, quoteIdentifier, quoteLiteral } from '../store/database'
import { lakeAuthor } from '../store/lake-access'
import { findReviewReference, isChildTable, type ReviewReference, reviewsTableName, type Table } from '../store/tables'

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

/** The rows of some such tables. */
export const knownSql = (sets: ReadonlyArray<string>): string =>
  `(${sets.map((set) => `FROM ${set}`).join(' UNION ALL ')})`

/** The hash of some columns of the table `t`. */
export const keyHashSql = (names: ReadonlyArray<string>): string =>
  `hash(${names.map((name) => `t.${quoteIdentifier(name)}`).join(', ')})`

const knownRowsSql =
  ({ names, time }: Pick<Wanted, 'names' | 'time'>): KnownRows['rowsSql'] =>
  (source, version) =>
    `SELECT ${keyHashSql(names)} AS key, ${version}::INTEGER AS version${time === undefined ? '' : `, t.${quoteIdentifier(time)} AS time`} FROM ${source} AS t`

/** Whether a column of the table hides the version that DuckLake gives for each row. */
export const hidesVersions = ({ columns }: Table): boolean =>
  columns.some(({ name }) => name.toLowerCase() === 'snapshot_id')

/** A condition for the rows `t` that these versions have added, or the open transaction. DuckLake reads the files of these alone. */
export const isOfVersionsSql = (versions: ReadonlyArray<unknown>): string =>
  versions.length === 0
    ? 't.snapshot_id IS NULL'
    : `(t.snapshot_id IN (${versions.join(', ')}) OR t.snapshot_id IS NULL)`

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

/**
 * A version of a lake. `changes`: each a kind and the ids of tables; `schema`: that of its tables; `isWhole`: each row of a review that it has added came with the review;
 * `isForeign`: another program has made it.
 */
type Version = {
  readonly version: number
  readonly schema: number
  readonly changes: ReadonlyArray<readonly [kind: string, tableIds: ReadonlyArray<string>]>
  readonly isWhole: boolean
  readonly isForeign: boolean
}

/** The versions from one on that the open transaction sees, or those of now. DuckLake is asked, since it outlives a lost connection to its catalogue. */
const listVersions = async (db: Database, from: number): Promise<ReadonlyArray<Version>> => {
  const found = await db.query(`
    SELECT snapshot_id::INTEGER AS version, schema_version::INTEGER AS schema, to_json(changes)::VARCHAR AS changes, commit_message, author
    FROM ducklake_snapshots('lake')
    WHERE snapshot_id >= ${from} AND snapshot_id <= (SELECT id FROM ducklake_current_snapshot('lake')) ORDER BY 1`)
  return found.map(({ version, schema, changes, commit_message, author }) => ({
    version: Number(version),
    schema: Number(schema),
    changes: Object.entries<ReadonlyArray<string>>(JSON.parse(String(changes ?? '{}')) ?? {}),
    isWhole: commit_message === wholeReviewsMessage,
    isForeign: author !== lakeAuthor,
  }))
}

/** The ids of the lake's tables by name, of this version of its schema; each is asked for once. */
const listTableIds = async (db: Database, schema: number): Promise<(name: string) => ReadonlyArray<string>> => {
  const known = `CREATE TEMP TABLE IF NOT EXISTS _ids (schema INTEGER, id VARCHAR, name VARCHAR); SELECT id, name FROM _ids WHERE schema = ${schema}`
  const found = await db.query(known)
  if (found.length === 0)
    await db.run(`INSERT INTO _ids SELECT ${schema}, table_id::VARCHAR, table_name FROM ducklake_table_info('lake')`)
  const ids = found.length === 0 ? await db.query(known) : found
  return (name) => ids.flatMap((table) => (table.name === name ? [String(table.id)] : []))
}

/** What DuckLake calls changes that leave each row its version, but for those that it adds or removes. */
const knownKinds =
  /^((tables|views|schemas)_created|(views|schemas)_dropped|(tables|views)_altered|tables_inserted_into|inlined_insert|tables_deleted_from|inlined_delete)$/

/** Whether a version has dropped a table, or made changes whose kind is not known here. */
const isUnclear = ({ changes }: Version): boolean => changes.some(([kind]) => !knownKinds.test(kind))

/** Whether a version has made such changes to one of these tables, or some that are unclear. */
const mayChange = (version: Version, kinds: ReadonlyArray<string>, tableIds: ReadonlyArray<string>): boolean =>
  isUnclear(version) ||
  version.changes.some(([kind, ids]) => kinds.includes(kind) && ids.some((id) => tableIds.includes(id)))

const mayAdd = (version: Version, tableIds: ReadonlyArray<string>): boolean =>
  mayChange(version, ['tables_inserted_into', 'inlined_insert'], tableIds)

/** Whether a version may have removed rows, such as those that it has written anew. */
const mayRemove = (version: Version, tableIds: ReadonlyArray<string>): boolean =>
  mayChange(version, ['tables_deleted_from', 'inlined_delete'], tableIds)

/**
 * Whether rows of a table, which came with their review before this version, may be without it since: another program has removed reviews alone, a
 * table was made anew, or its rows belong to reviews only since it was altered.
 */
const mayOrphan = (version: Version, tableIds: ReadonlyArray<string>, reviewIds: ReadonlyArray<string>): boolean =>
  mayChange(version, ['tables_altered'], tableIds) || (version.isForeign && mayRemove(version, reviewIds))

/**
 * By table: learns the rows that the tables of a lake have before the open transaction writes to them. A share of a backfill commits often, and all its commits
 * would read the keys of ever more files: so each file is read once, as what its version has added, and of rows that came with their review none. Rows
 * that were removed since stay known. What the transaction has learned is forgotten where it fails, since temporary tables are part of it.
 */
const learnRows = async (
  db: Database,
  wanted: ReadonlyArray<Wanted>,
  isWithin: boolean,
): Promise<ReadonlyMap<string, KnownRows>> => {
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
    const number = Number(before?.number ?? free + i)
    const rowsSql = knownRowsSql({ names, time })
    return { ...each, description, number, before: before && Number(before.version), rowsSql }
  })
  const versions = await listVersions(db, Math.min(...described.map(({ before }) => before ?? 0)))
  const current = versions.at(-1)?.version ?? 0
  const listSince = (version: number) => versions.filter((each) => each.version > version)
  // Neither a version that was expired nor an unclear one tells what it has changed: then all is learned anew.
  const isLost = described.some(
    ({ before = current }) => listSince(before).length !== current - before || listSince(before).some(isUnclear),
  )
  const hasAll = !isLost && versions.length === current + 1
  const idsOf = await listTableIds(db, versions.at(-1)?.schema ?? 0)
  const reviewIds = idsOf(reviewsTableName)
  const statements: string[] = []
  for (const { table, isChild, description, before, number, rowsSql } of described) {
    const version = isLost ? undefined : before
    if (version === current) continue
    const ids = idsOf(table.name)
    const rowsOf = (source: string) => rowsSql(source, hidesVersions(table) ? 'NULL' : 't.snapshot_id')
    // Outside of a transaction each statement may see another version: all rows are those of the one that is noted.
    const allSql = `${rowsOf(quoteIdentifier(table.name))}${isWithin ? '' : ` AT (VERSION => ${current})`}`
    const adding = listSince(version ?? -1).filter((each) => mayAdd(each, ids))
    const orphaned = version === undefined ? versions.findLast((each) => mayOrphan(each, ids, reviewIds)) : undefined
    const open = adding.filter((each) => isChild && (!each.isWhole || each.version < (orphaned?.version ?? 0)))
    const openSql = `${allSql} WHERE ${isOfVersionsSql(open.map((each) => each.version))}`
    if (version === undefined)
      statements.push(
        `CREATE OR REPLACE TEMP TABLE _known_${number} AS ${isChild && hasAll ? openSql : allSql}`,
        `DELETE FROM _known WHERE number = ${number}`,
        `INSERT INTO _known VALUES (${number}, ${quoteLiteral(description)}, ${current})`,
      )
    else {
      if (open.length > 0) statements.push(`INSERT INTO temp._known_${number} ${openSql}`)
      else if (!isChild && adding.length > 0)
        statements.push(
          `INSERT INTO temp._known_${number} ${rowsOf(`ducklake_table_insertions('lake', 'main', ${quoteLiteral(table.name)}, ${version + 1}, ${current})`)}`,
        )
      statements.push(`UPDATE _known SET version = ${current} WHERE number = ${number}`)
    }
    // A review that was written anew before it was learned has another version than the rows that came with it.
    if (version === undefined && table.name === reviewsTableName)
      statements.push(
        `CREATE OR REPLACE TEMP TABLE _moved AS SELECT unnest([${versions.flatMap((each) => (mayRemove(each, reviewIds) ? [each.version] : [])).join(', ')}]::INTEGER[]) AS version`,
      )
  }
  if (statements.length > 0) await db.run(statements.join(';\n'))
  const parent = described.find(({ table }) => table.name === reviewsTableName)
  return new Map(
    described.map(({ table, names, isChild, number, rowsSql }) => {
      const numbers = isChild && parent !== undefined ? [parent.number, number] : [number]
      const sets = numbers.map((each) => `temp._known_${each}`)
      return [table.name, { number, names, isChild, sets, rowsSql }]
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

/** What `learnRows` says of each table that belongs to reviews, by review, and of other `keyed` ones by their key. `isWithin`: a transaction is open. */
export const learnTables = async (
  db: Database,
  keyed: ReadonlyArray<{ readonly table: Table; readonly key: ReadonlyArray<string> }>,
  tables: ReadonlyArray<Table>,
  isWithin: boolean,
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
  return wanted.size === 0 ? new Map() : learnRows(db, [...wanted.values()], isWithin)
}
