import {
  connectionStatusLine,
  defineCommand,
  encodeAirbyte,
  getOrThrow,
  runOrThrow,
  sourceCatalogLine,
  sourceSpecLine,
} from '../cdk'
import { loadAirbyteCatalog, loadAirbyteState, loadConfig, sourceFormat } from '../config'
import type { MessageConsumer } from '../runtime'
import { configOption, configuredCatalogOption } from './options'

/** Loaded when a command runs: `spec` and `--help` do without the HTTP client. */
const loadRuntime = () => import('../runtime/index.js')

export const sourceSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the form of the configuration.',
  options: {},
  run: async (io) => {
    await io.print(sourceSpecLine(sourceFormat.spec, sourceFormat.documentationUrl))
    return 0
  },
})

export const sourceCheckCommand = defineCommand({
  name: 'check',
  summary: 'Says whether the configuration works: address, token, permission for each operation.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadConfig(io, sourceFormat, [options.config])
    const { checkSourceConfig } = await loadRuntime()
    const warnings = (await runOrThrow(checkSourceConfig(config))).map(io.redactText)
    for (const warning of warnings) io.printWarning(warning)
    await io.print(connectionStatusLine('SUCCEEDED', warnings.length === 0 ? undefined : warnings.join(' ')))
    return 0
  },
})

export const sourceDiscoverCommand = defineCommand({
  name: 'discover',
  summary: 'Prints the streams with their schemas, keys and cursors.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadConfig(io, sourceFormat, [options.config])
    const { buildStreams } = await loadRuntime()
    await io.print(sourceCatalogLine(getOrThrow(buildStreams(config))))
    return 0
  },
})

export const sourceReadCommand = defineCommand({
  name: 'read',
  summary: 'Reads the selected streams and prints their records and states.',
  options: {
    config: configOption,
    catalog: configuredCatalogOption,
    state: { type: 'string', value: 'FILE', help: 'The state to continue from; everything is read if left out' },
  },
  examples: ['source-feedback read --config config.json --catalog catalog.json --state state.json'],
  run: async (io, { options }) => {
    const config = await loadConfig(io, sourceFormat, [options.config])
    const catalog = await loadAirbyteCatalog(options.catalog)
    const state = await loadAirbyteState(options.state)
    const { createSource, openSnapshotCopy, readSource } = await loadRuntime()
    const configured = getOrThrow(createSource(config))
    const toLines = encodeAirbyte(Date.now)
    const print: MessageConsumer = async (message) => {
      for (const text of toLines(message)) await io.print(text)
    }
    const copy = config.snapshot_path === undefined ? undefined : await openSnapshotCopy(config.snapshot_path)
    const consumers = copy === undefined ? [print] : [print, copy.write]
    const outcome = await readSource(io, configured, { catalog, state }, consumers)
    await copy?.finish()
    await configured.close()
    return outcome === 'failed' ? 1 : 0
  },
})

export const airbyteSourceCommands = {
  spec: sourceSpecCommand,
  check: sourceCheckCommand,
  discover: sourceDiscoverCommand,
  read: sourceReadCommand,
}
