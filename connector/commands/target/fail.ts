import type { CommandIo } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import { failureLogEntries } from '../../cdk/singer/encode'
import { createSingerLogger } from '../tap/logger'

/** A failure of the whole run: the log and the exit status say it. */
export const reportTargetFailure = async (io: CommandIo, _verb: string, failure: Failure): Promise<number> => {
  failureLogEntries(failure).forEach(createSingerLogger(io, 'target-feedback'))
  return 1
}
