import { CommandError, type CommandIo, configFailure, defineCommand, usageError } from '../cdk'
import { type DuckDBValue, encodeJsonValue, encodeTextValue, type Snapshot } from '../snapshot'
import { dbOption, waitOption } from './options'
import { toFileWait, useSnapshot } from './snapshot-file'
import { escapeControls, formatTable, shortenText } from './table'

/** More rows are for programs, which read --json. */
const maxRows = 1_000
const maxValueWidth = 80

/** SQL may come from anywhere, so it reaches no other file and no setting: it neither reads files, nor writes over any, nor loads code. */
const lockSql = 'SET enable_external_access = false; SET lock_configuration = true'

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
