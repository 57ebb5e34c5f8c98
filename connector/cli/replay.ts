import { defineCommand } from '../cdk'
import { hashContent } from '../snapshot'
import { ingestInputs, loadInputCatalog } from './ingest'
import { fileOptions, historyOption, inputCatalogOption, outputDbOption, verbUsageError } from './options'
import { toSnapshotOptions } from './snapshot-file'
import { formatJson, formatTable } from './table'

export const replayCommand = defineCommand({
  name: 'replay',
  summary: 'Writes captured messages into DuckDB again and prints a hash of the content of the tables.',
  operands: 'FILE…',
  options: {
    db: outputDbOption,
    ...fileOptions,
    catalog: inputCatalogOption,
    history: historyOption,
    json: { type: 'boolean', help: 'Print the hashes as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json | tee ' +
      'run.jsonl | feedback snapshot --db a.duckdb --catalog catalog.json',
    'feedback replay run.jsonl --db b.duckdb --catalog catalog.json',
  ],
  notes:
    'The same messages written into a new file always give the same hash. ' +
    'Exit status: 0 all streams are complete, 1 a stream is not complete.',
  run: async (io, { options, positionals }) => {
    if (positionals.length === 0) throw verbUsageError('feedback replay', ' needs a file of captured messages.')
    const catalog = await loadInputCatalog(options.catalog)
    return ingestInputs(
      io,
      options.db,
      { files: positionals, catalog, history: options.history },
      async (snapshot, summaries) => {
        const content = await snapshot.db.withMemory('the hash of the tables', () => hashContent(snapshot))
        const rows = content.tables.map(({ table, rows, hash }) => [table, rows.toLocaleString('en'), hash])
        await io.print(
          options.json ? formatJson(content) : `${formatTable(['table', 'rows', 'hash'], rows)}\n${content.hash}\n`,
        )
        return summaries.every(({ status }) => status === 'complete') ? 0 : 1
      },
      toSnapshotOptions(io, options),
    )
  },
})
