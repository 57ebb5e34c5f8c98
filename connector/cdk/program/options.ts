import { parseArgs } from 'node:util'
import { defined } from '../schema'
import { usageError } from './error'
import { suggestName } from './names'

export type CommandOption = {
  readonly type: 'string' | 'boolean'
  readonly help: string
  /** The placeholder in the help, such as FILE. */
  readonly value?: string
  readonly short?: string
  readonly multiple?: boolean
  readonly required?: boolean
  /**
   * The value of an option given without one, as in `--test`. Any other value is joined to it, as in `--test=schema`.
   */
  readonly bareValue?: string
}

export type CommandOptions = Readonly<Record<string, CommandOption>>

type OptionValue<O extends CommandOption> = O extends { readonly type: 'boolean' }
  ? boolean
  : O extends { readonly multiple: true }
    ? ReadonlyArray<string>
    : O extends { readonly required: true }
      ? string
      : string | undefined

/**
 * The options and operands of a command line. A missing boolean option is false, a missing multiple option is an empty
 * list.
 */
export type ParsedOptions<Os extends CommandOptions> = {
  readonly options: {
    readonly [K in keyof Os]: OptionValue<Os[K]>
  }
  readonly positionals: ReadonlyArray<string>
}

/** A command's description, from which its help is made. */
export type CommandDescription = {
  /** The verb; empty for the only command of a program. */
  readonly name: string
  readonly summary: string
  /** What follows the options in the usage line, such as "SQL". */
  readonly operands?: string
  readonly options: CommandOptions
  readonly examples?: ReadonlyArray<string>
  readonly notes?: string
}

const usageName = (program: string, name: string): string => (name === '' ? program : `${program} ${name}`)

const addBareValue = (options: CommandOptions, arg: string): string => {
  const { bareValue } = (arg.startsWith('--') ? options[arg.slice(2)] : undefined) ?? {}
  return bareValue === undefined ? arg : `${arg}=${bareValue}`
}

/** The options of `args`. Throws a `CommandError` that names the wrong one. */
export const parseOptions = <Os extends CommandOptions>(
  program: string,
  { name, options, operands }: Pick<CommandDescription, 'name' | 'operands'> & { readonly options: Os },
  args: ReadonlyArray<string>,
): ParsedOptions<Os> => {
  const entries = Object.entries(options)
  try {
    const { values, positionals } = parseArgs({
      args: args.map((arg) => addBareValue(options, arg)),
      options: Object.fromEntries(
        entries.map(([key, { type, short, multiple }]) => [key, { type, ...defined({ short, multiple }) }]),
      ),
      allowPositionals: operands !== undefined,
    })
    for (const [key, { required }] of entries)
      if (required === true && !values[key])
        throw new Error(`--${key} is ${values[key] === undefined ? 'missing' : 'empty'}`)
    const missing = ({ type, multiple }: CommandOption) =>
      type === 'boolean' ? false : multiple === true ? [] : undefined
    return {
      // The declaration and parseArgs agree on the types, but TypeScript cannot see that through Object.entries.
      options: Object.fromEntries(
        entries.map(([key, option]) => [key, values[key] ?? missing(option)]),
      ) as ParsedOptions<Os>['options'],
      positionals,
    }
  } catch (error) {
    const usage = usageName(program, name)
    throw usageError(`${usage}: ${describeOptionProblem(error as Error, Object.keys(options))} See ${usage} --help.`)
  }
}

const describeOptionProblem = ({ message }: Error, names: ReadonlyArray<string>): string => {
  const [, dashes = '', unknown] = /^Unknown option '(--?)([^'=]+)/.exec(message) ?? []
  if (unknown === undefined) return `${message}.`
  const options = names.map((name) => `--${name}`)
  return `there is no option ${dashes}${unknown}.${dashes === '--' ? suggestName(`--${unknown}`, options) : ''}`
}

/** The help of one command. */
export const formatHelp = (program: string, command: CommandDescription): string => {
  const { name, summary, operands, notes, examples } = command
  const options = Object.entries(command.options).map(([key, { value, help, required, bareValue }]) => ({
    usage: `--${key}${value === undefined ? '' : bareValue === undefined ? ` ${value}` : `[=${value}]`}`,
    text: `${help}${required === true ? ' (required)' : ''}`,
  }))
  const width = Math.max(0, ...options.map(({ usage }) => usage.length))
  return [
    `Usage: ${usageName(program, name)} [options]${operands === undefined ? '' : ` ${operands}`}`,
    '',
    summary,
    ...(options.length === 0
      ? []
      : ['', 'Options:', ...options.map(({ usage, text }) => `  ${usage.padEnd(width)}  ${text}`)]),
    ...(notes === undefined ? [] : ['', notes]),
    ...(examples === undefined ? [] : ['', 'Examples:', ...examples.map((line) => `  ${line}`)]),
    '',
  ].join('\n')
}
