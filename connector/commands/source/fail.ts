import { errorLine, statusLine } from '../../cdk/airbyte'
import type { Io } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'

/** A failure of a whole verb, told to the platform: `check` answers a config problem, everything else is a trace. */
export const fail = async (io: Io, verb: string, failure: Failure): Promise<number> => {
  io.warn(failure.message)
  if (verb === 'check' && failure._tag === 'Config') {
    await io.print(statusLine('FAILED', failure.message))
    return 0
  }
  await io.print(errorLine(Date.now, failure))
  return 1
}
