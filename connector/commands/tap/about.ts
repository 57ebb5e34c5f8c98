import * as t from 'io-ts'
import { sourceSpec } from '../../config'

const description = 'Singer tap for the Feedback Data Service'
const capabilities = ['catalog', 'properties', 'discover', 'state', 'about', 'structured-logging']

/** What `--about` tells, in the Meltano SDK's words. */
export const about = (version: string) => ({
  name: 'tap-feedback',
  description,
  version,
  capabilities,
  settings: sourceSpec,
})

/** The same for people. */
export const aboutMarkdown = (version: string): string => {
  const properties = t.UnknownRecord.is(sourceSpec.properties) ? Object.entries(sourceSpec.properties) : []
  const required = Array.isArray(sourceSpec.required) ? sourceSpec.required : []
  return [
    '# tap-feedback',
    '',
    `${description}, version ${version}.`,
    '',
    '## Capabilities',
    '',
    ...capabilities.map((name) => `- ${name}`),
    '',
    '## Settings',
    '',
    '| Setting | Required | Default | Description |',
    '| --- | --- | --- | --- |',
    ...properties.map(([key, setting]) => {
      const { description: says = '', default: usual } = t.UnknownRecord.is(setting) ? setting : {}
      const shown = usual === undefined ? '' : `\`${JSON.stringify(usual)}\``
      return `| ${key} | ${required.includes(key) ? 'yes' : ''} | ${shown} | ${says} |`
    }),
    '',
    'Each can be given as an environment variable with `--config ENV`: `TAP_FEEDBACK_` and the setting in upper case.',
    '',
  ].join('\n')
}
