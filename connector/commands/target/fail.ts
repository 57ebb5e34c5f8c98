import type { Io } from '../../cdk/cli'
import type { Failure } from '../../cdk/failure'
import { logFailure } from '../../cdk/singer/encode'
import { logger } from '../tap/logger'

/** A failure of the whole run: the log and the exit status say it. */
export const fail = async (io: Io, _verb: string, failure: Failure): Promise<number> => {
  logFailure(failure).forEach(logger(io, 'target-feedback'))
  return 1
}
