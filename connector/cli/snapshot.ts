import { type CommandIo, defineCommand, usageError } from '../cdk'
import { exportParquet, hashContent, type ParquetPartition, partitionFormats, setReportingTimeZone } from '../snapshot'
import { historyOption, inputCatalogOption, outputDbOption, waitOption } from './options'
import { ingestMessages, loadInputCatalog, toFileWait, useSnapshot } from './snapshot-file'
import { formatJson, formatLoadSummaries, formatTable } from './table'

export const snapshotCommand = defineCommand({
  name: 'snapshot',
  summary: 'Writes Airbyte or Singer messages into a DuckDB file, or the tables of the file as Parquet.',
  operands: '[FILE… | FOLDER]',
  options: {
    db: outputDbOption,
    wait: waitOption,
    catalog: inputCatalogOption,
    history: historyOption,
    'reporting-time-zone': {
      type: 'string',
      value: 'ZONE',
      help: 'The time zone of the days and months in views, report and Parquet folders from now on; UTC at first',
    },
    export: { type: 'string', value: 'parquet', help: 'Read no messages; write each stream as Parquet into FOLDER' },
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
    'Messages come from the files, each a run of its own, or from stdin; gzip is unpacked. Exit status: 0 all streams are complete, 1 a stream is not complete (what its states cover is kept).',
  run: async (io, { options, positionals }) => {
    if (options.export !== undefined) return exportSnapshot(io, { ...options, format: options.export }, positionals)
    const catalog = await loadInputCatalog(options.catalog)
    return useSnapshot(
      options.db,
      'write',
      async (snapshot) => {
        const timeZone = options['reporting-time-zone']
        if (timeZone !== undefined) await setReportingTimeZone(snapshot, timeZone)
        const summaries = await ingestMessages(io, snapshot, { files: positionals, catalog, history: options.history })
        if (options.json) await io.print(formatJson(summaries))
        else io.printWarning(formatLoadSummaries(summaries).trimEnd())
        return summaries.every(({ status }) => status === 'complete') ? 0 : 1
      },
      toFileWait(io, options.wait),
    )
  },
})

const isPartition = (name: string): name is ParquetPartition => Object.hasOwn(partitionFormats, name)

type ExportOptions = {
  readonly db: string
  readonly format: string
  readonly wait: string | undefined
  readonly partition: string | undefined
  readonly json: boolean
}

const exportSnapshot = async (
  io: CommandIo,
  { db, wait, format, partition, json }: ExportOptions,
  [folder, ...others]: ReadonlyArray<string>,
): Promise<number> => {
  if (format !== 'parquet') throw usageError('--export can only be parquet.')
  if (folder === undefined || others.length > 0) throw usageError('--export needs one folder to write to.')
  if (partition !== undefined && !isPartition(partition))
    throw usageError(`--partition must be one of ${Object.keys(partitionFormats).join(', ')}.`)
  const exported = await useSnapshot(
    db,
    'read',
    (snapshot) => exportParquet(snapshot, folder, partition),
    toFileWait(io, wait),
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

export const replayCommand = defineCommand({
  name: 'replay',
  summary: 'Writes captured messages into DuckDB again and prints a hash of the content of the tables.',
  operands: 'FILE…',
  options: {
    db: outputDbOption,
    wait: waitOption,
    catalog: inputCatalogOption,
    history: historyOption,
    json: { type: 'boolean', help: 'Print the hashes as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json | tee run.jsonl | feedback snapshot --db a.duckdb --catalog catalog.json',
    'feedback replay run.jsonl --db b.duckdb --catalog catalog.json',
  ],
  notes:
    'The same messages written into a new file always give the same hash. Exit status: 0 all streams are complete, 1 a stream is not complete.',
  run: async (io, { options, positionals }) => {
    if (positionals.length === 0)
      throw usageError('feedback replay needs a file of captured messages. See feedback replay --help.')
    const catalog = await loadInputCatalog(options.catalog)
    return useSnapshot(
      options.db,
      'write',
      async (snapshot) => {
        const summaries = await ingestMessages(io, snapshot, { files: positionals, catalog, history: options.history })
        const content = await hashContent(snapshot)
        const rows = content.tables.map(({ table, rows, hash }) => [table, rows.toLocaleString('en'), hash])
        await io.print(
          options.json ? formatJson(content) : `${formatTable(['table', 'rows', 'hash'], rows)}\n${content.hash}\n`,
        )
        return summaries.every(({ status }) => status === 'complete') ? 0 : 1
      },
      toFileWait(io, options.wait),
    )
  },
})
