import * as t from 'io-ts'
import type { Location, LocationSyncResult } from '../api/model/location'
import type { BatchAnswer, RecordVerdict } from '../cdk/sink'

const acceptedVerdict: RecordVerdict = { _tag: 'Accepted' }
const rejectedVerdict: RecordVerdict = {
  _tag: 'Rejected',
  reason: 'the service could not process it (nonSyncableList)',
}

/** Whether an item of nonSyncableList, whose form is not shown, means this location: by its code, and its type where both name one. */
const matchesItem =
  (item: unknown) =>
  ({ code, codeType }: Location): boolean => {
    if (typeof item === 'string') return item === code
    if (!t.UnknownRecord.is(item) || item.code !== code) return false
    return typeof item.codeType !== 'string' || codeType == null || item.codeType === codeType
  }

/** What a result says of these locations, which must differ in code and type. Failures that cannot be told apart leave the batch refused. */
export const toLocationAnswer = (items: ReadonlyArray<Location>, result: LocationSyncResult): BatchAnswer => {
  const named = result.nonSyncableList ?? []
  const success = /^success$/i.test(result.status)
  const failed = result.failedRequests ?? (named.length > 0 || success ? named.length : items.length)
  if (failed === 0 && named.length === 0) return { _tag: 'Verdicts', verdicts: items.map(() => acceptedVerdict) }
  const verdicts = items.map((item) =>
    named.some((one) => matchesItem(one)(item)) ? rejectedVerdict : acceptedVerdict,
  )
  const told = verdicts.filter((verdict) => verdict === rejectedVerdict).length
  const clear = told === failed && named.every((one) => items.some(matchesItem(one)))
  return clear
    ? { _tag: 'Verdicts', verdicts }
    : { _tag: 'Refused', reason: `the service reports ${result.status} and does not tell which`, tooLarge: false }
}
