import { type ConfiguredCatalog, describeOtherCursors, type SourceState, toSelections } from '../catalog'
import { loadCatalogFile, loadConfig, loadStateFile } from '../config/load'
import { configFailure } from '../failure'
import { type CommandIo, defineCommand } from '../program/command'
import { CommandError } from '../program/error'
import type { CommandOption } from '../program/options'
import { defined } from '../schema'
import {
  consumeMessages,
  type MessageConsumer,
  type ReadOutcome,
  type SourceProgram,
  stateOption,
} from '../source-program'
import { decodeAirbyteState } from '../state-file'
import { decodeConfiguredCatalog, sourceCatalogLine, sourceSpecLine } from './catalog'
import { connectionStatusLine, createAirbyteEncoder } from './encode'

/** The option `--config`. Later configs are merged over earlier ones; ENV means variables with this prefix. */
export const configOptionFor = (variablePrefix: string) =>
  ({
    type: 'string',
    value: 'FILE|ENV',
    multiple: true,
    help:
      `The configuration file (JSON), or ENV for variables ${variablePrefix}_…; ` +
      'a later --config is merged over earlier ones',
    required: true,
  }) as const satisfies CommandOption

/** The option for the catalog that a platform passes to `read` and `write`. */
export const configuredCatalogOption = {
  type: 'string',
  value: 'FILE',
  help: 'The configured catalog, JSON',
  required: true,
} as const satisfies CommandOption

/** The configured catalog in a file. */
const loadAirbyteCatalog = async (path: string): Promise<ConfiguredCatalog> => {
  const catalog = await loadCatalogFile(path, decodeConfiguredCatalog('source'))
  if (catalog.length === 0)
    throw new CommandError(configFailure(`${path}: The catalog selects no stream. Choose at least one.`))
  return catalog
}

/** The state in a file; empty without a file. */
export const loadAirbyteState = async (path: string | undefined): Promise<SourceState> =>
  path === undefined ? {} : loadStateFile(path, decodeAirbyteState)

/** The commands of an Airbyte source. `--config ENV` reads variables whose names start with the source's name. */
export const createAirbyteSourceCommands = <Config, Env>(source: SourceProgram<Config, Env>) => {
  const prefix = source.name.toUpperCase()
  const loadSourceConfig = (io: CommandIo, paths: ReadonlyArray<string>): Promise<Config> =>
    loadConfig(io, source.format, paths, prefix)
  const configOption = configOptionFor(prefix)
  return {
    spec: defineCommand({
      name: 'spec',
      summary: 'Prints the configuration schema.',
      options: {},
      run: async (io) => {
        await io.print(sourceSpecLine(source.format.spec, source.format.documentationUrl))
        return 0
      },
    }),
    check: defineCommand({
      name: 'check',
      summary: 'Checks the configuration: address, token, permission for each operation.',
      options: { config: configOption },
      run: async (io, { options }) => {
        const config = await loadSourceConfig(io, options.config)
        const { warnings, findings } = await source.check(config, io.stop, io.env)
        for (const warning of warnings) io.printWarning(warning)
        const message = io.redactText([...warnings, ...findings].join(' '))
        await io.print(connectionStatusLine('SUCCEEDED', message === '' ? undefined : message))
        return 0
      },
    }),
    discover: defineCommand({
      name: 'discover',
      summary: 'Prints the streams with their schemas, keys and cursors.',
      options: { config: configOption },
      run: async (io, { options }) => {
        const config = await loadSourceConfig(io, options.config)
        await io.print(sourceCatalogLine(await source.listStreams('airbyte', config)))
        return 0
      },
    }),
    read: defineCommand({
      name: 'read',
      summary: 'Reads the selected streams and prints their records and states.',
      options: {
        config: configOption,
        catalog: configuredCatalogOption,
        state: stateOption,
      },
      examples: [`source-${source.name} read --config config.json --catalog catalog.json --state state.json`],
      run: async (io, { options }) => {
        const config = await loadSourceConfig(io, options.config)
        const configured = await loadAirbyteCatalog(options.catalog)
        const state = await loadAirbyteState(options.state)
        const outcome = await readAsAirbyte(io, source, config, configured, state)
        return outcome === 'failed' ? 1 : 0
      },
    }),
  }
}

/** Prints the selected streams as Airbyte messages. */
const readAsAirbyte = async <Config, Env>(
  io: CommandIo,
  source: SourceProgram<Config, Env>,
  config: Config,
  configured: ConfiguredCatalog,
  state: SourceState,
): Promise<ReadOutcome> => {
  const encoder = createAirbyteEncoder({ now: Date.now })
  const print: MessageConsumer = async (message) => {
    for (const text of encoder.encode(message).lines) await io.print(text)
  }
  // If the output is broken, the next record that is printed fails.
  const warn = (message: string) => void print({ _tag: 'Log', level: 'warn', message }).catch(() => undefined)
  const open = await source.connect('airbyte', config, { stop: io.stop, variables: io.env, onNotice: warn })
  const catalog = toSelections(open.streams)(configured)
  describeOtherCursors(open.streams, configured).forEach(warn)
  const copy = await source.openCopy?.(config)
  const outcome = await consumeMessages(
    io,
    open,
    { catalog, state, ...defined({ holdsRows: copy?.holdsRows }) },
    copy === undefined ? [print] : [print, copy.write],
  )
  await copy?.finish()
  await open.close?.()
  return outcome
}
