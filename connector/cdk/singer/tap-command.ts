import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { type Command, CommandError, type CommandIo, defineCommand, getOrThrow, runOrThrow } from '../command'
import { configFailure } from '../failure'
import { addFilePath, loadConfig, readJsonFile, readStateFile } from '../load'
import type { Message } from '../message'
import type { LogEntry, ProtocolOutput } from '../protocol'
import {
  consumeMessages,
  type MessageConsumer,
  type OpenSource,
  type ReadOutcome,
  type SourceProgram,
} from '../source-program'
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
import { createSingerEncoder, metricLogEntry } from './encode'
import { decodeSingerState, type SingerState } from './state'

/** The streams in their order, starting with the one that an interrupted run was reading. */
const rotateStreams = <A extends { readonly name: string }>(
  streams: ReadonlyArray<A>,
  first: O.Option<string>,
): ReadonlyArray<A> => {
  const index = O.isSome(first) ? streams.findIndex(({ name }) => name === first.value) : -1
  return index <= 0 ? streams : [...streams.slice(index), ...streams.slice(0, index)]
}

/** What a run of the tap reads. */
type TapRun<Env> = {
  readonly open: OpenSource<Env>
  readonly selection: SingerSelection
  readonly state: SingerState
  readonly log: SingerLogger
}

/** Prints the selected streams as Singer messages; the last message is a STATE, also after a failure. */
const readAsSinger = async <Env>(
  io: CommandIo,
  { open, selection: { catalog, schemas }, state, log }: TapRun<Env>,
): Promise<ReadOutcome> => {
  const encoder = createSingerEncoder({ now: Date.now, schemas, givenState: state.value })
  const print = async ({ lines, log: entries }: ProtocolOutput): Promise<void> => {
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }
  const order = rotateStreams(open.streams, state.currentlySyncing)
  const outcome = await consumeMessages(io, open, { catalog, state: state.bookmarks, order }, [
    (message) => print(encoder.encode(message)),
  ])
  await print(encoder.end())
  return outcome
}

const keepFirstRow = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/** Prints the first record of each selected stream, from the beginning and without a STATE; returns whether all streams could be read. */
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
    const outcome = await consumeMessages({ ...io, stop }, open, { catalog: [selectedStream], state: {} }, [print])
    complete = complete && outcome !== 'failed'
  }
  return complete
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

const nestedDeselectionWarnings = ({
  nestedDeselections: [first, ...others],
}: SingerSelection): ReadonlyArray<LogEntry> =>
  first === undefined
    ? []
    : [
        {
          level: 'warn',
          message: `${first}${others.length === 0 ? ' is' : ` and ${others.length} more are`} deselected inside a selected attribute and will be sent with it: only whole top-level attributes can be left out.`,
        },
      ]

/** The command of a Singer tap. `--config ENV` reads variables whose names start with TAP_ and the source's name. */
export const createTapCommand = <Config, Env>(source: SourceProgram<Config, Env>): Command => {
  const program: SingerProgram = {
    name: `tap-${source.name}`,
    description: `Singer tap for ${source.subject}`,
    version: source.version,
    capabilities: ['catalog', 'properties', 'discover', 'state', 'about', 'structured-logging'],
    spec: source.format.spec,
    variablePrefix: `TAP_${source.name.toUpperCase()}`,
  }

  /** The streams with the settings of the config; with the default settings while the config is missing or incomplete. */
  const discoverStreams = async (io: CommandIo, paths: ReadonlyArray<string>): Promise<ReadonlyArray<Stream<Env>>> => {
    if (paths.length === 0) return source.listStreams('singer', undefined)
    const config = await loadConfig(io, source.format, paths, program.variablePrefix).catch((error: unknown) => {
      if (error instanceof CommandError) return undefined
      throw error
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
      test: { type: 'boolean', help: 'Print one record of each stream' },
      ...singerOptions,
    },
    notes: singerConfigNotes,
    examples: [
      `${program.name} --config config.json --discover > catalog.json`,
      `${program.name} --config config.json --catalog catalog.json --state state.json`,
    ],
    run: async (plainIo, { options }) => {
      if (await printDescription(plainIo, program, options)) return 0
      if (options.discover) {
        await plainIo.print(formatSingerCatalog(await discoverStreams(plainIo, options.config)))
        return 0
      }
      const log = createSingerLogger(plainIo, program.name)
      const io = withLoggedWarnings(plainIo, log)
      const config = await loadConfig(io, source.format, requireConfigPaths(options.config), program.variablePrefix)
      const open = await source.connect('singer', config, {
        stop: io.stop,
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
      nestedDeselectionWarnings(selection).forEach(log)
      const run: TapRun<Env> = { open, selection, state, log }
      const complete = options.test ? await readFirstRecords(io, run) : (await readAsSinger(io, run)) !== 'failed'
      await open.close?.()
      return complete ? 0 : 1
    },
  })
}
