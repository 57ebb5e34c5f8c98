import { sourceSpecLine } from '../../cdk/airbyte'
import { defineCommand } from '../../cdk/cli'
import { sourceDocumentationUrl, sourceSpec } from '../../config'

export const sourceSpecCommand = defineCommand({
  name: 'spec',
  summary: 'Prints the configuration this source understands.',
  options: {},
  run: async (io) => {
    await io.print(sourceSpecLine(sourceSpec, sourceDocumentationUrl))
    return 0
  },
})
