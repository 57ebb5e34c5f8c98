import { sourceCatalogLine } from '../../cdk/airbyte'
import { defineCommand } from '../../cdk/cli'
import { configOption, getOrThrow, loadSourceConfig } from '../../load'
import { buildStreams } from '../../wire'

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
