import { command } from '../cdk/cli'
import { table } from '../sync'
import { dbOption, withSnapshot } from './db-option'
import { catalogOption, loadExpected, takeIn } from './take-in'

export const snapshot = command({
  name: 'snapshot',
  summary: 'Writes Airbyte or Singer messages into a DuckDB file.',
  operands: '[FILE…]',
  options: {
    db: { ...dbOption, help: 'The DuckDB file; made if it is missing' },
    catalog: catalogOption,
    history: { type: 'boolean', help: 'From now on, keep every version of a row; see the views NAME_versions' },
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json | feedback snapshot --db reviews.duckdb --catalog catalog.json',
    'tap-feedback --config config.json | feedback snapshot --db reviews.duckdb',
    'feedback snapshot --db reviews.duckdb --catalog catalog.json monday.jsonl.gz tuesday.jsonl.gz',
  ],
  notes:
    'Messages come from the files, each a run of its own, or from stdin; gzip is unpacked. Exit status: 0 all streams are complete, 1 one is not (what its states cover is kept).',
  run: async (io, { options, positionals }) => {
    const expected = await loadExpected(options.catalog?.toString())
    return withSnapshot(String(options.db), 'write', async (opened) => {
      const outcomes = await takeIn(io, opened, { files: positionals, expected, history: options.history === true })
      if (options.json === true) await io.print(`${JSON.stringify(outcomes, null, 2)}\n`)
      else io.warn(table(outcomes).trimEnd())
      return outcomes.every(({ status }) => status === 'complete') ? 0 : 1
    })
  },
})
