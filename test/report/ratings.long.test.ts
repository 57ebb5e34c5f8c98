import { describe, expect, it } from 'vitest'
import { readReport } from '../../connector/report/report'
import {
  createStreamInfo,
  emittedAt,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../support/snapshot-messages'

const stream = createStreamInfo(
  'reviews',
  {
    id: integerSchema,
    modifiedTime: instantSchema,
    rating: { type: ['null', 'number'] },
    location: { type: ['null', 'object'] },
  },
  ['id'],
  'modifiedTime',
)

/** Estimates the ratings of some locations; each is given as its ratings. */
const estimate = async (...ratings: ReadonlyArray<ReadonlyArray<number>>) => {
  const snapshot = await openMemorySnapshot()
  const records = ratings.flatMap((own, location) =>
    own.map((rating, i) =>
      JSON.stringify({
        id: location * 1000 + i,
        modifiedTime: timeAtMinute(1),
        rating,
        location: { id: location + 1 },
      }),
    ),
  )
  await writeMessages(snapshot, streamMessages(stream, ...records))
  const scorecard = await snapshot.db.query(
    `SELECT location_id, rating_estimate AS mean, rating_low AS low, rating_high AS high
    FROM location_scorecard ORDER BY rating_low DESC`,
  )
  const { location_estimates } = await readReport(snapshot, { now: emittedAt })
  snapshot.db.close()
  return { scorecard, report: location_estimates }
}

const repeat = (count: number, ...ratings: ReadonlyArray<number>) => Array.from({ length: count }, () => ratings).flat()

describe('the estimate of a location', () => {
  it.each<[string, ReadonlyArray<ReadonlyArray<number>>]>([
    ['many good ratings, two fives, one five, and none', [repeat(40, 4, 5), [5, 5], [5], [0, 0]]],
    ['many bad ratings and two ones', [repeat(30, 1, 2), [1, 1], repeat(8, 3)]],
    ['equal ratings only', [repeat(3, 5), [5]]],
  ])('is the same in the view and in the report, in the same order: %s', async (_case, ratings) => {
    const { scorecard, report } = await estimate(...ratings)
    expect(
      report.map(({ location_id, rating_estimate, rating_low, rating_high }) => ({
        location_id: Number(location_id),
        mean: rating_estimate,
        low: rating_low,
        high: rating_high,
      })),
    ).toEqual(scorecard)
  })

  it('does not rank two fives before many good ratings', async () => {
    const { scorecard } = await estimate([5, 5], repeat(40, 4, 5))
    expect(scorecard.map(({ location_id }) => location_id)).toEqual([2, 1])
  })

  it('is uncertain after a single rating, after equal ones, and within 0 to 5', async () => {
    const intervals = [
      await estimate([5]),
      await estimate([1]),
      await estimate(repeat(6, 5), [5]),
      await estimate([1], [5]),
    ]
    for (const { mean, low, high } of intervals.flatMap(({ scorecard }) => scorecard)) {
      expect(Number(high) - Number(low)).toBeGreaterThan(0.3)
      expect([Number(low) >= 0, Number(high) <= 5, Number(low) <= Number(mean), Number(mean) <= Number(high)]).toEqual([
        true,
        true,
        true,
        true,
      ])
    }
  })

  it('comes nearer to the own mean, and narrower, with every rating', async () => {
    const { report } = await estimate(repeat(200, 1), repeat(2, 5), repeat(20, 5), repeat(200, 5))
    const own = [2, 3, 4].map((id) => report.find((location) => Number(location.location_id) === id))
    const means = own.map((each) => each?.rating_estimate ?? 0)
    const widths = own.map((each) => (each?.rating_high ?? 0) - (each?.rating_low ?? 0))
    expect(means.toSorted((a, b) => a - b)).toEqual(means)
    expect(widths.toSorted((a, b) => b - a)).toEqual(widths)
  })

  it('is null without a rating; 0 is none', async () => {
    const { scorecard } = await estimate([0], [4])
    expect(scorecard.at(-1)).toEqual({ location_id: 1, mean: null, low: null, high: null })
  })
})
