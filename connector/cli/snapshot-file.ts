import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
  addFilePath,
  CommandError,
  type CommandIo,
  type ConfiguredCatalog,
  configFailure,
  decodeConfiguredCatalog,
  decodeMixedInput,
  type Failure,
  findStreamByTable,
  getOrThrow,
  indexByTable,
  protocols,
  readJsonFile,
  runOrThrow,
  takeUntilAbort,
  toConfiguredStream,
  usageError,
} from '../cdk'
import {
  closeSnapshot,
  createSnapshotWriter,
  damagedFileFailure,
  type FileWait,
  type LoadSummary,
  openSnapshot,
  openSnapshotWithin,
  type Snapshot,
  type SnapshotAccess,
  toLoadOptions,
} from '../snapshot'
import { streams } from '../streams'

const waitUnits: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** What `--wait` asks for: for how long to wait for a file that another process uses. */
export const toFileWait = (io: CommandIo, text: string | undefined): FileWait | undefined => {
  if (text === undefined) return undefined
  const [, amount, unit = 's'] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? []
  const millis = Number(amount) * (waitUnits[unit] ?? Number.NaN)
  if (Number.isNaN(millis)) throw usageError(`--wait must be a time such as 30s, 10m or 2h, not ${text}.`)
  return { millis, stop: io.stop, onAttempt: ({ message }) => io.printProgress(`Waiting up to ${text}: ${message}`) }
}

/** Opens the file for as long as `body` runs. */
export const useSnapshot = async <A>(
  path: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
  wait?: FileWait,
): Promise<A> => {
  const snapshot = await runOrThrow(
    wait === undefined ? openSnapshot(path, access) : openSnapshotWithin(path, access, wait),
  )
  try {
    return await body(snapshot)
  } catch (error) {
    throw toReadFailure(path, error)
  } finally {
    await closeSnapshot(snapshot)
  }
}

/** An error of DuckDB, as a damaged file gives it, as a failure with a reason; any other error as it is. */
const toReadFailure = (path: string, error: unknown): unknown =>
  error instanceof Error && !(error instanceof CommandError) && /^[A-Z][A-Za-z ]* Error: /.test(error.message)
    ? new CommandError(damagedFileFailure(path, error.message.split('\n')[0]))
    : error

/** The configured catalog in a file; undefined without a file. */
export const loadInputCatalog = async (path: string | undefined): Promise<ConfiguredCatalog | undefined> =>
  path === undefined
    ? undefined
    : getOrThrow(
        pipe(
          decodeConfiguredCatalog('snapshot')(await runOrThrow(readJsonFile('catalog', path))),
          E.mapLeft(addFilePath(path)),
        ),
      )

/** Without a catalog our own streams are known; their records are merged into their tables. */
const ownCatalog: ConfiguredCatalog = streams.map((stream) => toConfiguredStream(stream, 'incremental'))

const undeclaredStreamFailure = (stream: string): Failure =>
  configFailure(
    `Airbyte records do not say their schema, and ${stream} is no stream of ours: give the configured catalog of the run with --catalog.`,
  )

const unconfiguredStreamFailure = (stream: string): Failure =>
  configFailure(
    `The input has the stream ${stream}, which the catalog does not have. Give the catalog of that run with --catalog.`,
  )

export type IngestOptions = {
  /** Each file is a run of its own; without a file, stdin is one run. */
  readonly files: ReadonlyArray<string>
  readonly catalog: ConfiguredCatalog | undefined
  readonly history: boolean
}

/** Writes the messages of each input into the snapshot. */
export const ingestMessages = async (
  io: CommandIo,
  snapshot: Snapshot,
  { files, catalog, history }: IngestOptions,
): Promise<ReadonlyArray<LoadSummary>> => {
  const loadOptions = Object.fromEntries(
    [...indexByTable(catalog ?? [])].map(([table, configured]) => [table, toLoadOptions(configured)]),
  )
  const decode = decodeMixedInput(Object.values(protocols), {
    purpose: 'store',
    now: Date.now,
    findStream: findStreamByTable(catalog ?? ownCatalog),
    acceptsCatalog: catalog === undefined,
    missingStreamFailure: catalog === undefined ? undeclaredStreamFailure : unconfiguredStreamFailure,
  })
  const summaries: Array<LoadSummary> = []
  const counts = new Map<string, number>()
  const inputs =
    files.length === 0
      ? [{ name: 'stdin', bytes: io.stdin }]
      : files.map((name) => ({ name, bytes: readFileBytes(name) }))
  for (const { name, bytes } of inputs) {
    let hasMessages = false
    const writer = await createSnapshotWriter(snapshot, { now: Date.now, loadOptions, history })
    const input = decompressBytes(takeUntilAbort(io.stop, bytes))
    for await (const decoded of decode(input))
      for (const message of getOrThrow(decoded)) {
        if (message._tag === 'Log') io.printWarning(message.message)
        else hasMessages = true
        if (message._tag === 'Records') {
          const count = (counts.get(message.stream) ?? 0) + message.rows.length
          counts.set(message.stream, count)
          io.printProgress(`${message.stream}: ${count.toLocaleString('en')} records`)
        }
        await writer.write(message)
      }
    summaries.push(...(await writer.finish()))
    if (!hasMessages && !io.stop.aborted)
      throw new CommandError(
        configFailure(`${name} holds no messages. Check the program that should have written them.`),
      )
  }
  return summaries
}

const errorCode = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)

async function* readFileBytes(path: string): AsyncIterable<Uint8Array> {
  try {
    yield* createReadStream(path)
  } catch (error) {
    throw new CommandError(configFailure(`${path} cannot be read (${errorCode(error)}). Check the path.`))
  }
}

/** The same bytes; decompressed if they begin as gzip does. */
async function* decompressBytes(input: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const chunks = input[Symbol.asyncIterator]()
  const first = await chunks.next()
  if (first.done === true) return
  const all = (async function* () {
    yield first.value
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value
  })()
  if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) return yield* all
  const compressed = Readable.from(all)
  const decompressor = createGunzip()
  compressed.on('error', (error) => decompressor.destroy(error))
  try {
    yield* compressed.pipe(decompressor)
  } catch (error) {
    throw error instanceof CommandError
      ? error
      : new CommandError(configFailure(`The input looks like gzip, but cannot be unpacked (${errorCode(error)}).`))
  }
}
