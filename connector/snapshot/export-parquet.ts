import { existsSync, readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { literal, quoted } from './database'
import type { Snapshot } from './snapshot'
import { allTables, type Table } from './table'

/** How a partition's folder is named, by the length of its time. */
export const partitions = { year: '%Y', month: '%Y-%m', day: '%Y-%m-%d' } as const
export type Partition = keyof typeof partitions

export type Exported = { readonly stream: string; readonly rows: number; readonly folder: string }

/**
 * Writes each stream's table as Parquet (zstd) into its own folder under `folder`, which must be empty or not there; with a
 * partition, into Hive folders such as `month=2026-01`, by mention time or, where a stream has none, its cursor, in UTC.
 */
export const exportParquet = async (
  { db }: Snapshot,
  folder: string,
  partition: Partition | undefined,
): Promise<ReadonlyArray<Exported>> => {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new Stopped(configFailure(`${folder} is not empty. Give a new folder: an export writes over nothing.`))
  const exported: Array<Exported> = []
  for (const table of await allTables(db)) {
    const place = join(folder, table.name)
    await mkdir(place, { recursive: true })
    const time = partition === undefined ? undefined : await timeOf(db, table)
    const rows = `SELECT * REPLACE (_airbyte_raw_id::VARCHAR AS _airbyte_raw_id)`
    const how = 'FORMAT parquet, COMPRESSION zstd'
    await db.run(
      partition === undefined || time === undefined
        ? `COPY (${rows} FROM ${quoted(table.name)}) TO ${literal(join(place, 'data_0.parquet'))} (${how})`
        : `COPY (${rows}, strftime(${quoted(time)}::TIMESTAMP, '${partitions[partition]}') AS ${partition} FROM ${quoted(table.name)})
           TO ${literal(place)} (${how}, PARTITION_BY (${partition}), OVERWRITE_OR_IGNORE)`,
    )
    exported.push({
      stream: table.name,
      rows: Number(await db.scalar(`SELECT count(*) FROM ${quoted(table.name)}`)),
      folder: place,
    })
  }
  return exported
}

const timeOf = async ({ scalar }: Snapshot['db'], { name, columns }: Table): Promise<string | undefined> => {
  const cursor = await scalar('SELECT cursor FROM _streams WHERE stream = $name', { name })
  return ['mentionTime', String(cursor)].find((wanted) =>
    columns.some((column) => column.name === wanted && column.type === 'TIMESTAMPTZ'),
  )
}
