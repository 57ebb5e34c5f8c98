import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as t from 'io-ts'
import { type CommandIo, formatJsonLog, formatPlainLog, type JsonSchema, type SingerLogEntry } from '../cdk'

/** The version of this package, which package.json alone knows. */
export const readPackageVersion = (): string => {
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'),
  )
  return manifest.version
}

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

export type SingerLogger = (entry: SingerLogEntry) => void

/** Logs on stderr: `LEVEL message`, or JSON lines where Meltano asks for them by setting SINGER_SDK_LOG_CONFIG. */
export const createSingerLogger = (io: CommandIo, app: string): SingerLogger => {
  const format = io.env.SINGER_SDK_LOG_CONFIG === undefined ? formatPlainLog : formatJsonLog(app, io.pid, Date.now)
  return (entry) => io.printWarning(format(entry))
}

/** The same outside, whose warnings are log lines too. */
export const withLoggedWarnings = (io: CommandIo, log: SingerLogger): CommandIo => ({
  ...io,
  printWarning: (message) => log({ level: 'warn', message }),
})
