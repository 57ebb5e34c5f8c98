import * as E from 'fp-ts/Either'
import { toFailure } from '../api'
import {
  CommandError,
  connectionStatusLine,
  defineCommand,
  encodeAirbyte,
  type Failure,
  sourceCatalogLine,
  sourceSpecLine,
} from '../cdk'
import {
  configOption,
  getOrThrow,
  loadAirbyteCatalog,
  loadAirbyteState,
  loadSourceConfig,
  type SourceConfig,
  sourceDocumentationUrl,
  sourceSpec,
} from '../config'
import {
  awaitOrTimeOut,
  buildStreams,
  checkAttempts,
  checkTimeoutFailure,
  createSource,
  type MessageConsumer,
  runRead,
  type SourceCheck,
  startSourceCheck,
  withCheckTimeouts,
} from '../runtime'

export const sourceSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the configuration this source understands.',
  options: {},
  run: async (io) => {
    await io.print(sourceSpecLine(sourceSpec, sourceDocumentationUrl))
    return 0
  },
})

/** What is known when the time is up: nothing wrong yet, where only our own budget keeps questions back. */
const toTimeoutOutcome = (
  { rate_limit: { requests_per_minute } }: SourceConfig,
  unanswered: ReadonlyArray<string>,
  asked: number,
  last: Failure | undefined,
): E.Either<Failure, ReadonlyArray<string>> => {
  const which = unanswered.join(' and ')
  return requests_per_minute !== undefined && asked > 0
    ? E.right([`rate_limit.requests_per_minute (${requests_per_minute}) left no time to ask everything of ${which}.`])
    : E.left(checkTimeoutFailure(which, last))
}

/** How many operations beside the exports the config makes use of. */
const countOtherOperations = ({ entities, lookups }: SourceConfig): number => {
  const { person_ids, location_ids, entity_ids } = entities
  const feedback = person_ids.length + location_ids.length + entity_ids.length > 0 ? 2 : 0
  return feedback + Object.values(lookups).filter((lookup) => lookup !== undefined).length
}

export const sourceCheckCommand = defineCommand({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission by operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadSourceConfig(io, String(options.config))
    let answered = 0
    let last: Failure | undefined
    const wired = getOrThrow(
      createSource(withCheckTimeouts(config, countOtherOperations(config)), {
        attempts: checkAttempts,
        onRequest: ({ status }) => {
          answered += status < 400 ? 1 : 0
        },
        onRetry: ({ operation, error }) => {
          last = toFailure(operation, error)
        },
      }),
    )
    const { outcome: finding, unansweredOperations }: SourceCheck = startSourceCheck(wired)
    const outcome = await awaitOrTimeOut(finding, () =>
      toTimeoutOutcome(config, unansweredOperations(), answered, last),
    )
    await wired.close()
    if (E.isLeft(outcome)) throw new CommandError(outcome.left)
    const warnings = outcome.right.map(io.redactText)
    for (const warning of warnings) io.printWarning(warning)
    await io.print(connectionStatusLine('SUCCEEDED', warnings.length === 0 ? undefined : warnings.join(' ')))
    return 0
  },
})

export const sourceDiscoverCommand = defineCommand({
  name: 'discover',
  summary: 'Prints the streams, their schemas, keys and cursors.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadSourceConfig(io, String(options.config))
    await io.print(sourceCatalogLine(getOrThrow(buildStreams(config))))
    return 0
  },
})

export const sourceReadCommand = defineCommand({
  name: 'read',
  summary: 'Reads the selected streams and prints their records and states.',
  options: {
    config: configOption,
    catalog: { type: 'string', value: 'FILE', help: 'The configured catalog, JSON', required: true },
    state: { type: 'string', value: 'FILE', help: 'The state to go on from; left out, everything is read' },
  },
  examples: ['source-feedback read --config config.json --catalog catalog.json --state state.json'],
  run: async (io, { options }) => {
    const config = await loadSourceConfig(io, String(options.config))
    const catalog = await loadAirbyteCatalog(String(options.catalog))
    const state = await loadAirbyteState(options.state === undefined ? undefined : String(options.state))
    const wired = getOrThrow(createSource(config))
    const toLines = encodeAirbyte(Date.now)
    const print: MessageConsumer = async (message) => {
      for (const text of toLines(message)) await io.print(text)
    }
    // Loaded only where it is asked for: DuckDB is much to start with.
    const copy =
      config.snapshot_path === undefined
        ? undefined
        : await (await import('../runtime/sync.js')).openSnapshotCopy(config.snapshot_path)
    const consumers = copy === undefined ? [print] : [print, copy.write]
    const ending = await runRead(io, wired, { catalog, state }, consumers)
    await copy?.finish()
    await wired.close()
    return ending === 'failed' ? 1 : 0
  },
})
