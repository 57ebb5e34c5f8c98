import type { Json } from './connection'

export type Origin = 'source' | 'destination' | 'platform'

export type FailureType = 'config_error' | 'transient_error' | 'system_error'

export type AttemptFailure = {
  readonly origin: Origin
  readonly type: FailureType
  readonly message: string
  readonly internalMessage?: string
}

export type AttemptEnd = {
  readonly isCancelled: boolean
  /** undefined: no source ran. */
  readonly sourceStatus: number | undefined
  readonly destinationStatus: number
  /** Error traces of both sides. */
  readonly traces: ReadonlyArray<{ readonly origin: Origin; readonly trace: Json }>
  /** What the platform itself found wrong. */
  readonly trouble: string | undefined
}

/** The status in the exit file. Without one 10 s after the end of stdout, it counts as 1. */
export const toExitStatus = (exitFile: string | undefined): number =>
  exitFile === undefined ? 1 : Number.parseInt(exitFile, 10)

const toFailure = (origin: Origin, trace: Json): AttemptFailure => {
  const { message, failure_type, internal_message } = trace.error as Json
  return {
    origin,
    type: (failure_type ?? 'system_error') as FailureType,
    message: String(message),
    ...(internal_message === undefined ? {} : { internalMessage: String(internal_message) }),
  }
}

/**
 * Error traces by the time that they name, then exit codes, the source's first. airbyte-platform: ReplicationTask,
 * FailureHelper.
 */
export const listFailures = ({
  traces,
  sourceStatus = 0,
  destinationStatus,
  trouble,
}: AttemptEnd): ReadonlyArray<AttemptFailure> => {
  const exit = (origin: Origin, status: number): ReadonlyArray<AttemptFailure> =>
    status === 0 ? [] : [{ origin, type: 'system_error', message: `The ${origin} exited with ${status}` }]
  return [
    ...[...traces]
      .sort((a, b) => Number(a.trace.emitted_at) - Number(b.trace.emitted_at))
      .map(({ origin, trace }) => toFailure(origin, trace)),
    ...(trouble === undefined ? [] : [{ origin: 'platform', type: 'system_error', message: trouble } as const]),
    ...exit('source', sourceStatus),
    ...exit('destination', destinationStatus),
  ]
}

export type AttemptStatus = 'COMPLETED' | 'FAILED' | 'CANCELLED'

/** Exit codes decide; an error trace of a program that exits with 0 fails nothing. */
export const attemptStatus = ({
  isCancelled,
  sourceStatus = 0,
  destinationStatus,
  trouble,
}: AttemptEnd): AttemptStatus => {
  if (isCancelled) return 'CANCELLED'
  return sourceStatus === 0 && destinationStatus === 0 && trouble === undefined ? 'COMPLETED' : 'FAILED'
}

/** The first failure decides. airbyte-platform: ConnectionManagerWorkflow. */
export const mayRetry = ([first]: ReadonlyArray<AttemptFailure>): boolean => first?.type !== 'config_error'

/** What people read as the reason of the job. */
export const jobReason = ([first]: ReadonlyArray<AttemptFailure>): string | undefined =>
  first?.type === 'config_error' ? (first.internalMessage ?? 'Unknown failure reason') : first?.message

/**
 * What a check answers: a CONNECTION_STATUS counts whatever the exit status, and silence without an error is an
 * exception.
 */
export const checkAnswer = (
  messages: ReadonlyArray<Json>,
  status: number,
): 'SUCCEEDED' | 'FAILED' | 'error trace' | 'exception' => {
  const answer = messages.find(({ type }) => type === 'CONNECTION_STATUS')
  if (answer !== undefined) return (answer.connectionStatus as Json).status === 'SUCCEEDED' ? 'SUCCEEDED' : 'FAILED'
  const isError = messages.some(({ type, trace }) => type === 'TRACE' && (trace as Json).type === 'ERROR')
  return isError || status !== 0 ? 'error trace' : 'exception'
}
