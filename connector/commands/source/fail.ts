import { connectionStatusLine, errorTraceLine } from '../../cdk/airbyte'
import type { CommandIo } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'

/** A failure of a whole verb, told to the platform: `check` answers a config problem, everything else is a trace. */
export const reportAirbyteFailure = async (io: CommandIo, verb: string, failure: Failure): Promise<number> => {
  io.printWarning(failure.message)
  if (verb === 'check' && failure._tag === 'Config') {
    await io.print(connectionStatusLine('FAILED', failure.message))
    return 0
  }
  await io.print(errorTraceLine(Date.now, failure))
  return 1
}
