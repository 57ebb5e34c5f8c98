import { command, type Given, type Io, misused } from '../cdk/cli'
import { exportParquet, type Partition, partitions } from '../snapshot/export-parquet'
import { table } from '../sync'
import { columns } from './columns'
import { dbOption, historyOption, withSnapshot } from './db-option'
import { catalogOption, loadExpected, takeIn } from './take-in'

export const snapshot = command({
  name: 'snapshot',
  summary: 'Writes Airbyte or Singer messages into a DuckDB file, or the file as Parquet.',
  operands: '[FILE… | FOLDER]',
  options: {
    db: { ...dbOption, help: 'The DuckDB file; made if it is missing' },
    catalog: catalogOption,
    history: historyOption,
    export: { type: 'string', value: 'parquet', help: 'Take in nothing; write each stream as Parquet into FOLDER' },
    partition: { type: 'string', value: Object.keys(partitions).join('|'), help: 'With --export: a folder for each' },
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json | feedback snapshot --db reviews.duckdb --catalog catalog.json',
    'tap-feedback --config config.json | feedback snapshot --db reviews.duckdb',
    'feedback snapshot --db reviews.duckdb --export parquet parquet/ --partition month',
    'feedback snapshot --db reviews.duckdb --catalog catalog.json monday.jsonl.gz tuesday.jsonl.gz',
  ],
  notes:
    'Messages come from the files, each a run of its own, or from stdin; gzip is unpacked. Exit status: 0 all streams are complete, 1 one is not (what its states cover is kept).',
  run: async (io, given) => {
    const { options, positionals } = given
    if (options.export !== undefined) return exportTo(io, given)
    const expected = await loadExpected(options.catalog?.toString())
    return withSnapshot(String(options.db), 'write', async (opened) => {
      const outcomes = await takeIn(io, opened, { files: positionals, expected, history: options.history === true })
      if (options.json === true) await io.print(`${JSON.stringify(outcomes, null, 2)}\n`)
      else io.warn(table(outcomes).trimEnd())
      return outcomes.every(({ status }) => status === 'complete') ? 0 : 1
    })
  },
})

const isPartition = (name: string): name is Partition => Object.hasOwn(partitions, name)

const exportTo = async (io: Io, { options, positionals }: Given): Promise<number> => {
  const [folder, ...more] = positionals
  const partition = options.partition?.toString()
  if (options.export !== 'parquet') throw misused('--export knows parquet only.')
  if (folder === undefined || more.length > 0) throw misused('--export wants one folder to write to.')
  if (partition !== undefined && !isPartition(partition))
    throw misused(`--partition must be one of ${Object.keys(partitions).join(', ')}.`)
  const exported = await withSnapshot(String(options.db), 'read', (opened) => exportParquet(opened, folder, partition))
  await io.print(
    options.json === true
      ? `${JSON.stringify(exported, null, 2)}\n`
      : columns(
          ['stream', 'rows', 'folder'],
          exported.map(({ stream, rows, folder: place }) => [stream, rows.toLocaleString('en'), place]),
        ),
  )
  return 0
}
