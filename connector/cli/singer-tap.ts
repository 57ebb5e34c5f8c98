import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import {
  CommandError,
  type CommandIo,
  configFailure,
  decodeSingerCatalog,
  decodeSingerState,
  defineCommand,
  describeSingerStream,
  formatSingerCatalog,
  getOrThrow,
  type LogEntry,
  type Message,
  metricLogEntry,
  type ProtocolOutput,
  protocols,
  readJsonFile,
  readStateFile,
  runOrThrow,
  type SingerSelection,
  type SingerState,
} from '../cdk'
import { addFilePath, loadConfig, sourceFormat } from '../config'
import {
  buildStreams,
  type ConfiguredSource,
  createSource,
  type MessageConsumer,
  type ReadOutcome,
  readSource,
} from '../runtime'
import { streams } from '../streams'
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
} from './singer-program'

const tapProgram: SingerProgram = {
  name: 'tap-feedback',
  description: 'Singer tap for the Feedback Data Service',
  capabilities: ['catalog', 'properties', 'discover', 'state', 'about', 'structured-logging'],
  spec: sourceFormat.spec,
  variablePrefix: 'TAP_FEEDBACK',
}

/** The column in which Singer marks a deleted row. */
const deletedAtColumn = '_sdc_deleted_at'

/** The streams in their order, starting with the one that an interrupted run was reading. */
const rotateStreams = <A extends { readonly name: string }>(
  streams: ReadonlyArray<A>,
  first: O.Option<string>,
): ReadonlyArray<A> => {
  const index = O.isSome(first) ? streams.findIndex(({ name }) => name === first.value) : -1
  return index <= 0 ? streams : [...streams.slice(index), ...streams.slice(0, index)]
}

/** What a run of the tap reads. */
type TapRun = {
  readonly configured: ConfiguredSource
  readonly selection: SingerSelection
  readonly state: SingerState
  readonly log: SingerLogger
}

/** Prints the selected streams as Singer messages; the last message is a STATE, also after a failure. */
const readAsSinger = async (
  io: CommandIo,
  { configured, selection: { catalog, schemas }, state, log }: TapRun,
): Promise<ReadOutcome> => {
  const encoder = protocols.singer.createEncoder({ now: Date.now, schemas, givenState: state.value })
  const print = async ({ lines, log: entries }: ProtocolOutput): Promise<void> => {
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }
  const order = rotateStreams(configured.streams, state.currentlySyncing)
  const outcome = await readSource(io, configured, { catalog, state: state.bookmarks, order }, [
    (message) => print(encoder.encode(message)),
  ])
  await print(encoder.end())
  return outcome
}

const keepFirstRow = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/** Prints the first record of each selected stream, from the beginning and without a STATE; returns whether all streams could be read. */
const readFirstRecords = async (
  io: CommandIo,
  { configured, selection: { catalog, schemas }, state, log }: TapRun,
): Promise<boolean> => {
  let complete = true
  for (const selectedStream of catalog) {
    const enough = new AbortController()
    const stop = AbortSignal.any([io.stop, enough.signal])
    const encoder = protocols.singer.createEncoder({ now: Date.now, schemas, givenState: state.value })
    const print: MessageConsumer = async (message) => {
      if (message._tag === 'Checkpoint' || enough.signal.aborted) return
      const { lines, log: entries } = encoder.encode(keepFirstRow(message))
      entries.forEach(log)
      for (const text of lines) await io.print(text)
      if (message._tag === 'Records') enough.abort()
    }
    const outcome = await readSource({ ...io, stop }, configured, { catalog: [selectedStream], state: {} }, [print])
    complete = complete && outcome !== 'failed'
  }
  return complete
}

/** The selection in a catalog file; every stream without a file. */
const loadSingerCatalog = async (
  path: string | undefined,
  streams: ConfiguredSource['streams'],
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

/** The streams with the settings of the config; with the default settings while the config is missing or incomplete. */
const discoverStreams = async (io: CommandIo, paths: ReadonlyArray<string>): Promise<ConfiguredSource['streams']> => {
  if (paths.length === 0) return streams
  const config = await loadConfig(io, sourceFormat, paths, tapProgram.variablePrefix).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined
    throw error
  })
  return config === undefined ? streams : getOrThrow(buildStreams(config, deletedAtColumn))
}

export const tapCommand = defineCommand({
  name: '',
  summary: 'Singer tap for the Feedback Data Service: prints the selected streams as Singer messages.',
  options: {
    config: singerConfigOption('TAP_FEEDBACK'),
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
    'tap-feedback --config config.json --discover > catalog.json',
    'tap-feedback --config config.json --catalog catalog.json --state state.json',
  ],
  run: async (plainIo, { options }) => {
    if (await printDescription(plainIo, tapProgram, options)) return 0
    if (options.discover) {
      await plainIo.print(formatSingerCatalog(await discoverStreams(plainIo, options.config)))
      return 0
    }
    const log = createSingerLogger(plainIo, tapProgram.name)
    const io = withLoggedWarnings(plainIo, log)
    const paths = requireConfigPaths(options.config)
    const config = await loadConfig(io, sourceFormat, paths, tapProgram.variablePrefix)
    const configured = getOrThrow(
      createSource(config, {
        deletedAt: deletedAtColumn,
        onRequest: ({ operation, status, millis }) =>
          log(
            metricLogEntry('timer', 'http_request_duration', millis / 1000, {
              endpoint: operation,
              http_status_code: status,
            }),
          ),
      }),
    )
    const selection = await loadSingerCatalog(options.catalog ?? options.properties, configured.streams)
    const state = await loadSingerState(options.state)
    nestedDeselectionWarnings(selection).forEach(log)
    const run: TapRun = { configured, selection, state, log }
    const complete = options.test ? await readFirstRecords(io, run) : (await readAsSinger(io, run)) !== 'failed'
    await configured.close()
    return complete ? 0 : 1
  },
})
