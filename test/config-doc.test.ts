import { expect, it } from 'vitest'
import { sourceSpec } from '../connector/config'
import { settingsTable } from './support/config-doc'

const page = `# Configuration of the source

One JSON object, the same for \`source-feedback\`, \`tap-feedback\` and \`feedback\`. This page is made from
[spec/source.json](../spec/source.json) and held by a test. A wrong value is answered by its key path; a key that means
nothing is named in a warning.

${settingsTable(sourceSpec)}

Of \`partition\`, \`lookups.sources\` and \`lookups.categories\` either all required keys are given or none.

Every key can also come from the environment: \`--config ENV\` reads \`FEEDBACK_BASE_URL\` and so on, \`tap-feedback\` reads
\`TAP_FEEDBACK_BASE_URL\`; see [docker.md](docker.md).
`

it('docs/config.md says what the spec says', async () => {
  await expect(page).toMatchFileSnapshot('../docs/config.md')
})
