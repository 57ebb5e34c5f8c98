import { type CommandIo, connectionStatusLine, errorTraceLine, type Failure, failureLogEntries } from '../cdk'
import { createSingerLogger } from './singer-program'

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

/** A failure of the whole run: Singer has no message for it, the log and the exit status say it. */
export const reportTapFailure = async (io: CommandIo, _verb: string, failure: Failure): Promise<number> => {
  failureLogEntries(failure).forEach(createSingerLogger(io, 'tap-feedback'))
  return 1
}

/** A failure of the whole run: the log and the exit status say it. */
export const reportTargetFailure = async (io: CommandIo, _verb: string, failure: Failure): Promise<number> => {
  failureLogEntries(failure).forEach(createSingerLogger(io, 'target-feedback'))
  return 1
}
