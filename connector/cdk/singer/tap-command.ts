import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import type { SourceState } from '../catalog'
import { readJsonFile, readStateFile } from '../config/files'
import { addFilePath } from '../config/format'
import { loadConfig } from '../config/load'
import { configFailure } from '../failure'
import type { Message } from '../message'
import { type Command, type CommandIo, defineCommand } from '../program/command'
import { CommandError, getOrThrow, runOrThrow, usageError } from '../program/error'
import type { ProtocolOutput } from '../protocol'
import { defined } from '../schema'
import {
  consumeMessages,
  type MessageConsumer,
  type MessageCopy,
  type OpenSource,
  type ReadOutcome,
  type SourceProgram,
} from '../source-program'
import { decodeSingerState, type SingerState } from '../state-file'
import type { Stream } from '../stream'
import { decodeSingerCatalog, describeSingerStream, formatSingerCatalog, type SingerSelection } from './catalog'
import {
  createSingerLogger,
  printDescription,
  requireConfigPaths,
  type SingerLogger,
  type SingerProgram,
  singerConfigNotes,
  singerConfigOption,
  singerOptions,
  withLoggedWarnings,
} from './command-line'
import { createSingerEncoder, metricLogEntry, tableVersionsOf } from './encode'

/** The streams from the one on that was interrupted, then those before it; those that are read last stay so. */
const rotateStreams = <Env>(
  streams: ReadonlyArray<Stream<Env>>,
  first: O.Option<string>,
): ReadonlyArray<Stream<Env>> => {
  const { left: others, right: last } = pipe(
    streams,
    RA.partition(({ reader }) => reader.isLast === true),
  )
  const index = O.isSome(first) ? others.findIndex(({ name }) => name === first.value) : -1
  return index <= 0 ? streams : [...others.slice(index), ...others.slice(0, index), ...last]
}

/** What a run of the tap reads. */
type TapRun<Env> = {
  readonly open: OpenSource<Env>
  readonly selection: SingerSelection
  readonly state: SingerState
  readonly log: SingerLogger
  readonly tableVersions: boolean
  /** Receives each message beside stdout. */
  readonly copy: MessageCopy | undefined
}

/**
 * The bookmarks to go on from. A full refresh with versions that has no version yet begins anew: the rows that an
 * earlier run has sent would be deleted with the other rows without that version.
 */
const bookmarksToContinue = <Env>({ open, selection, state, tableVersions }: TapRun<Env>): SourceState => {
  const versions = tableVersionsOf(state.value)
  const isRefreshed = (name: string): boolean =>
    selection.catalog.find((selected) => selected.name === name)?.syncMode === 'full_refresh' ||
    open.streams.find((stream) => stream.name === name)?.syncModes.includes('incremental') === false
  return tableVersions
    ? Object.fromEntries(Object.entries(state.bookmarks).filter(([name]) => versions.has(name) || !isRefreshed(name)))
    : state.bookmarks
}

/** Prints the selected streams as Singer messages; the last message is a STATE, also after a failure. */
const readAsSinger = async <Env>(io: CommandIo, run: TapRun<Env>): Promise<ReadOutcome> => {
  const { open, selection, state, log, tableVersions, copy } = run
  const { catalog, schemas } = selection
  const encoder = createSingerEncoder({ now: Date.now, schemas, givenState: state.value, tableVersions })
  const print = async ({ lines, log: entries }: ProtocolOutput): Promise<void> => {
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }
  const order = rotateStreams(open.streams, state.currentlySyncing)
  const consumers: ReadonlyArray<MessageConsumer> = [(message) => print(encoder.encode(message))]
  const outcome = await consumeMessages(
    io,
    open,
    {
      catalog,
      state: bookmarksToContinue(run),
      previous: state.bookmarks,
      order,
      ...defined({ holdsRows: copy?.holdsRows }),
    },
    copy === undefined ? consumers : [...consumers, copy.write],
  )
  await print(encoder.end())
  return outcome
}

const keepFirstRow = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/**
 * Prints the first record of each selected stream, from the beginning and without a STATE; returns whether all streams
 * could be read.
 */
const readFirstRecords = async <Env>(
  io: CommandIo,
  { open, selection: { catalog, schemas }, state, log }: TapRun<Env>,
): Promise<boolean> => {
  let complete = true
  for (const selectedStream of catalog) {
    const enough = new AbortController()
    const stop = AbortSignal.any([io.stop, enough.signal])
    const encoder = createSingerEncoder({ now: Date.now, schemas, givenState: state.value })
    const print: MessageConsumer = async (message) => {
      if (message._tag === 'Checkpoint' || enough.signal.aborted) return
      const { lines, log: entries } = encoder.encode(keepFirstRow(message))
      entries.forEach(log)
      for (const text of lines) await io.print(text)
      if (message._tag === 'Records') enough.abort()
    }
    const outcome = await consumeMessages(
      { ...io, stop },
      open,
      { catalog: [{ ...selectedStream, replaces: false }], state: {} },
      [print],
    )
    complete = complete && outcome !== 'failed'
  }
  return complete
}

/** Prints the SCHEMA of each selected stream, without a request. */
const printSchemas = async <Env>(
  io: CommandIo,
  { open, selection: { catalog, schemas } }: TapRun<Env>,
): Promise<void> => {
  const encoder = createSingerEncoder({ now: Date.now, schemas })
  for (const { name, syncMode } of catalog) {
    const stream = open.streams.find((known) => known.name === name)
    if (stream === undefined) continue
    const { schema, primaryKey, cursor } = stream
    const [line = ''] = encoder.encode({
      _tag: 'Started',
      stream: { name, schema, primaryKey, cursor, syncMode },
    }).lines
    await io.print(line)
  }
}

/** The selection in a catalog file; every stream without a file. */
const loadSingerCatalog = async <Env>(
  path: string | undefined,
  streams: ReadonlyArray<Stream<Env>>,
): Promise<SingerSelection> => {
  const decode = decodeSingerCatalog(streams)
  if (path === undefined) return getOrThrow(decode({ streams: streams.map(describeSingerStream) }))
  const selection = getOrThrow(
    pipe(decode(await runOrThrow(readJsonFile('catalog', path))), E.mapLeft(addFilePath(path))),
  )
  if (selection.catalog.length === 0)
    throw new CommandError(
      configFailure(`${path}: The catalog selects no stream. Set "selected": true for at least one.`),
    )
  return selection
}

const loadSingerState = async (path: string | undefined): Promise<SingerState> =>
  getOrThrow(
    path === undefined
      ? decodeSingerState(null)
      : pipe(decodeSingerState(await runOrThrow(readStateFile(path))), E.mapLeft(addFilePath(path))),
  )

/**
 * Says of each attribute that is deselected inside a selected one that it leaves all the same, and what would keep it
 * back.
 */
const warnOfNestedDeselections = async <Config, Env>(
  source: SourceProgram<Config, Env>,
  { nestedDeselections }: SingerSelection,
  log: SingerLogger,
): Promise<void> => {
  for (const { stream, path } of nestedDeselections) {
    const whole = `${stream}.${path[0]}`
    const remedy = (await source.explainWithholding?.(stream, path)) ?? `deselect ${whole}`
    log({
      level: 'warn',
      message:
        `${stream}.${path.join('.')} is deselected, but ${whole} is ` +
        `selected and is sent whole. To keep it back, ${remedy}.`,
      stream,
    })
  }
}

/** What --test prints; the first two mean the same. */
const testKinds = ['records', 'all', 'schema']

/** The command of a Singer tap. `--config ENV` reads variables whose names start with TAP_ and the source's name. */
export const createTapCommand = <Config, Env>(source: SourceProgram<Config, Env>): Command => {
  const program: SingerProgram = {
    name: `tap-${source.name}`,
    description: `Singer tap for ${source.subject}`,
    version: source.version,
    capabilities: [
      'catalog',
      'properties',
      'discover',
      'state',
      'about',
      'test',
      'structured-logging',
      ...(source.sendsTableVersions === undefined ? [] : ['activate-version']),
    ],
    spec: source.format.spec,
    variablePrefix: `TAP_${source.name.toUpperCase()}`,
  }

  /**
   * The streams with the settings of the config; with the default settings while the config is missing or incomplete.
   */
  const discoverStreams = async (io: CommandIo, paths: ReadonlyArray<string>): Promise<ReadonlyArray<Stream<Env>>> => {
    if (paths.length === 0) return source.listStreams('singer', undefined)
    const config = await loadConfig(io, source.format, paths, program.variablePrefix).catch((error: unknown) => {
      if (!(error instanceof CommandError)) throw error
      io.printWarning(`${io.redactText(error.failure.message)} The catalog is that of the default settings.`)
      return undefined
    })
    return source.listStreams('singer', config)
  }

  return defineCommand({
    name: '',
    summary: `${program.description}: prints the selected streams as Singer messages.`,
    options: {
      config: singerConfigOption(program.variablePrefix),
      catalog: {
        type: 'string',
        value: 'FILE',
        help: 'The catalog with its selection; every stream is read if left out',
      },
      properties: { type: 'string', value: 'FILE', help: 'The older name of --catalog' },
      state: { type: 'string', value: 'FILE', help: 'The state to continue from; everything is read if left out' },
      discover: { type: 'boolean', help: 'Print the catalog of all streams' },
      test: {
        type: 'string',
        value: 'KIND',
        bareValue: 'records',
        help: 'Print one record of each stream; schema: only its schema, without a request',
      },
      ...singerOptions,
    },
    notes: singerConfigNotes,
    examples: [
      `${program.name} --config config.json --discover > catalog.json`,
      `${program.name} --config config.json --catalog catalog.json --state state.json`,
    ],
    run: async (plainIo, { options }) => {
      if (await printDescription(plainIo, program, options)) return 0
      const log = createSingerLogger(plainIo, program.name)
      const io = withLoggedWarnings(plainIo, log)
      if (options.discover) {
        await plainIo.print(formatSingerCatalog(await discoverStreams(io, options.config)))
        return 0
      }
      if (options.test !== undefined && !testKinds.includes(options.test))
        throw usageError(`--test is wrong: give one of ${testKinds.join(', ')}, as in --test=schema.`)
      const config = await loadConfig(io, source.format, requireConfigPaths(options.config), program.variablePrefix)
      const open = await source.connect('singer', config, {
        stop: io.stop,
        variables: io.env,
        onNotice: io.printWarning,
        onRequest: ({ operation, status, millis }) =>
          log(
            metricLogEntry('timer', 'http_request_duration', millis / 1000, {
              endpoint: operation,
              http_status_code: status,
            }),
          ),
      })
      const selection = await loadSingerCatalog(options.catalog ?? options.properties, open.streams)
      const state = await loadSingerState(options.state)
      await warnOfNestedDeselections(source, selection, log)
      for (const { stream, message } of selection.ineffectiveSettings) log({ level: 'warn', message, stream })
      const copy = options.test === undefined ? await source.openCopy?.(config) : undefined
      const run: TapRun<Env> = {
        open,
        selection,
        state,
        log,
        tableVersions: source.sendsTableVersions?.(config) ?? false,
        copy,
      }
      const runTest = async (kind: string): Promise<boolean> => {
        if (kind !== 'schema') return readFirstRecords(io, run)
        await printSchemas(io, run)
        return true
      }
      const complete =
        options.test === undefined ? (await readAsSinger(io, run)) !== 'failed' : await runTest(options.test)
      await copy?.finish()
      await open.close?.()
      return complete ? 0 : 1
    },
  })
}
