import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import {
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
  getOrThrow,
  jsonLine,
  parseExactJson,
  readJsonFile,
  runOrThrow,
} from '../cdk'
import { addFilePath, loadConfig } from '../config'
import { checkDestinationConfig, destinationFormat, runWrite, type WriteLog } from '../runtime'
import { sinks } from '../sinks'
import { configOption, configuredCatalogOption, dryRunOption } from './options'

export const destinationSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the form of the configuration.',
  options: {},
  run: async (io) => {
    await io.print(destinationSpecLine(destinationFormat.spec, destinationFormat.documentationUrl))
    return 0
  },
})

export const destinationCheckCommand = defineCommand({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission for each operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadConfig(io, destinationFormat, [options.config])
    const result = await runOrThrow(checkDestinationConfig(config, io.printWarning))
    await io.print(connectionStatusLine('SUCCEEDED', io.redactText(result)))
    return 0
  },
})

export const destinationDiscoverCommand = defineCommand({
  name: 'discover',
  summary: 'Prints the objects that can be written: operations, schemas, matching keys.',
  options: { config: configOption },
  run: async (io, { options }) => {
    await loadConfig(io, destinationFormat, [options.config])
    await io.print(destinationCatalogLine(sinks))
    return 0
  },
})

const airbyteLevels = { info: 'INFO', warn: 'WARN' } as const

export const destinationWriteCommand = defineCommand({
  name: 'write',
  summary:
    'Writes the records on stdin and prints each state once the service has acknowledged every record before it.',
  options: { config: configOption, catalog: configuredCatalogOption, 'dry-run': dryRunOption },
  examples: [
    'destination-feedback write --config config.json --catalog catalog.json < messages.jsonl',
    'destination-feedback write --config config.json --catalog catalog.json --dry-run < messages.jsonl',
  ],
  notes:
    'Exit status: 0 every stream is complete and each record is written or a dead letter, 1 a stream is not complete (the records before the printed states are).',
  run: async (io, { options }) => {
    const config = await loadConfig(io, destinationFormat, [options.config])
    const streams = getOrThrow(
      pipe(
        decodeDestinationCatalog(await runOrThrow(readJsonFile('catalog', options.catalog))),
        E.flatMap(checkOperations),
        E.mapLeft(addFilePath(options.catalog)),
      ),
    )
    const log: WriteLog = (level, message) => {
      // Ignored here: a broken stdout fails again when a state or the end is printed.
      io.print(jsonLine({ type: 'LOG', log: { level: airbyteLevels[level], message } })).catch(() => undefined)
    }
    const { failures } = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] },
      decodeAirbyte(streams, parseExactJson),
      log,
    )
    for (const failure of failures) await io.print(errorTraceLine(Date.now, failure))
    return failures.length === 0 ? 0 : 1
  },
})

/** Every object can be appended to; any other operation must be one that the object offers. */
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

export const airbyteDestinationCommands = {
  spec: destinationSpecCommand,
  check: destinationCheckCommand,
  discover: destinationDiscoverCommand,
  write: destinationWriteCommand,
}
