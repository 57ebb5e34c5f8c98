import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { estimateRating } from '../../../connector/snapshot/report/locations'

const rating = fc.double({ min: 1, max: 5, noNaN: true })
const sample = fc.record({ count: fc.integer({ min: 1, max: 100_000 }), mean: rating })
const all = fc.record({ overall: rating, deviation: fc.double({ min: 0, max: 2, noNaN: true }) })
const slack = 1e-9

describe('the estimate of a location', () => {
  it('weighs ten ratings at the mean of all against its own', () => {
    const { mean, low, high } = estimateRating({ count: 30, mean: 4 }, { overall: 3, deviation: 1 })
    expect(mean).toBeCloseTo(3.75)
    expect(high - mean).toBeCloseTo(1.96 / Math.sqrt(40))
    expect(mean - low).toBeCloseTo(1.96 / Math.sqrt(40))
  })

  it('lies between its own mean and that of all, inside its interval', () =>
    fc.assert(
      fc.property(sample, all, (own, others) => {
        const { mean, low, high } = estimateRating(own, others)
        expect(mean).toBeGreaterThanOrEqual(Math.min(own.mean, others.overall) - slack)
        expect(mean).toBeLessThanOrEqual(Math.max(own.mean, others.overall) + slack)
        expect(low).toBeLessThanOrEqual(mean)
        expect(high).toBeGreaterThanOrEqual(mean)
      }),
    ))

  it('comes nearer to its own mean, and surer, with every rating', () =>
    fc.assert(
      fc.property(sample, all, (own, others) => {
        const [before, after] = [estimateRating(own, others), estimateRating({ ...own, count: own.count + 1 }, others)]
        expect(Math.abs(after.mean - own.mean)).toBeLessThanOrEqual(Math.abs(before.mean - own.mean) + slack)
        expect(after.high - after.mean).toBeLessThanOrEqual(1.96 * others.deviation)
      }),
    ))
})
