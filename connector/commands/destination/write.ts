import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { parseExactJson } from '../../api/json-text'
import { errorTraceLine } from '../../cdk/airbyte'
import { defineCommand } from '../../cdk/cli'
import { configFailure, type Failure } from '../../cdk/failure'
import { readJsonFile } from '../../cdk/file'
import { jsonLine } from '../../cdk/lines'
import { decodeAirbyte } from '../../cdk/write/airbyte'
import { type ConfiguredStream, decodeDestinationCatalog } from '../../cdk/write/airbyte-catalog'
import { addFilePath, configOption, getOrThrow, loadDestinationConfig, runOrThrow } from '../../load'
import { runWrite, type WriteLog } from '../../run-write'
import { sinks } from '../../sinks'
import { dryRunOption } from '../dry-run-option'

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
