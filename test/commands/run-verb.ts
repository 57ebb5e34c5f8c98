import { type Command, type Io, parse, Stopped } from '../../connector/cdk/cli'
import type { Failure } from '../../connector/cdk/failure'
import { wholeOf } from '../../connector/cdk/lines'
import { inputOf, quietIo } from '../support/io'

export type Outcome = { readonly status: number; readonly stdout: string; readonly stderr: string }

export type How = {
  readonly stdin?: string
  readonly env?: Io['env']
  /** How a program tells a failure; on stderr unless given. */
  readonly fail?: (io: Io, verb: string, failure: Failure) => Promise<number>
}

const toStderr: Required<How>['fail'] = async (io, _verb, failure) => {
  io.warn(failure.message)
  return 1
}

/** Runs a verb in this process; a failure on its way to the edge counts as printed there. */
export const runVerb = async (
  verb: Command,
  args: ReadonlyArray<string>,
  given: string | How = '',
): Promise<Outcome> => {
  const { stdin = '', env = {}, fail = toStderr } = typeof given === 'string' ? { stdin: given } : given
  const out: Array<string> = []
  const err: Array<string> = []
  const io = quietIo(
    inputOf(stdin),
    async (text) => {
      out.push(wholeOf(text))
    },
    { env, warn: (line) => err.push(`${line}\n`) },
  )
  const run = async () => {
    try {
      return await verb.run(io, parse('feedback', verb, args))
    } catch (error) {
      if (!(error instanceof Stopped)) throw error
      const told = await fail(io, verb.name, error.failure)
      return told === 0 ? 0 : Math.max(told, error.status)
    }
  }
  const status = await run()
  return { status, stdout: out.join(''), stderr: err.join('') }
}
