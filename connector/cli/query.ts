import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  takeUntilAbort,
  transientFailure,
  usageError,
} from '../cdk'
import {
  askQuestion,
  createNamedViews,
  databaseWriteFailure,
  explainQueryError,
  exportQuery,
  type FilterValues,
  findQuestion,
  isDiskFull,
  lockDatabase,
  type Question,
  type QuestionFilter,
  questionFilters,
  questions,
  type Region,
  readRegions,
  type Snapshot,
  type SnapshotOptions,
  suggestQuestion,
  typeNestedMembers,
} from '../snapshot'
import { dbOption, fileOptions, regionsOption } from './options'
import { chooseRowFormat, formatFirstRows, formatRows, type RowFormat, rowFormats } from './rows'
import { refuseDatabaseAsOutput, toSnapshotOptions, useSnapshot, writeOutputFile } from './snapshot-file'
import { escapeControls, formatJson } from './table'

type QueryOptions = {
  readonly db: string
  readonly file: SnapshotOptions
  readonly format: RowFormat
  readonly out: string | undefined
  readonly spreadsheet: boolean
  readonly regions: ReadonlyArray<Region> | undefined
  readonly filters: FilterValues
  /** How many rows at most; every row, or the first that a table has room for, if left out. */
  readonly limit: number | undefined
}

export const queryCommand = defineCommand({
  name: 'query',
  summary: 'Answers a named question about a snapshot, or a query in SQL; changes nothing and reaches no other file.',
  operands: '[QUESTION | SQL]',
  options: {
    db: { ...dbOption, required: false },
    ...fileOptions,
    list: { type: 'boolean', help: 'Print the named questions' },
    regions: regionsOption,
    region: { type: 'string', value: 'NAME', help: 'With a question: only this region' },
    location: { type: 'string', value: 'ID|NAME', help: 'With a question: only this location' },
    source: { type: 'string', value: 'ID|NAME', help: 'With a question: only this source' },
    provider: { type: 'string', value: 'ID|NAME', help: 'With a question: only this provider' },
    owner: { type: 'string', value: 'NAME|MAIL', help: 'With a question: only tasks of this owner' },
    month: { type: 'string', value: 'YYYY-MM', help: 'With a question: only this month' },
    limit: { type: 'string', value: 'N', help: 'At most so many rows' },
    format: {
      type: 'string',
      value: rowFormats.join('|'),
      help: 'How to write the rows; by the ending of --out if left out, else a table',
    },
    out: { type: 'string', value: 'FILE', help: 'Write them into this file; an existing one is replaced' },
    spreadsheet: {
      type: 'boolean',
      help: 'With csv: an apostrophe before a text that a spreadsheet would run as a formula, and a byte order mark',
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
    'feedback query --db reviews.duckdb changes-this-month --month 2026-10 --limit 20',
    `feedback query --db reviews.duckdb "SELECT rating, count(*) FROM reviews_current GROUP BY ALL ORDER BY ALL"`,
    `feedback query --db reviews.duckdb "SELECT location.name, count(*) FROM reviews GROUP BY ALL"`,
    `feedback query --db reviews.duckdb --format parquet --out reviews.parquet "FROM reviews_current"`,
    `feedback query --db reviews.duckdb --json "FROM _loads"`,
  ],
  notes: `A table shows the first 1,000 rows (or those of --limit) and 80 characters of a value; every other format has everything.
Without SQL, on a terminal, each line is a query until .exit. Exit status: 0, or 78 if the file or the SQL is wrong.`,
  run: async (io, { options, positionals }) => {
    const format = chooseRowFormat(options)
    const { db, out, spreadsheet } = options
    const text = positionals.join(' ').trim()
    if (options.list) {
      if (text !== '') throw usageError('--list takes no question and no SQL.')
      await io.print(options.json ? formatJson(questions) : formatQuestions())
      return 0
    }
    if (db === undefined) throw usageError('feedback query: --db is missing. See feedback query --help.')
    const filters = decodeFilters(options, text)
    const limit = decodeLimit(options.limit)
    const regions = options.regions === undefined ? undefined : await readRegions(options.regions)
    const query = { db, file: toSnapshotOptions(io, options), format, out, spreadsheet, regions, filters, limit }
    if (isBlank(text)) {
      if (io.isInteractive && io.printsOnTerminal && out === undefined) return runShell(io, query)
      throw usageError('The question or the SQL is missing. feedback query --list prints the questions.')
    }
    if (out !== undefined) await refuseDatabaseAsOutput(out, db)
    await runQuery(io, query, text)
    return 0
  },
})

/** The questions with their filters, in lines that a narrow terminal shows whole. */
const formatQuestions = (): string => {
  const width = Math.max(...questions.map(({ name }) => name.length)) + 4
  const formatQuestion = ({ name, description, filters }: Question) =>
    `${`  ${name}`.padEnd(width)}${description}\n${' '.repeat(width)}${filters.map((filter) => `--${filter}`).join(' ')}\n`
  const [models, others] = [true, false].map((isModel) =>
    questions.filter(({ name, view }) => (name === view) === isModel).map(formatQuestion),
  )
  return [
    'Questions, each with the options that leave only a part of the rows:\n',
    ...(others ?? []),
    '\nModels, each row of them:\n',
    ...(models ?? []),
    '\nEach takes --regions, --limit and --format too, as in feedback query --db FILE task-ageing --limit 10.\n',
  ].join('')
}

/** One word is the name of a question: SQL has more. */
const isName = (text: string): boolean => /^[\w-]+$/.test(text)

/** Whether a text has no statement: nothing but comments and semicolons. */
const isBlank = (text: string): boolean => text.replaceAll(/--.*|\/\*[\s\S]*?\*\/|[;\s]/g, '') === ''

const decodeLimit = (text: string | undefined): number | undefined => {
  if (text !== undefined && !/^[1-9]\d{0,14}$/.test(text))
    throw usageError(`--limit must be a whole number of at least 1, such as 20, not ${text}.`)
  return text === undefined ? undefined : Number(text)
}

const requireQuestion = (name: string): Question => {
  const question = findQuestion(name)
  if (question !== undefined) return question
  throw usageError(
    `There is no question ${name}.${suggestQuestion(name)} feedback query --list prints them; the rows of a table are "FROM ${name}".`,
  )
}

const decodeFilters = (options: { readonly [K in QuestionFilter]: string | undefined }, text: string): FilterValues => {
  const given = questionFilters.filter((filter) => options[filter] !== undefined)
  if (options.month !== undefined && !/^\d{4}-(0[1-9]|1[0-2])$/.test(options.month))
    throw usageError(`--month must be a month such as 2026-10, not ${options.month}.`)
  if (!isName(text)) {
    if (given.length > 0) throw usageError(`--${given[0]} is for a named question. Write it into the SQL.`)
    return {}
  }
  const { name, filters } = requireQuestion(text)
  const wrong = given.find((filter) => !filters.includes(filter))
  if (wrong !== undefined)
    throw usageError(
      `${name} cannot be asked of one ${wrong}. ${filters.length === 0 ? 'It has no filters' : `Its filters are ${filters.map((filter) => `--${filter}`).join(', ')}`}.`,
    )
  return Object.fromEntries(given.map((filter) => [filter, options[filter]]))
}

const runQuery = (io: CommandIo, query: QueryOptions, text: string): Promise<void> =>
  useSnapshot(
    query.db,
    'read',
    async (snapshot) => {
      const { db } = snapshot
      const timer = setInterval(() => io.stop.aborted && db.interrupt(), 100) // Between statements it has no effect.
      let sql = text
      let typed = text
      try {
        if (isName(text))
          sql = await askQuestion(db, requireQuestion(text), query.filters, query.regions, io.printWarning)
        else await createNamedViews(db, text, query.regions)
        typed = await typeNestedMembers(snapshot, sql)
        await db.giveAllMemory()
        await db.withMemory('the query', () => writeRows(io, snapshot, typed, query))
      } catch (error) {
        if (io.stop.aborted) throw new CommandError(transientFailure('The query was stopped. No file was written.'))
        if (error instanceof CommandError || isSystemError(error)) throw error
        if (isDiskFull(error)) throw new CommandError(databaseWriteFailure(query.db, error))
        const message = error instanceof Error ? error.message : String(error)
        // Where the text was changed, its lines are not those of the user.
        const explained = await explainQueryError(
          snapshot,
          sql,
          typed === text ? message : (message.split('\n\nLINE ')[0] ?? ''),
        )
        throw new CommandError(configFailure(`The SQL cannot be run. ${escapeControls(explained)}`))
      } finally {
        clearInterval(timer)
      }
    },
    query.file,
  )

/** An error of stdout, such as a pipe that is closed: the program handles it. */
const isSystemError = (error: unknown): boolean => (error as NodeJS.ErrnoException).syscall !== undefined

const writeRows = async (
  io: CommandIo,
  snapshot: Snapshot,
  sql: string,
  { format, out, spreadsheet, limit }: QueryOptions,
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
      ? formatFirstRows(result, io.printWarning, limit)
      : formatRows(result, spreadsheet ? 'spreadsheet' : format, limit)
  if (out !== undefined) return writeOutputFile(out, takeWhole(io.stop, texts))
  // Inside JSON an escape means the same character.
  const escapes = io.printsOnTerminal || format.startsWith('json')
  for await (const text of texts) await io.print(escapes ? escapeControls(text) : text)
}

/** The texts; an error where the signal has ended them early. */
async function* takeWhole(stop: AbortSignal, texts: AsyncIterable<string>): AsyncIterable<string> {
  for await (const text of texts) {
    stop.throwIfAborted()
    yield text
  }
  stop.throwIfAborted()
}

/** Runs what is typed, query by query. The file is open only while one runs, so that a sync can write it in between. */
const runShell = async (io: CommandIo, query: QueryOptions): Promise<number> => {
  io.printWarning(
    'SQL ends with a semicolon, a question stands alone. .list prints the questions; .exit or Ctrl-D ends.',
  )
  let sql = ''
  const prompt = () => io.print(sql === '' ? 'feedback> ' : '     ...> ')
  await prompt()
  for await (const line of createInterface({ input: Readable.from(takeUntilAbort(io.stop, io.stdin)) })) {
    const isFirst = sql === ''
    sql = `${sql}${line}\n`
    const text = sql.trim()
    if (isFirst && text === '.exit') return 0
    const isWhole = text.endsWith(';') || (isFirst && isName(text))
    if (isFirst && text === '.list') await io.print(formatQuestions())
    if (text === '' || text === '.list' || isWhole) sql = ''
    if (isWhole) {
      try {
        await runQuery(io, query, text)
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        io.printWarning(error.message)
      }
    }
    await prompt()
  }
  await io.print('\n')
  return 0
}
