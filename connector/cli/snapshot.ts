import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  type ParsedOptions,
  readJsonFile,
  takeUntilAbort,
  usageError,
} from '../cdk'
import { addFilePath, getOrThrow, runOrThrow } from '../config'
import { formatOutcomes } from '../runtime'
import {
  closeSnapshot,
  createSnapshotWriter,
  decodeExpectedStreams,
  decodeInput,
  type ExpectedStreams,
  exportParquet,
  type LoadSummary,
  openSnapshot,
  type ParquetPartition,
  partitionFormats,
  type Snapshot,
  type SnapshotAccess,
} from '../snapshot'
import { streams } from '../streams'
import { decompressBytes, readFileBytes } from './input-bytes'
import { formatTable } from './table'

export const dbOption = { type: 'string', value: 'FILE', help: 'The DuckDB file', required: true } as const

export const historyOption = {
  type: 'boolean',
  help: 'From now on, keep every version of a row, with valid_from and valid_to: the views NAME_versions',
} as const

/** Opens the file for as long as `body` runs. */
export const useSnapshot = async <A>(
  path: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
): Promise<A> => {
  const snapshot = await runOrThrow(openSnapshot(path, access))
  try {
    return await body(snapshot)
  } finally {
    await closeSnapshot(snapshot)
  }
}

export const catalogOption = {
  type: 'string',
  value: 'FILE',
  help: "The run's configured catalog; without it our own streams are known, and Singer messages need none",
} as const

/** Writes the messages of each file into the snapshot, a run each; those on stdin where there is no file. */
export const ingestMessages = async (
  io: CommandIo,
  snapshot: Snapshot,
  {
    files,
    expected,
    history,
  }: {
    readonly files: ReadonlyArray<string>
    readonly expected: ExpectedStreams | undefined
    readonly history: boolean
  },
): Promise<ReadonlyArray<LoadSummary>> => {
  const wishes = Object.fromEntries([...(expected ?? [])].map(([stream, { loadOptions }]) => [stream, loadOptions]))
  const outcomes: Array<LoadSummary> = []
  const counts = new Map<string, number>()
  const inputs =
    files.length === 0
      ? [{ name: 'stdin', bytes: io.stdin }]
      : files.map((name) => ({ name, bytes: readFileBytes(name) }))
  for (const { name, bytes } of inputs) {
    let empty = true
    const saver = await createSnapshotWriter(snapshot, { now: Date.now, loadOptions: wishes, history })
    const lines = decompressBytes(takeUntilAbort(io.stop, bytes))
    for await (const message of decodeInput(lines, { now: Date.now, expected, own: ownStreams })) {
      if (message._tag !== 'Log') empty = false
      if (message._tag === 'Log') io.printWarning(message.message)
      if (message._tag === 'Records') {
        const count = (counts.get(message.stream) ?? 0) + message.rows.length
        counts.set(message.stream, count)
        io.printProgress(`${message.stream}: ${count.toLocaleString('en')} records`)
      }
      await saver.write(message)
    }
    outcomes.push(...(await saver.finish()))
    if (empty && !io.stop.aborted)
      throw new CommandError(
        configFailure(`${name} holds no messages to take in. Look at what should have written them.`),
      )
  }
  return outcomes
}

const ownStreams: ExpectedStreams = new Map(
  streams.map(({ name, schema, primaryKey, cursor }) => [
    name,
    { info: { name, schema, primaryKey, cursor, syncMode: 'incremental' }, loadOptions: {} },
  ]),
)

/** The streams of a configured catalog, if one is given. */
export const loadExpectedStreams = async (path: string | undefined): Promise<ExpectedStreams | undefined> =>
  path === undefined
    ? undefined
    : getOrThrow(
        pipe(decodeExpectedStreams(await runOrThrow(readJsonFile('catalog', path))), E.mapLeft(addFilePath(path))),
      )

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
