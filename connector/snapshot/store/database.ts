import { statSync } from 'node:fs'
import type { DuckDBConnection, DuckDBInstance, DuckDBType, DuckDBValue } from '@duckdb/node-api'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { CommandError, defined, type Failure } from '../../cdk'
import { readChunks, readRowValues } from './chunks'
import { loadDuckdb } from './duckdb'
import { databaseMemoryFailure, databaseOpenFailure } from './failures'
import { createMemorySetter, isOutOfMemory, type MemorySetter } from './memory'
import type { CellValue, RowValues } from './values'

export type { DuckDBValue } from '@duckdb/node-api'

/** A result read chunk by chunk (2,048 rows each). A row's values are in the order of `names` and `types`. */
export type QueryResult = {
  readonly names: ReadonlyArray<string>
  readonly types: ReadonlyArray<DuckDBType>
  readonly chunks: AsyncIterable<ReadonlyArray<ReadonlyArray<DuckDBValue>>>
}

export type Columns = ReadonlyArray<ReadonlyArray<DuckDBValue>>
type QueryParameters = Record<string, DuckDBValue> | DuckDBValue[]

/**
 * How a lake stores the metadata that a file updates in place: it only appends. Call the saving methods within a
 * transaction.
 */
export type LakeMetadata = {
  /** The folder of its rows, or their address in object storage. */
  readonly dataPath: string
  /**
   * Determines once, for this connection, which versions of rows are shown. For commands with many queries on one
   * version of the lake.
   */
  readonly freeze: () => Promise<void>
  readonly saveMeta: (name: string, value: string) => Promise<void>
  readonly saveStates: (states: ReadonlyArray<readonly [stream: string, state: string]>, now: number) => Promise<void>
  /** Marks every state as one of this service. */
  readonly moveStates: (fingerprint: string) => Promise<void>
  /** Removes every stream with its rows, versions, states and views. */
  readonly empty: () => Promise<void>
}

/** One connection to one DuckDB file; its methods reject with DuckDB's own errors. */
export type Database = {
  readonly path: string
  /** Undefined for a file. */
  readonly lake?: LakeMetadata
  /**
   * Runs one or more statements; only a single statement may have `values`. `types`: for values whose type DuckDB
   * cannot infer.
   */
  readonly run: (sql: string, values?: QueryParameters, types?: Readonly<Record<string, DuckDBType>>) => Promise<void>
  /** Runs one statement that changes rows. Resolves to their number. */
  readonly change: (sql: string) => Promise<number>
  readonly query: (sql: string, values?: QueryParameters) => Promise<ReadonlyArray<RowValues>>
  /** The first column of the first row; undefined if there is no row. */
  readonly scalar: (sql: string, values?: QueryParameters) => Promise<CellValue | undefined>
  /**
   * The rows as DuckDB's own values, for results too large for memory. Run nothing else on the connection until they
   * are read.
   */
  readonly stream: (sql: string, values?: QueryParameters) => Promise<QueryResult>
  /**
   * Appends at most 100,000 rows, given as the values of each column, to a temporary table with these types. Appends
   * all of them, or none if it rejects.
   */
  readonly appendColumns: (table: string, types: ReadonlyArray<DuckDBType>, columns: Columns) => Promise<void>
  /**
   * Commits what `body` does, or rolls it back and calls `undo`. A lake may then run it again. Transactions do not
   * nest.
   */
  readonly transaction: <A>(body: () => Promise<A>, undo?: () => void) => Promise<A>
  /** Another connection to the same file, for concurrent statements. Close it before this one. */
  readonly connect: () => Promise<Database>
  /**
   * Runs work that changes nothing if it rejects, and reruns it with more memory if that was too little, up to the
   * limit. If even the limit is too little, `inSlices` does the same in smaller parts; without it, rejects with a
   * `CommandError` that names the work, such as "the check x".
   */
  readonly withMemory: <A>(name: string, work: () => Promise<A>, inSlices?: () => Promise<A>) => Promise<A>
  /**
   * Frees what DuckDB remembers about row groups, which a checkpoint keeps: some 200 kB for each written group, and 256
   * kB for each group with deleted rows.
   */
  readonly release: () => Promise<boolean>
  /** The failure of work that ran out of memory. `work`: what did not fit, such as "the check x". */
  readonly explainMemory: (work: string, error: unknown) => Failure
  /**
   * Writes the log into the file if it has grown to `leastBytes`, with all memory that DuckDB may use: a checkpoint
   * that runs out of memory makes the file unusable to this process. Also frees what DuckDB remembers about deleted
   * rows, some 400 kB for each row group that had some. Resolves to true if there was anything to do.
   */
  readonly checkpoint: (leastBytes?: number) => Promise<boolean>
  /** Immediately gives DuckDB all memory that it may use, for work that cannot be rerun. */
  readonly giveAllMemory: () => Promise<void>
  /** Ends the running statement, which rejects. */
  readonly interrupt: () => void
  /** Registers work on this connection that the caller does not await now. */
  readonly trackWork: (work: Promise<void>) => void
  /** Resolves once the registered work has ended. Only then may the connection be closed. */
  readonly waitForWork: () => Promise<void>
  readonly close: () => void
}

/** A connection without memory management. */
type Connection = Omit<
  Database,
  'explainMemory' | 'withMemory' | 'release' | 'giveAllMemory' | 'checkpoint' | 'connect'
> & {
  readonly connect: () => Promise<Connection>
}

/** A DuckDB file with our metadata tables and the tables of its streams. */
export type Snapshot = { readonly db: Database }

export type DatabaseOptions = {
  /** By default the file is read and written, and created if missing. */
  readonly readOnly?: boolean
  /**
   * What DuckDB may use in addition to the JavaScript heap, in bytes: the first amount at once, each later one if the
   * previous was too little.
   */
  readonly memory?: ReadonlyArray<number>
  readonly threads?: number
  /** For a database in memory: the file next to which it puts what does not fit. */
  readonly spillPath?: string
  /** The options with which DuckDB attaches a file that is written in small groups of rows. */
  readonly attachOptions?: string
}

/** Opens a DuckDB file, or `:memory:`. The session's time zone is UTC, and DuckDB downloads no extension. */
export const openDatabase = (path: string, options: DatabaseOptions = {}): TaskEither<Failure, Database> =>
  TE.tryCatch(
    async () => {
      // Opening a file also writes a killed run's log into it.
      for (const [i, limit] of (options.memory ?? [undefined]).entries())
        try {
          return await openWithin(path, options, limit)
        } catch (error) {
          if (i + 1 >= (options.memory?.length ?? 0) || !isOutOfMemory(error)) throw error
        }
      throw new Error('There is no memory to open it with.')
    },
    (error) =>
      error instanceof CommandError ? error.failure : databaseOpenFailure(path, error, options.memory?.at(-1)),
  )

/** Opens a file with this much memory, in bytes. With small row groups, only `checkpoint` makes checkpoints. */
const openWithin = async (path: string, options: DatabaseOptions, limit: number | undefined): Promise<Database> => {
  const { DuckDBInstance } = loadDuckdb()
  const { attachOptions, memory = [], readOnly } = options
  const settings = instanceSettings(options, limit)
  const inMemory = { ...settings, ...defined({ temp_directory: path === ':memory:' ? undefined : `${path}.tmp` }) }
  const attach =
    attachOptions === undefined
      ? undefined
      : `ATTACH ${quoteLiteral(path)} AS file (${attachOptions}); USE file; SET checkpoint_threshold = '1TB'`
  const opened =
    attach === undefined
      ? await openConnection(path, await DuckDBInstance.create(path, settings))
      : await openConnection(path, await DuckDBInstance.create(':memory:', inMemory), attach)
  const setter: MemorySetter = createMemorySetter(
    (bytes) => opened.run(`SET memory_limit = '${bytes}B'`),
    memory,
    limit,
    () => reopenFile(opened, setter, attach),
  )
  return giveMemory(opened, memory.at(-1), setter, readOnly === true)
}

const readLogBytes = (path: string): number => statSync(`${path}.wal`, { throwIfNoEntry: false })?.size ?? 0

const checkpointLog = async (connection: Connection, setter: MemorySetter, leastBytes: number): Promise<boolean> => {
  if (readLogBytes(connection.path) < leastBytes) return false
  await setter.runWithAll(() => connection.run('CHECKPOINT'))
  return true
}

/**
 * Closes a file and opens it again after work ran out of memory: rows that were being deleted stay marked in this
 * process after the rollback, and would conflict. Also frees what DuckDB remembers about deleted rows. Resolves to true
 * if there was a log to write into the file.
 */
const reopenFile = async (
  connection: Connection,
  setter: MemorySetter,
  attach: string | undefined,
): Promise<boolean> => {
  if (attach === undefined || connection.path === ':memory:') return false
  const hadLog = readLogBytes(connection.path) > 0
  await setter.runWithAll(() => connection.run(`USE memory; DETACH file; ${attach}`))
  return hadLog
}

/** A connection that takes more memory when it needs it; in a read-only file, for every statement. */
const giveMemory = (
  connection: Connection,
  memoryLimit: number | undefined,
  setter: MemorySetter,
  isReadOnly: boolean,
): Database => {
  const explainMemory: Database['explainMemory'] = (work, error) =>
    databaseMemoryFailure(connection.path, work, error, memoryLimit, isReadOnly)
  return {
    ...connection,
    explainMemory,
    withMemory: async (name, work, inSlices) => {
      try {
        return await setter.run(work)
      } catch (error) {
        if (!isOutOfMemory(error)) throw error
        if (inSlices === undefined) throw new CommandError(explainMemory(name, error))
        return inSlices()
      }
    },
    release: setter.release,
    checkpoint: (leastBytes = 1) => checkpointLog(connection, setter, leastBytes),
    giveAllMemory: setter.giveAll,
    connect: async () => giveMemory(await connection.connect(), memoryLimit, setter, isReadOnly),
    ...(isReadOnly
      ? {
          run: (...statement) => setter.run(() => connection.run(...statement)),
          query: (...statement) => setter.run(() => connection.query(...statement)),
          scalar: (...statement) => setter.run(() => connection.scalar(...statement)),
          stream: (...statement) => setter.run(() => connection.stream(...statement)),
          appendColumns: (...rows) => setter.run(() => connection.appendColumns(...rows)),
        }
      : {}),
  }
}

const instanceSettings = (
  { readOnly, threads, spillPath }: DatabaseOptions,
  limit: number | undefined,
): Record<string, string> => ({
  ...defined({
    access_mode: readOnly === true ? 'READ_ONLY' : undefined,
    memory_limit: limit === undefined ? undefined : `${limit}B`,
    threads: threads?.toString(),
    temp_directory: spillPath === undefined ? undefined : `${spillPath}.tmp`,
  }),
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  enable_external_file_cache: 'false',
})

const openConnection = async (path: string, instance: DuckDBInstance, attach?: string): Promise<Connection> => {
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
): Promise<Connection> => {
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

/** How many rows are collected before `appendColumns` writes them, since each call costs some milliseconds. */
export const appendBatchRows = 8192
const chunkRows = 2048

const createConnectionMethods = (
  path: string,
  connection: DuckDBConnection,
): Omit<Connection, 'trackWork' | 'waitForWork' | 'connect' | 'close'> => {
  const run: Database['run'] = async (sql, values, types) => {
    await connection.run(sql, values, types)
  }
  const query: Database['query'] = async (sql, values) => readRowValues(await connection.run(sql, values))
  return {
    path,
    run,
    change: async (sql) => (await connection.run(sql)).rowsChanged,
    query,
    scalar: async (sql, values) => Object.values((await query(sql, values))[0] ?? {})[0],
    stream: async (sql, values) => {
      const result = await connection.stream(sql, values)
      return { names: result.deduplicatedColumnNames(), types: result.columnTypes(), chunks: readChunks(result) }
    },
    interrupt: () => connection.interrupt(),
    appendColumns: async (table, types, columns) => {
      const appender = await connection.createAppender(table, 'main', 'temp')
      try {
        for (let from = 0; from < (columns[0]?.length ?? 0); from += chunkRows) {
          const chunk = loadDuckdb().DuckDBDataChunk.create(types)
          chunk.setColumns(columns.map((values) => values.slice(from, from + chunkRows)))
          appender.appendDataChunk(chunk)
        }
      } finally {
        // This writes the rows. DuckDB writes more than some 200,000 of them in several steps.
        appender.closeSync()
      }
    },
    transaction: async (body, undo) => {
      await connection.run('BEGIN')
      try {
        const result = await body()
        await connection.run('COMMIT')
        return result
      } catch (error) {
        await connection.run('ROLLBACK').catch(() => undefined)
        undo?.()
        throw error
      }
    },
  }
}

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A time in SQL, given in milliseconds since 1970. */
export const instantSql = (millis: number): string => `make_timestamptz(${Math.trunc(millis)}::BIGINT * 1000)`

export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`
