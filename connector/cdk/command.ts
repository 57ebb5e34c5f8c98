import { parseArgs } from 'node:util'
import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { configFailure, type Failure } from './failure'
import { drainFeed, type Feed } from './feed'
import type { LineEditor, OutputText } from './lines'
import { defined } from './schema'

/** What a command may use of the process that it runs in. */
export type CommandIo = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly stdin: AsyncIterable<Uint8Array>
  /** Writes to stdout; resolves once there is room again, so that a slow reader slows the run down. */
  readonly print: (text: OutputText) => Promise<void>
  /** Writes one line to stderr. */
  readonly printWarning: (line: string) => void
  /**
   * Shows one progress line on a terminal, and now and then logs it elsewhere; an empty one clears it. Costs little however often it is called.
   * `after`: on a terminal, how many milliseconds the run must have taken before it shows the line.
   */
  readonly printProgress: (line: string, after?: number) => void
  /** Whether a person answers on stdin and reads stderr. */
  readonly isInteractive: boolean
  /** Whether stdout is a terminal, which acts on control characters. */
  readonly printsOnTerminal: boolean
  /** Whether stdout is a terminal that shows colors, and NO_COLOR is not set. */
  readonly hasColors: boolean
  /** Whether the terminal shows what is typed; without, each key comes at once and unedited. */
  readonly setEcho: (on: boolean) => void
  /** Lines that a person edits; only where `isInteractive` and `printsOnTerminal`. */
  readonly editLines: () => LineEditor
  /** From now on, `***` replaces these texts on stderr and in the failures of a run. */
  readonly addSecrets: (secrets: ReadonlyArray<string>) => void
  /** Replaces the secrets in a text that is printed on stdout. */
  readonly redactText: (text: string) => string
  /** Aborted by SIGTERM or SIGINT. */
  readonly stop: AbortSignal
}

/** The shortest time between two redraws on a terminal, and between two lines elsewhere, in milliseconds. */
const redrawInterval = 200
const progressLineInterval = 60_000

/** After how many milliseconds a command that mostly ends at once shows what it does: before, a line would only flash. */
export const progressDelay = 2_000

/** How progress is shown. `columns`: the width of the terminal; undefined where there is none. */
type ProgressOutput = {
  readonly columns: () => number | undefined
  readonly write: (text: string) => void
  readonly now: () => number
}

/**
 * Prints progress: on a terminal one line that is redrawn at most five times a second and never wraps; elsewhere a line with its
 * time once a minute, the first after a minute. An empty line clears it.
 */
export const createProgressPrinter = ({ columns, write, now }: ProgressOutput) => {
  const startedAt = now()
  let isDrawn = false
  let lastRedraw = Number.NEGATIVE_INFINITY
  let lastLine = startedAt
  let shown = ''
  /** When a terminal may draw the line that is not drawn yet; undefined without such a line. */
  let waitsUntil: number | undefined
  const clear = (): void => {
    if (isDrawn) write('\r\x1b[K')
    isDrawn = false
    waitsUntil = undefined
  }
  const draw = (line: string, width: number, from: number): void => {
    const at = now()
    waitsUntil = Math.max(from, lastRedraw + redrawInterval)
    if (at < waitsUntil) return
    lastRedraw = at
    isDrawn = true
    waitsUntil = undefined
    write(`\r\x1b[K${line.length < width ? line : `${line.slice(0, Math.max(0, width - 2))}…`}`)
  }
  /** `after`: on a terminal, how many milliseconds the run must have taken before it shows the line. */
  const print = (line: string, after = 0): void => {
    const at = now()
    const width = columns()
    shown = line
    if (line === '') clear()
    else if (width !== undefined) draw(line, width, startedAt + after)
    else if (at - lastLine >= progressLineInterval) {
      lastLine = at
      write(`${new Date(at).toISOString()} ${line}\n`)
    }
  }
  /** To be called now and then: draws the line that waits; elsewhere prints it again, so that a log shows that the run is still there. */
  const repeat = (): void => {
    const width = columns()
    if (width === undefined) print(shown)
    else if (waitsUntil !== undefined) draw(shown, width, waitsUntil)
  }
  return { print, clear, repeat }
}

export type CommandOption = {
  readonly type: 'string' | 'boolean'
  readonly help: string
  /** The placeholder in the help, such as FILE. */
  readonly value?: string
  readonly short?: string
  readonly multiple?: boolean
  readonly required?: boolean
  /** The value of a text option that is given without one, as in `--test`; another value is joined to it, as in `--test=schema`. */
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

/** The options and operands of a command line. A boolean option that is left out is false, a multiple one is an empty list. */
export type ParsedOptions<Os extends CommandOptions> = {
  readonly options: { readonly [K in keyof Os]: OptionValue<Os[K]> }
  readonly positionals: ReadonlyArray<string>
}

/** What a command says of itself; its help is made from it. */
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

export type Command = CommandDescription & {
  /** Parses `args` and runs the command; returns the exit status. `program`: its name, for messages about a wrong option. */
  readonly run: (io: CommandIo, program: string, args: ReadonlyArray<string>) => Promise<number>
}

/** A command whose `run` receives its options with the types that their declaration gives them. */
export const defineCommand = <const Os extends CommandOptions>(
  declaration: Omit<CommandDescription, 'options'> & {
    readonly options: Os
    readonly run: (io: CommandIo, parsed: ParsedOptions<Os>) => Promise<number>
  },
): Command => ({
  ...declaration,
  run: async (io, program, args) => declaration.run(io, parseOptions(program, declaration, args)),
})

/** A failure thrown where code is plain async; the program reports it. `status`: the exit status, where the failure does not decide it. */
export class CommandError extends Error {
  constructor(
    readonly failure: Failure,
    readonly status?: 2,
  ) {
    super(failure.message)
  }
}

/** The value, or its failure thrown as a `CommandError`. */
export const getOrThrow = <A>(result: E.Either<Failure, A>): A => {
  if (E.isLeft(result)) throw new CommandError(result.left)
  return result.right
}

/** The value of an effect, or its failure thrown as a `CommandError`. */
export const runOrThrow = async <A>(effect: TaskEither<Failure, A>): Promise<A> => getOrThrow(await effect())

/** Processes each item of a feed; a failure of the feed is thrown as a `CommandError`. */
export const consumeFeed = <A>(feed: Feed<Failure, A>, process: (item: A) => Promise<void>): Promise<void> =>
  runOrThrow(drainFeed((item: A) => TE.rightTask<Failure, void>(() => process(item)))(feed))

/** The command line is wrong: exit status 2. */
export const usageError = (message: string): CommandError => new CommandError(configFailure(message), 2)

const usageName = (program: string, name: string): string => (name === '' ? program : `${program} ${name}`)

const addBareValue = (options: CommandOptions, arg: string): string => {
  const { bareValue } = (arg.startsWith('--') ? options[arg.slice(2)] : undefined) ?? {}
  return bareValue === undefined ? arg : `${arg}=${bareValue}`
}

/** The options of `args`; throws a `CommandError` that names the wrong one. */
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
      // The declaration and parseArgs agree on the types, which TypeScript cannot see through Object.entries.
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

const simplifyName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** How many letters must be added, dropped, replaced or exchanged with their neighbour to make `b` of `a`. */
const countTypos = (a: string, b: string): number => {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j += 1) {
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1),
          isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
  }
  return at(a.length, b.length)
}

/** The known name that was probably meant; undefined if none is near. Case, hyphens and underscores do not count. */
export const findNearestName = (word: string, names: ReadonlyArray<string>): string | undefined => {
  const given = simplifyName(word)
  const maxTypos = Math.max(1, Math.floor(given.length / 3))
  const isPart = (name: string) =>
    given.length >= 3 && (name.startsWith(given) || (name.length >= 3 && given.startsWith(name)))
  const [nearest] = names
    .map((name) => ({ name, simple: simplifyName(name) }))
    .filter(({ simple }) => isPart(simple) || Math.abs(simple.length - given.length) <= maxTypos)
    .map(({ name, simple }) => ({ name, isPart: isPart(simple), typos: countTypos(given, simple) }))
    .filter(({ typos, isPart }) => isPart || typos <= maxTypos)
    .sort((a, b) => a.typos - b.typos)
  return nearest?.name
}

/** ` Did you mean …?` if a known name is near, else nothing. */
export const suggestName = (word: string, names: ReadonlyArray<string>): string => {
  const name = findNearestName(word, names)
  return name === undefined ? '' : ` Did you mean ${name}?`
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
