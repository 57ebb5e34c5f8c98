import type { VisitRecordResult } from '../api/model/visit-record'
import type { Answer, Verdict } from '../cdk/sink'

const verdictOf = (outcome: string | undefined): Verdict => {
  if (outcome === undefined) return { _tag: 'Unknown' }
  if (/^success$/i.test(outcome)) return { _tag: 'Accepted' }
  return {
    _tag: 'Rejected',
    reason: /^error$/i.test(outcome) ? 'the service reports Error' : 'the service reports neither Success nor Error',
  }
}

/** What a result says of the visits with these ids. Outcomes under names that nobody sent leave open whose they are, unless one visit stands alone. */
export const visitAnswer = (ids: ReadonlyArray<string>, { records }: VisitRecordResult): Answer => {
  const outcomes = new Map(Object.entries(records))
  const sent = new Set(ids)
  const foreign = [...outcomes.keys()].filter((id) => !sent.has(id))
  const missing = ids.filter((id) => !outcomes.has(id))
  if (foreign.length > 0 && missing.length > 0) {
    const [name = ''] = foreign
    if (ids.length === 1 && foreign.length === 1) return { _tag: 'Verdicts', verdicts: [verdictOf(outcomes.get(name))] }
    return { _tag: 'Refused', reason: 'the answer names visits that were not sent', tooLarge: false }
  }
  return { _tag: 'Verdicts', verdicts: ids.map((id) => verdictOf(outcomes.get(id))) }
}
