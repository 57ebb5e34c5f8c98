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

/** What a result says of the visits with these ids. Outcomes under names that nobody sent leave open whose they are, unless one visit stands alone. */
export const visitAnswer = (ids: ReadonlyArray<string>, { records }: VisitRecordResult): Answer => {
  const verdicts = ids.map((id) => verdictOf(Object.hasOwn(records, id) ? records[id] : undefined))
  const named = verdicts.filter(({ _tag }) => _tag !== 'Unknown').length
  if (named === ids.length) return { _tag: 'Verdicts', verdicts }
  const [alone, ...others] = Object.values(records)
  if (ids.length === 1 && alone !== undefined && others.length === 0)
    return { _tag: 'Verdicts', verdicts: [verdictOf(alone)] }
  return named < Object.keys(records).length
    ? { _tag: 'Refused', reason: 'the answer names visits that were not sent', tooLarge: false }
    : { _tag: 'Verdicts', verdicts }
}
