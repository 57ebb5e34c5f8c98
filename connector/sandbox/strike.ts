import type { Fault, FaultRule } from './faults'
import type { OperationName } from './operations'

/** A number in 0 … 1 that only depends on its arguments. */
const requestChance = (seed: number, rule: number, request: number): number => {
  let state = (seed * 0x9e3779b1 + rule * 0x85ebca6b + request * 0xc2b2ae35) | 0
  for (const factor of [0x85ebca6b, 0xc2b2ae35]) state = Math.imul(state ^ (state >>> 15), factor)
  return ((state ^ (state >>> 16)) >>> 0) / 2 ** 32
}

const appliesTo = (rule: FaultRule, request: number, struck: number, chanced: number): boolean =>
  struck < rule.times &&
  (rule.requests === undefined
    ? request >= rule.from && request <= rule.to && (rule.share >= 1 || chanced < rule.share)
    : rule.requests.includes(request))

/** Tells for each request which fault strikes it: the first rule that does. The same seed and requests, the same faults. */
export const scheduleFaults = (
  rules: ReadonlyArray<FaultRule>,
  seed: number,
): ((operation: OperationName) => Fault | undefined) => {
  const requests = rules.map(() => 0)
  const struck = rules.map(() => 0)
  return (operation) => {
    const hit = rules
      .map((rule, index) => ({ rule, index }))
      .filter(({ rule }) => rule.operations.includes(operation))
      .map(({ rule, index }) => {
        const request = (requests[index] ?? 0) + 1
        requests[index] = request
        return { rule, index, hits: appliesTo(rule, request, struck[index] ?? 0, requestChance(seed, index, request)) }
      })
      .find(({ hits }) => hits)
    if (hit === undefined) return undefined
    struck[hit.index] = (struck[hit.index] ?? 0) + 1
    return hit.rule
  }
}
