import { encodeAirbyte } from '../../cdk/airbyte'
import { defineCommand } from '../../cdk/cli'
import { configOption, getOrThrow, loadAirbyteCatalog, loadAirbyteState, loadSourceConfig } from '../../load'
import { type MessageConsumer, runRead } from '../../run'
import { createSource } from '../../wire'

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
        : await (await import('../../sync.js')).openSnapshotCopy(config.snapshot_path)
    const consumers = copy === undefined ? [print] : [print, copy.write]
    const ending = await runRead(io, wired, { catalog, state }, consumers)
    await copy?.finish()
    await wired.close()
    return ending === 'failed' ? 1 : 0
  },
})
