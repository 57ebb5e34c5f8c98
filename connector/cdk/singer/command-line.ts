import * as t from 'io-ts'
import type { Failure } from '../failure'
import type { LogLevel } from '../message'
import type { CommandIo } from '../program/command'
import { usageError } from '../program/error'
import type { CommandOptions } from '../program/options'
import type { LogEntry } from '../protocol'
import type { JsonSchema } from '../schema'
import { failureLogEntries } from './encode'

/** The description of a tap or target. */
export type SingerProgram = {
  readonly name: string
  readonly description: string
  readonly version: () => string
  readonly capabilities: ReadonlyArray<string>
  readonly spec: JsonSchema
  /** The prefix of the variables that `--config ENV` reads. */
  readonly variablePrefix: string
}

/** The options that every Singer program has. */
export const singerOptions = {
  about: { type: 'boolean', help: 'Print name, version, capabilities and settings' },
  format: { type: 'string', value: 'FORMAT', help: 'The format of --about: text, json or markdown' },
  version: { type: 'boolean', help: 'Print the version' },
} as const satisfies CommandOptions

/** The option for the configuration of a Singer program. */
export const singerConfigOption = <const Prefix extends string>(variablePrefix: Prefix) =>
  ({
    type: 'string',
    value: 'FILE|ENV',
    multiple: true,
    help: `The configuration file (JSON), or ENV for variables ${variablePrefix}_…`,
  }) as const

export const singerConfigNotes =
  'A later --config is merged over the earlier ones, for example --config config.json --config ENV.'

/** The paths of `--config`, of which there must be one. */
export const requireConfigPaths = (paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (paths.length === 0) throw usageError('--config is missing. Give a file, or ENV.')
  return paths
}

/** Prints what `--version` or `--about` requests. False if neither is given. */
export const printDescription = async (
  io: CommandIo,
  program: SingerProgram,
  {
    about,
    format = 'text',
    version,
  }: { readonly about: boolean; readonly format: string | undefined; readonly version: boolean },
): Promise<boolean> => {
  if (version) {
    await io.print(`${program.name} ${program.version()}\n`)
    return true
  }
  if (!about) return false
  if (!['text', 'json', 'markdown'].includes(format))
    throw usageError('--format is wrong. Give text, json or markdown.')
  await io.print(
    format === 'json' ? `${JSON.stringify(describeProgram(program), null, 2)}\n` : formatProgramMarkdown(program),
  )
  return true
}

/** The output of `--about --format json`, with the keys of the Meltano SDK. */
const describeProgram = ({ name, description, version, capabilities, spec }: SingerProgram) => ({
  name,
  description,
  version: version(),
  capabilities,
  settings: spec,
})

/** The output of `--about` for a person. */
const formatProgramMarkdown = ({
  name,
  description,
  version,
  capabilities,
  spec,
  variablePrefix,
}: SingerProgram): string => {
  const properties = t.UnknownRecord.is(spec.properties) ? Object.entries(spec.properties) : []
  const required = Array.isArray(spec.required) ? spec.required : []
  return [
    `# ${name}`,
    '',
    `${description}, version ${version()}.`,
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
      const { description: text = '', default: defaultValue } = t.UnknownRecord.is(setting) ? setting : {}
      const shownDefault = defaultValue === undefined ? '' : `\`${JSON.stringify(defaultValue)}\``
      return `| ${key} | ${required.includes(key) ? 'yes' : ''} | ${shownDefault} | ${text} |`
    }),
    '',
    `Each can be given as an environment variable with \`--config ` +
      `ENV\`: \`${variablePrefix}_\` and the setting in upper case.`,
    'With `_FILE` at its end, the variable names a file that holds the value: a mounted secret.',
    '',
  ].join('\n')
}

const singerLogLevels: Record<LogLevel, string> = { error: 'ERROR', warn: 'WARNING', info: 'INFO', debug: 'DEBUG' }

/** `LEVEL message`, one line. */
export const formatPlainLog = ({ level, message }: LogEntry): string =>
  `${singerLogLevels[level]} ${message.replaceAll('\n', '\\n')}`

/** The Meltano SDK's structured form. Meltano reads level, stream and message. `now`: milliseconds. */
export const formatJsonLog =
  (app: string, pid: number, now: () => number) =>
  ({ level, message, stream }: LogEntry): string =>
    JSON.stringify({
      level: singerLogLevels[level].toLowerCase(),
      pid,
      logger_name: app,
      ts: now() / 1000,
      thread_name: 'main',
      app_name: app,
      stream_name: stream ?? null,
      message,
    })

export type SingerLogger = (entry: LogEntry) => void

/** Logs on stderr: `LEVEL message`, or JSON lines if Meltano requests them by SINGER_SDK_LOG_CONFIG. */
export const createSingerLogger = (io: CommandIo, app: string): SingerLogger => {
  const format = io.env.SINGER_SDK_LOG_CONFIG === undefined ? formatPlainLog : formatJsonLog(app, io.pid, Date.now)
  return (entry) => io.printWarning(format(entry))
}

/** The same `io`, with its warnings as log lines. */
export const withLoggedWarnings = (io: CommandIo, log: SingerLogger): CommandIo => ({
  ...io,
  printWarning: (message) => log({ level: 'warn', message }),
})

/** Logs the failure of a whole run, because Singer has no message for it. Returns the exit status. */
export const reportSingerFailure = async (
  io: CommandIo,
  failure: Failure,
  { program }: { readonly program: string },
): Promise<number> => {
  failureLogEntries(failure).forEach(createSingerLogger(io, program))
  return 1
}
