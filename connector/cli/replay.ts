import { defineCommand, usageError } from '../cdk'
import { hashContent } from '../snapshot'
import { catalogOption, dbOption, historyOption, ingestMessages, loadExpectedStreams, useSnapshot } from './snapshot'
import { formatTable } from './table'

export const replayCommand = defineCommand({
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
      throw usageError('feedback replay wants the file of captured messages. See feedback replay --help.')
    const expected = await loadExpectedStreams(options.catalog?.toString())
    return useSnapshot(String(options.db), 'write', async (snapshot) => {
      const outcomes = await ingestMessages(io, snapshot, {
        files: positionals,
        expected,
        history: options.history === true,
      })
      const content = await hashContent(snapshot)
      const rows = content.tables.map(({ table, rows, hash }) => [table, rows.toLocaleString('en'), hash])
      await io.print(
        options.json === true
          ? `${JSON.stringify(content, null, 2)}\n`
          : `${formatTable(['table', 'rows', 'hash'], rows)}\n${content.hash}\n`,
      )
      return outcomes.every(({ status }) => status === 'complete') ? 0 : 1
    })
  },
})
