import { parseArgs } from 'node:util'
import { configFailure, type Failure } from './failure'
import type { Text } from './lines'

/** What a command may touch of the outside; main.ts makes the real one. */
export type Io = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly stdin: AsyncIterable<Uint8Array>
  /** Writes to stdout; settles once there is room again, so that a slow reader slows us down. */
  readonly print: (text: Text) => Promise<void>
  /** One line to stderr. */
  readonly warn: (line: string) => void
  /** Overwrites one progress line on stderr; does nothing where stderr is no terminal. */
  readonly progress: (line: string) => void
  /** From now on these texts leave stderr and the failures of a run as `***`. */
  readonly hide: (secrets: ReadonlyArray<string>) => void
  /** A text as it may be seen: for words that are printed on stdout. */
  readonly clean: (text: string) => string
  /** Whether stdout is a terminal that wants colours (NO_COLOR is obeyed). */
  readonly colours: boolean
  /** Aborted by SIGTERM or SIGINT. */
  readonly stop: AbortSignal
}

export type Option = {
  readonly type: 'string' | 'boolean'
  readonly help: string
  /** The placeholder in the help, such as FILE. */
  readonly value?: string
  readonly short?: string
  readonly multiple?: boolean
  readonly required?: boolean
}

export type Given = {
  readonly options: Readonly<Record<string, string | boolean | ReadonlyArray<string | boolean> | undefined>>
  readonly positionals: ReadonlyArray<string>
}

/** A verb as a value; its help is read off it. `run` answers the exit status. */
export type Command = {
  readonly name: string
  readonly summary: string
  /** What stands after the options in the usage line, such as "SQL". */
  readonly operands?: string
  readonly options: Readonly<Record<string, Option>>
  readonly examples?: ReadonlyArray<string>
  readonly notes?: string
  readonly run: (io: Io, given: Given) => Promise<number>
}

export const command = (value: Command): Command => value

/** A failure on its way to the edge, where promises are all there is; main.ts prints it and exits with `status`. */
export class Stopped extends Error {
  constructor(
    readonly failure: Failure,
    readonly status: 1 | 2 = 1,
  ) {
    super(failure.message)
  }
}

/** The command line is wrong. */
export const misused = (message: string): Stopped => new Stopped(configFailure(message), 2)

/** For a verb whose exit status 1 is an answer: what keeps it from answering is 2. */
export const orTrouble = async (answer: () => Promise<number>): Promise<number> => {
  try {
    return await answer()
  } catch (error) {
    throw error instanceof Stopped ? new Stopped(error.failure, 2) : error
  }
}

const called = (program: string, { name }: Command): string => (name === '' ? program : `${program} ${name}`)

/** The options of `args`, or a `Stopped` that names the wrong one. */
export const parse = (program: string, verb: Command, args: ReadonlyArray<string>): Given => {
  try {
    const options = Object.fromEntries(
      Object.entries(verb.options).map(([name, { type, short, multiple }]) => [
        name,
        { type, ...(short === undefined ? {} : { short }), ...(multiple === undefined ? {} : { multiple }) },
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
    throw misused(`${called(program, verb)}: ${(error as Error).message}. See ${called(program, verb)} --help.`)
  }
}

/** The help of one verb. */
export const help = (program: string, verb: Command): string => {
  const flags = Object.entries(verb.options).map(([name, { value, help, required }]) => [
    `--${name}${value === undefined ? '' : ` ${value}`}`,
    `${help}${required === true ? ' (required)' : ''}`,
  ])
  const width = Math.max(0, ...flags.map(([flag = '']) => flag.length))
  return [
    `Usage: ${called(program, verb)} [options]${verb.operands === undefined ? '' : ` ${verb.operands}`}`,
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
