import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type ClientOptions, toFailure } from '../api'
import {
  CommandError,
  type ConfiguredStream,
  configFailure,
  connectionStatusLine,
  decodeAirbyte,
  decodeDestinationCatalog,
  defineCommand,
  destinationCatalogLine,
  destinationSpecLine,
  errorTraceLine,
  type Failure,
  jsonLine,
  parseExactJson,
  readJsonFile,
} from '../cdk'
import {
  addFilePath,
  configOption,
  destinationDocumentationUrl,
  destinationSpec,
  getOrThrow,
  loadDestinationConfig,
  runOrThrow,
} from '../config'
import {
  awaitOrTimeOut,
  checkAttempts,
  checkDestination,
  checkTimeoutFailure,
  openDestination,
  runWrite,
  type WriteLog,
  withCheckTimeouts,
} from '../runtime'
import { sinks } from '../sinks'
import { dryRunOption } from './options'

export const destinationSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the configuration this destination understands.',
  options: {},
  run: async (io) => {
    await io.print(destinationSpecLine(destinationSpec, destinationDocumentationUrl))
    return 0
  },
})

export const destinationCheckCommand = defineCommand({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    let last: Failure | undefined
    const onRetry: ClientOptions['onRetry'] = ({ operation, error }) => {
      last = toFailure(operation, error)
    }
    const config = withCheckTimeouts({ ...(await loadDestinationConfig(io, String(options.config))), dry_run: false })
    const wired = await runOrThrow(openDestination(config, io.printWarning, { attempts: checkAttempts, onRetry }))
    const outcome = await awaitOrTimeOut<E.Either<Failure, string>>(checkDestination(config, wired.target)(), () =>
      E.left(checkTimeoutFailure('an empty array', last)),
    )
    await wired.close()
    if (E.isLeft(outcome)) throw new CommandError(outcome.left)
    await io.print(connectionStatusLine('SUCCEEDED', io.redactText(outcome.right)))
    return 0
  },
})

export const destinationDiscoverCommand = defineCommand({
  name: 'discover',
  summary: 'Prints the objects that can be written to: operations, schemas, matching keys.',
  options: { config: configOption },
  run: async (io, { options }) => {
    await loadDestinationConfig(io, String(options.config))
    await io.print(destinationCatalogLine(sinks))
    return 0
  },
})

const airbyteLevels = { info: 'INFO', warn: 'WARN' } as const

export const destinationWriteCommand = defineCommand({
  name: 'write',
  summary: 'Writes the records on stdin and answers each state once all before it is acknowledged.',
  options: {
    config: configOption,
    catalog: { type: 'string', value: 'FILE', help: 'The configured catalog, JSON', required: true },
    'dry-run': dryRunOption,
  },
  examples: [
    'destination-feedback write --config config.json --catalog catalog.json < messages.jsonl',
    'destination-feedback write --config config.json --catalog catalog.json --dry-run < messages.jsonl',
  ],
  notes:
    'Exit status: 0 every stream is complete and written or put aside, 1 one is not (what the states printed cover is).',
  run: async (io, { options }) => {
    const path = String(options.catalog)
    const config = await loadDestinationConfig(io, String(options.config))
    const configured = getOrThrow(
      pipe(
        decodeDestinationCatalog(await runOrThrow(readJsonFile('catalog', path))),
        E.flatMap(checkOperations),
        E.mapLeft(addFilePath(path)),
      ),
    )
    const log: WriteLog = (level, message) => {
      // A broken output shows itself where a state or the end is printed.
      io.print(jsonLine({ type: 'LOG', log: { level: airbyteLevels[level], message } })).catch(() => undefined)
    }
    const { failures } = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] === true },
      decodeAirbyte(configured, parseExactJson),
      log,
    )
    for (const failure of failures) await io.print(errorTraceLine(Date.now, failure))
    return failures.length === 0 ? 0 : 1
  },
})

/** Appending is all that any object takes; what else is asked of one must be among its operations. */
const checkOperations = (
  streams: ReadonlyArray<ConfiguredStream>,
): E.Either<Failure, ReadonlyArray<ConfiguredStream>> => {
  const wrong = streams.find(({ objectName, operation }) => {
    const sink = sinks.find(({ name }) => name === objectName)
    return sink !== undefined && operation !== undefined && !sink.operations.includes(operation)
  })
  return wrong === undefined
    ? E.right(streams)
    : E.left(
        configFailure(
          `The stream ${wrong.name} asks for ${wrong.operation}, which ${wrong.objectName} does not offer. Choose append.`,
        ),
      )
}
