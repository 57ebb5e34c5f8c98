import { metaColumns } from './columns'
import { type Database, quoteIdentifier } from './database'
import { findTombstoneColumn, type Table } from './tables'

/** Where the versions of a stream go that its own table no longer has. */
export const historyTableName = (stream: string): string => `_history_${stream}`

/** From now on every version of the stream's rows is kept. */
export const createHistoryTable = async (db: Database, { name }: Table): Promise<void> => {
  await db.run(
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(historyTableName(name))} AS FROM ${quoteIdentifier(name)} LIMIT 0`,
  )
  await db.run(`ALTER TABLE ${quoteIdentifier(historyTableName(name))} ADD COLUMN IF NOT EXISTS _ended TIMESTAMPTZ`)
}

/**
 * What must run before rows are deleted: copies those that `where` picks into the history, if one is kept. `source`: the table
 * as `t`, joined with what tells when they ended. A row that stands there already is not copied again, a tombstone never.
 */
export const archiveSql = (table: Table, source: string, where: string, ended: string): string => {
  if (!table.history) return ''
  const tombstone = findTombstoneColumn(table)
  return `
  INSERT INTO ${quoteIdentifier(historyTableName(table.name))} BY NAME
  SELECT DISTINCT ON (t._airbyte_raw_id) t.*, ${ended} AS _ended
  FROM ${source}
  WHERE ${where}${tombstone === undefined ? '' : ` AND t.${quoteIdentifier(tombstone)} IS NULL`} AND NOT EXISTS (
    SELECT 1 FROM ${quoteIdentifier(historyTableName(table.name))} AS old WHERE old._airbyte_raw_id = t._airbyte_raw_id);`
}

/** Every version of a stream's rows, from when to when it was the one: until the next version of its key, or until it was deleted. */
export const versionsViewSql = (
  { name, columns }: Table,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const own = [...columns.map((column) => column.name), ...metaColumns.map(([column]) => column)]
    .map(quoteIdentifier)
    .join(', ')
  const from = cursor === undefined ? '_airbyte_extracted_at' : quoteIdentifier(cursor)
  return `
  SELECT ${own}, ${from} AS valid_from,
    least(_ended, lead(${from}) OVER (PARTITION BY ${key.map(quoteIdentifier).join(', ')} ORDER BY ${from}, _airbyte_extracted_at)) AS valid_to
  FROM (
    SELECT ${own}, NULL::TIMESTAMPTZ AS _ended FROM ${quoteIdentifier(name)}
    UNION ALL SELECT ${own}, _ended FROM ${quoteIdentifier(historyTableName(name))})`
}
