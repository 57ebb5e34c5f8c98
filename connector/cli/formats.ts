import { suggestName, usageError } from '../cdk'

export const rowFormats = ['table', 'csv', 'json', 'jsonl', 'markdown', 'parquet'] as const
export type RowFormat = (typeof rowFormats)[number]

/** The extension of a file name in lower case, such as csv; empty without a file or an extension. */
const readEnding = (path: string | undefined): string => /\.(\w+)$/.exec(path ?? '')?.[1]?.toLowerCase() ?? ''
const rowEndings: Readonly<Record<string, RowFormat>> = {
  csv: 'csv',
  json: 'json',
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  md: 'markdown',
  parquet: 'parquet',
}

const isFormat = (name: string): name is RowFormat => rowFormats.some((format) => format === name)

/** The format that a query's options name, or else the extension of its file, or else a table. */
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
    throw usageError(`--json prints JSON, but --format says ${format}. Remove one of them.`)
  if (format === 'parquet' && options.out === undefined)
    throw usageError('--format parquet needs --out FILE, because Parquet is not text.')
  if (options.spreadsheet && format !== 'csv') throw usageError('--spreadsheet needs --format csv.')
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

/** Extensions of files that the user would open with a program that cannot read a report. */
const otherEndings = ['pdf', 'xls', 'xlsx', 'doc', 'docx', 'txt', 'tsv', 'jsonl', 'parquet', 'xml']

/** The format that a report's options name, or else the extension of its file, or else the page. */
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
    throw usageError(`--json prints JSON, but --format says ${format}. Remove one of them.`)
  if (options.format === undefined && !options.json && otherEndings.includes(ending))
    throw usageError(
      `--out ${options.out}: a report is html, md, json or csv. Use ` +
        'one of these endings, or --format. For a PDF, print the page from a browser.',
    )
  if (format === 'html' && options.out === undefined)
    throw usageError('Give --out FILE for the page to write, or --format md, json or csv.')
  return format
}
