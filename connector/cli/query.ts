import { availableParallelism } from 'node:os'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  parseOptions,
  transientFailure,
  usageError,
} from '../cdk'
import { type PlaceOptions, postgresPrefix } from '../lake'
import {
  askQuestion,
  chooseMemoryLimit,
  createNamedViews,
  databaseWriteFailure,
  explainQueryError,
  exportQuery,
  type FilterValues,
  isDiskFull,
  isLakePath,
  isOutOfMemory,
  lockDatabase,
  type ModelTables,
  questions,
  readRegions,
  readScales,
  type Snapshot,
  typeNestedMembers,
} from '../snapshot'
import { chooseRowFormat, type RowFormat, rowFormats } from './formats'
import { readText } from './input-text'
import { readPlaceOptions, regionsOption, requirePlace, scalesOption } from './options'
import { refuseDatabaseAsOutput, writeOutputFile } from './output-file'
import {
  decodeFilters,
  decodeLimit,
  formatQuestions,
  isBlank,
  isName,
  questionOptions,
  requireQuestion,
} from './question'
import { formatFirstRows, formatRows } from './rows'
import { toSnapshotOptions, useSnapshot } from './snapshot-file'
import { escapeControls, formatJson } from './table'

type QueryOptions = {
  readonly db: string
  readonly file: PlaceOptions
  readonly format: RowFormat
  readonly out: string | undefined
  readonly spreadsheet: boolean
  readonly given: ModelTables
  readonly filters: FilterValues
  /** The maximum number of rows. If left out: every row, or as many as a table shows. */
  readonly limit: number | undefined
  /** How many rows a table shows without a limit. */
  readonly tableRows?: number
}

export const queryCommand = defineCommand({
  name: 'query',
  summary: 'Answers a named question about a snapshot, or runs SQL on it; changes nothing and opens no other file.',
  operands: '[QUESTION | SQL | -]',
  options: {
    ...readPlaceOptions,
    list: { type: 'boolean', help: 'Print the named questions' },
    regions: regionsOption,
    scales: scalesOption,
    ...questionOptions,
    format: {
      type: 'string',
      value: rowFormats.join('|'),
      help: 'Format of the rows; if left out, by the ending of --out, else a table',
    },
    out: { type: 'string', value: 'FILE', help: 'Write the rows into this file; an existing one is replaced' },
    spreadsheet: {
      type: 'boolean',
      help: 'With csv: add a byte order mark, and an apostrophe before text that a spreadsheet would run as a formula',
    },
    json: {
      type: 'boolean',
      help: 'Print a JSON object for each row, nested values as JSON; the same as --format jsonl',
    },
  },
  examples: [
    'feedback query --list',
    'feedback query --db reviews.duckdb task-ageing --regions regions.csv --region North',
    'feedback query --db reviews.duckdb critical_alerts --format json',
    'feedback query --db reviews.duckdb nps_monthly --month 2026-10 --scales scales.csv',
    'feedback query --db reviews.duckdb changes-this-month --month 2026-10 --limit 20',
    `feedback query --db reviews.duckdb "SELECT rating, count(*) FROM reviews_current GROUP BY ALL ORDER BY ALL"`,
    `feedback query --db reviews.duckdb "SELECT location.name, count(*) FROM reviews GROUP BY ALL"`,
    `feedback query --db reviews.duckdb --format parquet --out reviews.parquet "FROM reviews_current"`,
    `feedback query --db reviews.duckdb --json "FROM _loads"`,
    'feedback query --db reviews.duckdb - < audit.sql',
  ],
  notes:
    'A table shows the first 1,000 rows (or those of --limit) and 80 characters of a value; ' +
    'every other format has everything.\n' +
    'Without SQL, on a terminal, each line is a query until .exit; - reads SQL from stdin. ' +
    'Exit status: 0, or 78 if the file or the SQL is wrong.',
  run: async (io, { options, positionals }) => {
    const format = chooseRowFormat(options)
    const { out, spreadsheet } = options
    const words = positionals.join(' ').trim()
    const text = words === '-' ? (await readText(io, words)).trim() : words
    if (options.list) {
      if (text !== '') throw usageError('--list takes no question and no SQL.')
      await io.print(options.json ? formatJson(questions) : formatQuestions())
      return 0
    }
    const db = requirePlace('feedback query', options)
    const filters = decodeFilters(options, text)
    const limit = decodeLimit(options.limit)
    const given: ModelTables = {
      regions: options.regions === undefined ? undefined : await readRegions(options.regions),
      scales: options.scales === undefined ? undefined : await readScales(options.scales),
    }
    const query: QueryOptions = {
      db,
      file: toSnapshotOptions(io, options),
      format,
      out,
      spreadsheet,
      given,
      filters,
      limit,
    }
    if (isBlank(text)) {
      if (io.isInteractive && io.printsOnTerminal && out === undefined) return runShell(io, { ...query, tableRows: 50 })
      throw usageError('The question or the SQL is missing. feedback query --list prints the questions.')
    }
    if (out !== undefined) await refuseDatabaseAsOutput(out, db)
    await runQuery(io, query, text)
    return 0
  },
})

/**
 * Functions of DuckDB's PostgreSQL extension, functions that take a string which could name these, whatever shows
 * addresses, and tables beside the lake's own.
 */
const foreignName = new RegExp(
  String.raw`\b(${[
    String.raw`postgres_\w+`,
    'duckdb_databases',
    '(?:pragma_)?database_list',
    '(?:duckdb|pg)_settings',
    'current_setting',
    'json_execute_serialized_sql',
    'query_table',
    String.raw`query(?="?(?:\s|--.*|\/\*[\s\S]*?\*\/)*\()`,
    String.raw`__ducklake_metadata_lake(?!"?\.(?:"?public"?\.)?"?ducklake_)`,
  ].join('|')})`,
  'i',
)

/** These could reach any database and file that PostgreSQL may read, through the connection to the lake's catalog. */
const refuseForeignNames = (sql: string): void => {
  const name = foreignName.exec(sql)?.[1]
  if (name === undefined) return
  const reason = name.startsWith('__')
    ? `A query may read only the lake, and in ${name} only the tables ducklake_…`
    : /database|setting/i.test(name)
      ? `${name} shows the address of the catalogue, which may hold a password`
      : `A query may read only the lake, but ${name} could read more`
  throw new CommandError(configFailure(`The SQL cannot be run. ${reason}.`))
}

/**
 * DuckDB's initial memory for a query, in bytes. DuckDB fills all the memory it gets with pages of the file, and few
 * queries need more. Each thread needs some 20 MB to read JSON.
 */
const [firstMemory, firstThreads] = [256e6, Math.min(4, availableParallelism())]

/** The settings for opening the file, one per attempt. A lake is opened only once, because that takes long. */
const listAttempts = ({ db, file }: QueryOptions): ReadonlyArray<PlaceOptions> =>
  file.memoryLimit === undefined && !isLakePath(db) && chooseMemoryLimit() > firstMemory
    ? [{ ...file, memoryLimit: firstMemory, threads: firstThreads }, file]
    : [file]

/**
 * Runs a query. If it runs out of memory before a row is printed, opens the file again with more: in a locked database,
 * no limit can be changed.
 */
const runQuery = async (io: CommandIo, query: QueryOptions, text: string): Promise<void> => {
  let hasPrinted = false
  const warned = new Set<string>()
  const attemptIo: CommandIo = {
    ...io,
    print: (text) => {
      hasPrinted = true
      return io.print(text)
    },
    printWarning: (line) => {
      if (!warned.has(line)) io.printWarning(line)
      warned.add(line)
    },
  }
  const attempts = listAttempts(query)
  for (const [i, file] of attempts.entries())
    if (await answerQuery(attemptIo, { ...query, file }, text, () => !hasPrinted && i + 1 < attempts.length)) return
}

/** Writes the rows of a query. Returns false if it needs more memory and `mayRepeat` allows another attempt. */
const answerQuery = (io: CommandIo, query: QueryOptions, text: string, mayRepeat: () => boolean): Promise<boolean> =>
  useSnapshot(
    query.db,
    'read',
    async (snapshot) => {
      const { db } = snapshot
      const timer = setInterval(() => io.stop.aborted && db.interrupt(), 100) // Between statements it has no effect.
      let sql = text
      let typed = text
      try {
        if (db.path.startsWith(postgresPrefix)) refuseForeignNames(text)
        if (isName(text))
          sql = await askQuestion(db, requireQuestion(text), query.filters, query.given, io.printWarning)
        else await createNamedViews(db, text, query.given, io.printWarning)
        typed = await typeNestedMembers(snapshot, sql)
        await db.giveAllMemory()
        await writeRows(io, snapshot, typed, query)
        return true
      } catch (error) {
        const { stop } = io
        // What does not fit into memory is written to the disk beside the file, which may be full.
        if (!stop.aborted && (isOutOfMemory(error) || isDiskFull(error)) && mayRepeat()) return false
        throw await explainFailedQuery(error, { snapshot, sql, isAsTyped: typed === text, stop, out: query.out })
      } finally {
        clearInterval(timer)
      }
    },
    query.file,
  )

type FailedQuery = {
  readonly snapshot: Snapshot
  readonly sql: string
  /** The SQL is the user's own text, so a message may refer to its lines. */
  readonly isAsTyped: boolean
  readonly stop: AbortSignal
  readonly out: string | undefined
}

/** The reason why a query failed, worded for the user. */
const explainFailedQuery = async (
  error: unknown,
  { snapshot, sql, isAsTyped, stop, out }: FailedQuery,
): Promise<unknown> => {
  const { db } = snapshot
  if (stop.aborted)
    return new CommandError(
      transientFailure(`The query was stopped.${out === undefined ? '' : ' No file was written.'}`),
    )
  if (error instanceof CommandError || isSystemError(error)) return error
  if (isOutOfMemory(error)) return new CommandError(db.explainMemory('the query', error))
  if (isDiskFull(error)) return new CommandError(databaseWriteFailure(db.path, error))
  const message = error instanceof Error ? error.message : String(error)
  const shown = isAsTyped ? message : (message.split('\n\nLINE ')[0] ?? '')
  const explained = await explainQueryError(snapshot, sql, shown)
  return new CommandError(configFailure(`The SQL cannot be run. ${escapeControls(explained)}`))
}

/** True for an error of stdout, such as a closed pipe. The program handles it. */
const isSystemError = (error: unknown): boolean => (error as NodeJS.ErrnoException).syscall !== undefined

const writeRows = async (
  io: CommandIo,
  snapshot: Snapshot,
  sql: string,
  { format, out, spreadsheet, limit, tableRows }: QueryOptions,
): Promise<void> => {
  const { db } = snapshot
  if (out !== undefined && format === 'parquet')
    return writeOutputFile(out, async (path) => {
      await lockDatabase(db, path)
      await exportQuery(snapshot, sql, path, limit)
    })
  await lockDatabase(db)
  const result = await db.stream(sql)
  const texts =
    format === 'table' || format === 'parquet'
      ? formatFirstRows(result, io.printWarning, limit, tableRows)
      : formatRows(result, spreadsheet ? 'spreadsheet' : format, limit)
  if (out !== undefined) return writeOutputFile(out, takeWhole(io.stop, texts))
  // Inside JSON, an escape means the same character.
  const escapes = io.printsOnTerminal || format.startsWith('json')
  for await (const text of takeWhole(io.stop, texts)) await io.print(escapes ? escapeControls(text) : text)
}

/** Passes the texts on. Throws if the signal ended them early. */
async function* takeWhole(stop: AbortSignal, texts: AsyncIterable<string>): AsyncIterable<string> {
  for await (const text of texts) {
    stop.throwIfAborted()
    yield text
  }
  stop.throwIfAborted()
}

/**
 * Quoted text that may contain a semicolon without ending a statement: strings (also `E'it\'s'` and `$tag$it's$tag$`),
 * quoted names, comments.
 */
const quotedSql = [
  /(?<![\p{L}\p{N}_$])[eE]'(?:[^'\\]|\\.|'')*'/u,
  /'(?:[^']|'')*'/u,
  /"(?:[^"]|"")*"/u,
  /(?<![\p{L}\p{N}_$])\$((?:[\p{L}_][\p{L}\p{N}_]*)?)\$.*?\$\1\$/u,
  /--[^\n]*/u,
  /\/\*.*?\*\//u,
]

const quotedPattern = new RegExp(quotedSql.map(({ source }) => source).join('|'), 'gsu')

/** The beginning of such quoted text without its end. */
const openQuote = /['"]|\/\*|(?<![\p{L}\p{N}_$])\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/u

/** True if a text is a statement that ends with its semicolon. */
const isWholeSql = (text: string): boolean => {
  const rest = text.replaceAll(quotedPattern, ' ')
  return !openQuote.test(rest) && /;\s*$/.test(rest)
}

/** A word that begins SQL and may be alone on its line. */
const sqlWord = /^(from|with|select|values|table|describe|summarize|show|explain|pivot|unpivot|pragma|set|call)$/i

const shellHelp =
  'SQL ends with a semicolon. Type a question alone on its line, with its options: task-ageing --month ' +
  '2026-10. .list prints the questions. Ctrl-C stops a query or drops a line; .exit or Ctrl-D ends.'

/** What a command of the shell does; undefined for a line that is a query. */
const shellWords: Readonly<Record<string, 'end' | 'list' | 'help'>> = {
  '.exit': 'end',
  '.quit': 'end',
  '\\q': 'end',
  exit: 'end',
  quit: 'end',
  '.list': 'list',
  '.help': 'help',
  help: 'help',
  '?': 'help',
}

/** Parses a question with its options, typed on one line: `task-ageing --source "Google Maps"`. */
const readTypedQuestion = (query: QueryOptions, line: string): QueryOptions & { readonly text: string } => {
  const words = [...line.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replaceAll(/["']/g, ''))
  const declaration = { name: 'query', options: questionOptions, operands: 'QUESTION' }
  const { options, positionals } = parseOptions('feedback', declaration, words)
  const text = positionals.join(' ')
  return { ...query, text, filters: decodeFilters(options, text), limit: decodeLimit(options.limit) ?? query.limit }
}

/** Runs each query that is typed. The file is open only while a query runs, so that a sync can write it in between. */
const runShell = async (terminal: CommandIo, query: QueryOptions): Promise<number> => {
  // Lines printed on both stdout and stderr would appear in any order.
  const io: CommandIo = { ...terminal, printWarning: (line) => void terminal.print(`${line}\n`) }
  io.printWarning(shellHelp)
  const editor = io.editLines()
  const close = () => editor.close()
  io.stop.addEventListener('abort', close)
  const run = (typed: QueryOptions, text: string) =>
    editor.runUntilInterrupt((interrupt) =>
      runQuery({ ...io, stop: AbortSignal.any([io.stop, interrupt]) }, typed, text),
    )
  let sql = ''
  try {
    for (;;) {
      const typed = await editor.readLine(sql === '' ? 'feedback> ' : '     ...> ')
      if (typed === 'ended') break
      if (typed === 'interrupted') {
        sql = ''
        continue
      }
      const isFirst = sql === ''
      sql = isFirst ? typed.line.trim() : `${sql}\n${typed.line}`
      const word = isFirst ? shellWords[sql.toLowerCase()] : undefined
      if (word === 'end') break
      const isQuestion = isFirst && /^[\w-]+(\s+--.*|;)?$/.test(sql) && !sqlWord.test(sql)
      try {
        if (word === 'list') await io.print(formatQuestions())
        else if (word === 'help') io.printWarning(shellHelp)
        else if (isFirst && sql.startsWith('.'))
          io.printWarning(`There is no command ${sql}. .help lists the commands.`)
        else if (isQuestion) {
          const question = readTypedQuestion(query, sql.replace(/;$/, ''))
          await run(question, question.text)
        } else if (!isWholeSql(sql) && !isBlank(sql)) continue
        else if (!isBlank(sql)) await run(query, sql)
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        io.printWarning(error.message)
      }
      sql = ''
    }
  } finally {
    io.stop.removeEventListener('abort', close)
    close()
  }
  await io.print('\n')
  return 0
}
