import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs'
import { chmod, mkdir, open, readdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandError, configFailure, copyDeadLetters, transientFailure } from '../cdk'
import { countSelects } from './query'
import { listModelNames } from './questions'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from './store/database'
import { isDiskFull, outputFullFailure } from './store/failures'
import { jsonTextType, type PersonRows, toPersonRows } from './store/forgotten'
import { dataFilePattern } from './store/lake-access'
import { readReportingTimeZone } from './store/metadata'
import { findFreeName, listStreamTables, type Table } from './store/tables'
import { explainPathError, replaceFile, usePath } from './store/values'
import { findModels } from './store/views'

/** The format of a partition's folder name. */
export const partitionFormats = { year: '%Y', month: '%Y-%m', day: '%Y-%m-%d' } as const
export type ParquetPartition = keyof typeof partitionFormats

type ParquetExport = { readonly stream: string; readonly rows: number; readonly folder: string }

/** Names that Windows reserves for devices. */
const deviceName = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/** The first part of a long name, since a file system takes 255 bytes. */
const shortenName = (name: string): string => {
  if (Buffer.byteLength(name) <= 200) return name
  let short = name
  while (Buffer.byteLength(short) > 200) short = short.slice(0, -1)
  return short.replace(/%[\dA-F]?$/, '').replace(/[\ud800-\udbff]$/, '')
}

/** The name of a stream as the name of one folder: characters with a meaning in paths are percent-encoded. */
const encodeFolderName = (stream: string): string => {
  const encode = (text: string): string =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
  const encoded = stream
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029<>:"/\\|?*%=~{}[\]]/gu, encode)
    .replace(/^\.|[. ]$/g, encode)
  return shortenName(encoded === '' ? '%' : deviceName.test(encoded) ? `%${encoded}` : encoded)
}

/**
 * A folder name for each stream. Names that a file system may treat as equal, such as those that differ in case, get a
 * number.
 */
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

/** Makes a folder readable only by its owner, since it holds words of patients. */
const makePrivate = async (folder: string): Promise<void> => {
  await chmod(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    await (entry.isDirectory() ? makePrivate(path) : chmod(path, 0o600))
  }
}

/**
 * Writes each stream's table as Parquet (zstd) into its own folder under `folder`, which must be empty or missing. With
 * a partition, writes Hive folders such as `month=2026-01`, by mention time or, if a stream has none, by its cursor, in
 * the file's reporting time zone. `views`: also writes the models, each as one file. Removes what it has written if it
 * fails, so that the export can be repeated.
 */
export const exportParquet = async (
  snapshot: Snapshot,
  folder: string,
  partition?: ParquetPartition,
  views = false,
): Promise<ReadonlyArray<ParquetExport>> => {
  if (usePath(folder, () => existsSync(folder) && readdirSync(folder).length > 0))
    throw new CommandError(
      configFailure(`${folder} is not empty. Give a new folder: an export does not overwrite files.`),
    )
  // An export that is rerun could leave files of the first attempt beside the new ones.
  await snapshot.db.giveAllMemory()
  const timeZone = await readReportingTimeZone(snapshot.db)
  const tables = await listStreamTables(snapshot.db)
  const models = views ? await provideViews(snapshot.db) : []
  const names = nameFolders([...tables.map(({ name }) => name), ...models])
  const written: Array<ParquetExport> = []
  const folders: Array<string> = []
  try {
    const makeFolder = async (name: string): Promise<string> => {
      const own = join(folder, names.get(name) ?? '')
      // The folder is closed to others before it contains a file.
      await mkdir(own, { recursive: true, mode: 0o700 })
      folders.push(own)
      return own
    }
    for (const table of tables)
      written.push(await exportTable(snapshot, table, await makeFolder(table.name), { partition, timeZone }))
    for (const view of models) written.push(await exportView(snapshot, view, await makeFolder(view)))
    return written
  } catch (error) {
    for (const each of folders) await rm(each, { recursive: true, force: true })
    throw isDiskFull(error) ? new CommandError(outputFullFailure(folder)) : explainPathError(folder, error)
  }
}

const exportTable = async (
  { db }: Snapshot,
  table: Table,
  folder: string,
  { partition, timeZone }: { readonly partition: ParquetPartition | undefined; readonly timeZone: string },
): Promise<ParquetExport> => {
  const time = partition === undefined ? undefined : await findTimeColumn(db, table)
  const from = quoteIdentifier(table.name)
  const columns = [...(await listParquetColumns(db, from))]
  const rows = Number(await db.scalar(`SELECT count(*) FROM ${from}`))
  const options = ['FORMAT parquet', 'COMPRESSION zstd']
  let target = join(folder, 'data_0.parquet')
  if (partition !== undefined && time !== undefined) {
    const partitionColumn = quoteIdentifier(findFreeName(table.columns, partition))
    const local = `${quoteIdentifier(time)} AT TIME ZONE ${quoteLiteral(timeZone)}`
    columns.push(`strftime(${local}, '${partitionFormats[partition]}') AS ${partitionColumn}`)
    // DuckDB writes no partition without rows, but other readers need a file with the columns.
    if (rows > 0) {
      target = folder
      options.push(`PARTITION_BY (${partitionColumn})`, 'OVERWRITE_OR_IGNORE')
    }
  }
  await db.run(`COPY (SELECT ${columns.join(', ')} FROM ${from}) TO ${quoteLiteral(target)} (${options.join(', ')})`)
  await makePrivate(folder)
  return { stream: table.name, rows, folder }
}

/** The names of the models, after creating them; none if the file has no reviews. */
const provideViews = async (db: Database): Promise<ReadonlyArray<string>> => {
  const { hasReviews, renamed, provide } = await findModels(db)
  const names = hasReviews ? listModelNames().map((name) => renamed.get(name) ?? name) : []
  await provide(new Set(names), {})
  return names
}

const exportView = async ({ db }: Snapshot, view: string, folder: string): Promise<ParquetExport> => {
  const from = quoteIdentifier(view)
  const file = quoteLiteral(join(folder, 'data_0.parquet'))
  const columns = await listParquetColumns(db, from)
  await db.run(`COPY (SELECT ${columns.join(', ')} FROM ${from}) TO ${file} (FORMAT parquet, COMPRESSION zstd)`)
  await makePrivate(folder)
  return { stream: view, rows: Number(await db.scalar(`SELECT count(*) FROM read_parquet(${file})`)), folder }
}

const findTimeColumn = async ({ scalar }: Snapshot['db'], { name, columns }: Table): Promise<string | undefined> => {
  const cursor = await scalar('SELECT cursor FROM _streams WHERE stream = $name', { name })
  return ['mentionTime', String(cursor)].find((candidate) =>
    columns.some((column) => column.name === candidate && column.type === 'TIMESTAMPTZ'),
  )
}

/**
 * Maps types that Parquet supports not at all or only partly to types that preserve their values. Parquet supports
 * JSON, but other readers do not treat it as text: they cannot compare it or write it as CSV.
 */
const parquetTypes: Readonly<Record<string, string>> = {
  UUID: 'VARCHAR',
  HUGEINT: 'DECIMAL(38, 0)',
  UHUGEINT: 'VARCHAR',
  JSON: 'VARCHAR',
}

/** A type as Parquet holds it, also inside lists and structs. Text in quotes is a name or a value. */
const toParquetType = (type: string): string =>
  type.replaceAll(
    /'(?:[^']|'')*'|"(?:[^"]|"")*"|\b(?:UUID|U?HUGEINT|JSON)(?=$|[,)[])/g,
    (word) => parquetTypes[word] ?? word,
  )

/** The columns of a table or view as SQL that converts each to a type of Parquet. */
const listParquetColumns = async (db: Database, relation: string): Promise<ReadonlyArray<string>> =>
  (await db.query(`DESCRIBE ${relation}`)).map(({ column_name: name, column_type: type }) => {
    const column = quoteIdentifier(String(name))
    const kept = toParquetType(String(type))
    return kept === type ? column : `${column}::${kept} AS ${column}`
  })

/**
 * Writes the rows of a SELECT, or the first of them, as one Parquet file (zstd). The file must exist; the connection
 * may be locked to everything else.
 */
export const exportQuery = async ({ db }: Snapshot, sql: string, path: string, limit?: number): Promise<void> => {
  if ((await countSelects(db, sql)) !== 1)
    throw new CommandError(
      configFailure('Only the rows of one SELECT can be written as Parquet. Give one, without others beside it.'),
    )
  const view = quoteIdentifier('query result')
  await db.run(`CREATE TEMP VIEW ${view} AS\n${sql}`)
  const rows = `SELECT ${(await listParquetColumns(db, view)).join(', ')} FROM ${view}`
  const options = 'FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480, USE_TMP_FILE false'
  await db.run(`COPY (${rows}${limit === undefined ? '' : ` LIMIT ${limit}`}) TO ${quoteLiteral(path)} (${options})`)
}

/** The size and hash of a file on disk. */
type FileDigest = { readonly bytes: number; readonly sha256: string }

/** A rewritten file. */
export type RewrittenFile = { readonly path: string; readonly before: FileDigest; readonly after: FileDigest }

/** `handle`: an open handle of the file, if there is one; it stays open. */
export const describeFile = async (path: string, handle?: number): Promise<FileDigest> => {
  const hash = createHash('sha256')
  const bytes = createReadStream(path, handle === undefined ? {} : { fd: handle, autoClose: false, start: 0 })
  for await (const chunk of bytes) hash.update(chunk)
  return { bytes: (await stat(path)).size, sha256: hash.digest('hex') }
}

export const isParquet = (path: string): boolean => path.endsWith('.parquet')

/**
 * The files that paths name: themselves, and the Parquet files in folders. `others`: everything else in the folders,
 * including links to other folders. Throws a `CommandError` for a path that names none.
 */
export const listExportFiles = (
  paths: ReadonlyArray<string>,
): { readonly files: ReadonlyArray<string>; readonly others: ReadonlyArray<string> } => {
  const list = (path: string) => {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isFile()) return { files: [path], others: [] }
    const entries = found?.isDirectory() ? readdirSync(path, { recursive: true, withFileTypes: true }) : []
    const names = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
    const files = names.filter((name) => isParquet(name) && statSync(name, { throwIfNoEntry: false })?.isFile())
    // What a killed run left is removed together with its file.
    const known = new Set(files.flatMap((name) => [name, `${name}.forget`]))
    if (files.length > 0) return { files: files.sort(), others: names.filter((name) => !known.has(name)).sort() }
    throw new CommandError(
      configFailure(
        `${path} ${found === undefined ? 'does not exist' : 'holds no Parquet file'}. ` +
          'Check the path given with --exports.',
      ),
    )
  }
  const lists = paths.map((path) => usePath(path, () => list(path)))
  const files = lists.flatMap((list) => list.files)
  const ofLake = files.find((path) => dataFilePattern.test(basename(path)))
  if (ofLake !== undefined)
    throw new CommandError(
      configFailure(
        `${ofLake} is a file of a lake, which knows where each row of it is: ` +
          'give the lake with --lake, and leave its folder out of --exports.',
      ),
    )
  return { files, others: lists.flatMap(({ others }) => others) }
}

/** A Parquet file, with SQL for its rows. */
export type ParquetRows = { readonly path: string; readonly sql: string; readonly rows: PersonRows }

const readFailure = (path: string, error: unknown): CommandError =>
  new CommandError(
    configFailure(
      `${path} cannot be read as Parquet. Leave it out of --exports, or make the export again.`,
      String(error),
    ),
  )

/** The type of a column before it was written: text may have been JSON. */
const toStoredType = (type: string): string => (type === 'VARCHAR' ? jsonTextType : type)

/**
 * The rows of the Parquet files among these. An export's stream is the name of its folder, above any partition folders.
 */
export const readParquetRows = async (
  db: Database,
  files: ReadonlyArray<string>,
): Promise<ReadonlyArray<ParquetRows>> => {
  const found: ParquetRows[] = []
  for (const path of files.filter(isParquet)) {
    const target = await realpath(path)
    const sql = `read_parquet(${quoteLiteral(target)}, hive_partitioning = false)`
    const columns = await db.query(`DESCRIBE FROM ${sql}`).catch((error) => {
      throw readFailure(path, error)
    })
    let folder = dirname(target)
    while (basename(folder).includes('=')) folder = dirname(folder)
    const described = columns.map((row) => ({
      name: String(row.column_name),
      type: toStoredType(String(row.column_type)),
    }))
    found.push({ path, sql, rows: toPersonRows(basename(folder), described) })
  }
  return found
}

/**
 * Rewrites a Parquet file without the rows that `where` selects, replacing it atomically; undefined if there are none.
 */
export const removeParquetRows = async (
  db: Database,
  { path, sql }: ParquetRows,
  where: string | undefined,
): Promise<RewrittenFile | undefined> => {
  const target = await realpath(path)
  const copy = `${target}.forget`
  // Removes what a killed run left.
  await rm(copy, { force: true })
  if (!where || Number(await db.scalar(`SELECT count(*) FROM ${sql} AS t WHERE ${where}`)) === 0) return undefined
  const before = await describeFile(target)
  try {
    const { mode } = await stat(target)
    await (await open(copy, 'wx', 0o600)).close()
    await db.run(`
      COPY (SELECT * FROM ${sql} AS t WHERE NOT ${where})
      TO ${quoteLiteral(copy)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`)
    await chmod(copy, mode)
    replaceFile(copy, target)
  } catch (error) {
    await rm(copy, { force: true })
    throw isDiskFull(error) ? new CommandError(outputFullFailure(path)) : error
  }
  return { path, before, after: await describeFile(target) }
}

/**
 * Rewrites a file of dead letters without the visits that `isForgotten` names by id, replacing it atomically; undefined
 * if there are none. `ids`: as the user gave them; a truncated line is removed if it contains one of them.
 */
export const removeLetters = async (
  path: string,
  ids: ReadonlyArray<string>,
  isForgotten: (visit: string) => boolean,
): Promise<RewrittenFile | undefined> => {
  const target = await realpath(path)
  const copy = `${target}.forget`
  try {
    const before = await describeFile(target)
    const { letters, leftOut } = await copyDeadLetters(target, copy, (letter, text) =>
      letter === undefined
        ? ids.some((id) => text.includes(id))
        : letter.object === 'visit_records' && letter.key !== null && isForgotten(letter.key),
    )
    if (letters === 0 && before.bytes > 0)
      throw new CommandError(
        configFailure(`${path} is neither Parquet nor a file of dead letters. Leave it out of --exports.`),
      )
    if ((await stat(target)).size !== before.bytes)
      throw new CommandError(transientFailure(`${path} is being written. Run again once that has ended.`))
    // Left by a killed run with --resend: letters that are in the file too.
    await rm(`${target}.resend`, { force: true })
    if (leftOut === 0) return undefined
    const after = await describeFile(copy)
    replaceFile(copy, target)
    return { path, before, after }
  } catch (error) {
    throw isDiskFull(error) ? new CommandError(outputFullFailure(path)) : error
  } finally {
    await rm(copy, { force: true })
  }
}
