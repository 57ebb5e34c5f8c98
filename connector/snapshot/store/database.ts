import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, defined, type Failure, systemFailure, transientFailure } from '../../cdk'
import { type CellValue, type RowValues, toRowValues } from './values'

/** The failure of a file that DuckDB opens or reads only in part. */
export const damagedFileFailure = (path: string, detail?: string): Failure =>
  configFailure(
    `${path} is cut short or damaged, or its tables were changed by hand. Take it from a backup, or read everything again into a new file.`,
    detail,
  )

/** The reason why DuckDB did not open a file, in words for the user who gave its path. */
export const databaseOpenFailure = (path: string, error: unknown): Failure => {
  const detail = error instanceof Error ? error.message : String(error)
  const holder = /held in (.*?) \(PID (\d+)\)/.exec(detail)
  if (holder !== null)
    return transientFailure(
      `${path} is in use by process ${holder[2]} (${holder[1]}). Wait until it ends, or stop it, and try again; --wait 10m waits for it.`,
      detail,
    )
  if (/set lock on file/.test(detail))
    return transientFailure(
      `${path} is in use by another process. Wait until it ends and try again; --wait 10m waits for it.`,
      detail,
    )
  if (/does not exist|No such file/.test(detail))
    return configFailure(`${path}: no such file or folder. Check the path given with --db.`, detail)
  if (/Is a directory/.test(detail)) return configFailure(`${path} is a folder. Give the path of a file.`, detail)
  if (/Permission denied|Read-only file system/.test(detail))
    return configFailure(`${path}: permission denied. Check who may read and write it.`, detail)
  if (/not a valid DuckDB database|launch in-memory database/.test(detail))
    return configFailure(
      `${path} exists and is not a DuckDB file. It was not changed; give another path with --db.`,
      detail,
    )
  if (/Could not read enough bytes|Corrupt database/.test(detail)) return damagedFileFailure(path, detail)
  if (/newer version|version number/.test(detail))
    return configFailure(`${path} was written by another version of DuckDB. Upgrade feedback-connector.`, detail)
  return systemFailure(`${path} cannot be opened: ${detail}`, detail)
}

/** A disk that is full while DuckDB spills is told as memory that is out, since it may use what is free on the disk. */
const diskFullPattern =
  /No space left|disk quota|File too large|max_temp_directory_size|failed to offload|Could not write all bytes/i

/** The reason why DuckDB did not write. Its own message may quote a record after `Input:`; that part is left out. */
export const databaseWriteFailure = (path: string, error: unknown): Failure => {
  const detail = (error instanceof Error ? error.message : String(error)).replace(/(Input|Original Line):[\s\S]*/, '')
  if (diskFullPattern.test(detail))
    return transientFailure(
      `${path} cannot grow: the disk is full, or the file has reached the largest size allowed. Make room and run again; what was committed is kept.`,
      detail,
    )
  return systemFailure(`${path} cannot be written: ${detail.split('\n')[0]}`, detail)
}

export type { DuckDBAppender, DuckDBValue } from '@duckdb/node-api'

/** A result read chunk by chunk (2,048 rows each); a row's values are in the order of `names` and `types`. */
export type QueryResult = {
  readonly names: ReadonlyArray<string>
  readonly types: ReadonlyArray<DuckDBType>
  readonly chunks: AsyncIterable<ReadonlyArray<ReadonlyArray<DuckDBValue>>>
}
export type QueryParameters = Record<string, DuckDBValue> | DuckDBValue[]

/** One connection to one DuckDB file; its methods reject with DuckDB's own errors. */
export type Database = {
  readonly path: string
  /** Runs one or more statements; only a single statement may have `values`. `types`: for values whose type DuckDB cannot infer. */
  readonly run: (sql: string, values?: QueryParameters, types?: Readonly<Record<string, DuckDBType>>) => Promise<void>
  readonly query: (sql: string, values?: QueryParameters) => Promise<ReadonlyArray<RowValues>>
  /** The first column of the first row; undefined if there is no row. */
  readonly scalar: (sql: string, values?: QueryParameters) => Promise<CellValue | undefined>
  /** The rows as DuckDB's own values, for results too large for memory. Run nothing else on the connection until it is read. */
  readonly stream: (sql: string, values?: QueryParameters) => Promise<QueryResult>
  /** Appends rows through DuckDB's appender, the fastest way; `fill` gives each row's values in the table's column order. */
  readonly append: (table: string, fill: (appender: DuckDBAppender) => void) => Promise<void>
  /** Commits what `body` does, or rolls it back if `body` rejects. Transactions do not nest. */
  readonly transaction: <A>(body: () => Promise<A>) => Promise<A>
  /** Another connection to the same file, for concurrent statements. Close it before this one. */
  readonly connect: () => Promise<Database>
  /** Registers work on this connection that the caller does not await now. */
  readonly trackWork: (work: Promise<void>) => void
  /** Resolves once the registered work has ended; only then may the connection be closed. */
  readonly waitForWork: () => Promise<void>
  readonly close: () => void
}

/** A DuckDB file that holds our metadata tables beside the tables of its streams. */
export type Snapshot = { readonly db: Database }

export type DatabaseOptions = {
  /** By default the file is read and written, and created if it is missing. */
  readonly readOnly?: boolean
  /** What DuckDB may use in addition to the JavaScript heap, such as '160MB'. */
  readonly memoryLimit?: string
  /** A query that needs more memory than `memoryLimit` is run again with this limit. Only for files that are not written. */
  readonly maxMemory?: string
  readonly threads?: number
  /** A full group goes straight to the file instead of through the log, so small groups suit small writes. DuckDB's default is 122,880. */
  readonly rowGroupSize?: number
}

/** Opens a DuckDB file, or `:memory:`. The session's time zone is UTC, and DuckDB downloads no extension. */
export const openDatabase = (path: string, options: DatabaseOptions = {}): TaskEither<Failure, Database> =>
  TE.tryCatch(
    async () => {
      const { rowGroupSize, maxMemory, ...settings } = options
      if (rowGroupSize === undefined) {
        const db = await openConnection(path, await DuckDBInstance.create(path, instanceSettings(settings)))
        const { memoryLimit } = settings
        return memoryLimit === undefined || maxMemory === undefined ? db : withMoreMemory(db, memoryLimit, maxMemory)
      }
      const instance = await DuckDBInstance.create(':memory:', {
        ...instanceSettings(settings),
        ...defined({ temp_directory: path === ':memory:' ? undefined : `${path}.tmp` }),
      })
      return openConnection(
        path,
        instance,
        `ATTACH ${quoteLiteral(path)} AS file (ROW_GROUP_SIZE ${rowGroupSize}); USE file`,
      )
    },
    (error) => databaseOpenFailure(path, error),
  )

/** Whether DuckDB needed more memory than its limit. */
export const isOutOfMemory = (error: unknown): boolean => error instanceof Error && /out of memory/i.test(error.message)

/**
 * Runs work that changes nothing when it rejects: with the first memory limit, and again with the next where that was too little. Later
 * work begins with the limit that was enough. `current`: the limit that the connection has.
 */
export const createMemorySetter = (
  db: Pick<Database, 'run'>,
  limits: ReadonlyArray<string>,
  current?: string,
): (<A>(work: () => Promise<A>) => Promise<A>) => {
  let level = 0
  let set = current
  return async (work) => {
    for (;;)
      try {
        const limit = limits[level]
        if (limit !== undefined && limit !== set) await db.run(`SET memory_limit = ${quoteLiteral(limit)}`)
        set = limit
        return await work()
      } catch (error) {
        if (level + 1 >= limits.length || !isOutOfMemory(error)) throw error
        level += 1
      }
  }
}

/** Runs a query again with a higher limit if it is out of memory. */
const withMoreMemory = (db: Database, memoryLimit: string, maxMemory: string): Database => {
  const withMemory = createMemorySetter(db, [memoryLimit, maxMemory], memoryLimit)
  return {
    ...db,
    query: (...query) => withMemory(() => db.query(...query)),
    scalar: (...query) => withMemory(() => db.scalar(...query)),
    stream: (...query) => withMemory(() => db.stream(...query)),
    connect: async () => withMoreMemory(await db.connect(), memoryLimit, maxMemory),
  }
}

const instanceSettings = ({ readOnly, memoryLimit, threads }: DatabaseOptions): Record<string, string> => ({
  ...defined({
    access_mode: readOnly === true ? 'READ_ONLY' : undefined,
    memory_limit: memoryLimit,
    threads: threads?.toString(),
  }),
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  enable_external_file_cache: 'false',
})

const openConnection = async (path: string, instance: DuckDBInstance, attach?: string): Promise<Database> => {
  try {
    return await connectInstance(path, instance, attach, () => instance.closeSync())
  } catch (error) {
    instance.closeSync()
    throw error
  }
}

const connectInstance = async (
  path: string,
  instance: DuckDBInstance,
  attach: string | undefined,
  release: () => void,
): Promise<Database> => {
  const connection = await instance.connect()
  await connection.run(`SET TimeZone = 'UTC'`)
  if (attach !== undefined) await connection.run(attach)
  let pendingWork: Promise<void> = Promise.resolve()
  return {
    ...createConnectionMethods(path, connection),
    trackWork: (work) => {
      pendingWork = work.catch(() => undefined)
    },
    waitForWork: () => pendingWork,
    connect: () => connectInstance(path, instance, attach && 'USE file', () => undefined),
    close: () => {
      connection.closeSync()
      release()
    },
  }
}

const createConnectionMethods = (
  path: string,
  connection: DuckDBConnection,
): Omit<Database, 'trackWork' | 'waitForWork' | 'connect' | 'close'> => {
  const run: Database['run'] = async (sql, values, types) => {
    await connection.run(sql, values, types)
  }
  const query: Database['query'] = async (sql, values) =>
    (await (await connection.run(sql, values)).getRowObjectsJS()).map(toRowValues)
  return {
    path,
    run,
    query,
    scalar: async (sql, values) => Object.values((await query(sql, values))[0] ?? {})[0],
    stream: async (sql, values) => {
      const result = await connection.stream(sql, values)
      return { names: result.deduplicatedColumnNames(), types: result.columnTypes(), chunks: result.yieldRows() }
    },
    append: async (table, fill) => {
      const appender = await connection.createAppender(table)
      try {
        fill(appender)
      } finally {
        appender.closeSync()
      }
    },
    transaction: async (body) => {
      await connection.run('BEGIN')
      try {
        const result = await body()
        await connection.run('COMMIT')
        return result
      } catch (error) {
        await connection.run('ROLLBACK').catch(() => undefined)
        throw error
      }
    },
  }
}

/** A table's or column's name in SQL, quoted. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A string literal in SQL, quoted. */
export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`
