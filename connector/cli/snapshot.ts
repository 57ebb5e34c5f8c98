import { type CommandIo, defineCommand, usageError } from '../cdk'
import {
  exportParquet,
  type ParquetPartition,
  partitionFormats,
  type Snapshot,
  setReportingTimeZone,
} from '../snapshot'
import { ingestInputs, loadInputCatalog } from './ingest'
import { fileOptions, historyOption, inputCatalogOption, outputDbOption } from './options'
import { toSnapshotOptions, useSnapshot } from './snapshot-file'
import { formatJson, formatLoadSummaries, formatTable } from './table'

export const snapshotCommand = defineCommand({
  name: 'snapshot',
  summary: 'Writes Airbyte or Singer messages into a DuckDB file, or the tables of the file as Parquet.',
  operands: '[FILE… | FOLDER]',
  options: {
    db: outputDbOption,
    ...fileOptions,
    catalog: inputCatalogOption,
    history: historyOption,
    'reporting-time-zone': {
      type: 'string',
      value: 'ZONE',
      help: 'Time zone of days and months in views, report and Parquet folders from now on; UTC until set',
    },
    export: { type: 'string', value: 'parquet', help: 'Read no messages; write each stream as Parquet into FOLDER' },
    partition: {
      type: 'string',
      value: Object.keys(partitionFormats).join('|'),
      help: 'With --export: a folder for each',
    },
    views: { type: 'boolean', help: 'With --export: the models too, each as one file' },
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json ' +
      '| feedback snapshot --db reviews.duckdb --catalog catalog.json',
    'tap-feedback --config config.json | feedback snapshot --db reviews.duckdb',
    'feedback snapshot --db reviews.duckdb --export parquet parquet/ --partition month',
    'feedback snapshot --db reviews.duckdb --export parquet parquet/ --views',
    'feedback snapshot --db reviews.duckdb --catalog catalog.json monday.jsonl.gz tuesday.jsonl.gz',
  ],
  notes:
    'Messages come from the files, each a run of its own, or from stdin; gzip is unpacked. Exit ' +
    'status: 0 all streams are complete, 1 a stream is not complete (what its states cover is kept).',
  run: async (io, { options, positionals }) => {
    if (options.export !== undefined) return exportSnapshot(io, { ...options, format: options.export }, positionals)
    const catalog = await loadInputCatalog(options.catalog)
    const timeZone = options['reporting-time-zone']
    const prepare = async (snapshot: Snapshot): Promise<void> => {
      if (timeZone !== undefined) await setReportingTimeZone(snapshot, timeZone)
    }
    return ingestInputs(
      io,
      options.db,
      { files: positionals, catalog, history: options.history, prepare },
      async (_, summaries) => {
        if (options.json) await io.print(formatJson(summaries))
        else io.printWarning(formatLoadSummaries(summaries).trimEnd())
        return summaries.every(({ status }) => status === 'complete') ? 0 : 1
      },
      toSnapshotOptions(io, options),
    )
  },
})

const isPartition = (name: string): name is ParquetPartition => Object.hasOwn(partitionFormats, name)

type ExportOptions = {
  readonly db: string
  readonly format: string
  readonly wait: string | undefined
  readonly 'memory-limit': string | undefined
  readonly partition: string | undefined
  readonly views: boolean
  readonly json: boolean
}

const exportSnapshot = async (
  io: CommandIo,
  { format, ...options }: ExportOptions,
  [folder, ...others]: ReadonlyArray<string>,
): Promise<number> => {
  const { db, partition, views, json } = options
  if (format !== 'parquet') throw usageError('--export can only be parquet.')
  if (folder === undefined || others.length > 0) throw usageError('--export needs one folder to write to.')
  if (partition !== undefined && !isPartition(partition))
    throw usageError(`--partition must be one of ${Object.keys(partitionFormats).join(', ')}.`)
  const exported = await useSnapshot(
    db,
    'read',
    (snapshot) => exportParquet(snapshot, folder, partition, views),
    toSnapshotOptions(io, options),
  )
  await io.print(
    json
      ? formatJson(exported)
      : formatTable(
          ['stream', 'rows', 'folder'],
          exported.map((table) => [table.stream, table.rows.toLocaleString('en'), table.folder]),
        ),
  )
  return 0
}
