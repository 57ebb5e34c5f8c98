import { airbyteColumns } from './columns'
import { type Database, quoteIdentifier } from './database'
import { findTombstoneColumn, historyTableName, type Table } from './tables'

/** Creates the stream's history table; from then on every version of its rows is kept. */
export const createHistoryTable = async (db: Database, { name }: Table): Promise<void> => {
  await db.run(
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(historyTableName(name))} AS FROM ${quoteIdentifier(name)} LIMIT 0`,
  )
  await db.run(`ALTER TABLE ${quoteIdentifier(historyTableName(name))} ADD COLUMN IF NOT EXISTS _ended TIMESTAMPTZ`)
}

/**
 * SQL to run before rows are deleted: copies the rows that `where` selects into the history table, if there is one. `source`:
 * the table as `t`, joined with the tables that `ended` (the time at which a row ended) and `where` need. A row that the history
 * already has is not copied again, and a tombstone is never copied.
 */
export const archiveSql = (table: Table, source: string, where: string, ended: string): string => {
  if (!table.history) return ''
  const tombstone = findTombstoneColumn(table)
  return `
  INSERT INTO ${quoteIdentifier(historyTableName(table.name))} BY NAME
  SELECT DISTINCT ON (t._airbyte_raw_id) t.*, ${ended} AS _ended
  FROM ${source}
  WHERE ${where}${tombstone === undefined ? '' : ` AND t.${quoteIdentifier(tombstone)} IS NULL`} AND NOT EXISTS (
    SELECT 1 FROM ${quoteIdentifier(historyTableName(table.name))} AS archived WHERE archived._airbyte_raw_id = t._airbyte_raw_id);`
}

/** Every version of a stream's rows with `valid_from` and `valid_to`: until the next version of its key, or until it was deleted. */
export const versionsViewSql = (
  { name, columns }: Table,
  key: ReadonlyArray<string>,
  cursor: string | undefined,
): string => {
  const columnList = [...columns.map((column) => column.name), ...airbyteColumns.map(([column]) => column)]
    .map(quoteIdentifier)
    .join(', ')
  const from = cursor === undefined ? '_airbyte_extracted_at' : quoteIdentifier(cursor)
  return `
  SELECT ${columnList}, ${from} AS valid_from,
    least(_ended, lead(${from}) OVER (PARTITION BY ${key.map(quoteIdentifier).join(', ')} ORDER BY ${from}, _airbyte_extracted_at)) AS valid_to
  FROM (
    SELECT ${columnList}, NULL::TIMESTAMPTZ AS _ended FROM ${quoteIdentifier(name)}
    UNION ALL SELECT ${columnList}, _ended FROM ${quoteIdentifier(historyTableName(name))})`
}
