/** What may go wrong with one answer. `cutjson`: a whole answer whose JSON breaks off; `hang`: no answer ever. */
export const faultKinds = ['429', '500', 'reset', 'cutjson', 'hang'] as const
export type Fault = (typeof faultKinds)[number]

/** The faults of the numbered requests of the exports, from 1 on; each happens once. */
export type FaultPlan = ReadonlyMap<number, Fault>

const isFault = (kind: string | undefined): kind is Fault => faultKinds.some((known) => known === kind)

/** Reads `3=429,5=reset`; answers what is wrong with it otherwise. */
export const readFaultPlan = (text: string): FaultPlan | string => {
  const plan = new Map<number, Fault>()
  for (const part of text.split(',').filter((item) => item.trim() !== '')) {
    const [, number, kind] = /^\s*(\d+)=(\w+)\s*$/.exec(part) ?? []
    if (!isFault(kind) || Number(number) < 1)
      return `"${part}" is not N=KIND with N from 1 on and KIND one of ${faultKinds.join(', ')}`
    plan.set(Number(number), kind)
  }
  return plan
}
