import * as E from 'fp-ts/Either'
import type { ApiError } from '../api/error'
import type { VisitRecordResult } from '../api/model/visit-record'
import type { Answer, Verdict } from '../cdk/sink'

const accepted: Verdict = { _tag: 'Accepted' }
const unknown: Verdict = { _tag: 'Unknown' }

const verdictOf = (outcome: string | undefined): Verdict => {
  if (outcome === undefined) return unknown
  if (/^success$/i.test(outcome)) return accepted
  return {
    _tag: 'Rejected',
    reason: /^error$/i.test(outcome) ? 'the service reports Error' : 'the service reports neither Success nor Error',
  }
}

/** A result that names none of so many visits, and whose status reports no success, is an application error (Errors, status 200). */
export const orError =
  (sent: number) =>
  (result: VisitRecordResult): E.Either<ApiError, VisitRecordResult> => {
    const { code, message } = result.status ?? {}
    const isSuccess = code == null || /^2\d\d$/.test(String(code)) || /^success$/i.test(message ?? '')
    return sent === 0 || isSuccess || Object.keys(result.records).length > 0
      ? E.right(result)
      : E.left({ _tag: 'Application', code: String(code), message: message ?? '' })
  }

const folded = (id: string): string => id.trim().toLowerCase()

/** Outcomes by ids in which neither case nor blanks around them count; undefined where that makes two ids one. */
const byFoldedId = (
  ids: ReadonlyArray<string>,
  records: VisitRecordResult['records'],
): ReadonlyMap<string, string> | undefined => {
  const outcomes = new Map(Object.entries(records).map(([id, outcome]) => [folded(id), outcome]))
  const isOneToOne = outcomes.size === Object.keys(records).length && new Set(ids.map(folded)).size === ids.length
  return isOneToOne ? outcomes : undefined
}

/** What a result says of the visits with these ids. Outcomes under names that nobody sent leave open whose they are, unless one visit stands alone. */
export const visitAnswer = (ids: ReadonlyArray<string>, { records }: VisitRecordResult): Answer => {
  const exact = ids.map((id) => verdictOf(Object.hasOwn(records, id) ? records[id] : undefined))
  if (!exact.includes(unknown)) return { _tag: 'Verdicts', verdicts: exact }
  const [alone, ...others] = Object.values(records)
  if (ids.length === 1 && alone !== undefined && others.length === 0)
    return { _tag: 'Verdicts', verdicts: [verdictOf(alone)] }
  const outcomes = byFoldedId(ids, records)
  const verdicts = outcomes === undefined ? exact : ids.map((id) => verdictOf(outcomes.get(folded(id))))
  const named = verdicts.filter((verdict) => verdict !== unknown).length
  return named < Object.keys(records).length
    ? { _tag: 'Refused', reason: 'the answer names visits that were not sent', tooLarge: false }
    : { _tag: 'Verdicts', verdicts }
}
