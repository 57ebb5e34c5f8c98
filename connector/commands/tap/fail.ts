import type { CommandIo } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import { failureLogEntries } from '../../cdk/singer/encode'
import { createSingerLogger } from './logger'

/** A failure of the whole run: Singer has no message for it, the log and the exit status say it. */
export const reportTapFailure = async (io: CommandIo, _verb: string, failure: Failure): Promise<number> => {
  failureLogEntries(failure).forEach(createSingerLogger(io, 'tap-feedback'))
  return 1
}
