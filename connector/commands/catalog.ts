import { configuredCatalog } from '../cdk/airbyte'
import { command } from '../cdk/cli'
import { configOption, loadConfig, orStop } from '../load'
import { select } from '../streams'
import { streamsOf } from '../wire'

export const selectOption = {
  type: 'string',
  value: 'A,B',
  help: 'Only these streams; all of them if left out',
} as const

export const catalog = command({
  name: 'catalog',
  summary: 'Prints a configured catalog, which source-feedback read wants.',
  options: { config: configOption, select: selectOption },
  examples: ['feedback catalog --config config.json --select reviews > catalog.json'],
  run: async (io, { options }) => {
    const all = orStop(streamsOf(await loadConfig(io, String(options.config))))
    const selected = orStop(select(all, options.select === undefined ? undefined : String(options.select)))
    await io.print(`${JSON.stringify(configuredCatalog(selected), null, 2)}\n`)
    return 0
  },
})
