import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findProbability, findThreshold, type Sample } from '../../connector/report/chance'
import { draws } from '../support/draws'
import { fisher, student } from '../support/oracle-report'

const share = (low: number, n: number, high = low): Sample => ({ kind: 'share', n, low, high })
const average = (values: ReadonlyArray<number>): Sample => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { kind: 'average', n: values.length, mean, squares }
}

describe('findProbability', () => {
  it('is that of Fisher’s exact test for shares', () => {
    const counts = fc
      .tuple(fc.integer({ min: 10, max: 300 }), fc.integer({ min: 10, max: 300 }))
      .chain(([n, m]) => fc.record({ n: fc.constant(n), m: fc.constant(m), a: fc.nat(n), b: fc.nat(m) }))
    fc.assert(
      fc.property(counts, ({ a, n, b, m }) => {
        const p = findProbability(share(a, n), share(b, m))
        if (a / n === b / m) expect(p).toBe(1)
        else expect(p).toBeCloseTo(fisher(a, n, b, m), 9)
      }),
      draws(100),
    )
  })

  it('is the share of the tables that are no more probable, counted by hand', () => {
    // Of the C(25, 10) ways to count 10 of 25, as many have 3, 2, 1, 0, 9 and 10 of the first 15.
    const ways = 54_600 + 4_725 + 150 + 1 + 50_050 + 3_003
    expect(findProbability(share(3, 15), share(7, 10))).toBeCloseTo(ways / 3_268_760, 12)
  })

  it('is that of Student’s t-test for averages', () => {
    const ratings = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 10, maxLength: 60 })
    fc.assert(
      fc.property(ratings, ratings, (a, b) => {
        const [first, second] = [average(a), average(b)] as const
        if (first.kind !== 'average' || second.kind !== 'average') throw new Error('No average.')
        const p = findProbability(first, second) ?? Number.NaN
        const freedom = a.length + b.length - 2
        const error = Math.sqrt(((first.squares + second.squares) / freedom) * (1 / a.length + 1 / b.length))
        const difference = Math.abs(first.mean - second.mean)
        if (difference < 1e-9) expect(p).toBe(1)
        else if (error > 0) expect(p).toBeCloseTo(student(difference / error, freedom), 9)
      }),
      draws(50),
    )
  })

  it.each([
    // Tables of Student's distribution: 5 % are beyond 2.101 with 18 degrees of freedom, and beyond 2.093 with 19.
    [10, 10, 2.10092],
    [10, 11, 2.09302],
  ])('of averages of %i and %i that are %d standard errors apart is 5 %', (n, m, t) => {
    const squares = n + m - 2
    const other: Sample = { kind: 'average', n: m, mean: 0, squares: 0 }
    expect(findProbability({ kind: 'average', n, mean: t * Math.sqrt(1 / n + 1 / m), squares }, other)).toBeCloseTo(
      0.05,
      5,
    )
  })

  it('is null for fewer than ten, 1 without a difference, and that of the nearest counts within bounds', () => {
    expect(findProbability(share(0, 9), share(50, 50))).toBe(null)
    expect(findProbability(share(50, 50), share(0, 9))).toBe(null)
    expect(findProbability(average(Array(10).fill(5)), average(Array(10).fill(5)))).toBe(1)
    expect(findProbability(share(10, 40, 20), share(15, 40, 30))).toBe(1)
    expect(findProbability(share(2, 40, 10), share(20, 40, 30))).toBe(findProbability(share(10, 40), share(20, 40)))
    expect(findProbability(share(20, 40, 30), share(2, 40, 10))).toBe(findProbability(share(20, 40), share(10, 40)))
  })
})

describe('findThreshold', () => {
  it.each<[ReadonlyArray<number>, number | null]>([
    [[], null],
    [[0.06], null],
    [[0.04], 0.04],
    [[0.04, 0.9], null],
    // The example of the paper: of fifteen probabilities, the first four are marked.
    [
      [
        ...[0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344],
        ...[0.0459, 0.324, 0.4262, 0.5719, 0.6528, 0.759, 1],
      ],
      0.0095,
    ],
    // The second is above its own bound and below that of the third.
    [[0.045, 0.03, 0.001], 0.045],
  ])('of %j is %d', (probabilities, threshold) => expect(findThreshold(probabilities)).toBe(threshold))
})
