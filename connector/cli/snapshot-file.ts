import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
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
  type Message,
  mapDefined,
  protocols,
  readJsonFile,
  runOrThrow,
  takeUntilAbort,
  toConfiguredStream,
  usageError,
} from '../cdk'
import { createLakeLoader, openLake, type PlaceOptions } from '../lake'
import {
  closeSnapshot,
  createSnapshotWriter,
  damagedFileFailure,
  databaseWriteFailure,
  findPathProblem,
  isDiskFull,
  isLakePath,
  isOutOfMemory,
  type LoadSummary,
  openSnapshot,
  outputFullFailure,
  parseMemorySize,
  type Snapshot,
  type SnapshotAccess,
  type SnapshotOptions,
  toLoadOptions,
} from '../snapshot'
import { declaredStreams, findForeignProblem } from '../streams'
import { toVersion } from './options'
import { escapeControls } from './table'

const waitUnits: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }
/** How the options of the command line ask to open a file. */
export const toSnapshotOptions = (
  io: CommandIo,
  options: { readonly [K in 'wait' | 'memory-limit' | 'data' | 'extensions' | 'at']?: string | undefined },
): PlaceOptions => ({
  wait: toFileWait(io, options.wait),
  memoryLimit: mapDefined(options['memory-limit'], toMemoryLimit),
  lake: {
    dataPath: options.data,
    extensions: options.extensions,
    version: mapDefined(options.at, (text) => toVersion('--at', text)),
    env: io.env,
  },
})

/** What `--memory-limit` asks for, in bytes. */
const toMemoryLimit = (text: string): number => {
  const bytes = parseMemorySize(text)
  if (bytes === undefined)
    throw usageError(`--memory-limit must be a size of at least 16MB, such as 512MB or 1GiB, not ${text}.`)
  return bytes
}

/** What `--wait` asks for: for how long to wait for a file that another process uses. */
const toFileWait = (io: CommandIo, text: string | undefined): SnapshotOptions['wait'] => {
  if (text === undefined) return undefined
  const [, amount, unit = 's'] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? []
  const millis = Number(amount) * (waitUnits[unit] ?? Number.NaN)
  if (Number.isNaN(millis)) throw usageError(`--wait must be a time such as 30s, 10m or 2h, not ${text}.`)
  return { millis, stop: io.stop, onAttempt: ({ message }) => io.printProgress(`Waiting up to ${text}: ${message}`) }
}

/** Opens the file or the lake for as long as `body` runs. */
export const useSnapshot = async <A>(
  path: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
  options?: PlaceOptions,
): Promise<A> => {
  const snapshot = await runOrThrow((isLakePath(path) ? openLake : openSnapshot)(path, access, options))
  try {
    return await body(snapshot)
  } catch (error) {
    throw toReadFailure(snapshot.db, error)
  } finally {
    await closeSnapshot(snapshot)
  }
}

/**
 * An error of DuckDB, as a damaged file or too little memory gives it, as a failure with a reason; any other error as
 * it is.
 */
const toReadFailure = ({ path, explainMemory }: Snapshot['db'], error: unknown): unknown => {
  if (!(error instanceof Error) || error instanceof CommandError || !/^[A-Z][A-Za-z ]* Error: /.test(error.message))
    return error
  if (isOutOfMemory(error)) return new CommandError(explainMemory('this', error))
  return new CommandError(
    isDiskFull(error) ? databaseWriteFailure(path, error) : damagedFileFailure(path, error.message.split('\n')[0]),
  )
}

/** The file that a path leads to, through symbolic links, though it may not exist yet. */
const resolveLinks = async (path: string, linksLeft = 40): Promise<string> => {
  const existing = await realpath(path).catch(() => undefined)
  if (existing !== undefined) return existing
  const target = linksLeft === 0 ? undefined : await readlink(path).catch(() => undefined)
  if (target !== undefined) return resolveLinks(resolve(dirname(path), target), linksLeft - 1)
  const parent = dirname(path)
  return parent === path ? path : join(await resolveLinks(parent, linksLeft), basename(path))
}

/** Whether a file is a DuckDB database, ours or another. */
const isDatabaseFile = async (path: string): Promise<boolean> => {
  const file = await open(path).catch(() => undefined)
  try {
    const { buffer, bytesRead } = (await file?.read(Buffer.alloc(12), 0, 12, 0)) ?? {
      buffer: Buffer.alloc(0),
      bytesRead: 0,
    }
    return buffer.toString('latin1', 8, bytesRead) === 'DUCK'
  } catch {
    return false
  } finally {
    await file?.close()
  }
}

/**
 * Refuses to write over a database: the snapshot of `db` by whatever path, the files that DuckDB keeps beside it, or
 * another one. Call it while the snapshot is closed, since closing any handle of a file gives up DuckDB's lock.
 */
export const refuseDatabaseAsOutput = async (out: string, db: string | undefined): Promise<void> => {
  const target = await resolveLinks(resolve(out))
  const refuse = (what: string): never => {
    throw new CommandError(configFailure(`--out ${out} is ${what}. It was not changed; give another path.`))
  }
  for (const path of db === undefined ? [] : [resolve(db), await resolveLinks(resolve(db))]) {
    if (target === path) refuse('the snapshot itself')
    if (target.startsWith(`${path}.wal`) || target.startsWith(`${path}.tmp`)) refuse('a file of the snapshot')
  }
  const [found, own] = await Promise.all(
    [target, db].map((path) => (path === undefined ? undefined : stat(path).catch(() => undefined))),
  )
  if (found && own && found.ino === own.ino && found.dev === own.dev) refuse('the snapshot itself')
  if (found?.isFile() && (await isDatabaseFile(target))) refuse('a DuckDB database')
}

/** A text at once or in parts, or what writes to a path, where an empty file is. */
export type OutputContent = string | AsyncIterable<string> | ((path: string) => Promise<void>)

/**
 * Replaces a file at once, so that a reader never sees a part of it. Only its owner can read the file, since it may
 * hold words of patients. What is no file, such as a pipe, is written to. An error of the content itself is thrown as
 * it is.
 */
export const writeOutputFile = async (path: string, content: OutputContent): Promise<void> => {
  try {
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && !found.isFile()) {
      if (typeof content === 'function')
        throw new CommandError(configFailure(`${path} is no file, and this format needs one.`))
      return await writeFile(path, content)
    }
    const target = await resolveLinks(resolve(path))
    const temporary = `${target}.${randomUUID()}.tmp`
    try {
      await writeFile(temporary, typeof content === 'function' ? '' : content, { mode: 0o600, flag: 'wx' })
      if (typeof content === 'function') await content(temporary)
      await rename(temporary, target)
    } catch (error) {
      await rm(temporary, { force: true })
      // DuckDB's own error names the file.
      throw isDiskFull(error) && String(error).includes(temporary) ? new CommandError(outputFullFailure(path)) : error
    }
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException
    if (syscall === undefined) throw error
    throw new CommandError(
      ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(errorCode(error))
        ? outputFullFailure(path)
        : configFailure(`${path} cannot be written. ${errorCode(error)}: check the path.`),
    )
  }
}

/**
 * The configured catalog in a file; undefined without a file. Rejects with `CommandError` for a stream of another
 * source.
 */
export const loadInputCatalog = async (path: string | undefined): Promise<ConfiguredCatalog | undefined> => {
  if (path === undefined) return undefined
  const catalog = getOrThrow(
    pipe(
      decodeConfiguredCatalog('snapshot')(await runOrThrow(readJsonFile('catalog', path))),
      E.mapLeft(addFilePath(path)),
    ),
  )
  for (const { name, namespace } of catalog)
    if (namespace || !declaredStreams.some((stream) => stream.name === name))
      throw foreignStreamError(namespace ? `${namespace}.${name}` : name, 'ours have no namespace and other names')
  return catalog
}

/** A snapshot is one of our service: other tools load what other sources send. */
const foreignStreamError = (stream: string, problem: string): CommandError =>
  new CommandError(
    configFailure(
      `The stream ${stream} is of another source: ${problem}. Nothing of it was written. A snapshot takes what ` +
        "source-feedback and tap-feedback send; for other sources use Airbyte's destination-duckdb, Meltano's " +
        'target-duckdb or dlt.',
    ),
  )

const refuseForeign = (message: Message): void => {
  if (message._tag !== 'Started') return
  const problem = findForeignProblem(message.stream)
  if (problem !== undefined) throw foreignStreamError(message.stream.name, problem)
}

/** Without a catalog our own streams are known; their records are merged into their tables. */
const ownCatalog: ConfiguredCatalog = declaredStreams.map((stream) => toConfiguredStream(stream, 'incremental'))

const undeclaredStreamFailure = (stream: string): Failure =>
  foreignStreamError(stream, `no stream of ours is called ${stream}`).failure

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

/** Some messages of an input, or its end. */
type InputPiece = { readonly messages: ReadonlyArray<Message>; readonly isEnd: boolean }

/**
 * The messages of each input. Rejects with `CommandError` for an input without any, and for a stream of another
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
  if (io.stop.aborted) io.printWarning('Stopped. What the states cover is kept: load the same messages again to go on.')
  return summaries
}

/** The pieces of an input up to the first with a message. */
const readFirst = async (pieces: AsyncGenerator<InputPiece>): Promise<ReadonlyArray<InputPiece>> => {
  const first: InputPiece[] = []
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
    first.push(next.value)
    if (next.value.messages.some(({ _tag }) => _tag !== 'Log')) break
  }
  return first
}

/**
 * Writes the messages of each input into the file, and gives it to `body` with what was loaded. The file is opened
 * once messages have come, so that an input of another source makes none.
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
