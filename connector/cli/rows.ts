import { shortenText } from '../report'
import { type DuckDBValue, encodeJsonValue, encodeTextValue, type QueryResult } from '../snapshot'
import { formatTable } from './table'

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
const rowLayouts = {
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

/** The rows of a result, at most `limit`, as text, a piece for each chunk of rows. */
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
