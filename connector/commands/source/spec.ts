import { specLine } from '../../cdk/airbyte'
import { command } from '../../cdk/cli'
import { documentationUrl, sourceSpec } from '../../config'

export const spec = command({
  name: 'spec',
  summary: 'Prints the configuration this source understands.',
  options: {},
  run: async (io) => {
    await io.print(specLine(sourceSpec, documentationUrl))
    return 0
  },
})
