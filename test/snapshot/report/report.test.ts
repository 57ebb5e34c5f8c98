import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readReport } from '../../../connector/snapshot/report/report'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { reviewsStream } from '../../../connector/streams/reviews'
import {
  checkpointMessage,
  createStreamInfo,
  deletedReviewsInfo,
  emittedAt,
  finishedMessage,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  recordsMessage,
  startedMessage,
  streamMessages,
  writeMessages,
} from '../../support/snapshot-messages'

const stream = { ...reviewsStream, syncMode: 'incremental' } as const
const reviewRecord = (id: number, mentioned: string, attributes: object = {}) =>
  JSON.stringify({ id, modifiedTime: '2026-01-01T12:00:00.000Z', mentionTime: mentioned, ...attributes })
const text = { type: ['null', 'string'] }

describe('readReport', () => {
  let snapshot: Snapshot
  beforeEach(async () => {
    snapshot = await openMemorySnapshot()
  })
  afterEach(() => snapshot.db.close())
  const reportOn = async (...texts: string[]) => {
    await writeMessages(snapshot, streamMessages(stream, ...texts))
    return readReport(snapshot, emittedAt)
  }

  it('counts reviews by period, with every period from the first to the last', async () => {
    const { reviews } = await reportOn(
      reviewRecord(1, '2025-01-31T23:59:00.000Z', { rating: 4 }),
      reviewRecord(2, '2025-02-01T00:00:00.000Z', {
        rating: 5,
        engagements: [{ engagementTime: '2025-02-02T00:00:00.000Z' }],
      }),
      reviewRecord(3, '2025-02-28T00:00:00.000Z', { rating: 2 }),
      reviewRecord(4, '2026-01-01T00:00:00.000Z', { rating: 0 }),
      JSON.stringify({ id: 5, modifiedTime: '2026-01-01T12:00:00.000Z', rating: 1.5 }),
    )
    expect(reviews).toMatchObject({ reviews: 5, rated: 4, meanRating: 3.125, period: 'month', undated: 1 })
    expect(reviews?.points).toHaveLength(13)
    expect(reviews?.points.slice(0, 3)).toEqual([
      { start: '2025-01-01', reviews: 1, answered: 0, meanRating: 4 },
      { start: '2025-02-01', reviews: 2, answered: 1, meanRating: 3.5 },
      { start: '2025-03-01', reviews: 0, answered: 0, meanRating: null },
    ])
    expect(reviews?.points.at(-1)).toEqual({ start: '2026-01-01', reviews: 1, answered: 0, meanRating: null })
    expect(reviews?.ratings).toEqual([0, 2, 0, 1, 1])
  })

  it.each([
    ['2026-01-02', 'day', 2],
    ['2026-03-20', 'week', 12],
    ['2031-01-01', 'quarter', 21],
    ['2046-01-01', 'year', 21],
  ])('up to %s counts by %s', async (end, period, points) => {
    const { reviews } = await reportOn(
      reviewRecord(1, '2026-01-01T10:00:00.000Z'),
      reviewRecord(2, `${end}T10:00:00.000Z`),
    )
    expect(reviews?.period).toBe(period)
    expect(reviews?.points).toHaveLength(points)
  })

  it('counts tonalities by category, from the contents if there is no stream of sentiments', async () => {
    const sentiment = (category: string | undefined, tonality: string) => ({ category, tonality })
    const { sentiments } = await reportOn(
      reviewRecord(1, '2026-01-01T10:00:00.000Z', {
        contents: [
          {
            id: 1,
            sentiments: [
              sentiment('Staff', 'positive'),
              sentiment('Staff', 'NEGATIVE'),
              sentiment('Access', 'neutral'),
            ],
          },
          { id: 2, sentiments: null },
          {
            id: 3,
            sentiments: [
              sentiment(undefined, 'positive'),
              sentiment('Access', 'mixed'),
              sentiment('Staff', 'positive'),
            ],
          },
        ],
      }),
    )
    expect(sentiments).toEqual({
      categories: [
        { category: 'Staff', negative: 1, neutral: 0, positive: 2 },
        { category: 'Access', negative: 0, neutral: 1, positive: 0 },
        { category: null, negative: 0, neutral: 0, positive: 1 },
      ],
      others: 0,
      othersTotal: 0,
      unclear: 1,
    })
    const shape = { reviewId: integerSchema, id: integerSchema, reviewModifiedTime: instantSchema }
    const children = createStreamInfo(
      'review_sentiments',
      { ...shape, category: text, tonality: text },
      ['id'],
      'reviewModifiedTime',
    )
    await writeMessages(
      snapshot,
      streamMessages(
        children,
        JSON.stringify({
          reviewId: 1,
          reviewModifiedTime: '2026-01-01T12:00:00.000Z',
          id: 1,
          ...sentiment('Billing', 'negative'),
        }),
      ),
    )
    expect((await readReport(snapshot, emittedAt)).sentiments?.categories).toEqual([
      { category: 'Billing', negative: 1, neutral: 0, positive: 0 },
    ])
  })

  it('ranks many good ratings before a few better ratings', async () => {
    const rated = (location: number, count: number, rating: number) =>
      Array.from({ length: count }, (_, i) =>
        reviewRecord(location * 100 + i, '2026-01-01T10:00:00.000Z', {
          rating,
          location: { id: location, name: `L${location}` },
        }),
      )
    const { locations } = await reportOn(...rated(1, 1, 5), ...rated(2, 40, 4.5), ...rated(3, 40, 1), ...rated(4, 2, 0))
    expect(locations?.map(({ name }) => name)).toEqual(['L2', 'L1', 'L3', 'L4'])
    expect(locations?.map(({ reviews, rated: count }) => [reviews, count])).toEqual([
      [40, 40],
      [1, 1],
      [40, 40],
      [2, 0],
    ])
    expect(locations?.at(-1)).toMatchObject({ meanRating: null, estimate: null })
  })

  it('counts open liabilities by severity and lists the oldest of the highest severity, without their justification', async () => {
    const liability = (id: number, level: number | undefined, categoryName?: string) => ({
      liabilityId: id,
      severity: { level },
      categoryName,
      justification: 'QUOTE',
    })
    const liableReview = (id: number, mentioned: string, liabilities: ReadonlyArray<object>, status = 'pending') =>
      reviewRecord(id, mentioned, { contents: [{ id: 1, liabilities }], taskDetails: { status } })
    const report = await reportOn(
      liableReview(1, '2026-01-02T10:00:00.000Z', [liability(11, 2, 'Negligence'), liability(12, 1)]),
      liableReview(2, '2026-01-01T10:00:00.000Z', [
        liability(13, 2, 'Negligence'),
        liability(14, undefined, 'Harassment'),
      ]),
      liableReview(3, '2026-01-01T10:00:00.000Z', [liability(15, 3, 'Assault')], 'completed'),
    )
    expect(report.liabilities?.total).toEqual({ high: 0, medium: 2, low: 1, other: 1 })
    expect(report.liabilities?.categories[0]).toEqual({
      category: 'Negligence',
      counts: { high: 0, medium: 2, low: 0, other: 0 },
    })
    expect(report.liabilities?.oldest.map(({ liabilityId, task }) => [liabilityId, task])).toEqual([
      ['13', 'pending'],
      ['11', 'pending'],
    ])
    expect(JSON.stringify(report)).not.toContain('QUOTE')
  })

  it('counts answers by the time they took', async () => {
    const answered = (id: number, ...times: string[]) =>
      reviewRecord(id, '2026-01-01T00:00:00.000Z', { engagements: times.map((engagementTime) => ({ engagementTime })) })
    const { responses } = await reportOn(
      answered(1, '2026-01-01T04:00:00.000Z', '2026-01-01T00:30:00.000Z'),
      answered(2, '2026-01-01T01:00:00.000Z'),
      answered(3, '2026-02-01T00:00:00.000Z'),
      answered(4, '2025-12-31T00:00:00.000Z'),
      answered(5),
    )
    expect(responses).toMatchObject({ answered: 4, medianHours: 1, unclear: 1 })
    expect(responses?.buckets.map(({ count }) => count)).toEqual([1, 1, 0, 0, 0, 0, 1])
  })

  it('lists undeclared attributes, failed checks, runs and streams', async () => {
    await writeMessages(
      snapshot,
      streamMessages(stream, reviewRecord(1, '2026-01-01T10:00:00.000Z', { unknown_attributes: { mood: 1 } })),
    )
    await writeMessages(snapshot, [
      startedMessage(deletedReviewsInfo()),
      recordsMessage('deleted_reviews', '{"id":7,"modifiedTime":"2026-01-01T00:00:00Z","why":1}'),
      checkpointMessage('deleted_reviews', {}, 2),
    ])
    await snapshot.db.run(`UPDATE reviews SET rating = 9`)
    const { health } = await readReport(snapshot, emittedAt)
    const read = { rows: 1, first: '2026-01-02T00:00:00.000Z', last: '2026-01-02T00:00:00.000Z' }
    expect(health.undeclared).toEqual([
      { stream: 'deleted_reviews', attribute: 'why', ...read },
      { stream: 'reviews', attribute: 'mood', ...read },
    ])
    expect(health.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(
      expect.arrayContaining(['ratings', 'values are unchanged', 'loads are complete']),
    )
    expect(health.runs).toMatchObject([
      { run: 2, streams: 1, records: 1, incomplete: ['deleted_reviews'] },
      { run: 1, streams: 1, records: 1, incomplete: [] },
    ])
    expect(health.streams).toMatchObject([
      { stream: 'deleted_reviews', rows: 1, status: 'incomplete', completed: null },
      { stream: 'reviews', rows: 1, status: 'complete', completed: '2026-01-02T00:00:00.000Z' },
    ])
  })

  it('has null for the sections whose streams are missing', async () => {
    await writeMessages(snapshot, [startedMessage(deletedReviewsInfo()), finishedMessage('deleted_reviews')])
    expect(await readReport(snapshot, emittedAt)).toMatchObject({
      reviews: null,
      sentiments: null,
      locations: null,
      liabilities: null,
      responses: null,
    })
  })
})
