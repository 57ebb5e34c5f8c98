import { catalogLine } from '../../cdk/airbyte'
import { command } from '../../cdk/cli'
import { configOption, loadConfig } from '../../load'
import { streams } from '../../streams'

export const discover = command({
  name: 'discover',
  summary: 'Prints the streams, their schemas, keys and cursors.',
  options: { config: configOption },
  run: async (io, { options }) => {
    await loadConfig(io, String(options.config))
    await io.print(catalogLine(streams))
    return 0
  },
})
