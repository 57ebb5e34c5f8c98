import { type CommandIo, defineCommand, type ParsedOptions, usageError } from '../cdk/cli'
import { exportParquet, type ParquetPartition, partitionFormats } from '../snapshot/export-parquet'
import { formatOutcomes } from '../sync'
import { formatTable } from './columns'
import { dbOption, historyOption, useSnapshot } from './db-option'
import { catalogOption, ingestMessages, loadExpectedStreams } from './take-in'

export const snapshotCommand = defineCommand({
  name: 'snapshot',
  summary: 'Writes Airbyte or Singer messages into a DuckDB file, or the file as Parquet.',
  operands: '[FILE… | FOLDER]',
  options: {
    db: { ...dbOption, help: 'The DuckDB file; made if it is missing' },
    catalog: catalogOption,
    history: historyOption,
    export: { type: 'string', value: 'parquet', help: 'Take in nothing; write each stream as Parquet into FOLDER' },
    partition: {
      type: 'string',
      value: Object.keys(partitionFormats).join('|'),
      help: 'With --export: a folder for each',
    },
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
    if (options.export !== undefined) return exportSnapshot(io, given)
    const expected = await loadExpectedStreams(options.catalog?.toString())
    return useSnapshot(String(options.db), 'write', async (opened) => {
      const outcomes = await ingestMessages(io, opened, {
        files: positionals,
        expected,
        history: options.history === true,
      })
      if (options.json === true) await io.print(`${JSON.stringify(outcomes, null, 2)}\n`)
      else io.printWarning(formatOutcomes(outcomes).trimEnd())
      return outcomes.every(({ status }) => status === 'complete') ? 0 : 1
    })
  },
})

const isPartition = (name: string): name is ParquetPartition => Object.hasOwn(partitionFormats, name)

const exportSnapshot = async (io: CommandIo, { options, positionals }: ParsedOptions): Promise<number> => {
  const [folder, ...more] = positionals
  const partition = options.partition?.toString()
  if (options.export !== 'parquet') throw usageError('--export knows parquet only.')
  if (folder === undefined || more.length > 0) throw usageError('--export wants one folder to write to.')
  if (partition !== undefined && !isPartition(partition))
    throw usageError(`--partition must be one of ${Object.keys(partitionFormats).join(', ')}.`)
  const exported = await useSnapshot(String(options.db), 'read', (opened) => exportParquet(opened, folder, partition))
  await io.print(
    options.json === true
      ? `${JSON.stringify(exported, null, 2)}\n`
      : formatTable(
          ['stream', 'rows', 'folder'],
          exported.map(({ stream, rows, folder: place }) => [stream, rows.toLocaleString('en'), place]),
        ),
  )
  return 0
}
