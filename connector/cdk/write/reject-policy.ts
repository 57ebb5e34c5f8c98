import * as O from 'fp-ts/Option'
import { configFailure, type Failure } from '../failure'

/** What became of the records of a stream so far. */
export type RecordCounts = { readonly received: number; readonly accepted: number; readonly rejected: number }

export const zeroCounts: RecordCounts = { received: 0, accepted: 0, rejected: 0 }

/** How many rejected records a run bears. */
export type RejectPolicy = { readonly onReject: 'continue' | 'fail'; readonly maxPercent: number }

/** Below so many records a share says little. */
const minRecords = 100

/** Whether nothing of a stream was accepted though some was rejected: its mapping may be wrong. */
export const hasOnlyRejections = ({ accepted, rejected }: RecordCounts): boolean => accepted === 0 && rejected > 0

const rejectionRemedy =
  'See the dead-letter file or the log for the reasons, correct the mapping or the data, and run again'

/** Why a stream may not go on after a rejection; its record is the `nth`. */
export const rejectionFailure = (
  { onReject, maxPercent }: RejectPolicy,
  stream: string,
  { nth, reason }: { readonly nth: number; readonly reason: string },
  tally: RecordCounts,
): O.Option<Failure> => {
  if (onReject === 'fail')
    return O.some(
      configFailure(
        `${stream}: record ${nth} was rejected: ${reason}. Correct it, or set on_reject to continue and give a dead_letter_path.`,
      ),
    )
  return exceedsMaxPercent(tally, maxPercent) ? O.some(tooManyRejections(stream, tally, maxPercent)) : O.none
}

/** Why a stream that has ended did not end well. */
export const streamRejectionFailure = (
  { maxPercent }: RejectPolicy,
  stream: string,
  tally: RecordCounts,
): O.Option<Failure> => {
  if (hasOnlyRejections(tally))
    return O.some(configFailure(`${stream}: all ${tally.received} records were rejected. ${rejectionRemedy}.`))
  return exceedsMaxPercent(tally, maxPercent) ? O.some(tooManyRejections(stream, tally, maxPercent)) : O.none
}

const exceedsMaxPercent = ({ received, rejected }: RecordCounts, maxPercent: number): boolean =>
  received >= minRecords && rejected * 100 > maxPercent * received

const tooManyRejections = (stream: string, { received, rejected }: RecordCounts, maxPercent: number): Failure =>
  configFailure(
    `${stream}: ${rejected} of ${received} records were rejected, more than max_rejects_percent (${maxPercent}). ${rejectionRemedy}.`,
  )
