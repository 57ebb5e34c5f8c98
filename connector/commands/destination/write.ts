import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { parseJson } from '../../api/json-text'
import { errorLine } from '../../cdk/airbyte'
import { command } from '../../cdk/cli'
import { configFailure, type Failure } from '../../cdk/failure'
import { readJson } from '../../cdk/file'
import { line } from '../../cdk/lines'
import { airbyteArrivals } from '../../cdk/write/airbyte'
import { type Configured, readConfigured } from '../../cdk/write/airbyte-catalog'
import { configOption, inFile, loadDestinationConfig, orStop, runOrStop } from '../../load'
import { type Log, runWrite } from '../../run-write'
import { sinks } from '../../sinks'
import { dryRunOption } from '../dry-run-option'

const levels = { info: 'INFO', warn: 'WARN' } as const

export const write = command({
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
    const configured = orStop(
      pipe(
        readConfigured(await runOrStop(readJson('catalog', path))),
        E.flatMap(checkOperations),
        E.mapLeft(inFile(path)),
      ),
    )
    const log: Log = (level, message) => {
      // A broken output shows itself where a state or the end is printed.
      io.print(line({ type: 'LOG', log: { level: levels[level], message } })).catch(() => undefined)
    }
    const { failures } = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] === true },
      airbyteArrivals(configured, parseJson),
      log,
    )
    for (const failure of failures) await io.print(errorLine(Date.now, failure))
    return failures.length === 0 ? 0 : 1
  },
})

/** Appending is all that any object takes; what else is asked of one must be among its operations. */
const checkOperations = (streams: ReadonlyArray<Configured>): E.Either<Failure, ReadonlyArray<Configured>> => {
  const wrong = streams.find(({ object, asks }) => {
    const sink = sinks.find(({ name }) => name === object)
    return sink !== undefined && asks !== undefined && !sink.operations.includes(asks)
  })
  return wrong === undefined
    ? E.right(streams)
    : E.left(
        configFailure(
          `The stream ${wrong.name} asks for ${wrong.asks}, which ${wrong.object} does not offer. Choose append.`,
        ),
      )
}
