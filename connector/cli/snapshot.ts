import { type CommandIo, defineCommand, progressDelay, usageError } from '../cdk'
import { diffVersions } from '../lake'
import { shortenText } from '../report'
import {
  diffSnapshots,
  exportParquet,
  hashContent,
  isIdentical,
  type ParquetPartition,
  partitionFormats,
  type Snapshot,
  type StreamDifference,
  setReportingTimeZone,
} from '../snapshot'
import {
  fileOptions,
  historyOption,
  inputCatalogOption,
  outputDbOption,
  placeOptions,
  requirePlace,
  toVersion,
} from './options'
import { ingestInputs, loadInputCatalog, toSnapshotOptions, useSnapshot } from './snapshot-file'
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
  readonly json: boolean
}

const exportSnapshot = async (
  io: CommandIo,
  { format, ...options }: ExportOptions,
  [folder, ...others]: ReadonlyArray<string>,
): Promise<number> => {
  const { db, partition, json } = options
  if (format !== 'parquet') throw usageError('--export can only be parquet.')
  if (folder === undefined || others.length > 0) throw usageError('--export needs one folder to write to.')
  if (partition !== undefined && !isPartition(partition))
    throw usageError(`--partition must be one of ${Object.keys(partitionFormats).join(', ')}.`)
  const exported = await useSnapshot(
    db,
    'read',
    (snapshot) => exportParquet(snapshot, folder, partition),
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
    'source-feedback read --config config.json --catalog catalog.json | tee run.jsonl | feedback snapshot --db a.duckdb --catalog catalog.json',
    'feedback replay run.jsonl --db b.duckdb --catalog catalog.json',
  ],
  notes:
    'The same messages written into a new file always give the same hash. Exit status: 0 all streams are complete, 1 a stream is not complete.',
  run: async (io, { options, positionals }) => {
    if (positionals.length === 0)
      throw usageError('feedback replay needs a file of captured messages. See feedback replay --help.')
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

const maxValueWidth = 80

export const diffCommand = defineCommand({
  name: 'diff',
  summary: 'Shows the differences between two snapshots, or between two versions of a lake.',
  operands: 'A.duckdb B.duckdb | VERSION VERSION',
  options: {
    lake: { ...placeOptions.lake, help: 'A DuckLake, whose versions of these numbers are compared' },
    extensions: placeOptions.extensions,
    ...fileOptions,
    json: { type: 'boolean', help: 'Print the differences as JSON' },
  },
  examples: ['feedback diff yesterday.duckdb today.duckdb', 'feedback diff --lake ducklake:postgres:dbname=lake 12 15'],
  notes:
    'For each stream: rows, columns and their types, and the first values that differ. Exit status: 0 they are the same, 1 they differ, 75 or 78 they could not be compared.',
  run: async (io, { options, positionals }) => {
    const [a, b, ...others] = positionals
    if (a === undefined || b === undefined || others.length > 0)
      throw usageError('feedback diff needs two files, or --lake and two versions. See feedback diff --help.')
    const opening = toSnapshotOptions(io, options)
    const onStream = (stream: string) => io.printProgress(stream, progressDelay)
    // Opening B first reports a missing or foreign file by its own name.
    if (options.lake === undefined) await useSnapshot(b, 'read', async () => undefined, opening)
    const streams =
      options.lake === undefined
        ? await useSnapshot(a, 'read', (snapshot) => diffSnapshots(snapshot, b, onStream), opening)
        : await useSnapshot(
            requirePlace('feedback diff', { ...options, db: undefined }),
            'read',
            (snapshot) => diffVersions(snapshot, [toVersion('VERSION', a), toVersion('VERSION', b)], onStream),
            opening,
          )
    io.printProgress('')
    await io.print(options.json ? formatJson(streams) : formatDifferences(streams))
    return streams.every(isIdentical) ? 0 : 1
  },
})

const formatCount = (rows: number | null): string => (rows === null ? 'none' : rows.toLocaleString('en'))

const formatValue = (value: string | null): string => (value === null ? 'null' : shortenText(value, maxValueWidth))

const formatDifferences = (streams: ReadonlyArray<StreamDifference>): string => {
  const table = formatTable(
    ['stream', 'rows in A', 'rows in B', 'only in A', 'only in B', 'changed'],
    streams.map(({ stream, a, b, onlyA, onlyB, changed }) => [
      stream,
      ...[a, b, onlyA, onlyB, changed].map(formatCount),
    ]),
  )
  const types = streams.flatMap(({ stream, columns }) =>
    columns.map(({ column, a, b }) => `${stream}.${column}: ${a ?? 'not in A'}, ${b ?? 'not in B'}\n`),
  )
  const values = streams.flatMap(({ stream, values }) =>
    values.map(
      ({ key, column, a, b }) => `${stream} ${key}, ${column}: ${formatValue(a)} in A, ${formatValue(b)} in B\n`,
    ),
  )
  const verdict = streams.every(isIdentical) ? 'They are the same.' : 'They differ.'
  return [
    table,
    ...(types.length > 0 ? ['\n', ...types] : []),
    ...(values.length > 0 ? ['\n', ...values] : []),
    `\n${verdict}\n`,
  ].join('')
}
