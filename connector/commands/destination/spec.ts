import { destinationSpecLine } from '../../cdk/airbyte-destination'
import { defineCommand } from '../../cdk/cli'
import { destinationDocumentationUrl, destinationSpec } from '../../destination-config'

export const destinationSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the configuration this destination understands.',
  options: {},
  run: async (io) => {
    await io.print(destinationSpecLine(destinationSpec, destinationDocumentationUrl))
    return 0
  },
})
