import { catalogLine } from '../../cdk/airbyte'
import { command } from '../../cdk/cli'
import { configOption, loadConfig, orStop } from '../../load'
import { streamsOf } from '../../wire'

export const discover = command({
  name: 'discover',
  summary: 'Prints the streams, their schemas, keys and cursors.',
  options: { config: configOption },
  run: async (io, { options }) => {
    const config = await loadConfig(io, String(options.config))
    await io.print(catalogLine(orStop(streamsOf(config))))
    return 0
  },
})
