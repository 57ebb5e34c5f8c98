import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type CommandError,
  type CommandOption,
  type CommandOptions,
  configOptionFor,
  suggestName,
  usageError,
} from '../cdk'

/** The prefix of the variables that `--config ENV` reads. */
export const variablePrefix = 'FEEDBACK'

/** The configuration of the source or the destination. */
export const configOption = configOptionFor(variablePrefix)

/** For verbs whose output is always JSON. */
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

/** An existing snapshot file. */
const dbOption = {
  type: 'string',
  value: 'FILE',
  help: 'The DuckDB file',
  required: true,
} as const satisfies CommandOption

/** A snapshot file to write. */
export const outputDbOption = {
  ...dbOption,
  help: 'The DuckDB file; created if it is missing',
} as const satisfies CommandOption

const waitOption = {
  type: 'string',
  value: 'TIME',
  help: 'How long to wait while another process uses the file, such as 30s, 10m or 2h; not at all if left out',
} as const satisfies CommandOption

const memoryLimitOption = {
  type: 'string',
  value: 'SIZE',
  help:
    "Maximum memory for DuckDB, such as 512MB or 1GiB; if left out, a quarter of the machine's or container's, " +
    'at most 1GiB',
} as const satisfies CommandOption

/** The options of every verb that opens a snapshot. `toSnapshotOptions` reads them. */
export const fileOptions = { wait: waitOption, 'memory-limit': memoryLimitOption } as const

/** The options of every verb that opens a file or a lake. `requirePlace` and `toSnapshotOptions` read them. */
export const placeOptions = {
  db: { ...dbOption, required: false },
  lake: {
    type: 'string',
    value: 'LAKE',
    help:
      'Instead of --db: a DuckLake, given by its catalogue, ducklake:postgres:dbname=… or ducklake:FILE; ' +
      "PostgreSQL's variables (PGHOST, PGPASSWORD …) apply",
  },
  data: {
    type: 'string',
    value: 'FOLDER',
    help:
      'Where a new lake keeps its Parquet files: a folder or s3://BUCKET/FOLDER, with the ' +
      'variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL',
  },
  extensions: {
    type: 'string',
    value: 'FOLDER',
    help:
      "With --lake: folder of DuckDB's extensions or of their PyPI packages; FEEDBACK_DUCKDB_EXTENSIONS or " +
      '~/.duckdb if left out',
  },
  ...fileOptions,
} as const satisfies CommandOptions

/** For verbs that only read. */
export const readPlaceOptions = {
  ...placeOptions,
  at: {
    type: 'string',
    value: 'VERSION',
    help: 'With --lake: the lake as of this version; the newest if left out',
  },
} as const satisfies CommandOptions

/** The command line of a verb is wrong. `verb`: as in `feedback query`; `problem` follows it in the message. */
export const verbUsageError = (verb: string, problem: string): CommandError =>
  usageError(`${verb}${problem} See ${verb} --help.`)

/** Parses the version number of a lake. */
export const toVersion = (option: string, text: string): number => {
  if (!/^\d{1,15}$/.test(text))
    throw usageError(`${option} must be the number of a version of the lake, such as 12, not ${text}.`)
  return Number(text)
}

/** The file or lake named on the command line. `verb`: as in `feedback query`. */
export const requirePlace = (
  verb: string,
  options: {
    readonly db: string | undefined
    readonly lake: string | undefined
    readonly data?: string | undefined
    readonly at?: string | undefined
  },
): string => {
  const { db, lake } = options
  for (const name of ['db', 'lake'] as const)
    if (options[name] === '') throw verbUsageError(verb, `: --${name} is empty.`)
  if (db !== undefined && lake !== undefined) throw verbUsageError(verb, ' takes --db or --lake, not both.')
  if (lake !== undefined) {
    if (!/^ducklake:./.test(lake))
      throw usageError(`--lake must be ducklake:postgres:dbname=… or ducklake:FILE. See ${verb} --help.`)
    return lake
  }
  if (db === undefined) throw verbUsageError(verb, ': --db or --lake is missing.')
  if (db.startsWith('ducklake:'))
    throw verbUsageError(verb, ': --db takes the path of a DuckDB file; give a lake with --lake.')
  if (options.data !== undefined || options.at !== undefined)
    throw verbUsageError(verb, ': --data and --at need --lake.')
  return db
}

/** The regions of the locations, for the models. */
export const regionsOption = {
  type: 'string',
  value: 'FILE',
  help: 'A CSV file with the columns location_id, location_name (or one of them) and region',
} as const satisfies CommandOption

/** The scales of questions, for the models. */
export const scalesOption = {
  type: 'string',
  value: 'FILE',
  help: 'A CSV file with the columns question_id, lowest, highest and, if it is not the highest, best',
} as const satisfies CommandOption

export const historyOption = {
  type: 'boolean',
  help: 'From now on, keep every version of a row, with valid_from and valid_to: the views NAME_versions',
} as const satisfies CommandOption

/** The catalog of captured messages. */
export const inputCatalogOption = {
  type: 'string',
  value: 'FILE',
  help:
    "The run's configured catalog; without it, only streams of this connector are known. " +
    'Singer messages need none',
} as const satisfies CommandOption

/** The version in package.json. */
export const readPackageVersion = (): string => {
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'),
  )
  return manifest.version
}

/** The commands to run next, ready to copy. */
export const formatNextSteps = (commands: ReadonlyArray<string>): string =>
  `Next:\n${commands.map((command) => `  ${command}\n`).join('')}`

/**
 * The value of an option that takes one of several words; undefined if the option is missing. `verb`: as in `feedback
 * query`.
 */
export const readWord = <A extends string>(
  verb: string,
  option: string,
  words: ReadonlyArray<A>,
  text: string | undefined,
): A | undefined => {
  const word = words.find((each) => each === text)
  if (word === undefined && text !== undefined)
    throw verbUsageError(
      verb,
      `: --${option} must be one of ${words.join(', ')}, not ${text}.${suggestName(text, words)}`,
    )
  return word
}

export const readTimeZone = (text: string): string => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
  } catch {
    throw usageError(`--time-zone must be a zone such as Europe/Berlin, not ${text}.`)
  }
}
