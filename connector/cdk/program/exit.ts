import { connectionStatusLine, errorTraceLine, failureTypes } from '../airbyte/encode'
import type { Failure } from '../failure'
import { reportSingerFailure } from '../singer/command-line'
import type { CommandIo } from './command'

/** Reports the failure of a whole command to the program's caller. Returns the exit status. */
export type ReportFailure = (
  io: CommandIo,
  failure: Failure,
  /** `json`: the caller asked for JSON with `--json`. */
  command: { readonly program: string; readonly verb: string; readonly json?: boolean },
) => Promise<number>

/** How a program ends, as its caller expects. */
export type CallerConventions = {
  readonly reportFailure: ReportFailure
  /** After a signal, exit with status 143 or 130. Other programs end by the signal itself. */
  readonly exitsOnSignal: boolean
  /** The exit status if stdout cannot be written. */
  readonly outputStatus: number
}

/** `check` reports a wrong config as a status. Every other failure is a trace. */
export const reportAirbyteFailure: ReportFailure = async (io, failure, { verb }) => {
  io.printWarning(failure.message)
  if (verb === 'check' && failure._tag === 'Config') {
    await io.print(connectionStatusLine('FAILED', failure.message))
    return 0
  }
  await io.print(errorTraceLine(Date.now, failure))
  return 1
}

/**
 * The exit statuses of a program for people, from sysexits.h. Only after `Transient` may the same run succeed later.
 */
const failureStatuses: Readonly<Record<Failure['_tag'], number>> = { Config: 78, System: 70, Transient: 75 }

/**
 * The exit status for these failures. What a person must fix takes precedence over what may pass by itself. Without
 * failures, the status of `Transient`: run again.
 */
export const failureStatus = (failures: ReadonlyArray<Failure>): number =>
  failureStatuses[
    (['Config', 'System'] as const).find((tag) => failures.some(({ _tag }) => _tag === tag)) ?? 'Transient'
  ]

/** A failure as `--json` prints it, with the types of Airbyte's traces. */
export const describeFailure = ({ _tag, message }: Failure) => ({ type: failureTypes[_tag], message })

const reportToPerson: ReportFailure = async (io, failure, { json = false }) => {
  io.printProgress('')
  io.printWarning(failure.message)
  if (failure._tag === 'System' && failure.detail !== undefined) io.printWarning(failure.detail)
  if (json) await io.print(`${JSON.stringify({ failure: describeFailure(failure) }, null, 2)}\n`)
  return failureStatus([failure])
}

export const airbyteConventions: CallerConventions = {
  reportFailure: reportAirbyteFailure,
  exitsOnSignal: false,
  outputStatus: 1,
}

export const singerConventions: CallerConventions = {
  reportFailure: reportSingerFailure,
  exitsOnSignal: true,
  outputStatus: 1,
}

export const personConventions: CallerConventions = {
  reportFailure: reportToPerson,
  exitsOnSignal: false,
  outputStatus: failureStatuses.Transient,
}
