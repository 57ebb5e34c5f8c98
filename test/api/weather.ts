import fc from 'fast-check'
import { fair, type Order, type Weather } from './simulation'
import type { Plan } from './trial'

const hour = 3_600_000

export const orders: readonly Order[] = ['ascending', 'descending', 'id', 'ties', 'random']

/** Any service that keeps what scan.md assumes: rows become visible within the lookback, most have a mention time. */
export const anyWeather: fc.Arbitrary<Weather> = fc
  .record({
    order: fc.constantFrom(...orders),
    clamp: fc.constantFrom(1000, 1000, 1000, 50, 30),
    rows: fc.oneof(
      { weight: 1, arbitrary: fc.constantFrom(0, 1, 2, 5, 20, 21, 49, 50, 51, 60, 61) },
      { weight: 3, arbitrary: fc.integer({ min: 0, max: 400 }) },
    ),
    tied: fc.constantFrom(1, 1, 1, 7, 40, 120),
    change: fc.constantFrom(0, 1, 1, 5),
    remove: fc.constantFrom(0, 0.2, 0.2, 3),
    add: fc.constantFrom(0, 0.5, 0.5, 2),
    restore: fc.constantFrom(0, 0, 0.2),
    burstEvery: fc.constantFrom(0, 0, 8, 15),
    burstSize: fc.constantFrom(15, 60, 200),
    attack: fc.constantFrom(0, 0, 0, 5, 12, 30),
    lag: fc.constantFrom(0, 0, 60_000, 500_000),
    skew: fc.constantFrom(0, 0, 0, 1200_000, 3 * hour, -1200_000, -3 * hour, undefined),
    latency: fc.constantFrom(200, 3000, 30_000),
    inclusive: fc.boolean(),
    echo: fc.boolean(),
    shortPages: fc.constantFrom(false, false, false, true),
  })
  .map((some) => ({ ...fair, ...some }))
  .map((weather) => ({ ...weather, ...(keepsOrder(weather) ? {} : unordered(weather)) }))
  .map((weather) => ({ ...weather, ...(weather.shortPages ? calm(weather) : {}) }))

const keepsOrder = ({ order }: Weather): boolean => order !== 'ties' && order !== 'random'

/** Where no order is kept, a page that is shorter than it could be looks like all there is, and growth outruns any reader. */
const unordered = ({ add, burstEvery }: Weather): Partial<Weather> => ({
  shortPages: false,
  add: Math.min(add, 0.5),
  burstEvery: burstEvery * 3,
})

/** Against the service's own rule that a short page is the last, the end is only found out in calmer weather. */
const calm = ({ change }: Weather): Partial<Weather> => ({ change: Math.min(change, 1), attack: 0, burstEvery: 0 })

/** One to four busy runs, some killed after any item, pages one by one or side by side. */
export const anyPlan: fc.Arbitrary<Plan> = fc.record({
  seed: fc.integer(),
  limit: fc.constant(50),
  concurrency: fc.constantFrom(1, 4),
  sorted: fc.boolean(),
  runs: fc.integer({ min: 1, max: 4 }),
  crashes: fc.boolean(),
})
