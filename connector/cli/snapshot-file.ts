import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
  CommandError,
  type CommandIo,
  configFailure,
  getOrThrow,
  readJsonFile,
  runOrThrow,
  takeUntilAbort,
} from '../cdk'
import { addFilePath } from '../config'
import {
  closeSnapshot,
  createSnapshotWriter,
  decodeExpectedStreams,
  decodeInput,
  type ExpectedStreams,
  type LoadSummary,
  openSnapshot,
  type Snapshot,
  type SnapshotAccess,
} from '../snapshot'
import { streams } from '../streams'

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

/** The streams of the configured catalog in a file; undefined without a file. */
export const loadExpectedStreams = async (path: string | undefined): Promise<ExpectedStreams | undefined> =>
  path === undefined
    ? undefined
    : getOrThrow(
        pipe(decodeExpectedStreams(await runOrThrow(readJsonFile('catalog', path))), E.mapLeft(addFilePath(path))),
      )

const ownStreams: ExpectedStreams = new Map(
  streams.map(({ name, schema, primaryKey, cursor }) => [
    name,
    { info: { name, schema, primaryKey, cursor, syncMode: 'incremental' }, loadOptions: {} },
  ]),
)

export type IngestOptions = {
  /** Each file is a run of its own; without a file, stdin is one run. */
  readonly files: ReadonlyArray<string>
  readonly expected: ExpectedStreams | undefined
  readonly history: boolean
}

/** Writes the messages of each input into the snapshot. */
export const ingestMessages = async (
  io: CommandIo,
  snapshot: Snapshot,
  { files, expected, history }: IngestOptions,
): Promise<ReadonlyArray<LoadSummary>> => {
  const loadOptions = Object.fromEntries(
    [...(expected ?? [])].map(([stream, { loadOptions }]) => [stream, loadOptions]),
  )
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
    for await (const message of decodeInput(input, { now: Date.now, expected, own: ownStreams })) {
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
