import { CommandError, type CommandIo, configFailure, defineCommand, usageError } from '../cdk'
import { type DuckDBValue, encodeJsonValue, encodeTextValue, type Snapshot } from '../snapshot'
import { dbOption, useSnapshot } from './snapshot'
import { formatTable } from './table'

/** More are for programs, which read --json. */
const maxRows = 1_000
const maxValueWidth = 80

export const queryCommand = defineCommand({
  name: 'query',
  summary: 'Asks a snapshot a question in SQL; changes nothing.',
  operands: 'SQL',
  options: { db: dbOption, json: { type: 'boolean', help: 'Print one JSON object a row, nested values as JSON' } },
  examples: [
    `feedback query --db reviews.duckdb "SELECT rating, count(*) FROM reviews GROUP BY ALL ORDER BY ALL"`,
    `feedback query --db reviews.duckdb --json "FROM _loads"`,
  ],
  notes: `A table shows the first ${maxRows.toLocaleString('en')} rows and ${maxValueWidth} characters of a value; --json has all. Exit status: 0, or 1 if the file or the SQL is wrong.`,
  run: (io, { options, positionals }) => {
    const sql = positionals.join(' ').trim()
    if (sql === '') throw usageError('There is no SQL to run. See feedback query --help.')
    return useSnapshot(String(options.db), 'read', async (snapshot) => {
      try {
        await (options.json === true ? printJson : printTable)(io, snapshot, sql)
        return 0
      } catch (error) {
        if (error instanceof CommandError) throw error
        throw new CommandError(
          configFailure(`The SQL cannot be run. ${error instanceof Error ? error.message : error}`),
        )
      }
    })
  },
})

const printJson = async (io: CommandIo, { db }: Snapshot, sql: string): Promise<void> => {
  const { names, types, chunks } = await db.stream(sql)
  const heads = names.map((name, i) => `${i === 0 ? '' : ','}${JSON.stringify(name)}:`)
  const lineOf = (row: ReadonlyArray<DuckDBValue>) =>
    `{${types.map((type, i) => `${heads[i]}${encodeJsonValue(row[i] ?? null, type)}`).join('')}}\n`
  for await (const rows of chunks) if (rows.length > 0) await io.print(rows.map(lineOf).join(''))
}

const printTable = async (io: CommandIo, { db }: Snapshot, sql: string): Promise<void> => {
  const { names, types, chunks } = await db.stream(sql)
  const shown: Array<ReadonlyArray<string>> = []
  let total = 0
  for await (const rows of chunks) {
    total += rows.length
    for (const row of rows.slice(0, maxRows - shown.length))
      shown.push(types.map((type, i) => flattenText(encodeTextValue(row[i] ?? null, type))))
  }
  await io.print(total === 0 ? 'No rows.\n' : formatTable(names, shown))
  if (total > shown.length)
    io.printWarning(`${(total - shown.length).toLocaleString('en')} more rows; --json prints them all.`)
}

const flattenText = (text: string): string => {
  const flat = text.replaceAll(/\s+/g, ' ')
  return flat.length > maxValueWidth ? `${flat.slice(0, maxValueWidth - 1)}…` : flat
}
