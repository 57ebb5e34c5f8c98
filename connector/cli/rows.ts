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
 * RFC 4180 with line feeds. Empty strings are quoted. In a spreadsheet, a semicolon or a tab may also separate cells.
 */
const quoteCsv = (text: string, isForSpreadsheets: boolean): string =>
  text === '' || (isForSpreadsheets ? /[",;\t\r\n]/ : /[",\r\n]/).test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** The characters that start a formula in a spreadsheet, including their forms on East Asian keyboards. */
const formulaSigns = String.raw`=+\-@\uff1d\uff0b\uff0d\uff20`
const formulaStart = new RegExp(String.raw`^(?=[${formulaSigns}\t\r\n])`, 'u')

/** The place where a spreadsheet that splits at semicolons begins a cell, quoted or not. A smiley is not a formula. */
const innerFormula = new RegExp(String.raw`(?<=;)(?!-\))(?=[${formulaSigns}])`, 'gu')

/** The text, guarded so that a spreadsheet does not run it as a formula. */
const guardText = (text: string): string => text.replace(innerFormula, "'").replace(formulaStart, "'")

/** The same for other values. Numbers, including negative ones, stay numbers. */
const guardOther = (text: string): string => (/^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? text : guardText(text))

/** A CSV row whose texts a spreadsheet does not run as formulas. A missing cell is empty. */
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
      // The byte order mark shows a spreadsheet that the file is UTF-8.
      begin: `${isForSpreadsheets ? '\ufeff' : ''}${names.map((name) => quote(guard(name))).join(',')}\n`,
      formatRow: (row) => `${names.map((_, i) => formatCell(row[i] ?? null, i)).join(',')}\n`,
      end: '',
    }
  }

/** Escapes a text, so that a cell of a Markdown table shows it unchanged. */
export const escapeMarkdown = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll(/[\\`*[\]<>|~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\\$&')
    .replaceAll(/\r\n|[\r\n]/g, '<br>')

/** A table of escaped cells. `isNumeric`: the columns that are aligned to the right. */
export const formatMarkdownTable = (
  header: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  isNumeric: (title: string, i: number) => boolean = (_, i) => i > 0,
): string =>
  [header, header.map((title, i) => (isNumeric(title, i) ? '---:' : '---')), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |\n`)
    .join('')

/** The formats that print row by row, for results of any size. */
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

/** The first rows, in the same chunks. Reads no further. */
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

/** The rows of a result as text, at most `limit`, one piece per chunk of rows. */
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

/** Only programs need more rows, and they read --json. */
const maxRows = 1_000
const maxValueWidth = 80

/** The first rows of a result as a table: `limit` if given, otherwise `most` and the number of remaining rows. */
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
