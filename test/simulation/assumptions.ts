import { type Disturbance, minute, type Scenario } from './scenario'

/**
 * What a reader assumes of a service, as test/support/assumptions.ts lists it. Nothing in these worlds breaks A5 and
 * A6: a change shows within the lookback, and times are UTC.
 */
export type Assumption = 'A1' | 'A2' | 'A3' | 'A4' | 'A7'

/** How often a reader asks before it believes that a list is empty in which it has seen rows. */
const mostEmptyAnswers = 5

const has = ({ disturbances }: Scenario, test: (each: Disturbance) => boolean): boolean => disturbances.some(test)

/** Rows of one list that have the same modifiedTime: at first, or because several change at once. */
const hasEqualTimes = (scenario: Scenario): boolean => {
  const { rowsPerTime, churn, burst } = scenario.service
  return rowsPerTime > 1 || (churn > 0 && burst > 1) || has(scenario, (each) => each.what === 'rows' && each.count > 1)
}

/**
 * How far the program's clock is ahead at most of the one that stamps rows, milliseconds: it counts where there is no
 * `Date`.
 */
const localLead = ({ disturbances }: Scenario): number => {
  let [offset, most] = [0, 0]
  for (const each of disturbances)
    if (each.what === 'clock') {
      offset += each.jump
      most = Math.max(most, offset)
    }
  return most
}

const breaches: Readonly<Record<Assumption, (scenario: Scenario, config: Limits) => boolean>> = {
  A1: (scenario) => {
    const empty = scenario.disturbances.map((each) =>
      each.what === 'service' && each.fault === 'empty page' ? each.times : 0,
    )
    return empty.reduce((a, b) => a + b, 0) > mostEmptyAnswers
  },
  A2: (scenario, { limit }) => {
    const { hasShortPages, tellsLimit, clamp } = scenario.service
    return (
      hasShortPages ||
      (!tellsLimit && (clamp < limit || has(scenario, (each) => each.what === 'lower limit' && each.most < limit)))
    )
  },
  A3: (scenario) =>
    scenario.service.order === 'random' || (scenario.service.order === 'ties' && hasEqualTimes(scenario)),
  A4: ({ service: { mentionFilter, unmentioned } }) =>
    mentionFilter === 'ignored' || (mentionFilter === 'lenient' && unmentioned > 0),
  A7: (scenario, { lookback }) => (scenario.service.clockSkew ?? localLead(scenario)) > lookback,
}

type Limits = { readonly limit: number; readonly lookback: number }

/** The assumptions that a world of exports breaks, or may break: decided by what is drawn, before it runs. */
export const brokenAssumptions = (scenario: Scenario): ReadonlyArray<Assumption> => {
  const { page_size: limit, lookback_minutes: minutes = 10 } = scenario.config as {
    readonly page_size: number
    readonly lookback_minutes?: number
  }
  return (Object.keys(breaches) as Assumption[]).filter((name) =>
    breaches[name](scenario, { limit, lookback: minutes * minute }),
  )
}

/** A probe of the end asks for 13 rows and expects 4: as few as 5 prove that more follow. */
const probeLimit = 13
const rowsBehindEnd = 5

/** What a world does that no reader could notice. */
export const findUndetectable = ({ service, disturbances }: Scenario): ReadonlyArray<string> => {
  const { hasShortPages, shortestPage = 0.4, clamp } = service
  const limits = disturbances.map((each) => (each.what === 'lower limit' ? each.most : clamp))
  const shortest = Math.ceil(Math.min(probeLimit, clamp, ...limits) * shortestPage)
  return hasShortPages && shortest < rowsBehindEnd ? ['a probe of the end is cut to just what it has at the end'] : []
}
