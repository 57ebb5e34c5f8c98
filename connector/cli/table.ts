import { type CheckResult, countChecks, type LoadSummary } from '../snapshot'

/** Rows below their header, each column as wide as its widest cell, numbers aligned to the right. No line ends in spaces. */
export const formatTable = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const isNumeric = header.map((_, i) => rows.length > 0 && rows.every((row) => /^(-?[\d,.]+)?$/.test(row[i] ?? '')))
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => (row[i] ?? '').length)))
  const formatRow = (cells: ReadonlyArray<string>) =>
    `${cells
      .map((cell, i) => (isNumeric[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd()}\n`
  return [header, ...rows].map(formatRow).join('')
}

/** What was loaded into a snapshot, a row for each stream. */
export const formatLoadSummaries = (summaries: ReadonlyArray<LoadSummary>): string =>
  formatTable(
    ['stream', 'status', 'records', 'seconds', 'records/s'],
    summaries.map(({ stream, status, records, seconds }) => [
      stream,
      status,
      records.toLocaleString('en'),
      seconds.toFixed(1),
      seconds === 0 ? '' : Math.round(records / seconds).toLocaleString('en'),
    ]),
  )

/** A value as JSON that a person can read. */
export const formatJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** The text in at most `width` characters. */
export const shortenText = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, width - 1)}…` : text

/** How many of the checks that had something to check hold, in one clause: `15 of 15 checks hold, 7 had nothing to check`. */
export const formatCheckCounts = (results: ReadonlyArray<CheckResult>): string => {
  const { hold, unanswered, checked, nothing } = countChecks(results)
  return [
    `${hold} of ${checked} checks hold`,
    ...(unanswered === 0 ? [] : [`${unanswered} could not be made`]),
    ...(nothing === 0 ? [] : [`${nothing} had nothing to check`]),
  ].join(', ')
}
