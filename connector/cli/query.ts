import { CommandError, type CommandIo, configFailure, defineCommand, usageError } from '../cdk'
import {
  type DuckDBValue,
  diffSnapshots,
  encodeJsonValue,
  encodeTextValue,
  isIdentical,
  readReport,
  renderReport,
  type Snapshot,
  type StreamDifference,
} from '../snapshot'
import { dbOption, waitOption } from './options'
import { refuseDatabaseAsOutput, toFileWait, useSnapshot, writeOutputFile } from './snapshot-file'
import { escapeControls, formatJson, formatTable, shortenText } from './table'

/** More rows are for programs, which read --json. */
const maxRows = 1_000
const maxValueWidth = 80

/** SQL may come from anywhere, so it reaches no other file and no setting: it neither reads files, nor writes over any, nor loads code. */
const lockSql = "SET memory_limit = '1GB'; SET enable_external_access = false; SET lock_configuration = true"

export const queryCommand = defineCommand({
  name: 'query',
  summary: 'Runs a query in SQL on a snapshot; changes nothing and reaches no other file.',
  operands: 'SQL',
  options: {
    db: dbOption,
    wait: waitOption,
    json: { type: 'boolean', help: 'Print a JSON object for each row, nested values as JSON' },
  },
  examples: [
    `feedback query --db reviews.duckdb "SELECT rating, count(*) FROM reviews_current GROUP BY ALL ORDER BY ALL"`,
    `feedback query --db reviews.duckdb --json "FROM _loads"`,
  ],
  notes: `A table shows the first ${maxRows.toLocaleString('en')} rows and ${maxValueWidth} characters of a value; --json prints everything. Exit status: 0, or 78 if the file or the SQL is wrong.`,
  run: async (io, { options, positionals }) => {
    const sql = positionals.join(' ').trim()
    if (sql === '') throw usageError('The SQL is missing. See feedback query --help.')
    return useSnapshot(
      options.db,
      'read',
      async (snapshot) => {
        try {
          await snapshot.db.run(lockSql)
          await (options.json ? printJson : printTable)(io, snapshot, sql)
          return 0
        } catch (error) {
          if (error instanceof CommandError) throw error
          throw new CommandError(
            configFailure(
              `The SQL cannot be run. ${escapeControls(error instanceof Error ? error.message : String(error))}`,
            ),
          )
        }
      },
      toFileWait(io, options.wait),
    )
  },
})

const printJson = async (io: CommandIo, { db }: Snapshot, sql: string): Promise<void> => {
  const { names, types, chunks } = await db.stream(sql)
  const keys = names.map((name, i) => `${i === 0 ? '' : ','}${JSON.stringify(name)}:`)
  const formatRow = (row: ReadonlyArray<DuckDBValue>) =>
    `{${types.map((type, i) => `${keys[i]}${encodeJsonValue(row[i] ?? null, type)}`).join('')}}\n`
  for await (const rows of chunks) if (rows.length > 0) await io.print(escapeControls(rows.map(formatRow).join('')))
}

const printTable = async (io: CommandIo, { db }: Snapshot, sql: string): Promise<void> => {
  const { names, types, chunks } = await db.stream(sql)
  const shown: Array<ReadonlyArray<string>> = []
  let total = 0
  for await (const rows of chunks) {
    total += rows.length
    for (const row of rows.slice(0, maxRows - shown.length))
      shown.push(types.map((type, i) => formatCell(encodeTextValue(row[i] ?? null, type))))
  }
  await io.print(total === 0 ? 'No rows.\n' : formatTable(names, shown))
  if (total > shown.length)
    io.printWarning(`${(total - shown.length).toLocaleString('en')} more rows; --json prints them all.`)
}

const formatCell = (text: string): string => shortenText(text.replaceAll(/\s+/g, ' '), maxValueWidth)

export const diffCommand = defineCommand({
  name: 'diff',
  summary: 'Shows the differences between two snapshots.',
  operands: 'A.duckdb B.duckdb',
  options: { wait: waitOption, json: { type: 'boolean', help: 'Print the differences as JSON' } },
  examples: ['feedback diff yesterday.duckdb today.duckdb'],
  notes:
    'For each stream: rows, columns and their types, and the first values that differ. Exit status: 0 they are the same, 1 they differ, 75 or 78 they could not be compared.',
  run: async (io, { options, positionals }) => {
    const [a, b, ...others] = positionals
    if (a === undefined || b === undefined || others.length > 0)
      throw usageError('feedback diff needs two files. See feedback diff --help.')
    // Opening B first reports a missing or foreign file by its own name.
    const wait = toFileWait(io, options.wait)
    await useSnapshot(b, 'read', async () => undefined, wait)
    const streams = await useSnapshot(a, 'read', (snapshot) => diffSnapshots(snapshot, b), wait)
    await io.print(options.json ? formatJson(streams) : formatDifferences(streams))
    return streams.every(isIdentical) ? 0 : 1
  },
})

const formatCount = (rows: number | null): string => (rows === null ? 'none' : rows.toLocaleString('en'))

const formatValue = (value: string | null): string => (value === null ? 'null' : shortenText(value, maxValueWidth))

const formatDifferences = (streams: ReadonlyArray<StreamDifference>): string => {
  const table = formatTable(
    ['stream', 'rows in A', 'rows in B', 'only in A', 'only in B', 'changed'],
    streams.map(({ stream, a, b, onlyA, onlyB, changed }) => [
      stream,
      ...[a, b, onlyA, onlyB, changed].map(formatCount),
    ]),
  )
  const types = streams.flatMap(({ stream, columns }) =>
    columns.map(({ column, a, b }) => `${stream}.${column}: ${a ?? 'not in A'}, ${b ?? 'not in B'}\n`),
  )
  const values = streams.flatMap(({ stream, values }) =>
    values.map(
      ({ key, column, a, b }) => `${stream} ${key}, ${column}: ${formatValue(a)} in A, ${formatValue(b)} in B\n`,
    ),
  )
  const verdict = streams.every(isIdentical) ? 'They are the same.' : 'They differ.'
  return [
    table,
    ...(types.length > 0 ? ['\n', ...types] : []),
    ...(values.length > 0 ? ['\n', ...values] : []),
    `\n${verdict}\n`,
  ].join('')
}

export const reportCommand = defineCommand({
  name: 'report',
  summary: 'Writes the content of a snapshot, and whether its checks pass, as one HTML page.',
  options: {
    db: dbOption,
    wait: waitOption,
    out: { type: 'string', value: 'FILE', help: 'The page to write; an existing file is replaced' },
    json: { type: 'boolean', help: "Print the page's numbers as JSON" },
  },
  examples: [
    'feedback report --db reviews.duckdb --out report.html',
    `feedback report --db reviews.duckdb --json | jq '.locations[:5]'`,
  ],
  notes:
    'The page contains everything it shows: it opens without a network, has a light and a dark theme, and prints. Exit status: 0, also if a check fails, which the page then says.',
  run: async (io, { options: { db, wait, out, json } }) => {
    if (out === undefined && !json) throw usageError('Give --out FILE for the page to write, or --json.')
    if (out !== undefined) await refuseDatabaseAsOutput(out, db)
    const report = await useSnapshot(db, 'read', (snapshot) => readReport(snapshot, Date.now()), toFileWait(io, wait))
    if (json) await io.print(formatJson(report))
    if (out !== undefined) await writeOutputFile(out, renderReport(report))
    if (out !== undefined && !json) await io.print(`${out} is written.\n`)
    for (const { name, explain } of report.health.checks.filter(({ ok }) => !ok))
      io.printWarning(`The check "${name}" fails: ${explain} See feedback verify.`)
    return 0
  },
})
