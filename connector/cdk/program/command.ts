import * as TE from 'fp-ts/TaskEither'
import type { Failure } from '../failure'
import { drainFeed, type Feed } from '../feed'
import type { OutputText } from '../lines'
import { runOrThrow } from './error'
import type { LineEditor } from './line-editor'
import { type CommandDescription, type CommandOptions, type ParsedOptions, parseOptions } from './options'

/** What a command may use of its process. */
export type CommandIo = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly stdin: AsyncIterable<Uint8Array>
  /** Writes to stdout. Resolves once there is room again, so that a slow reader slows the run down. */
  readonly print: (text: OutputText) => Promise<void>
  /** Writes one line to stderr. */
  readonly printWarning: (line: string) => void
  /**
   * Shows one progress line on a terminal, or logs it occasionally elsewhere. An empty line clears it. Cheap to call
   * often. `after`: on a terminal, the milliseconds from the start of the run before the line may appear.
   */
  readonly printProgress: (line: string, after?: number) => void
  /** A person answers on stdin and reads stderr. */
  readonly isInteractive: boolean
  /** Stdout is a terminal, which interprets control characters. */
  readonly printsOnTerminal: boolean
  /** Stdout is a terminal that shows colors, and NO_COLOR is not set. */
  readonly hasColors: boolean
  /** Turns the echo of typed keys on or off. Without it, each key arrives at once and unedited. */
  readonly setEcho: (on: boolean) => void
  /** Lines that a person edits. Available only if `isInteractive` and `printsOnTerminal`. */
  readonly editLines: () => LineEditor
  /** From now on, `***` replaces these strings on stderr and in failures. */
  readonly addSecrets: (secrets: ReadonlyArray<string>) => void
  /** Redacts the secrets in a text for stdout. */
  readonly redactText: (text: string) => string
  /** Aborted by SIGTERM or SIGINT. */
  readonly stop: AbortSignal
}

export type Command = CommandDescription & {
  /**
   * Parses `args` and runs the command. Returns the exit status. `program`: its name, for messages about a wrong
   * option.
   */
  readonly run: (io: CommandIo, program: string, args: ReadonlyArray<string>) => Promise<number>
}

/** A command whose `run` receives its options with the declared types. */
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
