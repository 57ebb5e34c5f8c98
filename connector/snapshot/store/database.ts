import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBInstance,
  type DuckDBPreparedStatement,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, defined, type Failure, systemFailure, transientFailure } from '../../cdk'
import { type CellValue, type RowValues, toRowValues } from './values'

/** Why DuckDB did not open a file, told to the one who named it. */
export const databaseOpenFailure = (path: string, error: unknown): Failure => {
  const detail = error instanceof Error ? error.message : String(error)
  const holder = /held in (.*?) \(PID (\d+)\)/.exec(detail)
  if (holder !== null)
    return transientFailure(
      `${path} is in use by process ${holder[2]} (${holder[1]}). Wait until it has ended, or stop it, and try again.`,
      detail,
    )
  if (/set lock on file/.test(detail))
    return transientFailure(`${path} is in use by another process. Wait until it has ended and try again.`, detail)
  if (/does not exist|No such file/.test(detail))
    return configFailure(`${path}: no such file or folder. Check the path given with --db.`, detail)
  if (/Is a directory/.test(detail)) return configFailure(`${path} is a folder. Give the path of a file.`, detail)
  if (/Permission denied|Read-only file system/.test(detail))
    return configFailure(`${path}: permission denied. Check who may read and write it.`, detail)
  if (/not a valid DuckDB database|launch in-memory database/.test(detail))
    return configFailure(
      `${path} exists and is not a DuckDB file. It is left as it is; give another path with --db.`,
      detail,
    )
  if (/newer version|version number/.test(detail))
    return configFailure(`${path} was written by another version of DuckDB. Upgrade feedback-connector.`, detail)
  return systemFailure(`${path} cannot be opened: ${detail}`, detail)
}

/** More would be of tables that have changed since. */
const maxPreparedStatements = 64

/** Statements that are prepared once; they hold the file open until they are forgotten. */
export const createStatementCache = (connection: DuckDBConnection) => {
  const statements = new Map<string, DuckDBPreparedStatement>()
  const forget = () => {
    for (const statement of statements.values()) statement.destroySync()
    statements.clear()
  }
  const run: Database['run'] = async (sql, values, types) => {
    const held = statements.get(sql)
    if (held === undefined && statements.size >= maxPreparedStatements) forget()
    const statement = held ?? (await connection.prepare(sql))
    statements.set(sql, statement)
    if (values !== undefined) statement.bind(values, types)
    await statement.run()
    statement.clearBindings()
  }
  return { run, forget }
}

export type { DuckDBAppender, DuckDBValue } from '@duckdb/node-api'
export type { CellValue, RowValues } from './values'

/** An answer that comes chunk by chunk (2,048 rows): each row's values in the order of `names` and `types`. */
export type QueryResult = {
  readonly names: ReadonlyArray<string>
  readonly types: ReadonlyArray<DuckDBType>
  readonly chunks: AsyncIterable<ReadonlyArray<ReadonlyArray<DuckDBValue>>>
}
export type QueryParameters = Record<string, DuckDBValue> | DuckDBValue[]

/** One connection to one DuckDB file; its methods reject with DuckDB's own error. */
export type Database = {
  readonly path: string
  /** Runs one or more statements; only a single one may have values. `types`: where they cannot be told from the values. */
  readonly run: (sql: string, values?: QueryParameters, types?: Readonly<Record<string, DuckDBType>>) => Promise<void>
  /** The same for a single statement that comes often: it is prepared once. */
  readonly runPrepared: Database['run']
  readonly query: (sql: string, values?: QueryParameters) => Promise<ReadonlyArray<RowValues>>
  /** The first column of the first row, undefined if there is no row. */
  readonly scalar: (sql: string, values?: QueryParameters) => Promise<CellValue | undefined>
  /** The rows as DuckDB has them, for answers too long to hold; run nothing else on the connection meanwhile. */
  readonly stream: (sql: string, values?: QueryParameters) => Promise<QueryResult>
  /** Appends through DuckDB's appender, the fastest way in; the caller gives each row's values in the table's column order. */
  readonly append: (table: string, fill: (appender: DuckDBAppender) => void) => Promise<void>
  /** All of `body` or nothing of it. Transactions do not nest. */
  readonly transaction: <A>(body: () => Promise<A>) => Promise<A>
  /** Another connection to the same file, for statements side by side; close it before this one. */
  readonly connect: () => Promise<Database>
  /** Tells of work on this connection that the caller does not wait for now. */
  readonly trackWork: (work: Promise<void>) => void
  /** Settles once that work has; only then may the connection be closed. */
  readonly waitForWork: () => Promise<void>
  readonly close: () => void
}

export type DatabaseOptions = {
  /** Default: read and write, and made if it is missing. */
  readonly readOnly?: boolean
  /** What DuckDB may use beside our own heap, such as '160MB'. */
  readonly memoryLimit?: string
  readonly threads?: number
  /** For tables written in small pieces: a group that is full goes straight to the file, not through the log. DuckDB's own is 122,880. */
  readonly rowGroupSize?: number
}

/** Opens a DuckDB file, or `:memory:`; times are UTC, and nothing is fetched from the network. */
export const openDatabase = (path: string, options: DatabaseOptions = {}): TaskEither<Failure, Database> =>
  TE.tryCatch(
    async () => {
      const { rowGroupSize, ...rest } = options
      if (rowGroupSize === undefined)
        return openConnection(path, await DuckDBInstance.create(path, instanceSettings(rest)))
      const instance = await DuckDBInstance.create(':memory:', {
        ...instanceSettings(rest),
        ...(path === ':memory:' ? {} : { temp_directory: `${path}.tmp` }),
      })
      return openConnection(
        path,
        instance,
        `ATTACH ${quoteLiteral(path)} AS file (ROW_GROUP_SIZE ${rowGroupSize}); USE file`,
      )
    },
    (error) => databaseOpenFailure(path, error),
  )

const instanceSettings = ({ readOnly, memoryLimit, threads }: DatabaseOptions): Record<string, string> => ({
  ...(readOnly === true ? { access_mode: 'READ_ONLY' } : {}),
  ...defined({ memory_limit: memoryLimit }),
  ...(threads === undefined ? {} : { threads: String(threads) }),
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
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
  const often = createStatementCache(connection)
  let last: Promise<void> = Promise.resolve()
  return {
    ...createConnectionMethods(path, connection),
    runPrepared: often.run,
    trackWork: (work) => {
      last = work.catch(() => undefined)
    },
    waitForWork: () => last,
    connect: () => connectInstance(path, instance, attach && 'USE file', () => undefined),
    close: () => {
      often.forget()
      connection.closeSync()
      release()
    },
  }
}

const createConnectionMethods = (
  path: string,
  connection: DuckDBConnection,
): Omit<Database, 'runPrepared' | 'trackWork' | 'waitForWork' | 'connect' | 'close'> => {
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
        const answer = await body()
        await connection.run('COMMIT')
        return answer
      } catch (error) {
        await connection.run('ROLLBACK').catch(() => undefined)
        throw error
      }
    },
  }
}

/** A name as SQL writes it. */
export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A text as SQL writes it. */
export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`
