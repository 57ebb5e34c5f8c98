import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CommandOption, configOptionFor, suggestName, usageError } from '../cdk'

/** The prefix of the variables that `--config ENV` stands for. */
export const variablePrefix = 'FEEDBACK'

/** The configuration of the source or the destination. */
export const configOption = configOptionFor(variablePrefix)

/** For a verb whose output is JSON in any case. */
export const jsonFailureOption = {
  type: 'boolean',
  help: 'Print a failure as JSON too; the output is JSON in any case',
} as const satisfies CommandOption

export const selectOption = {
  type: 'string',
  value: 'A,B',
  help: 'Only these streams; all of them if left out',
} as const satisfies CommandOption

export const dryRunOption = {
  type: 'boolean',
  help: 'Check and plan everything, send nothing and print no state',
} as const satisfies CommandOption

/** A snapshot that must exist. */
export const dbOption = {
  type: 'string',
  value: 'FILE',
  help: 'The DuckDB file',
  required: true,
} as const satisfies CommandOption

/** A snapshot that is written. */
export const outputDbOption = {
  ...dbOption,
  help: 'The DuckDB file; created if it is missing',
} as const satisfies CommandOption

const waitOption = {
  type: 'string',
  value: 'TIME',
  help: 'How long to wait while another process uses the file, such as 30s, 10m or 2h; not at all if left out',
} as const satisfies CommandOption

export const memoryLimitOption = {
  type: 'string',
  value: 'SIZE',
  help: "What DuckDB may use at most, such as 512MB or 1GiB; a quarter of the machine's or the container's memory if left out, at most 1GiB",
} as const satisfies CommandOption

/** What every verb takes that opens a snapshot; `toSnapshotOptions` reads it. */
export const fileOptions = { wait: waitOption, 'memory-limit': memoryLimitOption } as const

/** The regions of the locations, for the models. */
export const regionsOption = {
  type: 'string',
  value: 'FILE',
  help: 'A CSV file with the columns location_id, location_name (or one of them) and region',
} as const satisfies CommandOption

export const historyOption = {
  type: 'boolean',
  help: 'From now on, keep every version of a row, with valid_from and valid_to: the views NAME_versions',
} as const satisfies CommandOption

/** The catalog of captured messages. */
export const inputCatalogOption = {
  type: 'string',
  value: 'FILE',
  help: "The run's configured catalog; without it only our own streams are known, and Singer messages need none",
} as const satisfies CommandOption

/** The version in package.json. */
export const readPackageVersion = (): string => {
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'),
  )
  return manifest.version
}

/** The commands that a person runs next, as they can be copied. */
export const formatNextSteps = (commands: ReadonlyArray<string>): string =>
  `Next:\n${commands.map((command) => `  ${command}\n`).join('')}`

/** The value of an option that takes one of a list of words; undefined if the option was left out. `verb`: as in `feedback query`. */
export const readWord = <A extends string>(
  verb: string,
  option: string,
  words: ReadonlyArray<A>,
  text: string | undefined,
): A | undefined => {
  const word = words.find((each) => each === text)
  if (word === undefined && text !== undefined)
    throw usageError(
      `${verb}: --${option} must be one of ${words.join(', ')}, not ${text}.${suggestName(text, words)} See ${verb} --help.`,
    )
  return word
}

/** The time zone that `--time-zone` gives. */
export const readTimeZone = (text: string): string => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
  } catch {
    throw usageError(`--time-zone must be a zone such as Europe/Berlin, not ${text}.`)
  }
}
