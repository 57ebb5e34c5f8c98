import type { CommandIo } from '../cdk'
import type { StreamOutcome } from '../runtime'
import { type CheckResult, countChecks, type LoadSummary } from '../snapshot'

/** Characters that a terminal acts on, or that change the order in which it shows a text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const formatEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * The text with control characters as escapes such as \u001b; tabs and line feeds stay. Inside JSON, the meaning stays
 * the same.
 */
export const escapeControls = (text: string): string => text.replaceAll(controlCharacters, formatEscape)

const colorCodes = { green: 32, red: 31, yellow: 33 } as const

/** The text in a color, if the output shows colors. */
export const paintText = (
  { hasColors }: Pick<CommandIo, 'hasColors'>,
  color: keyof typeof colorCodes,
  text: string,
): string => (hasColors ? `\u001b[${colorCodes[color]}m${text}\u001b[39m` : text)

/**
 * Rows below their header. Each column is as wide as its widest cell, and numbers are aligned to the right. No line
 * ends in spaces. `paint`: colors a padded cell by its text.
 */
export const formatTable = (
  rawHeader: ReadonlyArray<string>,
  rawRows: ReadonlyArray<ReadonlyArray<string>>,
  paint: (cell: string, text: string) => string = (cell) => cell,
): string => {
  const toCell = (text: string) => escapeControls(text).replaceAll(/[\t\n]+/g, ' ')
  const header = rawHeader.map(toCell)
  const rows = rawRows.map((row) => row.map(toCell))
  const isNumeric = header.map((_, i) => rows.length > 0 && rows.every((row) => /^(-?[\d,.]+)?$/.test(row[i] ?? '')))
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => (row[i] ?? '').length)))
  const formatRow = (cells: ReadonlyArray<string>) => {
    const last = cells.findLastIndex((cell) => cell !== '')
    return `${cells
      .slice(0, last + 1)
      .map((cell, i) => {
        const width = i === last && !isNumeric[i] ? 0 : (widths[i] ?? 0)
        return paint(isNumeric[i] ? cell.padStart(width) : cell.padEnd(width), cell)
      })
      .join('  ')}\n`
  }
  return [header, ...rows].map(formatRow).join('')
}

/** With fewer rows, the rate of a scan means little. */
const minRatedRows = 1_000

const formatRate = (records: number, seconds: number): string =>
  records < minRatedRows || seconds <= 0 ? '' : Math.round(records / seconds).toLocaleString('en')

/** What was read of a stream. Streams with the same `scan` were read together, in the same time. */
type OutcomeRow = Pick<StreamOutcome, 'stream' | 'status' | 'records' | 'seconds' | 'scan'> & { readonly note?: string }

/**
 * A row for each stream, for each scan that fed several streams, and for the total. Rates are per scan, never per
 * stream of a shared scan.
 */
const formatOutcomes = (
  outcomes: ReadonlyArray<OutcomeRow>,
  describeScan: (streams: number) => string,
  columns: ReadonlyArray<string> = [],
): string => {
  const sum = (rows: ReadonlyArray<OutcomeRow>) => rows.reduce((total, { records }) => total + records, 0)
  const measure = (records: number, seconds: number) => [
    records.toLocaleString('en'),
    seconds.toFixed(1),
    formatRate(records, seconds),
  ]
  const scans = [...new Set(outcomes.map(({ scan }) => scan))].map((scan) => {
    const rows = outcomes.filter((outcome) => outcome.scan === scan)
    return { rows, records: sum(rows), seconds: Math.max(...rows.map(({ seconds }) => seconds)) }
  })
  const lines = scans.flatMap(({ rows, records, seconds }) => [
    ...rows.map(({ stream, status, records: own, note = '' }) => [
      stream,
      status,
      ...(status === 'skipped'
        ? ['', '', '']
        : rows.length > 1
          ? [own.toLocaleString('en'), '', '']
          : measure(own, seconds)),
      note,
    ]),
    ...(rows.length > 1 && scans.length > 1 ? [[describeScan(rows.length), '', ...measure(records, seconds)]] : []),
  ])
  const total = [
    'total',
    outcomes.some(({ status }) => status === 'incomplete') ? 'incomplete' : 'complete',
    ...measure(
      sum(outcomes),
      scans.reduce((seconds, scan) => seconds + scan.seconds, 0),
    ),
  ]
  return formatTable(
    ['stream', 'status', 'records', 'seconds', 'records/s', ...columns],
    outcomes.length > 1 ? [...lines, total] : lines,
  )
}

/** What a sync has read, and where the next run continues. */
export const formatSyncOutcome = (outcomes: ReadonlyArray<StreamOutcome>): string =>
  formatOutcomes(
    outcomes.map((outcome) => ({
      ...outcome,
      note:
        outcome.status === 'skipped'
          ? ''
          : outcome.cursor_field === null
            ? 'none: read in full'
            : (outcome.cursor ?? ''),
    })),
    (streams) => `  these ${streams}, in one scan`,
    ['cursor'],
  )

/** What was loaded into a snapshot from messages. All streams of an input share its time. */
export const formatLoadSummaries = (summaries: ReadonlyArray<LoadSummary>): string => {
  const counts = new Map<string, number>()
  return formatOutcomes(
    summaries.map(({ stream, status, records, seconds }) => {
      const input = counts.get(stream) ?? 0
      counts.set(stream, input + 1)
      return { stream, status: status === 'complete' ? status : 'incomplete', records, seconds, scan: String(input) }
    }),
    (streams) => `  these ${streams}, in one input`,
  )
}

/** A value as JSON that a person can read. */
export const formatJson = (value: unknown): string => `${escapeControls(JSON.stringify(value, null, 2))}\n`

/**
 * How many of the checks that had something to check hold, in one clause: `15 of 15 checks hold, 7 had nothing to
 * check`.
 */
export const formatCheckCounts = (results: ReadonlyArray<CheckResult>): string => {
  const { hold, unanswered, checked, nothing } = countChecks(results)
  return [
    `${hold} of ${checked} checks hold`,
    ...(unanswered === 0 ? [] : [`${unanswered} could not be made`]),
    ...(nothing === 0 ? [] : [`${nothing} had nothing to check`]),
  ].join(', ')
}
