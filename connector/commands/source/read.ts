import { encode } from '../../cdk/airbyte'
import { command } from '../../cdk/cli'
import { configOption, loadCatalog, loadConfig, loadState, orStop } from '../../load'
import { type Consumer, runRead } from '../../run'
import { wire } from '../../wire'

export const read = command({
  name: 'read',
  summary: 'Reads the selected streams and prints their records and states.',
  options: {
    config: configOption,
    catalog: { type: 'string', value: 'FILE', help: 'The configured catalog, JSON', required: true },
    state: { type: 'string', value: 'FILE', help: 'The state to go on from; left out, everything is read' },
  },
  examples: ['source-feedback read --config config.json --catalog catalog.json --state state.json'],
  run: async (io, { options }) => {
    const config = await loadConfig(io, String(options.config))
    const catalog = await loadCatalog(String(options.catalog))
    const state = await loadState(options.state === undefined ? undefined : String(options.state))
    const wired = orStop(wire(config))
    const toLines = encode(Date.now)
    const print: Consumer = async (message) => {
      for (const text of toLines(message)) await io.print(text)
    }
    // Loaded only where it is asked for: DuckDB is much to start with.
    const copy =
      config.snapshot_path === undefined
        ? undefined
        : await (await import('../../sync.js')).copyInto(config.snapshot_path)
    const consumers = copy === undefined ? [print] : [print, copy.write]
    const ending = await runRead(io, wired, { catalog, state }, consumers)
    await copy?.finish()
    await wired.close()
    return ending === 'failed' ? 1 : 0
  },
})
