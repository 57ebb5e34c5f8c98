import { loadCatalogFile, loadConfig, loadStateFile } from '../config/load'
import { configFailure } from '../failure'
import { type Command, type CommandIo, defineCommand } from '../program/command'
import { CommandError, getOrThrow, usageError } from '../program/error'
import type { CommandOptions, ParsedOptions } from '../program/options'
import { type SourceProgram, stateOption } from '../source-program'
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
import { metricLogEntry } from './encode'
import { printSchemas, readAsSinger, readFirstRecords, type TapRun } from './tap-run'

/** The selection in a catalog file; every stream if there is no file. */
const loadSingerCatalog = async <Env>(
  path: string | undefined,
  streams: ReadonlyArray<Stream<Env>>,
): Promise<SingerSelection> => {
  const decode = decodeSingerCatalog(streams)
  if (path === undefined) return getOrThrow(decode({ streams: streams.map(describeSingerStream) }))
  const selection = await loadCatalogFile(path, decode)
  if (selection.catalog.length === 0)
    throw new CommandError(
      configFailure(`${path}: The catalog selects no stream. Set "selected": true for at least one.`),
    )
  return selection
}

const loadSingerState = async (path: string | undefined): Promise<SingerState> =>
  path === undefined ? getOrThrow(decodeSingerState(null)) : loadStateFile(path, decodeSingerState)

/** Warns that an attribute deselected inside a selected object is still sent, and explains how to leave it out. */
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

/** The values of --test; the first two mean the same. */
const testKinds = ['records', 'all', 'schema']

const describeTap = <Config, Env>(source: SourceProgram<Config, Env>): SingerProgram => ({
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
})

const tapOptions = ({ variablePrefix }: SingerProgram) =>
  ({
    config: singerConfigOption(variablePrefix),
    catalog: {
      type: 'string',
      value: 'FILE',
      help: 'The catalog with its selection; every stream is read if left out',
    },
    properties: { type: 'string', value: 'FILE', help: 'Older name of --catalog' },
    state: stateOption,
    discover: { type: 'boolean', help: 'Print the catalog of all streams' },
    test: {
      type: 'string',
      value: 'KIND',
      bareValue: 'records',
      help: 'Print one record of each stream; schema: only its schema, without a request',
    },
    ...singerOptions,
  }) as const satisfies CommandOptions

type TapOptions = ParsedOptions<ReturnType<typeof tapOptions>>['options']

/** The command of a Singer tap. `--config ENV` reads variables that start with TAP_ and the source's name. */
export const createTapCommand = <Config, Env>(source: SourceProgram<Config, Env>): Command => {
  const program = describeTap(source)
  return defineCommand({
    name: '',
    summary: `${program.description}: prints the selected streams as Singer messages.`,
    options: tapOptions(program),
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
        await plainIo.print(formatSingerCatalog(await discoverStreams(io, source, program, options.config)))
        return 0
      }
      if (options.test !== undefined && !testKinds.includes(options.test))
        throw usageError(`--test is wrong: give one of ${testKinds.join(', ')}, as in --test=schema.`)
      const run = await openTap(io, source, program, options, log)
      const isComplete = await runTap(io, run, options.test)
      await run.copy?.finish()
      await run.open.close?.()
      return isComplete ? 0 : 1
    },
  })
}

/**
 * The streams under the settings of the config, or under the default settings while the config is missing or
 * incomplete.
 */
const discoverStreams = async <Config, Env>(
  io: CommandIo,
  source: SourceProgram<Config, Env>,
  { variablePrefix }: SingerProgram,
  paths: ReadonlyArray<string>,
): Promise<ReadonlyArray<Stream<Env>>> => {
  if (paths.length === 0) return source.listStreams('singer', undefined)
  const config = await loadConfig(io, source.format, paths, variablePrefix).catch((error: unknown) => {
    if (!(error instanceof CommandError)) throw error
    io.printWarning(`${io.redactText(error.failure.message)} The catalog shown is for the default settings.`)
    return undefined
  })
  return source.listStreams('singer', config)
}

/** Connects, and determines what to read. Opens a copy only for a real read. */
const openTap = async <Config, Env>(
  io: CommandIo,
  source: SourceProgram<Config, Env>,
  { variablePrefix }: SingerProgram,
  options: TapOptions,
  log: SingerLogger,
): Promise<TapRun<Env>> => {
  const config = await loadConfig(io, source.format, requireConfigPaths(options.config), variablePrefix)
  const open = await source.connect('singer', config, {
    stop: io.stop,
    variables: io.env,
    onNotice: io.printWarning,
    onRequest: ({ operation, status, millis }) => {
      const tags = { endpoint: operation, http_status_code: status }
      log(metricLogEntry('timer', 'http_request_duration', millis / 1000, tags))
    },
  })
  const selection = await loadSingerCatalog(options.catalog ?? options.properties, open.streams)
  const state = await loadSingerState(options.state)
  await warnOfNestedDeselections(source, selection, log)
  for (const { stream, message } of selection.ineffectiveSettings) log({ level: 'warn', message, stream })
  const copy = options.test === undefined ? await source.openCopy?.(config) : undefined
  return { open, selection, state, log, tableVersions: source.sendsTableVersions?.(config) ?? false, copy }
}

/** True if all streams could be read. */
const runTap = async <Env>(io: CommandIo, run: TapRun<Env>, testKind: string | undefined): Promise<boolean> => {
  if (testKind === undefined) return (await readAsSinger(io, run)) !== 'failed'
  if (testKind !== 'schema') return readFirstRecords(io, run)
  await printSchemas(io, run)
  return true
}
