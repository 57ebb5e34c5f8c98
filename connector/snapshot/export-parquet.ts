import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { countSelects } from './query'
import { quoteIdentifier, quoteLiteral, type Snapshot } from './store/database'
import { isDiskFull, outputFullFailure } from './store/failures'
import { readReportingTimeZone } from './store/metadata'
import { findFreeName, listStreamTables, type Table } from './store/tables'

/** The format of a partition's folder name. */
export const partitionFormats = { year: '%Y', month: '%Y-%m', day: '%Y-%m-%d' } as const
export type ParquetPartition = keyof typeof partitionFormats

export type ParquetExport = { readonly stream: string; readonly rows: number; readonly folder: string }

/** Names that Windows keeps for devices. */
const deviceName = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/** The first part of a long name; a file system takes 255 bytes. */
const shortenName = (name: string): string => {
  if (Buffer.byteLength(name) <= 200) return name
  let short = name
  while (Buffer.byteLength(short) > 200) short = short.slice(0, -1)
  return short.replace(/%[\dA-F]?$/, '').replace(/[\ud800-\udbff]$/, '')
}

/** The name of a stream as that of one folder: what means something in a path is percent-encoded. */
const encodeFolderName = (stream: string): string => {
  const encode = (text: string): string =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  const encoded = stream
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029<>:"/\\|?*%=~{}[\]]/gu, encode)
    .replace(/^\.|[. ]$/g, encode)
  return shortenName(encoded === '' ? '%' : deviceName.test(encoded) ? `%${encoded}` : encoded)
}

/** A folder name for each stream. Two that a file system may take for one, such as those that differ in case, get a number. */
export const nameFolders = (streams: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const taken = new Set<string>()
  const normalize = (name: string): string => name.normalize('NFKC').toUpperCase().toLowerCase()
  return new Map(
    streams.map((stream) => {
      const name = encodeFolderName(stream)
      let folder = name
      for (let n = 2; taken.has(normalize(folder)); n += 1) folder = `${name}~${n}`
      taken.add(normalize(folder))
      return [stream, folder]
    }),
  )
}

/** Lets only the owner read what is in a folder, since it holds words of patients. */
const makePrivate = async (folder: string): Promise<void> => {
  await chmod(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    await (entry.isDirectory() ? makePrivate(path) : chmod(path, 0o600))
  }
}

/**
 * Writes each stream's table as Parquet (zstd) into its own folder under `folder`, which must be empty or missing. With a
 * partition, writes Hive folders such as `month=2026-01`, by mention time or, if a stream has none, by its cursor, in the file's reporting time zone.
 * Removes what it has written if it fails, so that the same export can be made again.
 */
export const exportParquet = async (
  snapshot: Snapshot,
  folder: string,
  partition: ParquetPartition | undefined,
): Promise<ReadonlyArray<ParquetExport>> => {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CommandError(
      configFailure(`${folder} is not empty. Give a new folder: an export does not overwrite files.`),
    )
  // An export that begins again could leave files of the first attempt beside its own.
  await snapshot.db.giveAllMemory()
  const timeZone = await readReportingTimeZone(snapshot.db)
  const tables = await listStreamTables(snapshot.db)
  const names = nameFolders(tables.map(({ name }) => name))
  const written: Array<ParquetExport> = []
  const folders: Array<string> = []
  try {
    for (const table of tables) {
      const tableFolder = join(folder, names.get(table.name) ?? '')
      // The folder is closed to others before a file is in it.
      await mkdir(tableFolder, { recursive: true, mode: 0o700 })
      folders.push(tableFolder)
      written.push(await exportTable(snapshot, table, tableFolder, { partition, timeZone }))
    }
    return written
  } catch (error) {
    for (const each of folders) await rm(each, { recursive: true, force: true })
    throw isDiskFull(error) ? new CommandError(outputFullFailure(folder)) : error
  }
}

const exportTable = async (
  { db }: Snapshot,
  table: Table,
  folder: string,
  { partition, timeZone }: { readonly partition: ParquetPartition | undefined; readonly timeZone: string },
): Promise<ParquetExport> => {
  const time = partition === undefined ? undefined : await findTimeColumn(db, table)
  const rows = `SELECT * REPLACE (_airbyte_raw_id::VARCHAR AS _airbyte_raw_id)`
  const format = 'FORMAT parquet, COMPRESSION zstd'
  const partitionColumn = partition && quoteIdentifier(findFreeName(table.columns, partition))
  await db.run(
    partition === undefined || time === undefined
      ? `COPY (${rows} FROM ${quoteIdentifier(table.name)}) TO ${quoteLiteral(join(folder, 'data_0.parquet'))} (${format})`
      : `COPY (${rows}, strftime(${quoteIdentifier(time)} AT TIME ZONE ${quoteLiteral(timeZone)}, '${partitionFormats[partition]}') AS ${partitionColumn} FROM ${quoteIdentifier(table.name)})
           TO ${quoteLiteral(folder)} (${format}, PARTITION_BY (${partitionColumn}), OVERWRITE_OR_IGNORE)`,
  )
  await makePrivate(folder)
  return {
    stream: table.name,
    rows: Number(await db.scalar(`SELECT count(*) FROM ${quoteIdentifier(table.name)}`)),
    folder,
  }
}

const findTimeColumn = async ({ scalar }: Snapshot['db'], { name, columns }: Table): Promise<string | undefined> => {
  const cursor = await scalar('SELECT cursor FROM _streams WHERE stream = $name', { name })
  return ['mentionTime', String(cursor)].find((candidate) =>
    columns.some((column) => column.name === candidate && column.type === 'TIMESTAMPTZ'),
  )
}

/** Types that Parquet does not hold, or holds only in part, and those that hold their values. */
const parquetTypes: Readonly<Record<string, string>> = {
  UUID: 'VARCHAR',
  HUGEINT: 'DECIMAL(38, 0)',
  UHUGEINT: 'VARCHAR',
}

/** Writes the rows of a SELECT, or the first of them, as one Parquet file (zstd). The file must exist; the connection may be locked but for it. */
export const exportQuery = async ({ db }: Snapshot, sql: string, path: string, limit?: number): Promise<void> => {
  if ((await countSelects(db, sql)) !== 1)
    throw new CommandError(
      configFailure('Only the rows of one SELECT can be written as Parquet. Give one, without others beside it.'),
    )
  const view = quoteIdentifier('query result')
  await db.run(`CREATE TEMP VIEW ${view} AS\n${sql}`)
  const columns = await db.query(`DESCRIBE ${view}`)
  const list = columns.map(({ column_name: name, column_type: type }) => {
    const column = quoteIdentifier(String(name))
    const kept = parquetTypes[String(type)]
    return kept === undefined ? column : `${column}::${kept} AS ${column}`
  })
  await db.run(
    `COPY (SELECT ${list.join(', ')} FROM ${view}${limit === undefined ? '' : ` LIMIT ${limit}`}) TO ${quoteLiteral(path)} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480, USE_TMP_FILE false)`,
  )
}
