import { joinText } from '../../connector/cdk/lines'
import type { Command, CommandIo } from '../../connector/cdk/program/command'
import { CommandError } from '../../connector/cdk/program/error'
import type { ReportFailure } from '../../connector/cdk/program/exit'
import { createTestIo, toInput } from './command-io'

export type Outcome = { readonly status: number; readonly stdout: string; readonly stderr: string }

export type RunOptions = {
  readonly stdin?: string
  readonly env?: CommandIo['env']
  /** How the program reports a failure; on stderr unless given. */
  readonly fail?: ReportFailure
  /** Receives the lines of progress. */
  readonly printProgress?: CommandIo['printProgress']
  /** What the reader of stdout does before it takes a text; the command waits for it. */
  readonly beforePrint?: (text: string) => Promise<void>
  /** The program that the command belongs to; feedback unless given. */
  readonly program?: string
}

const reportToStderr: ReportFailure = async (io, failure) => {
  io.printWarning(failure.message)
  return 1
}

/** Runs a command in this process and reports its failure as the program does. */
export const runCommand = async (
  command: Command,
  args: ReadonlyArray<string>,
  given: string | RunOptions = '',
): Promise<Outcome> => {
  const {
    stdin = '',
    env = {},
    fail = reportToStderr,
    program = 'feedback',
    printProgress = () => undefined,
    beforePrint,
  } = typeof given === 'string' ? { stdin: given } : given
  const out: Array<string> = []
  const err: Array<string> = []
  const io = createTestIo(
    toInput(stdin),
    async (text) => {
      const joined = joinText(text)
      if (beforePrint !== undefined) await beforePrint(joined)
      out.push(joined)
    },
    { env, printProgress, printWarning: (line) => err.push(`${line}\n`) },
  )
  const run = async () => {
    try {
      return await command.run(io, program, args)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      const status = await fail(io, error.failure, { program, verb: command.name })
      return status === 0 ? 0 : (error.status ?? status)
    }
  }
  const status = await run()
  return { status, stdout: out.join(''), stderr: err.join('') }
}
