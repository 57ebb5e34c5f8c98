import { defineCommand, selectAllStreams } from '../cdk'
import { configOption, getOrThrow, loadSourceConfig } from '../config'
import { buildStreams } from '../runtime'
import { selectStreams } from '../streams'

export const selectOption = {
  type: 'string',
  value: 'A,B',
  help: 'Only these streams; all of them if left out',
} as const

export const catalogCommand = defineCommand({
  name: 'catalog',
  summary: 'Prints a configured catalog, which source-feedback read wants.',
  options: { config: configOption, select: selectOption },
  examples: ['feedback catalog --config config.json --select reviews > catalog.json'],
  run: async (io, { options }) => {
    const all = getOrThrow(buildStreams(await loadSourceConfig(io, String(options.config))))
    const selected = getOrThrow(selectStreams(all, options.select === undefined ? undefined : String(options.select)))
    await io.print(`${JSON.stringify(selectAllStreams(selected), null, 2)}\n`)
    return 0
  },
})
