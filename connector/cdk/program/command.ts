import * as TE from 'fp-ts/TaskEither'
import type { Failure } from '../failure'
import { drainFeed, type Feed } from '../feed'
import type { OutputText } from '../lines'
import { runOrThrow } from './error'
import type { LineEditor } from './line-editor'
import { type CommandDescription, type CommandOptions, type ParsedOptions, parseOptions } from './options'

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
   * Shows one progress line on a terminal, and now and then logs it elsewhere; an empty one clears it. Costs little
   * however often it is called. `after`: on a terminal, how many milliseconds the run must have taken before it shows
   * the line.
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

export type Command = CommandDescription & {
  /**
   * Parses `args` and runs the command; returns the exit status. `program`: its name, for messages about a wrong
   * option.
   */
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

/** Processes each item of a feed; a failure of the feed is thrown as a `CommandError`. */
export const consumeFeed = <A>(feed: Feed<Failure, A>, process: (item: A) => Promise<void>): Promise<void> =>
  runOrThrow(drainFeed((item: A) => TE.rightTask<Failure, void>(() => process(item)))(feed))
