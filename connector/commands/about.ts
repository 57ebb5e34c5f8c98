import * as t from 'io-ts'
import type { JsonSchema } from '../cdk/schema'

/** A tap or a target, as it presents itself. */
export type Program = {
  readonly name: string
  readonly description: string
  readonly capabilities: ReadonlyArray<string>
  readonly spec: JsonSchema
  /** Of the variables that `--config ENV` stands for. */
  readonly prefix: string
}

/** What `--about` tells, in the Meltano SDK's words. */
export const about = ({ name, description, capabilities, spec }: Program, version: string) => ({
  name,
  description,
  version,
  capabilities,
  settings: spec,
})

/** The same for people. */
export const aboutMarkdown = ({ name, description, capabilities, spec, prefix }: Program, version: string): string => {
  const properties = t.UnknownRecord.is(spec.properties) ? Object.entries(spec.properties) : []
  const required = Array.isArray(spec.required) ? spec.required : []
  return [
    `# ${name}`,
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
    `Each can be given as an environment variable with \`--config ENV\`: \`${prefix}_\` and the setting in upper case.`,
    '',
  ].join('\n')
}
