import { CommandError, configFailure, type StreamInfo, tombstoneColumnNames } from '../../cdk'
import { type Database, quoteIdentifier } from '../store/database'
import { adviseOnPlace } from '../store/failures'
import {
  airbyteColumns,
  attributeOf,
  type Column,
  chooseColumns,
  columnsFromSchema,
  endedColumnName,
  historyTableName,
  type Table,
} from '../store/tables'
import type { Spool } from './spool'
import type { LoadOptions, LoadTarget } from './target'

/**
 * Creates the stream's table, or adds the columns that it lacks. A column that is no longer declared stays. If a type
 * changed, refuses the stream. `info`: the current declaration.
 */
const ensureTable = async (db: Database, info: StreamInfo, table: Table | undefined): Promise<Table> => {
  const { name, schema } = info
  const declared = columnsFromSchema(schema, table?.columns)
  if (table !== undefined) {
    refuseOtherTypes(db, info, table, declared)
    return addColumns(db, table, declared)
  }
  await dropView(db, name)
  const definitions = [...declared.map((column) => [column.name, column.type] as const), ...airbyteColumns]
  const columnsSql = definitions.map(([column, type]) => `${quoteIdentifier(column)} ${type}`).join(', ')
  await db.run(`CREATE TABLE ${quoteIdentifier(name)} (${columnsSql})`)
  return { name, columns: declared, history: false }
}

/** Refuses columns whose type changed, for example because the config now hashes an attribute, or reads a lookup. */
export const refuseOtherTypes = (
  db: Database,
  info: StreamInfo,
  table: Table,
  declared: ReadonlyArray<Column>,
): void => {
  for (const { name, type } of declared) {
    const found = table.columns.find((column) => column.name === name)
    if (found !== undefined && found.type !== type)
      rejectStream(
        info,
        `its attribute ${name} is ${type} now, and ${found.type} in ${adviseOnPlace(db, 'the file')}`,
        adviseOnPlace(db, 'Read it into another file with --db, or undo the change of the config.'),
      )
  }
}

/** One of our views gives way to a stream with its name, and gets another name at the end of the run. */
const dropView = async (db: Database, name: string): Promise<void> => {
  const view = await db.scalar(
    `SELECT view_name FROM duckdb_views()
     WHERE database_name = current_database() AND NOT internal AND lower(view_name) = lower($name)`,
    { name },
  )
  if (view !== undefined) await db.run(`DROP VIEW ${quoteIdentifier(String(view))}`)
}

/** Creates the stream's history table. From then on every version of its rows is kept. */
const createHistoryTable = async (db: Database, { name }: Table): Promise<void> => {
  await db.run(
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(historyTableName(name))} AS FROM ${quoteIdentifier(name)} LIMIT 0`,
  )
  await db.run(
    `ALTER TABLE ${quoteIdentifier(historyTableName(name))} ADD COLUMN IF NOT EXISTS ${endedColumnName} TIMESTAMPTZ`,
  )
}

/** Adds the columns that a table lacks, also to its history. */
export const addColumns = async (db: Database, table: Table, wanted: ReadonlyArray<Column>): Promise<Table> => {
  const names = [table.name, ...(table.history ? [historyTableName(table.name)] : [])]
  const added = wanted.filter(({ name }) => table.columns.every((column) => column.name !== name))
  for (const { name, type } of added)
    for (const each of names)
      await db.run(`ALTER TABLE ${quoteIdentifier(each)} ADD COLUMN ${quoteIdentifier(name)} ${type}`)
  return added.length === 0 ? table : { ...table, columns: [...table.columns, ...added] }
}

/**
 * By batch, the columns for attributes of its records that have none: JSON columns, and a column that marks tombstones.
 * A source that collects undeclared attributes in `unknown_attributes` needs only the latter.
 */
export const findUndeclaredColumns = async (
  db: Database,
  batches: ReadonlyArray<{ readonly table: Table; readonly spool: Spool }>,
): Promise<ReadonlyArray<ReadonlyArray<Column>>> => {
  const selects = batches.flatMap(({ table: { columns }, spool }, i) => {
    if (spool.count() === 0) return []
    const known = new Set(columns.map(attributeOf))
    const mayHaveUndeclared =
      !known.has('unknown_attributes') ||
      (spool.mentionsTombstones() && tombstoneColumnNames.some((name) => !known.has(name)))
    return mayHaveUndeclared
      ? [`SELECT DISTINCT ${i} AS batch, unnest(json_keys(_json)) AS name FROM ${spool.toSql()}`]
      : []
  })
  const attributes = selects.length === 0 ? [] : await db.query(selects.join(' UNION ALL '))
  return batches.map(({ table: { columns } }, i) => {
    const known = new Set(columns.map(attributeOf))
    const undeclared = attributes
      .filter(({ batch }) => batch === i)
      .map(({ name }) => String(name))
      .filter((name) => !known.has(name) && (!known.has('unknown_attributes') || tombstoneColumnNames.includes(name)))
      .sort()
      .map((name): Column => ({ name, type: tombstoneColumnNames.includes(name) ? 'TIMESTAMPTZ' : 'JSON' }))
    return chooseColumns(undeclared, columns)
  })
}

export const rejectStream = ({ name }: StreamInfo, reason: string, remedy = 'Correct the catalog.'): never => {
  throw new CommandError(configFailure(`Stream ${name} cannot be written: ${reason}. ${remedy}`))
}

/** The column of an attribute, which may have a different name. */
export const findColumn = ({ columns }: Table, attribute: string): Column | undefined =>
  columns.find((column) => attributeOf(column) === attribute)

/** The columns of the key and the cursor. */
export const mapToColumns = (
  table: Table,
  { key, cursor }: Pick<LoadTarget, 'key' | 'cursor'>,
): Pick<LoadTarget, 'key' | 'cursor'> => {
  const toName = (attribute: string) => findColumn(table, attribute)?.name ?? attribute
  return { key: key.map(toName), cursor: cursor === undefined ? undefined : toName(cursor) }
}

/** The stream's table with its declared columns. `key`: the key columns so far. */
export const prepareTable = async (
  db: Database,
  info: StreamInfo,
  target: LoadTarget,
  { previous, key, history }: { previous: Table | undefined; key: ReadonlyArray<string>; history: boolean },
): Promise<Table> => {
  const current = await ensureTable(db, info, previous)
  if (history) await createHistoryTable(db, current)
  const table = { ...current, history: current.history || history }
  requireKey(db, info, target, table, key)
  return table
}

/** Refuses a stream whose schema lacks its key or cursor, or whose key differs from `key`, its key columns so far. */
export const requireKey = (
  db: Database,
  info: StreamInfo,
  target: LoadTarget,
  table: Table,
  key: ReadonlyArray<string>,
): void => {
  const missing = [...target.key, target.cursor].find(
    (attribute) => attribute !== undefined && findColumn(table, attribute) === undefined,
  )
  if (missing !== undefined) rejectStream(info, `its key or cursor ${missing} is not an attribute of its schema`)
  const wanted = mapToColumns(table, target).key
  if (key.length > 0 && wanted.length > 0 && key.join() !== wanted.join())
    rejectStream(
      info,
      `its key is ${target.key.join(', ')} now, and was ${key.join(', ')} in ${adviseOnPlace(db, 'the file')}`,
      adviseOnPlace(db, 'Read it into another file with --db.'),
    )
}

/**
 * Refuses a stream because of its name, or an outdated refresh from another connection. `names`: the existing streams;
 * `generation`: the current one of this stream.
 */
export const requireStream = (
  db: Database,
  info: StreamInfo,
  names: ReadonlyArray<string>,
  options: LoadOptions,
  generation: number,
): void => {
  if (info.name.startsWith('_')) rejectStream(info, 'names that begin with _ are reserved for metadata tables')
  const other = names.find((name) => name !== info.name && name.toLowerCase() === info.name.toLowerCase())
  if (other !== undefined)
    rejectStream(
      info,
      `${adviseOnPlace(db, 'the file')} has the stream ${other}, whose name differs only in case, ` +
        'which names of tables cannot',
      adviseOnPlace(db, 'Read it into its own file with --db.'),
    )
  if ((options.minimum ?? 0) > 0 && (options.generation ?? 0) < generation)
    rejectStream(
      info,
      `its refresh has the generation ${options.generation}, but ${adviseOnPlace(db, 'the file')} already has ` +
        `generation ${generation}, so another connection has written it`,
      adviseOnPlace(db, 'Give each connection its own file with --db.'),
    )
}
