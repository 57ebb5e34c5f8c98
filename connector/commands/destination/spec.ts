import { destinationSpecLine } from '../../cdk/airbyte-destination'
import { command } from '../../cdk/cli'
import { destinationDocumentationUrl, destinationSpec } from '../../destination-config'

export const spec = command({
  name: 'spec',
  summary: 'Prints the configuration this destination understands.',
  options: {},
  run: async (io) => {
    await io.print(destinationSpecLine(destinationSpec, destinationDocumentationUrl))
    return 0
  },
})
