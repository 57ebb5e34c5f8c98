import { existsSync, readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { quoteIdentifier, quoteLiteral, type Snapshot } from './store/database'
import { readReportingTimeZone } from './store/metadata'
import { findFreeName, listStreamTables, type Table } from './store/tables'

/** The format of a partition's folder name. */
export const partitionFormats = { year: '%Y', month: '%Y-%m', day: '%Y-%m-%d' } as const
export type ParquetPartition = keyof typeof partitionFormats

export type ParquetExport = { readonly stream: string; readonly rows: number; readonly folder: string }

/**
 * Writes each stream's table as Parquet (zstd) into its own folder under `folder`, which must be empty or missing. With a
 * partition, writes Hive folders such as `month=2026-01`, by mention time or, if a stream has none, by its cursor, in the file's reporting time zone.
 */
export const exportParquet = async (
  { db }: Snapshot,
  folder: string,
  partition: ParquetPartition | undefined,
): Promise<ReadonlyArray<ParquetExport>> => {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CommandError(
      configFailure(`${folder} is not empty. Give a new folder: an export does not overwrite files.`),
    )
  const timeZone = await readReportingTimeZone(db)
  const results: Array<ParquetExport> = []
  for (const table of await listStreamTables(db)) {
    const tableFolder = join(folder, table.name)
    await mkdir(tableFolder, { recursive: true })
    const time = partition === undefined ? undefined : await findTimeColumn(db, table)
    const rows = `SELECT * REPLACE (_airbyte_raw_id::VARCHAR AS _airbyte_raw_id)`
    const format = 'FORMAT parquet, COMPRESSION zstd'
    const partitionColumn = partition && quoteIdentifier(findFreeName(table.columns, partition))
    await db.run(
      partition === undefined || time === undefined
        ? `COPY (${rows} FROM ${quoteIdentifier(table.name)}) TO ${quoteLiteral(join(tableFolder, 'data_0.parquet'))} (${format})`
        : `COPY (${rows}, strftime(${quoteIdentifier(time)} AT TIME ZONE ${quoteLiteral(timeZone)}, '${partitionFormats[partition]}') AS ${partitionColumn} FROM ${quoteIdentifier(table.name)})
           TO ${quoteLiteral(tableFolder)} (${format}, PARTITION_BY (${partitionColumn}), OVERWRITE_OR_IGNORE)`,
    )
    results.push({
      stream: table.name,
      rows: Number(await db.scalar(`SELECT count(*) FROM ${quoteIdentifier(table.name)}`)),
      folder: tableFolder,
    })
  }
  return results
}

const findTimeColumn = async ({ scalar }: Snapshot['db'], { name, columns }: Table): Promise<string | undefined> => {
  const cursor = await scalar('SELECT cursor FROM _streams WHERE stream = $name', { name })
  return ['mentionTime', String(cursor)].find((candidate) =>
    columns.some((column) => column.name === candidate && column.type === 'TIMESTAMPTZ'),
  )
}
