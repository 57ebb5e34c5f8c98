import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
  assignObjects,
  type CommandOption,
  type ConfigFormat,
  type ConfiguredCatalog,
  type ConfiguredStream,
  configFailure,
  configuredCatalogOption,
  connectionStatusLine,
  createSingerLogger,
  decodeConfiguredCatalog,
  defineCommand,
  destinationCatalogLine,
  destinationSpecLine,
  type Failure,
  loadCatalogFile,
  loadConfig,
  printDescription,
  protocols,
  requireConfigPaths,
  runOrThrow,
  type SingerProgram,
  singerConfigNotes,
  singerConfigOption,
  singerOptions,
  toInputStream,
  usageError,
  type WriteResult,
  withLoggedWarnings,
} from '../cdk'
import { createDestinationFormat, type DestinationConfig } from '../config'
import { locationSink, sinks, visitRecordSink } from '../sinks'
import { configOption, dryRunOption, readPackageVersion, variablePrefix } from './options'

/** The format of the destination's configuration. Its mapping has a key for each attribute of the sinks. */
export const destinationFormat: ConfigFormat<DestinationConfig> = createDestinationFormat({
  visit_records: visitRecordSink.schema,
  locations: locationSink.schema,
})

/** Loaded when a command runs, because `spec` and `--help` do not need the engine. */
const loadRuntime = () => import('../runtime/index.js')

export const destinationSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the configuration schema.',
  options: {},
  run: async (io) => {
    await io.print(destinationSpecLine(destinationFormat.spec, destinationFormat.documentationUrl))
    return 0
  },
})

export const destinationCheckCommand = defineCommand({
  name: 'check',
  summary: 'Checks the configuration: address, token, permission for each operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadConfig(io, destinationFormat, options.config, variablePrefix)
    const { checkDestinationConfig } = await loadRuntime()
    const result = await runOrThrow(checkDestinationConfig(config, io.printWarning, io.env))
    await io.print(connectionStatusLine('SUCCEEDED', io.redactText(result)))
    return 0
  },
})

export const destinationDiscoverCommand = defineCommand({
  name: 'discover',
  summary: 'Prints the objects that can be written: operations, schemas, matching keys.',
  options: { config: configOption },
  run: async (io, { options }) => {
    await loadConfig(io, destinationFormat, options.config, variablePrefix)
    await io.print(destinationCatalogLine(sinks))
    return 0
  },
})

const resendOption = {
  type: 'string',
  value: 'FILE',
  help: 'Send the records of a dead-letter file again, instead of stdin; those rejected again stay in it',
} as const satisfies CommandOption

const resendNotes =
  'With --resend: 0 even if some records are rejected again, 1 if all are. If the run fails (1), FILE is unchanged.'

export const destinationWriteCommand = defineCommand({
  name: 'write',
  summary:
    'Writes the records on stdin and prints each state once the service has acknowledged every record before it.',
  options: {
    config: configOption,
    catalog: {
      ...configuredCatalogOption,
      help: 'The configured catalog, JSON (required without --resend)',
      required: false,
    },
    resend: resendOption,
    'dry-run': dryRunOption,
  },
  examples: [
    'destination-feedback write --config config.json --catalog catalog.json < messages.jsonl',
    'destination-feedback write --config config.json --catalog catalog.json --dry-run < messages.jsonl',
    'destination-feedback write --config config.json --resend rejected.jsonl',
  ],
  notes:
    'Exit status: 0 every stream is complete and each record is written or a dead letter, ' +
    `1 a stream is not complete\n(the records before the printed states are). ${resendNotes}`,
  run: async (io, { options }) => {
    const { catalog: path, resend } = options
    if ([path, resend].filter((file) => file !== undefined).length !== 1 || path === '' || resend === '')
      throw usageError('destination-feedback write takes either --catalog FILE or --resend FILE. See its --help.')
    const config = await loadConfig(io, destinationFormat, options.config, variablePrefix)
    const catalog = path === undefined ? [] : await loadCatalog(path, config)
    const { runWrite } = await loadRuntime()
    const result = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] },
      { protocol: protocols.airbyte, catalog, resend },
    )
    return writeStatus(result)
  },
})

const loadCatalog = async (path: string, config: DestinationConfig): Promise<ConfiguredCatalog> =>
  loadCatalogFile(path, (value) =>
    pipe(
      decodeConfiguredCatalog('destination')(value),
      E.map((configured) => assignObjects(configured, config.streams)),
      E.flatMap(checkOperations),
    ),
  )

/** The operation that a stream requests, if it is not append. */
const requestedOperation = ({ destinationSyncMode: mode }: ConfiguredStream) =>
  mode === 'update' || mode === 'soft_delete' ? mode : undefined

/** Every object supports append. Any other operation must be one that the object offers. */
const checkOperations = (catalog: ConfiguredCatalog): E.Either<Failure, ConfiguredCatalog> => {
  const wrong = catalog.find((stream) => {
    const sink = sinks.find(({ name }) => name === toInputStream(stream).objectName)
    const operation = requestedOperation(stream)
    return sink !== undefined && operation !== undefined && !sink.operations.includes(operation)
  })
  return wrong === undefined
    ? E.right(catalog)
    : E.left(
        configFailure(
          `The stream ${wrong.name} asks for ${wrong.destinationSyncMode}, which ` +
            `${toInputStream(wrong).objectName} does not offer. Choose append.`,
        ),
      )
}

const writeStatus = ({ failures, inputFailures }: WriteResult): number =>
  failures.length === 0 && inputFailures.length === 0 ? 0 : 1

const targetProgram: SingerProgram = {
  name: 'target-feedback',
  description: 'Singer target for the Feedback Data Service: visit_records and locations',
  version: readPackageVersion,
  capabilities: ['about', 'structured-logging'],
  spec: destinationFormat.spec,
  variablePrefix: 'TARGET_FEEDBACK',
}

export const targetCommand = defineCommand({
  name: '',
  summary: 'Singer target for the Feedback Data Service: writes visit_records and locations from stdin.',
  options: {
    config: singerConfigOption('TARGET_FEEDBACK'),
    resend: resendOption,
    'dry-run': dryRunOption,
    ...singerOptions,
  },
  notes: `${singerConfigNotes} ${resendNotes}`,
  examples: [
    'tap-csv --config csv.json | target-feedback --config config.json > state.jsonl',
    'target-feedback --config config.json --dry-run < messages.jsonl',
    'target-feedback --config config.json --resend rejected.jsonl',
  ],
  run: async (plainIo, { options }) => {
    if (await printDescription(plainIo, targetProgram, options)) return 0
    const log = createSingerLogger(plainIo, targetProgram.name)
    const io = withLoggedWarnings(plainIo, log)
    const paths = requireConfigPaths(options.config)
    if (options.resend === '') throw usageError('target-feedback: --resend is empty. Give a file of dead letters.')
    const config = await loadConfig(io, destinationFormat, paths, targetProgram.variablePrefix)
    const { runWrite } = await loadRuntime()
    const result = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] },
      { protocol: protocols.singer, catalog: [], log, resend: options.resend },
    )
    return writeStatus(result)
  },
})
