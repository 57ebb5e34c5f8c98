import { command, misused } from '../cdk/cli'
import { contentHash } from '../snapshot/content-hash'
import { columns } from './columns'
import { dbOption, historyOption, withSnapshot } from './db-option'
import { catalogOption, loadExpected, takeIn } from './take-in'

export const replay = command({
  name: 'replay',
  summary: 'Writes captured messages into DuckDB again and prints a hash of what the tables hold.',
  operands: 'FILE…',
  options: {
    db: { ...dbOption, help: 'The DuckDB file; made if it is missing' },
    catalog: catalogOption,
    history: historyOption,
    json: { type: 'boolean', help: 'Print the hashes as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json | tee run.jsonl | feedback snapshot --db a.duckdb --catalog catalog.json',
    'feedback replay run.jsonl --db b.duckdb --catalog catalog.json',
  ],
  notes:
    'The same messages into a new file give the same hash each time. Exit status: 0 all streams are complete, 1 one is not.',
  run: async (io, { options, positionals }) => {
    if (positionals.length === 0)
      throw misused('feedback replay wants the file of captured messages. See feedback replay --help.')
    const expected = await loadExpected(options.catalog?.toString())
    return withSnapshot(String(options.db), 'write', async (snapshot) => {
      const outcomes = await takeIn(io, snapshot, { files: positionals, expected, history: options.history === true })
      const content = await contentHash(snapshot)
      const rows = content.tables.map(({ table, rows, hash }) => [table, rows.toLocaleString('en'), hash])
      await io.print(
        options.json === true
          ? `${JSON.stringify(content, null, 2)}\n`
          : `${columns(['table', 'rows', 'hash'], rows)}\n${content.hash}\n`,
      )
      return outcomes.every(({ status }) => status === 'complete') ? 0 : 1
    })
  },
})
