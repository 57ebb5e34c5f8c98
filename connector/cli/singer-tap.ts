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
  encodeSinger,
  formatSingerCatalog,
  type Message,
  metricLogEntry,
  type ParsedOptions,
  readJsonFile,
  readStateFile,
  type SingerLogEntry,
  type SingerSelection,
  type SingerState,
} from '../cdk'
import { addFilePath, getOrThrow, loadSourceConfigs, runOrThrow, sourceSpec } from '../config'
import {
  buildStreams,
  type ConfiguredSource,
  createSource,
  type MessageConsumer,
  type ReadOutcome,
  runRead,
} from '../runtime'
import { streams } from '../streams'
import {
  createSingerLogger,
  describeProgram,
  formatProgramMarkdown,
  readPackageVersion,
  type SingerLogger,
  type SingerProgram,
  withLoggedWarnings,
} from './singer-program'

/** The streams, beginning with the one an interrupted run was at. */
export const rotateStreams = <A extends { readonly name: string }>(
  all: ReadonlyArray<A>,
  first: O.Option<string>,
): ReadonlyArray<A> => {
  const at = O.isSome(first) ? all.findIndex(({ name }) => name === first.value) : -1
  return at <= 0 ? all : [...all.slice(at), ...all.slice(0, at)]
}

/** Reads what is asked and prints it as Singer messages, a STATE last however it ends. */
export const readAsSinger = async (
  io: CommandIo,
  wired: ConfiguredSource,
  { catalog, schemas }: SingerSelection,
  state: SingerState,
  log: SingerLogger,
): Promise<ReadOutcome> => {
  const face = encodeSinger(schemas, state, Date.now)
  let book = face.initialState
  const print: MessageConsumer = async (message) => {
    const [next, { lines, log: entries }] = face.encodeMessage(book, message)
    book = next
    entries.forEach(log)
    for (const text of lines) await io.print(text)
  }
  const order = rotateStreams(wired.streams, state.currentlySyncing)
  const ending = await runRead(io, wired, { catalog, state: state.bookmarks, order }, [print])
  await io.print(face.finalLine(book))
  return ending
}

const keepFirstRow = (message: Message): Message =>
  message._tag === 'Records' ? { ...message, rows: message.rows.slice(0, 1) } : message

/** Prints the first record of each stream asked for, without going on from any state or moving it; answers whether all could be read. */
export const readFirstRecords = async (
  io: CommandIo,
  wired: ConfiguredSource,
  { catalog, schemas }: SingerSelection,
  state: SingerState,
  log: SingerLogger,
): Promise<boolean> => {
  let good = true
  for (const selection of catalog) {
    const enough = new AbortController()
    const stop = AbortSignal.any([io.stop, enough.signal])
    const face = encodeSinger(schemas, state, Date.now)
    let book = face.initialState
    const print: MessageConsumer = async (message) => {
      if (message._tag === 'Checkpoint' || enough.signal.aborted) return
      const [next, { lines, log: entries }] = face.encodeMessage(book, keepFirstRow(message))
      book = next
      entries.forEach(log)
      for (const text of lines) await io.print(text)
      if (message._tag === 'Records') enough.abort()
    }
    const ending = await runRead({ ...io, stop }, wired, { catalog: [selection], state: {}, order: wired.streams }, [
      print,
    ])
    good = good && ending !== 'failed'
  }
  return good
}

const programName = 'tap-feedback'

const tapProgram: SingerProgram = {
  name: programName,
  description: 'Singer tap for the Feedback Data Service',
  capabilities: ['catalog', 'properties', 'discover', 'state', 'about', 'structured-logging'],
  spec: sourceSpec,
  variablePrefix: 'TAP_FEEDBACK',
}

/** The text of an option; options that may come more than once give their last. */
const lastOption = ({ options }: ParsedOptions, option: string): string | undefined => {
  const last = [options[option] ?? []].flat().at(-1)
  return typeof last === 'string' ? last : undefined
}

/** What the catalog in a file asks for; every stream without one. */
const loadSingerCatalog = async (
  path: string | undefined,
  streams: ConfiguredSource['streams'],
): Promise<SingerSelection> => {
  const read = decodeSingerCatalog(streams)
  if (path === undefined) return getOrThrow(read({ streams: streams.map(describeSingerStream) }))
  const asked = getOrThrow(pipe(read(await runOrThrow(readJsonFile('catalog', path))), E.mapLeft(addFilePath(path))))
  if (asked.catalog.length === 0)
    throw new CommandError(
      configFailure(`${path}: The catalog selects no stream. Set "selected": true for at least one.`),
    )
  return asked
}

const loadSingerState = async (path: string | undefined): Promise<SingerState> =>
  getOrThrow(
    path === undefined
      ? decodeSingerState(null)
      : pipe(decodeSingerState(await runOrThrow(readStateFile(path))), E.mapLeft(addFilePath(path))),
  )

const warnInseparable = ({ nestedDeselections: [one, ...more] }: SingerSelection): ReadonlyArray<SingerLogEntry> =>
  one === undefined
    ? []
    : [
        {
          level: 'warn',
          message: `${one}${more.length === 0 ? ' is' : ` and ${more.length} more are`} deselected inside a selected attribute and will be sent with it: only whole top-level attributes can be left out.`,
        },
      ]

const listConfigPaths = ({ options }: ParsedOptions): ReadonlyArray<string> => [options.config ?? []].flat().map(String)

const deletedAtColumn = '_sdc_deleted_at'

const runTap = async (plain: CommandIo, given: ParsedOptions): Promise<number> => {
  const log = createSingerLogger(plain, programName)
  const io = withLoggedWarnings(plain, log)
  const paths = listConfigPaths(given)
  if (paths.length === 0) throw new CommandError(configFailure('--config is missing: give a file, or ENV.'))
  const config = await loadSourceConfigs(io, paths, tapProgram.variablePrefix)
  const wired = getOrThrow(
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
  const asked = await loadSingerCatalog(lastOption(given, 'catalog') ?? lastOption(given, 'properties'), wired.streams)
  const state = await loadSingerState(lastOption(given, 'state'))
  warnInseparable(asked).forEach(log)
  const good =
    given.options.test === true
      ? await readFirstRecords(io, wired, asked, state, log)
      : (await readAsSinger(io, wired, asked, state, log)) !== 'failed'
  await wired.close()
  return good ? 0 : 1
}

/** Without a config, or with one that is not complete yet, the streams as no config shapes them. */
const discoverStreams = async (io: CommandIo, given: ParsedOptions): Promise<ConfiguredSource['streams']> => {
  const paths = listConfigPaths(given)
  if (paths.length === 0) return streams
  const config = await loadSourceConfigs(io, paths, tapProgram.variablePrefix).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined
    throw error
  })
  return config === undefined ? streams : getOrThrow(buildStreams(config, deletedAtColumn))
}

export const tapCommand = defineCommand({
  name: '',
  summary: 'Singer tap for the Feedback Data Service: prints the selected streams as Singer messages.',
  options: {
    config: { type: 'string', value: 'FILE|ENV', multiple: true, help: 'The configuration, JSON; ENV: TAP_FEEDBACK_…' },
    catalog: { type: 'string', value: 'FILE', help: 'The catalog with its selection; left out, every stream is read' },
    properties: { type: 'string', value: 'FILE', help: 'The older name of --catalog' },
    state: { type: 'string', value: 'FILE', help: 'The state to go on from; left out, everything is read' },
    discover: { type: 'boolean', help: 'Print the catalog of all streams' },
    test: { type: 'boolean', help: 'Print one record of each stream' },
    about: { type: 'boolean', help: 'Tell name, version, capabilities and settings' },
    format: { type: 'string', value: 'FORMAT', help: 'Form of --about: text, json or markdown' },
    version: { type: 'boolean', help: 'Tell the version' },
  },
  notes: 'More than one --config: the later goes over the earlier, such as --config config.json --config ENV.',
  examples: [
    'tap-feedback --config config.json --discover > catalog.json',
    'tap-feedback --config config.json --catalog catalog.json --state state.json',
  ],
  run: async (io, given) => {
    const { options } = given
    if (options.version === true) {
      await io.print(`${programName} ${readPackageVersion()}\n`)
      return 0
    }
    if (options.about === true) {
      const format = lastOption(given, 'format') ?? 'text'
      if (!['text', 'json', 'markdown'].includes(format))
        throw new CommandError(configFailure('--format is wrong. Give text, json or markdown.'))
      const version = readPackageVersion()
      await io.print(
        format === 'json'
          ? `${JSON.stringify(describeProgram(tapProgram, version), null, 2)}\n`
          : formatProgramMarkdown(tapProgram, version),
      )
      return 0
    }
    if (options.discover === true) {
      await io.print(formatSingerCatalog(await discoverStreams(io, given)))
      return 0
    }
    return runTap(io, given)
  },
})
