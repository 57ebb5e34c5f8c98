import { unexpectedFailure } from '../failure'
import { redactFailure } from '../redact'
import type { Command, CommandIo } from './command'
import { CommandError } from './error'
import type { CallerConventions } from './exit'
import { suggestName } from './names'
import { formatHelp } from './options'
import { outputFailure } from './stdout'

export type Program = CallerConventions & {
  readonly summary: string
  readonly version: () => string
  /** Printed after the list of verbs. */
  readonly notes?: string
  /**
   * The commands by verb. Each is loaded when needed, so that `spec` does not load DuckDB. A program without verbs has
   * one command, named ''.
   */
  readonly commands: Readonly<Record<string, () => Promise<Command>>>
}

/** Printed if the program is run without a verb: the list of verbs. */
const formatOverview = async (name: string, { summary, commands, notes }: Program): Promise<string> => {
  const verbs = await Promise.all(
    Object.entries(commands).map(async ([verb, load]) => `  ${verb.padEnd(10)}${(await load()).summary}`),
  )
  return [
    `Usage: ${name} VERB [options]`,
    '',
    summary,
    '',
    'Verbs:',
    ...verbs,
    '',
    `${name} VERB --help prints the options of a verb, ${name} --version the version.`,
    ...(notes === undefined ? [] : ['', notes]),
    '',
  ].join('\n')
}

const isHelp = (arg: string): boolean => arg === '--help' || arg === '-h'
const isVersion = (arg: string): boolean => arg === '--version'

/** The arguments before `--`, after which nothing is an option. */
const optionArgs = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.includes('--') ? args.slice(0, args.indexOf('--')) : args

/**
 * Runs a command of a program and returns the exit status. `crash` rejects with an error that was thrown where nothing
 * awaits it.
 */
export const runCommandLine = async (
  name: string,
  program: Program,
  io: CommandIo,
  args: ReadonlyArray<string>,
  crash: Promise<never>,
): Promise<number> => {
  const { commands, reportFailure } = program
  const [verb = '', ...commandArgs] = Object.hasOwn(commands, '') ? ['', ...args] : args
  const load = Object.hasOwn(commands, verb) ? commands[verb] : undefined
  const printVersion = async (): Promise<number> => {
    await io.print(`${name} ${program.version()}\n`)
    return 0
  }
  if (load === undefined && isVersion(verb)) return printVersion()
  if (isHelp(verb) || verb === 'help' || (verb === '' && load === undefined)) {
    await io.print(await formatOverview(name, program))
    return verb === '' ? 2 : 0
  }
  if (load === undefined) {
    const verbs = Object.keys(commands)
    io.printWarning(`${name}: there is no verb "${verb}". Choose among ${verbs.join(', ')}.${suggestName(verb, verbs)}`)
    return 2
  }
  const command = await load()
  const given = optionArgs(commandArgs)
  if (given.some(isHelp)) {
    await io.print(formatHelp(name, command))
    return 0
  }
  if (given.some(isVersion) && !Object.hasOwn(command.options, 'version')) return printVersion()
  try {
    return await Promise.race([command.run(io, name, commandArgs), crash])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE' || outputFailure(error) !== undefined) throw error
    const failure = error instanceof CommandError ? error.failure : unexpectedFailure(error)
    const json = Object.hasOwn(command.options, 'json') && given.includes('--json')
    const status = await reportFailure(io, redactFailure(io.redactText, failure), { program: name, verb, json })
    return status !== 0 && error instanceof CommandError ? (error.status ?? status) : status
  }
}
