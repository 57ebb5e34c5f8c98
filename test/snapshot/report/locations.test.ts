import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { estimateRating } from '../../../connector/snapshot/report/locations'

const rating = fc.double({ min: 1, max: 5, noNaN: true })
const ownRatings = fc.record({ count: fc.integer({ min: 1, max: 100_000 }), mean: rating })
const allRatings = fc.record({ overall: rating, deviation: fc.double({ min: 0, max: 2, noNaN: true }) })
const tolerance = 1e-9

describe('estimateRating', () => {
  it("adds ten ratings at the mean of all reviews to the location's own", () => {
    const { mean, low, high } = estimateRating({ count: 30, mean: 4 }, { overall: 3, deviation: 1 })
    expect(mean).toBeCloseTo(3.75)
    expect(high - mean).toBeCloseTo(1.96 / Math.sqrt(40))
    expect(mean - low).toBeCloseTo(1.96 / Math.sqrt(40))
  })

  it("gives a mean between the location's own and that of all reviews, inside its interval", () =>
    fc.assert(
      fc.property(ownRatings, allRatings, (own, all) => {
        const { mean, low, high } = estimateRating(own, all)
        expect(mean).toBeGreaterThanOrEqual(Math.min(own.mean, all.overall) - tolerance)
        expect(mean).toBeLessThanOrEqual(Math.max(own.mean, all.overall) + tolerance)
        expect(low).toBeLessThanOrEqual(mean)
        expect(high).toBeGreaterThanOrEqual(mean)
      }),
    ))

  it("comes nearer to the location's own mean with every rating, within the interval of a single rating", () =>
    fc.assert(
      fc.property(ownRatings, allRatings, (own, all) => {
        const [before, after] = [estimateRating(own, all), estimateRating({ ...own, count: own.count + 1 }, all)]
        expect(Math.abs(after.mean - own.mean)).toBeLessThanOrEqual(Math.abs(before.mean - own.mean) + tolerance)
        expect(after.high - after.mean).toBeLessThanOrEqual(1.96 * all.deviation)
      }),
    ))
})
