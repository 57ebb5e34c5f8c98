import { defineCommand, getOrThrow, selectAllStreams } from '../cdk'
import { buildStreams } from '../runtime'
import { selectStreams } from '../streams'
import { loadSourceConfig } from './configured-source'
import { configOption, jsonFailureOption, selectOption } from './options'
import { formatJson } from './table'

export const catalogCommand = defineCommand({
  name: 'catalog',
  summary: 'Prints a configured catalog, as source-feedback read expects it.',
  options: { config: configOption, select: selectOption, json: jsonFailureOption },
  examples: ['feedback catalog --config config.json --select reviews > catalog.json'],
  run: async (io, { options }) => {
    const streams = getOrThrow(buildStreams(await loadSourceConfig(io, options.config)))
    await io.print(formatJson(selectAllStreams(getOrThrow(selectStreams(streams, options.select)))))
    return 0
  },
})
