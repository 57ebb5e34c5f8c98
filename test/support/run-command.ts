import { type Command, CommandError, type CommandIo, parseOptions } from '../../connector/cdk/command'
import type { Failure } from '../../connector/cdk/failure'
import { joinText } from '../../connector/cdk/lines'
import { createTestIo, toInput } from './command-io'

export type Outcome = { readonly status: number; readonly stdout: string; readonly stderr: string }

export type RunOptions = {
  readonly stdin?: string
  readonly env?: CommandIo['env']
  /** How a program tells a failure; on stderr unless given. */
  readonly fail?: (io: CommandIo, verb: string, failure: Failure) => Promise<number>
}

const reportToStderr: Required<RunOptions>['fail'] = async (io, _verb, failure) => {
  io.printWarning(failure.message)
  return 1
}

/** Runs a verb in this process; a failure on its way to the edge counts as printed there. */
export const runCommand = async (
  verb: Command,
  args: ReadonlyArray<string>,
  given: string | RunOptions = '',
): Promise<Outcome> => {
  const { stdin = '', env = {}, fail = reportToStderr } = typeof given === 'string' ? { stdin: given } : given
  const out: Array<string> = []
  const err: Array<string> = []
  const io = createTestIo(
    toInput(stdin),
    async (text) => {
      out.push(joinText(text))
    },
    { env, printWarning: (line) => err.push(`${line}\n`) },
  )
  const run = async () => {
    try {
      return await verb.run(io, parseOptions('feedback', verb, args))
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      const told = await fail(io, verb.name, error.failure)
      return told === 0 ? 0 : Math.max(told, error.status)
    }
  }
  const status = await run()
  return { status, stdout: out.join(''), stderr: err.join('') }
}
