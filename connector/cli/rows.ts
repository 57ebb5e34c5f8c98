import { suggestName, usageError } from '../cdk'
import { shortenText } from '../report'
import {
  type DuckDBValue,
  encodeJsonValue,
  encodeTextValue,
  type FilterValues,
  findQuestion,
  type QueryResult,
  type Question,
  type QuestionFilter,
  questionFilters,
  questions,
  suggestQuestion,
} from '../snapshot'
import { formatTable } from './table'

export const rowFormats = ['table', 'csv', 'json', 'jsonl', 'markdown', 'parquet'] as const
export type RowFormat = (typeof rowFormats)[number]

/** The ending of a file's name, such as csv, in small letters; empty without a file or an ending. */
export const readEnding = (path: string | undefined): string => /\.(\w+)$/.exec(path ?? '')?.[1]?.toLowerCase() ?? ''

const rowEndings: Readonly<Record<string, RowFormat>> = {
  csv: 'csv',
  json: 'json',
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  md: 'markdown',
  parquet: 'parquet',
}

const isFormat = (name: string): name is RowFormat => rowFormats.some((format) => format === name)

/** The format that the options of a query ask for, else that of the ending of its file, else a table. */
export const chooseRowFormat = (options: {
  readonly format: string | undefined
  readonly json: boolean
  readonly out: string | undefined
  readonly spreadsheet: boolean
}): RowFormat => {
  const format = options.format ?? (options.json ? 'jsonl' : (rowEndings[readEnding(options.out)] ?? 'table'))
  if (!isFormat(format))
    throw usageError(
      `--format must be one of ${rowFormats.join(', ')}, not ${format}.${suggestName(format, rowFormats)}`,
    )
  if (options.json && !format.startsWith('json'))
    throw usageError(`--json prints JSON, and --format says ${format}. Leave one of them out.`)
  if (format === 'parquet' && options.out === undefined)
    throw usageError('--format parquet needs --out FILE, since Parquet is no text.')
  if (options.spreadsheet && format !== 'csv') throw usageError('--spreadsheet is for --format csv.')
  return format
}

export const reportFormats = ['html', 'md', 'json', 'csv'] as const
export type ReportFormat = (typeof reportFormats)[number]

const reportEndings: Readonly<Record<string, ReportFormat>> = {
  html: 'html',
  htm: 'html',
  md: 'md',
  markdown: 'md',
  json: 'json',
  csv: 'csv',
}
/** What the user would open with a program that cannot read a report. */
const otherEndings = ['pdf', 'xls', 'xlsx', 'doc', 'docx', 'txt', 'tsv', 'jsonl', 'parquet', 'xml']

/** The format that the options of a report ask for, else that of the ending of its file, else the page. */
export const chooseReportFormat = (options: {
  readonly format: string | undefined
  readonly json: boolean
  readonly out: string | undefined
}): ReportFormat => {
  const ending = readEnding(options.out)
  const wanted = options.format ?? (options.json ? 'json' : (reportEndings[ending] ?? 'html'))
  const format = reportFormats.find((name) => name === wanted)
  if (format === undefined)
    throw usageError(
      `--format must be one of ${reportFormats.join(', ')}, not ${wanted}.${suggestName(wanted, reportFormats)}`,
    )
  if (options.json && format !== 'json')
    throw usageError(`--json prints JSON, and --format says ${format}. Leave one of them out.`)
  if (options.format === undefined && !options.json && otherEndings.includes(ending))
    throw usageError(
      `--out ${options.out}: a report is html, md, json or csv. Give such an ending, or --format; a browser prints the page as PDF.`,
    )
  if (format === 'html' && options.out === undefined)
    throw usageError('Give --out FILE for the page to write, or --format md, json or csv.')
  return format
}

/** What narrows a question; the last one is for any query. */
export const questionOptions = {
  region: { type: 'string', value: 'NAME', help: 'With a question: only this region' },
  location: { type: 'string', value: 'ID|NAME', help: 'With a question: only this location' },
  source: { type: 'string', value: 'ID|NAME', help: 'With a question: only this source' },
  provider: { type: 'string', value: 'ID|NAME', help: 'With a question: only this provider' },
  owner: { type: 'string', value: 'NAME|MAIL', help: 'With a question: only tasks of this owner' },
  month: { type: 'string', value: 'YYYY-MM', help: 'With a question: only this month' },
  limit: { type: 'string', value: 'N', help: 'At most so many rows' },
} as const

/** One word is the name of a question: SQL has more. */
export const isName = (text: string): boolean => /^[\w-]+$/.test(text)

/** Whether a text has no statement: nothing but comments and semicolons. */
export const isBlank = (text: string): boolean => text.replaceAll(/--.*|\/\*[\s\S]*?\*\/|[;\s]/g, '') === ''

export const decodeLimit = (text: string | undefined): number | undefined => {
  if (text !== undefined && !/^[1-9]\d{0,14}$/.test(text))
    throw usageError(`--limit must be a whole number of at least 1, such as 20, not ${text}.`)
  return text === undefined ? undefined : Number(text)
}

export const requireQuestion = (name: string): Question => {
  const question = findQuestion(name)
  if (question !== undefined) return question
  throw usageError(
    `There is no question ${name}.${suggestQuestion(name)} feedback query --list prints them; the rows of a table are "FROM ${name}".`,
  )
}

export const decodeFilters = (
  options: { readonly [K in QuestionFilter]: string | undefined },
  text: string,
): FilterValues => {
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

/** The questions with their filters, in lines that a narrow terminal shows whole. */
export const formatQuestions = (): string => {
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

type RowLayout = {
  readonly begin: string
  readonly formatRow: (row: ReadonlyArray<DuckDBValue>, isFirst: boolean) => string
  readonly end: string
}

const jsonObjects = ({ names, types }: QueryResult): ((row: ReadonlyArray<DuckDBValue>) => string) => {
  const keys = names.map((name, i) => `${i === 0 ? '' : ','}${JSON.stringify(name)}:`)
  return (row) => `{${types.map((type, i) => `${keys[i]}${encodeJsonValue(row[i] ?? null, type)}`).join('')}}`
}

/**
 * RFC 4180 with line feeds. An empty text is in quotes. A spreadsheet may take a semicolon or a tab as a separator
 * too.
 */
const quoteCsv = (text: string, isForSpreadsheets: boolean): string =>
  text === '' || (isForSpreadsheets ? /[",;\t\r\n]/ : /[",\r\n]/).test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** What a spreadsheet takes for the beginning of a formula, also as East Asian keyboards type it. */
const formulaSigns = String.raw`=+\-@\uff1d\uff0b\uff0d\uff20`
const formulaStart = new RegExp(String.raw`^(?=[${formulaSigns}\t\r\n])`, 'u')
/** Where a spreadsheet that splits at semicolons begins a cell, quotes or not. A smiley is no formula. */
const innerFormula = new RegExp(String.raw`(?<=;)(?!-\))(?=[${formulaSigns}])`, 'gu')

/** A text that a spreadsheet takes as a text. */
const guardText = (text: string): string => text.replace(innerFormula, "'").replace(formulaStart, "'")

/** The same for what is no text: a number, also a negative one, stays a number. */
const guardOther = (text: string): string => (/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? text : guardText(text))

/** A row whose texts a spreadsheet takes as texts; a missing cell is empty. */
export const formatCsvRow = (cells: ReadonlyArray<string | number | null | undefined>): string =>
  `${cells
    .map((cell) => (typeof cell === 'string' ? quoteCsv(guardText(cell), true) : (cell ?? '').toString()))
    .join(',')}\n`

const csvLayout =
  (isForSpreadsheets: boolean) =>
  ({ names, types }: QueryResult): RowLayout => {
    const [guard, guardValue] = isForSpreadsheets ? [guardText, guardOther] : [String, String]
    const quote = (text: string) => quoteCsv(text, isForSpreadsheets)
    const formatCell = (value: DuckDBValue, i: number) => {
      const type = types[i]
      if (value === null || type === undefined) return ''
      return quote(typeof value === 'string' ? guard(value) : guardValue(encodeTextValue(value, type)))
    }
    return {
      // A spreadsheet knows by the byte order mark that the file is UTF-8.
      begin: `${isForSpreadsheets ? '\ufeff' : ''}${names.map((name) => quote(guard(name))).join(',')}\n`,
      formatRow: (row) => `${names.map((_, i) => formatCell(row[i] ?? null, i)).join(',')}\n`,
      end: '',
    }
  }

/** The text as a cell of a Markdown table that shows it as it is. */
export const escapeMarkdown = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll(/[\\`*[\]<>|~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\\$&')
    .replaceAll(/\r\n|[\r\n]/g, '<br>')

/** A table whose cells are escaped already. `isNumeric`: the columns that stand to the right. */
export const formatMarkdownTable = (
  header: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  isNumeric: (title: string, i: number) => boolean = (_, i) => i > 0,
): string =>
  [header, header.map((title, i) => (isNumeric(title, i) ? '---:' : '---')), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |\n`)
    .join('')

/** The formats that take a result row by row, whatever its size. */
export const rowLayouts = {
  csv: csvLayout(false),
  spreadsheet: csvLayout(true),
  json: (result) => {
    const formatObject = jsonObjects(result)
    return { begin: '[', formatRow: (row, isFirst) => `${isFirst ? '' : ','}\n${formatObject(row)}`, end: '\n]\n' }
  },
  jsonl: (result) => {
    const formatObject = jsonObjects(result)
    return { begin: '', formatRow: (row) => `${formatObject(row)}\n`, end: '' }
  },
  markdown: ({ names, types }) => {
    const formatCells = (cells: ReadonlyArray<string>) => `| ${cells.join(' | ')} |\n`
    return {
      begin: formatCells(names.map(escapeMarkdown)) + formatCells(names.map(() => '---')),
      formatRow: (row) => formatCells(types.map((type, i) => escapeMarkdown(encodeTextValue(row[i] ?? null, type)))),
      end: '',
    }
  },
} as const satisfies Readonly<Record<string, (result: QueryResult) => RowLayout>>

/** The first rows, in the same chunks; reads none behind them. */
async function* takeRows<Row>(
  chunks: AsyncIterable<ReadonlyArray<Row>>,
  limit: number,
): AsyncIterable<ReadonlyArray<Row>> {
  let left = limit
  for await (const rows of chunks) {
    yield rows.slice(0, left)
    left -= rows.length
    if (left <= 0) return
  }
}

/** The rows of a result, at most `limit`, as text, a part for each chunk of rows. */
export async function* formatRows(
  result: QueryResult,
  format: keyof typeof rowLayouts,
  limit = Number.POSITIVE_INFINITY,
): AsyncIterable<string> {
  const { begin, formatRow, end } = rowLayouts[format](result)
  let isFirst = true
  if (begin !== '') yield begin
  for await (const rows of takeRows(result.chunks, limit)) {
    const lines: string[] = []
    for (const row of rows) {
      lines.push(formatRow(row, isFirst))
      isFirst = false
    }
    if (lines.length > 0) yield lines.join('')
  }
  if (end !== '') yield end
}

/** More rows are for programs, which read --json. */
const maxRows = 1_000
const maxValueWidth = 80

/** The first rows of a result as a table: at most `limit`, or else `most` and how many more there are. */
export async function* formatFirstRows(
  { names, types, chunks }: QueryResult,
  printWarning: (line: string) => void,
  limit?: number,
  most = maxRows,
): AsyncIterable<string> {
  const shown: Array<ReadonlyArray<string>> = []
  let total = 0
  for await (const rows of takeRows(chunks, limit ?? Number.POSITIVE_INFINITY)) {
    total += rows.length
    for (const row of rows.slice(0, (limit ?? most) - shown.length))
      shown.push(types.map((type, i) => formatCell(encodeTextValue(row[i] ?? null, type))))
  }
  yield total === 0 ? 'No rows.\n' : formatTable(names, shown)
  if (total > shown.length)
    printWarning(`${(total - shown.length).toLocaleString('en')} more rows; --limit N shows more, --json all.`)
}

const formatCell = (text: string): string => shortenText(text.replaceAll(/\s+/g, ' '), maxValueWidth)
