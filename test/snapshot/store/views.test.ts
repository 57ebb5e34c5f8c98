import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readReport } from '../../../connector/report/report'
import { exportParquet } from '../../../connector/snapshot/export-parquet'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { setReportingTimeZone } from '../../../connector/snapshot/store/views'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { reviewsStream } from '../../../connector/streams/reviews'
import { newTempPath } from '../../support/files'
import {
  createStreamInfo,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  reviewJson,
  streamMessages,
  writeMessages,
} from '../../support/snapshot-messages'

const reviewRecord = (id: number, day: string, attributes: object) =>
  JSON.stringify({
    id,
    modifiedTime: `2026-01-${day}T12:00:00.000Z`,
    mentionTime: `2026-01-${day}T10:00:00.000Z`,
    ...attributes,
  })
const north = { location: { id: 1, name: 'North' }, source: { id: 7, name: 'Survey' } }
const liability = {
  liabilityId: 9007199254740992,
  severity: { level: 3, name: 'high' },
  categoryName: 'Negligence',
  justification: 'because',
}
const useBigLiabilityId = (text: string) => text.replace('9007199254740992', '9007199254740993')

const records = [
  reviewRecord(1, '01', {
    ...north,
    rating: 5,
    reviewScore: 4.5,
    contents: [
      { id: 1, response: 'Kind.', questionType: 'Free Form (Text Area)' },
      { id: 3, response: '5', questionType: 'Single Choice (Rating)' },
      { id: 4, response: '4 - Good', questionType: 'Rating Scale' },
      { id: 5, response: ' 9/10 ' },
      { id: 6, response: '3.5' },
      { id: 7, response: null, questionType: 'Free Form (Text Area)' },
      { id: 2, response: 'Quick.' },
    ],
    visitRecordId: '',
  }),
  reviewRecord(2, '01', {
    ...north,
    rating: 3,
    reviewScore: 1.5,
    contents: [{ id: 1, response: 'Rude.', liabilities: [liability] }],
    engagements: [{ engagementTime: '2026-01-02T10:00:00.000Z' }, { engagementTime: '2026-01-01T13:30:00.000Z' }],
  }),
  reviewRecord(3, '02', {
    ...north,
    rating: 0,
    contents: [
      { id: 1, liabilities: [liability] },
      { id: 2, liabilities: null },
    ],
    taskDetails: { status: 'completed' },
  }),
  reviewRecord(4, '02', { rating: 1 }),
].map(useBigLiabilityId)

describe('the views', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    await writeMessages(snapshot, streamMessages({ ...reviewsStream, syncMode: 'incremental' }, ...records))
  })
  afterAll(() => snapshot.db.close())
  const query = (sql: string) => snapshot.db.query(sql)

  it('show each review in one flat row, with null for a rating of 0 and for an empty visit record id', async () => {
    expect(
      await query(
        'SELECT review_id, rating, location_name, source_id, text, visit_record_id FROM reviews_current ORDER BY 1',
      ),
    ).toEqual([
      { review_id: 1, rating: 5, location_name: 'North', source_id: 7, text: 'Kind.\nQuick.', visit_record_id: null },
      { review_id: 2, rating: 3, location_name: 'North', source_id: 7, text: 'Rude.', visit_record_id: null },
      { review_id: 3, rating: null, location_name: 'North', source_id: 7, text: '', visit_record_id: null },
      { review_id: 4, rating: 1, location_name: null, source_id: null, text: null, visit_record_id: null },
    ])
  })

  it('keep numbers that answer a free question, as text that the reviewer wrote', async () => {
    const free = await openMemorySnapshot()
    const contents = [
      { id: 1, response: '10', questionType: 'Free Form (Single Line)' },
      { id: 2, response: '10', questionType: 'NPS' },
      { id: 3, response: 'Room 4 was cold.' },
    ]
    await writeMessages(
      free,
      streamMessages({ ...reviewsStream, syncMode: 'incremental' }, reviewRecord(1, '01', { contents })),
    )
    expect(await free.db.query('SELECT text FROM reviews_current')).toEqual([{ text: '10\nRoom 4 was cold.' }])
    free.db.close()
  })

  it('show days of the reporting time zone, whatever the zone of the session', async () => {
    const zoned = await openMemorySnapshot()
    const record = '{"id":1,"modifiedTime":"2026-02-02T00:00:00.000Z","mentionTime":"2026-01-31T23:30:00.000Z"}'
    await writeMessages(zoned, streamMessages({ ...reviewsStream, syncMode: 'incremental' }, record))
    const days = async () => {
      const found: Array<unknown> = []
      for (const zone of ['UTC', 'America/Los_Angeles', 'Asia/Tokyo']) {
        await zoned.db.run(`SET TimeZone = '${zone}'`)
        found.push(await zoned.db.scalar('SELECT day::VARCHAR FROM review_daily'))
      }
      await zoned.db.run(`SET TimeZone = 'UTC'`)
      return found
    }
    expect(await days()).toEqual(['2026-01-31', '2026-01-31', '2026-01-31'])
    await setReportingTimeZone(zoned, 'Europe/Berlin')
    expect(await days()).toEqual(['2026-02-01', '2026-02-01', '2026-02-01'])
    expect((await readReport(zoned, { now: Date.parse('2026-03-05T00:00:00Z') })).data?.first_month).toBe('2026-02')
    await writeMessages(zoned, streamMessages({ ...reviewsStream, syncMode: 'incremental' }, record))
    expect(await days()).toEqual(['2026-02-01', '2026-02-01', '2026-02-01'])
    const folder = newTempPath('lake')
    await exportParquet(zoned, folder, 'month')
    expect(readdirSync(join(folder, 'reviews'))).toEqual(['month=2026-02'])
    await expect(setReportingTimeZone(zoned, 'Europe/Nowhere')).rejects.toThrow('there is no time zone Europe/Nowhere')
    zoned.db.close()
  })

  it('count the reviews of each day and source', async () => {
    expect(
      await query(
        `SELECT strftime(day, '%d') AS day, source_name, reviews, rated, average_rating, negative
         FROM review_daily ORDER BY ALL`,
      ),
    ).toEqual([
      { day: '01', source_name: 'Survey', reviews: 2, rated: 2, average_rating: 4, negative: 1 },
      { day: '02', source_name: 'Survey', reviews: 1, rated: 0, average_rating: null, negative: 0 },
      { day: '02', source_name: null, reviews: 1, rated: 1, average_rating: 1, negative: 0 },
    ])
  })

  it('list the liabilities whose task is not completed, with all digits of their ids', async () => {
    expect(
      await query(
        'SELECT liability_id, review_id, content_id, category, severity_level, location_name FROM open_liabilities',
      ),
    ).toEqual([
      {
        liability_id: 9007199254740993n,
        review_id: 2,
        content_id: 1,
        category: 'Negligence',
        severity_level: 3,
        location_name: 'North',
      },
    ])
  })

  it('give the hours to the first answer', async () => {
    expect(await query('SELECT review_id, hours FROM response_times')).toEqual([{ review_id: 2, hours: 3.5 }])
  })

  it('rate the locations with a confidence interval', async () => {
    expect(await query('SELECT * EXCLUDE last_mention FROM location_scorecard')).toEqual([
      {
        location_id: 1,
        location_name: 'North',
        reviews: 3,
        rated: 2,
        average_rating: 4,
        rating_estimate: 3.17,
        rating_low: 2.34,
        rating_high: 4,
        average_score: 3,
        answered: 0.33,
        median_hours_to_answer: 3.5,
        open_liabilities: 1,
      },
    ])
  })

  it('have null for hashed and dropped attributes', async () => {
    const hidden = await openMemorySnapshot()
    const { properties, ...rest } = reviewsStream.schema
    const { rating: _, ...others } = properties as Record<string, unknown>
    const schema = { ...rest, properties: { ...others, mentionTime: { type: 'string' }, location: { type: 'string' } } }
    await writeMessages(
      hidden,
      streamMessages(
        { ...reviewsStream, schema, syncMode: 'incremental' },
        '{"id":1,"modifiedTime":"2026-01-01T00:00:00.000Z","location":"f00","mentionTime":"ba2"}',
      ),
    )
    expect(await hidden.db.query('SELECT review_id, rating, location_id, mention_time FROM reviews_current')).toEqual([
      { review_id: 1, rating: null, location_id: null, mention_time: null },
    ])
    expect((await verifySnapshot(hidden)).filter(({ ok, name }) => !ok && name !== 'states exist')).toEqual([])
    hidden.db.close()
  })

  it('exist for a table with few attributes, with null for the others', async () => {
    const few = await openMemorySnapshot()
    await writeMessages(
      few,
      streamMessages(
        createStreamInfo('reviews', { id: integerSchema, modifiedTime: instantSchema }, ['id'], 'modifiedTime'),
        reviewJson(1, 1),
      ),
    )
    expect(await few.db.query('SELECT review_id, rating, text FROM reviews_current')).toEqual([
      { review_id: 1, rating: null, text: null },
    ])
    for (const view of ['review_daily', 'open_liabilities', 'response_times', 'location_scorecard'])
      await few.db.query(`FROM ${view}`)
    few.db.close()
  })
})
