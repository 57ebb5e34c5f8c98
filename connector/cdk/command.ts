import { parseArgs } from 'node:util'
import { defined } from './defined'
import { configFailure, type Failure } from './failure'
import type { OutputText } from './lines'

/** What a command may touch of the outside; main.ts makes the real one. */
export type CommandIo = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly stdin: AsyncIterable<Uint8Array>
  /** Writes to stdout; settles once there is room again, so that a slow reader slows us down. */
  readonly print: (text: OutputText) => Promise<void>
  /** One line to stderr. */
  readonly printWarning: (line: string) => void
  /** Overwrites one progress line on stderr; does nothing where stderr is no terminal. */
  readonly printProgress: (line: string) => void
  /** From now on these texts leave stderr and the failures of a run as `***`. */
  readonly addSecrets: (secrets: ReadonlyArray<string>) => void
  /** A text as it may be seen: for words that are printed on stdout. */
  readonly redactText: (text: string) => string
  /** Whether stdout is a terminal that wants colours (NO_COLOR is obeyed). */
  readonly hasColours: boolean
  /** Aborted by SIGTERM or SIGINT. */
  readonly stop: AbortSignal
}

export type CommandOption = {
  readonly type: 'string' | 'boolean'
  readonly help: string
  /** The placeholder in the help, such as FILE. */
  readonly value?: string
  readonly short?: string
  readonly multiple?: boolean
  readonly required?: boolean
}

export type ParsedOptions = {
  readonly options: Readonly<Record<string, string | boolean | ReadonlyArray<string | boolean> | undefined>>
  readonly positionals: ReadonlyArray<string>
}

/** A verb as a value; its help is read off it. `run` answers the exit status. */
export type Command = {
  readonly name: string
  readonly summary: string
  /** What stands after the options in the usage line, such as "SQL". */
  readonly operands?: string
  readonly options: Readonly<Record<string, CommandOption>>
  readonly examples?: ReadonlyArray<string>
  readonly notes?: string
  readonly run: (io: CommandIo, given: ParsedOptions) => Promise<number>
}

export const defineCommand = (value: Command): Command => value

/** A failure on its way to the edge, where promises are all there is; main.ts prints it and exits with `status`. */
export class CommandError extends Error {
  constructor(
    readonly failure: Failure,
    readonly status: 1 | 2 = 1,
  ) {
    super(failure.message)
  }
}

/** The command line is wrong. */
export const usageError = (message: string): CommandError => new CommandError(configFailure(message), 2)

/** For a verb whose exit status 1 is an answer: what keeps it from answering is 2. */
export const withTroubleStatus = async (answer: () => Promise<number>): Promise<number> => {
  try {
    return await answer()
  } catch (error) {
    throw error instanceof CommandError ? new CommandError(error.failure, 2) : error
  }
}

const usageName = (program: string, { name }: Command): string => (name === '' ? program : `${program} ${name}`)

/** The options of `args`, or a `Stopped` that names the wrong one. */
export const parseOptions = (program: string, verb: Command, args: ReadonlyArray<string>): ParsedOptions => {
  try {
    const options = Object.fromEntries(
      Object.entries(verb.options).map(([name, { type, short, multiple }]) => [
        name,
        { type, ...defined({ short, multiple }) },
      ]),
    )
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      allowPositionals: verb.operands !== undefined,
    })
    for (const [name, { required }] of Object.entries(verb.options))
      if (required === true && values[name] === undefined) throw new Error(`--${name} is missing`)
    return { options: { ...values }, positionals }
  } catch (error) {
    throw usageError(
      `${usageName(program, verb)}: ${(error as Error).message}. See ${usageName(program, verb)} --help.`,
    )
  }
}

/** The help of one verb. */
export const formatHelp = (program: string, verb: Command): string => {
  const flags = Object.entries(verb.options).map(([name, { value, help, required }]) => [
    `--${name}${value === undefined ? '' : ` ${value}`}`,
    `${help}${required === true ? ' (required)' : ''}`,
  ])
  const width = Math.max(0, ...flags.map(([flag = '']) => flag.length))
  return [
    `Usage: ${usageName(program, verb)} [options]${verb.operands === undefined ? '' : ` ${verb.operands}`}`,
    '',
    verb.summary,
    ...(flags.length === 0
      ? []
      : ['', 'Options:', ...flags.map(([flag = '', text]) => `  ${flag.padEnd(width)}  ${text}`)]),
    ...(verb.notes === undefined ? [] : ['', verb.notes]),
    ...(verb.examples === undefined ? [] : ['', 'Examples:', ...verb.examples.map((line) => `  ${line}`)]),
    '',
  ].join('\n')
}
