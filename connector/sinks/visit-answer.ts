import * as E from 'fp-ts/Either'
import type { ApiError } from '../api/error'
import type { VisitRecordResult } from '../api/model/visit-record'
import type { BatchAnswer, RecordVerdict } from '../cdk/sink'

const acceptedVerdict: RecordVerdict = { _tag: 'Accepted' }
const unknownVerdict: RecordVerdict = { _tag: 'Unknown' }

const toVerdict = (outcome: string | undefined): RecordVerdict => {
  if (outcome === undefined) return unknownVerdict
  if (/^success$/i.test(outcome)) return acceptedVerdict
  return {
    _tag: 'Rejected',
    reason: /^error$/i.test(outcome) ? 'the service reports Error' : 'the service reports neither Success nor Error',
  }
}

/** A result that names none of so many visits, and whose status reports no success, is an application error (Errors, status 200). */
export const failOnErrorStatus =
  (sent: number) =>
  (result: VisitRecordResult): E.Either<ApiError, VisitRecordResult> => {
    const { code, message } = result.status ?? {}
    const isSuccess = code == null || /^2\d\d$/.test(String(code)) || /^success$/i.test(message ?? '')
    return sent === 0 || isSuccess || Object.keys(result.records).length > 0
      ? E.right(result)
      : E.left({ _tag: 'Application', code: String(code), message: message ?? '' })
  }

const normalizeId = (id: string): string => id.trim().toLowerCase()

/** Outcomes by ids in which neither case nor blanks around them count; undefined where that makes two ids one. */
const outcomesByNormalizedId = (
  ids: ReadonlyArray<string>,
  records: VisitRecordResult['records'],
): ReadonlyMap<string, string> | undefined => {
  const outcomes = new Map(Object.entries(records).map(([id, outcome]) => [normalizeId(id), outcome]))
  const isOneToOne = outcomes.size === Object.keys(records).length && new Set(ids.map(normalizeId)).size === ids.length
  return isOneToOne ? outcomes : undefined
}

/** What a result says of the visits with these ids. Outcomes under names that nobody sent leave open whose they are, unless one visit stands alone. */
export const toVisitAnswer = (ids: ReadonlyArray<string>, { records }: VisitRecordResult): BatchAnswer => {
  const exact = ids.map((id) => toVerdict(Object.hasOwn(records, id) ? records[id] : undefined))
  if (!exact.includes(unknownVerdict)) return { _tag: 'Verdicts', verdicts: exact }
  const [alone, ...others] = Object.values(records)
  if (ids.length === 1 && alone !== undefined && others.length === 0)
    return { _tag: 'Verdicts', verdicts: [toVerdict(alone)] }
  const outcomes = outcomesByNormalizedId(ids, records)
  const verdicts = outcomes === undefined ? exact : ids.map((id) => toVerdict(outcomes.get(normalizeId(id))))
  const named = verdicts.filter((verdict) => verdict !== unknownVerdict).length
  return named < Object.keys(records).length
    ? { _tag: 'Refused', reason: 'the answer names visits that were not sent', tooLarge: false }
    : { _tag: 'Verdicts', verdicts }
}
