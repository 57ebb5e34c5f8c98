import * as O from 'fp-ts/Option'
import { configFailure, type Failure } from '../failure'

/** How many records of a stream have arrived so far, and how many of them were accepted or rejected. */
export type RecordCounts = { readonly received: number; readonly accepted: number; readonly rejected: number }

export const zeroCounts: RecordCounts = { received: 0, accepted: 0, rejected: 0 }

/** How many rejected records a run allows: none, or up to this percentage of a stream. */
export type RejectPolicy = {
  readonly onReject: 'continue' | 'fail'
  readonly maxPercent: number
  /** A stream may consist of rejected records only. */
  readonly mayRejectAll?: boolean
}

/** A percentage of fewer records means little. */
const minRecords = 100

/** True if a stream has rejected records but no accepted one. Its mapping may be wrong. */
export const hasOnlyRejections = ({ accepted, rejected }: RecordCounts): boolean => accepted === 0 && rejected > 0

export const rejectionRemedy =
  'See the dead-letter file or the log for the reasons, correct the mapping or the data, and run again'

/**
 * The failure that ends the run after this rejection, if it must end. `ordinal`: the record's number within its stream,
 * from 1.
 */
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

/** The failure of a stream at its end, if it had too many rejections. */
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
