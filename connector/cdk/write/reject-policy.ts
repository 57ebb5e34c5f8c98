import * as O from 'fp-ts/Option'
import { configFailure, type Failure } from '../failure'

/** How many records of a stream came in so far, and how many of them were accepted or rejected. */
export type RecordCounts = { readonly received: number; readonly accepted: number; readonly rejected: number }

export const zeroCounts: RecordCounts = { received: 0, accepted: 0, rejected: 0 }

/** How many rejected records a run allows: none, or at most so many percent of a stream. */
export type RejectPolicy = {
  readonly onReject: 'continue' | 'fail'
  readonly maxPercent: number
  /** Whether a stream may also have rejected records alone. */
  readonly mayRejectAll?: boolean
}

/** A percentage of fewer records says little. */
const minRecords = 100

/** Whether a stream has rejected records and no accepted one: its mapping may be wrong. */
export const hasOnlyRejections = ({ accepted, rejected }: RecordCounts): boolean => accepted === 0 && rejected > 0

export const rejectionRemedy =
  'See the dead-letter file or the log for the reasons, correct the mapping or the data, and run again'

/** Why the run ends after this rejection, if it does. `ordinal`: of the record within its stream, from 1. */
export const rejectionFailure = (
  { onReject, maxPercent }: RejectPolicy,
  stream: string,
  { ordinal, reason }: { readonly ordinal: number; readonly reason: string },
  counts: RecordCounts,
): O.Option<Failure> => {
  if (onReject === 'fail')
    return O.some(
      configFailure(
        `${stream}: record ${ordinal} was rejected: ${reason}. Correct ` +
          'it, or set on_reject to continue and give a dead_letter_path.',
      ),
    )
  return tooManyRejections(stream, counts, maxPercent)
}

/** Why a stream fails at its end because of its rejections, if it does. */
export const streamRejectionFailure = (
  { maxPercent, mayRejectAll }: RejectPolicy,
  stream: string,
  counts: RecordCounts,
): O.Option<Failure> =>
  mayRejectAll !== true && hasOnlyRejections(counts)
    ? O.some(configFailure(`${stream}: all ${counts.received} records were rejected. ${rejectionRemedy}.`))
    : tooManyRejections(stream, counts, maxPercent)

const tooManyRejections = (
  stream: string,
  { received, rejected }: RecordCounts,
  maxPercent: number,
): O.Option<Failure> =>
  received >= minRecords && rejected * 100 > maxPercent * received
    ? O.some(
        configFailure(
          `${stream}: ${rejected} of ${received} records were rejected, more ` +
            `than max_rejects_percent (${maxPercent}). ${rejectionRemedy}.`,
        ),
      )
    : O.none
