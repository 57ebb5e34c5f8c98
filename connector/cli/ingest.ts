import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import {
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
  loadCatalogFile,
  type Message,
  protocols,
  takeUntilAbort,
  toConfiguredStream,
  unreadableFailure,
} from '../cdk'
import { createLakeLoader } from '../lake'
import {
  createSnapshotWriter,
  findPathProblem,
  type LoadSummary,
  type Snapshot,
  type SnapshotOptions,
  toLoadOptions,
} from '../snapshot'
import { declaredStreams, findForeignProblem } from '../streams'
import { useSnapshot } from './snapshot-file'
import { escapeControls } from './table'

/**
 * The configured catalog in a file; undefined without a file. Rejects with a `CommandError` for a stream of another
 * source.
 */
export const loadInputCatalog = async (path: string | undefined): Promise<ConfiguredCatalog | undefined> => {
  if (path === undefined) return undefined
  const catalog = await loadCatalogFile(path, decodeConfiguredCatalog('snapshot'))
  for (const { name, namespace } of catalog)
    if (namespace || !declaredStreams.some((stream) => stream.name === name))
      throw foreignStreamError(
        namespace ? `${namespace}.${name}` : name,
        'our streams have no namespace and different names',
      )
  return catalog
}

/** A snapshot holds only our service's data. Other tools load what other sources send. */
const foreignStreamError = (stream: string, problem: string): CommandError =>
  new CommandError(
    configFailure(
      `The stream ${stream} comes from another source: ${problem}. None of it was written. A snapshot takes only ` +
        "what source-feedback and tap-feedback send; for other sources use Airbyte's destination-duckdb, Meltano's " +
        'target-duckdb or dlt.',
    ),
  )

const refuseForeign = (message: Message): void => {
  if (message._tag !== 'Started') return
  const problem = findForeignProblem(message.stream)
  if (problem !== undefined) throw foreignStreamError(message.stream.name, problem)
}

/** Without a catalog, only our own streams are known. Their records are merged into their tables. */
const ownCatalog: ConfiguredCatalog = declaredStreams.map((stream) => toConfiguredStream(stream, 'incremental'))
const undeclaredStreamFailure = (stream: string): Failure =>
  foreignStreamError(stream, `this connector has no stream ${stream}`).failure

const unconfiguredStreamFailure = (stream: string): Failure =>
  configFailure(
    `The input has the stream ${stream}, which the catalog does not have. Give the catalog of that run with --catalog.`,
  )

type IngestOptions = {
  /** Each file is a separate run; without files, stdin is one run. */
  readonly files: ReadonlyArray<string>
  readonly catalog: ConfiguredCatalog | undefined
  readonly history: boolean
}

/** Some messages of an input, or its end. */
type InputPiece = { readonly messages: ReadonlyArray<Message>; readonly isEnd: boolean }

/**
 * The messages of each input. Rejects with a `CommandError` for an input without messages, and for a stream of another
 * source.
 */
async function* readInputs(
  io: CommandIo,
  { files, catalog }: Pick<IngestOptions, 'files' | 'catalog'>,
): AsyncGenerator<InputPiece> {
  const decode = decodeMixedInput(Object.values(protocols), {
    purpose: 'store',
    now: Date.now,
    findStream: findStreamByTable(catalog ?? ownCatalog),
    acceptsCatalog: catalog === undefined,
    missingStreamFailure: catalog === undefined ? undeclaredStreamFailure : unconfiguredStreamFailure,
  })
  const inputs =
    files.length === 0
      ? [{ name: 'stdin', bytes: io.stdin }]
      : files.map((name) => ({ name, bytes: readFileBytes(name) }))
  for (const { name, bytes } of inputs) {
    let hasMessages = false
    for await (const decoded of decode(decompressBytes(takeUntilAbort(io.stop, bytes)))) {
      const messages = getOrThrow(decoded)
      messages.forEach(refuseForeign)
      hasMessages ||= messages.some(({ _tag }) => _tag !== 'Log')
      yield { messages, isEnd: false }
    }
    yield { messages: [], isEnd: true }
    if (!hasMessages && !io.stop.aborted)
      throw new CommandError(
        configFailure(`${name} holds no messages. Check the program that should have written them.`),
      )
  }
}

/** Writes the messages of each input into the snapshot. */
const ingestPieces = async (
  io: CommandIo,
  snapshot: Snapshot,
  pieces: AsyncIterable<InputPiece>,
  { catalog, history }: Pick<IngestOptions, 'catalog' | 'history'>,
): Promise<ReadonlyArray<LoadSummary>> => {
  const loadOptions = Object.fromEntries(
    [...indexByTable(catalog ?? [])].map(([table, configured]) => [table, toLoadOptions(configured)]),
  )
  const createWriter = async () => {
    const loader = snapshot.db.lake && (await createLakeLoader(snapshot, undefined, Date.now()))
    return createSnapshotWriter(snapshot, { now: Date.now, loadOptions, history, loader })
  }
  const summaries: Array<LoadSummary> = []
  const counts = new Map<string, number>()
  let writer: Awaited<ReturnType<typeof createWriter>> | undefined
  for await (const { messages, isEnd } of pieces) {
    writer ??= await createWriter()
    for (const message of messages) {
      if (message._tag === 'Log') io.printWarning(escapeControls(message.message))
      if (message._tag === 'Records') {
        const count = (counts.get(message.stream) ?? 0) + message.rows.length
        counts.set(message.stream, count)
        io.printProgress(`${message.stream}: ${count.toLocaleString('en')} records`)
      }
      await writer.write(message)
    }
    if (!isEnd) continue
    summaries.push(...(await writer.finish()))
    writer = undefined
  }
  if (io.stop.aborted)
    io.printWarning('Stopped. Records covered by states are kept. Load the same messages again to continue.')
  return summaries
}

/** The pieces of an input up to the first one with a message. */
const readFirst = async (pieces: AsyncGenerator<InputPiece>): Promise<ReadonlyArray<InputPiece>> => {
  const first: InputPiece[] = []
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
    first.push(next.value)
    if (next.value.messages.some(({ _tag }) => _tag !== 'Log')) break
  }
  return first
}

/**
 * Writes the messages of each input into the file, then calls `body` with the file and what was loaded. The file is
 * opened only once messages have arrived, so that input of another source does not create one.
 */
export const ingestInputs = async <A>(
  io: CommandIo,
  path: string,
  { prepare, ...options }: IngestOptions & { readonly prepare?: (snapshot: Snapshot) => Promise<void> },
  body: (snapshot: Snapshot, summaries: ReadonlyArray<LoadSummary>) => Promise<A>,
  opening: SnapshotOptions,
): Promise<A> => {
  const pieces = readInputs(io, options)
  const first = await readFirst(pieces).catch((error: unknown) => {
    const problem = findPathProblem(path)
    throw problem === undefined ? error : new CommandError(problem)
  })
  const all = async function* () {
    yield* first
    yield* pieces
  }
  return useSnapshot(
    path,
    'write',
    async (snapshot) => {
      await prepare?.(snapshot)
      return body(snapshot, await ingestPieces(io, snapshot, all(), options))
    },
    opening,
  )
}

export const errorCode = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)

async function* readFileBytes(path: string): AsyncIterable<Uint8Array> {
  try {
    yield* createReadStream(path)
  } catch (error) {
    throw new CommandError(unreadableFailure(path, error))
  }
}

/** The bytes, decompressed if they start like gzip. */
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
