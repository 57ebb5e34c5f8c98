import { type Command, type Io, parse, Stopped } from '../../connector/cdk/cli'
import { wholeOf } from '../../connector/cdk/lines'

export type Outcome = { readonly status: number; readonly stdout: string; readonly stderr: string }

/** Runs a verb in this process; a failure on its way to the edge counts as printed there. */
export const runVerb = async (verb: Command, args: ReadonlyArray<string>, stdin = ''): Promise<Outcome> => {
  const out: Array<string> = []
  const err: Array<string> = []
  const io: Io = {
    env: {},
    pid: 1,
    stdin: (async function* () {
      yield new Uint8Array(Buffer.from(stdin))
    })(),
    print: async (text) => {
      out.push(wholeOf(text))
    },
    warn: (line) => err.push(`${line}\n`),
    progress: () => undefined,
    hide: () => undefined,
    clean: (text) => text,
    colours: false,
    stop: new AbortController().signal,
  }
  const run = async () => {
    try {
      return await verb.run(io, parse('feedback', verb, args))
    } catch (error) {
      if (!(error instanceof Stopped)) throw error
      io.warn(error.failure.message)
      return 1
    }
  }
  const status = await run()
  return { status, stdout: out.join(''), stderr: err.join('') }
}
