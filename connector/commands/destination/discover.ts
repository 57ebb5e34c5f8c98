import { destinationCatalogLine } from '../../cdk/airbyte-destination'
import { defineCommand } from '../../cdk/cli'
import { configOption, loadDestinationConfig } from '../../load'
import { sinks } from '../../sinks'

export const destinationDiscoverCommand = defineCommand({
  name: 'discover',
  summary: 'Prints the objects that can be written to: operations, schemas, matching keys.',
  options: { config: configOption },
  run: async (io, { options }) => {
    await loadDestinationConfig(io, String(options.config))
    await io.print(destinationCatalogLine(sinks))
    return 0
  },
})
