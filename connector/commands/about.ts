import * as t from 'io-ts'
import type { JsonSchema } from '../cdk/schema'

/** A tap or a target, as it presents itself. */
export type SingerProgram = {
  readonly name: string
  readonly description: string
  readonly capabilities: ReadonlyArray<string>
  readonly spec: JsonSchema
  /** Of the variables that `--config ENV` stands for. */
  readonly variablePrefix: string
}

/** What `--about` tells, in the Meltano SDK's words. */
export const describeProgram = ({ name, description, capabilities, spec }: SingerProgram, version: string) => ({
  name,
  description,
  version,
  capabilities,
  settings: spec,
})

/** The same for people. */
export const formatProgramMarkdown = (
  { name, description, capabilities, spec, variablePrefix }: SingerProgram,
  version: string,
): string => {
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
    `Each can be given as an environment variable with \`--config ENV\`: \`${variablePrefix}_\` and the setting in upper case.`,
    '',
  ].join('\n')
}
