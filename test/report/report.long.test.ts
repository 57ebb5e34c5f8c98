import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ReportOptions, readReport } from '../../connector/report/report'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { createModelViews, setReportingTimeZone } from '../../connector/snapshot/store/views'
import { reviewsStream } from '../../connector/streams/reviews'
import {
  checkpointMessage,
  deletedReviewsInfo,
  finishedMessage,
  openMemorySnapshot,
  recordsMessage,
  startedMessage,
  streamMessages,
  writeMessages,
} from '../support/snapshot-messages'

const stream = { ...reviewsStream, syncMode: 'incremental' } as const
/** The load is of 2026-01-02, so December is over and January is not. */
const now = Date.parse('2026-01-05T09:00:00Z')
const reviewRecord = (id: number, mentioned: string | null, attributes: object = {}) =>
  JSON.stringify({ id, modifiedTime: '2026-01-01T12:00:00.000Z', mentionTime: mentioned, ...attributes })
const day = (text: string) => `${text}T10:00:00.000Z`
const compared = (value: number | null, previous: number | null, change: number | null) => ({ value, previous, change })

describe('readReport', () => {
  let snapshot: Snapshot
  beforeEach(async () => {
    snapshot = await openMemorySnapshot()
  })
  afterEach(() => snapshot.db.close())
  const read = (options: Partial<ReportOptions> = {}) => readReport(snapshot, { now, ...options })
  const reportOn = async (texts: ReadonlyArray<string>, options: Partial<ReportOptions> = {}) => {
    await writeMessages(snapshot, streamMessages(stream, ...texts))
    return read(options)
  }

  it.each([
    [
      'the last month that was over when the reviews were read',
      ['2025-10-05', '2025-12-31', '2026-01-01'],
      '2025-12',
      true,
    ],
    ['the month of the last review, where that is earlier', ['2025-03-05', '2025-04-02'], '2025-04', true],
    ['the month of the first review, where that is later', ['2026-01-01'], '2026-01', false],
    ['the last full month, without reviews', [], '2025-12', true],
  ])('is of %s', async (_case, days, month, isOver) => {
    const report = await reportOn(days.map((text, i) => reviewRecord(i + 1, day(text))))
    expect([report.month, report.is_over]).toEqual([month, isOver])
  })

  it('is of the month that is asked for, with the month before across the turn of the year', async () => {
    const records = ['2024-12-01', '2024-12-31', '2025-01-15', '2025-03-01'].map((text, i) =>
      reviewRecord(i + 1, day(text)),
    )
    const report = await reportOn(records, { month: '2025-01' })
    expect([report.month, report.previous_month]).toEqual(['2025-01', '2024-12'])
    expect(report.figures.reviews).toEqual(compared(1, 2, -1))
    const empty = await read({ month: '2025-02' })
    expect(empty.figures.reviews).toEqual(compared(0, 1, -1))
    expect(empty.figures.average_rating).toMatchObject(compared(null, null, null))
    const after = await read({ month: '2025-04' })
    expect(after.figures.reviews).toEqual(compared(0, 1, -1))
  })

  it('takes months of the reporting time zone', async () => {
    await reportOn([reviewRecord(1, '2025-11-30T23:30:00.000Z'), reviewRecord(2, day('2025-12-20'))])
    expect((await read()).figures.reviews).toEqual(compared(1, 1, 0))
    await setReportingTimeZone(snapshot, 'Europe/Berlin')
    expect((await read()).figures.reviews).toEqual(compared(2, null, null))
  })

  it('refuses a month in the future, and takes one that is not over', async () => {
    await reportOn([reviewRecord(1, day('2026-01-01'))])
    await expect(read({ month: '2026-02' })).rejects.toThrow('--month 2026-02 is in the future: it is 2026-01 in UTC')
    expect((await read({ month: '2026-01' })).is_over).toBe(false)
  })

  it('compares the figures of all reviews, of each owner, location and source', async () => {
    const place = { location: { id: 7, name: 'North' }, source: { id: 1, name: 'Survey' } }
    const owned = (status: string, ownerName: string) => ({
      taskDetails: { id: 1, status, ownerName, ownerEmail: `${ownerName}@x` },
    })
    const report = await reportOn([
      reviewRecord(1, day('2025-12-01'), { ...place, ...owned('pending', 'ada'), rating: 4, reviewScore: 4.5 }),
      reviewRecord(2, day('2025-12-02'), { ...place, ...owned('Completed', 'ada'), rating: 1, reviewScore: 1 }),
      reviewRecord(3, day('2025-12-03'), {
        ...place,
        rating: 0,
        reviewScore: 3,
        engagements: [{ engagementTime: '2025-12-03T13:00:00.000Z' }, { engagementTime: '2025-12-03T12:00:00.000Z' }],
      }),
      reviewRecord(4, day('2025-11-03'), { ...place, ...owned('pending', 'bo'), rating: 5, reviewScore: 5 }),
      reviewRecord(5, day('2025-11-04'), { rating: 2 }),
    ])
    expect(report.figures).toMatchObject({
      reviews: compared(3, 2, 1),
      rated: compared(2, 2, 0),
      average_rating: compared(2.5, 3.5, -1),
      average_score: compared(2.83, 5, -2.17),
      positive: compared(1, 1, 0),
      neutral: compared(1, 0, 1),
      negative: compared(1, 0, 1),
      tasks: compared(2, 1, 1),
      open_tasks: compared(1, 1, 0),
      closed_tasks: compared(1, 0, 1),
      share_closed: compared(0.5, 0, 0.5),
      answered: compared(1, 0, 1),
      share_answered: compared(0.33, 0, 0.33),
      median_hours_to_answer: compared(2, null, null),
      oldest_open_days: compared(34, 62, -28),
    })
    expect(report.owners.map(({ key, name, figures }) => [key, name, figures.tasks, figures.open_tasks])).toEqual([
      ['ada@x', 'ada', compared(2, 0, 2), compared(1, 0, 1)],
      ['bo@x', 'bo', compared(0, 1, -1), compared(0, 1, -1)],
    ])
    expect(report.locations.map(({ key, name, figures }) => [key, name, figures.reviews])).toEqual([
      ['7', 'North', compared(3, 1, 2)],
      [null, null, compared(0, 1, -1)],
    ])
    expect(report.sources.map(({ key, figures }) => [key, figures.reviews?.value])).toEqual([
      ['1', 3],
      [null, 0],
    ])
    expect(report.ratings.map(({ key, figures }) => [key, figures.reviews])).toEqual([
      ['5', compared(0, 1, -1)],
      ['4', compared(1, 0, 1)],
      ['3', compared(0, 0, 0)],
      ['2', compared(0, 1, -1)],
      ['1', compared(1, 0, 1)],
    ])
    expect(report.response_times.map(({ figures }) => figures.reviews?.value)).toEqual([0, 1, 0, 0, 0, 2])
    expect(report.trend).toMatchObject([
      { month: '2025-11', reviews: 2, average_rating: 3.5, share_answered_7: 0 },
      { month: '2025-12', reviews: 3, average_rating: 2.5, share_answered_7: 0.33 },
    ])
  })

  it('gives every figure of a scope as month_over_month has it', async () => {
    const records = Array.from({ length: 60 }, (_, i) =>
      reviewRecord(i + 1, day(`2025-${String(9 + (i % 4)).padStart(2, '0')}-0${1 + (i % 9)}`), {
        rating: i % 6,
        reviewScore: (i % 11) / 2,
        location: i % 5 === 0 ? null : { id: i % 3, name: `L${i % 3}` },
        source: { id: i % 2, name: `S${i % 2}` },
        taskDetails: i % 2 === 0 ? { status: i % 3 === 0 ? 'completed' : 'pending' } : null,
      }),
    )
    const report = await reportOn(records)
    await createModelViews(snapshot.db, { asOf: new Date(now) })
    const rows = await snapshot.db.query(
      `SELECT scope, key::VARCHAR AS key, metric, value, previous_value AS previous
      FROM month_over_month WHERE month = DATE '2025-12-01'`,
    )
    const groups = { location: report.locations, source: report.sources, all: [{ key: null, figures: report.figures }] }
    const found = rows.flatMap(({ scope, key, metric, value, previous }) => {
      const group = groups[scope as keyof typeof groups]?.find(
        (other) => String(other.key) === String(key) || scope === 'all',
      )
      return group === undefined
        ? []
        : [{ of: [scope, key, metric], row: [value, previous], figure: group.figures[String(metric)] }]
    })
    expect(found.length).toBeGreaterThan(100)
    expect(found.filter(({ row, figure }) => figure?.value !== row[0] || figure?.previous !== row[1])).toEqual([])
  })

  it('lists alerts by their reasons and open tasks by their age, without texts unless they are asked for', async () => {
    const contents = [{ id: 1, response: 'The words of a patient.', questionType: 'Free Form (Text Area)' }]
    const high = [
      {
        ...contents[0],
        liabilities: [
          { liabilityId: 5, severity: { level: 3, name: 'high' }, categoryName: 'Assault', justification: 'QUOTE' },
        ],
      },
    ]
    const task = (status: string) => ({ taskDetails: { id: 9007199254740991, status, ownerName: 'Ada' } })
    const report = await reportOn([
      reviewRecord(1, day('2025-12-23'), { contents, ...task('pending'), reviewScore: 1.5 }),
      reviewRecord(2, day('2025-12-20'), { contents, ...task('pending'), reviewScore: 4 }),
      reviewRecord(3, day('2025-11-01'), { contents: high, ...task('pending'), reviewScore: 1.4 }),
      reviewRecord(4, day('2025-11-01'), { contents: high, ...task('completed'), reviewScore: 0 }),
      reviewRecord(5, day('2025-12-31'), { contents: high }),
    ])
    expect(report.alerts.total).toBe(3)
    expect(report.alerts.listed.map(({ review_id, reasons }) => [review_id, reasons])).toEqual([
      ['5', ['high_liability']],
      ['2', ['overdue']],
    ])
    expect(report.alerts.backlog.total).toBe(1)
    expect(report.alerts.backlog.listed.map(({ review_id, reasons }) => [review_id, reasons])).toEqual([
      ['3', ['overdue', 'low_score', 'high_liability']],
    ])
    expect(
      report.alerts.counts.map(({ key, total, figures }) => [
        key,
        total,
        figures.alerts.value,
        figures.alerts.previous,
      ]),
    ).toEqual([
      ['all', 3, 2, 1],
      ['overdue', 2, 1, 1],
      ['low_score', 1, 0, 1],
      ['high_liability', 2, 1, 1],
    ])
    expect(report.open_tasks.total).toBe(3)
    expect(report.open_tasks.listed.map(({ review_id, age_days }) => [review_id, age_days])).toEqual([
      ['3', 64],
      ['2', 15],
      ['1', 12],
    ])
    expect(report.open_tasks.listed[0]).toMatchObject({
      task_id: '9007199254740991',
      owner_name: 'Ada',
      severity: 'high',
    })
    expect(report.open_liabilities).toEqual([{ category: 'Assault', high: 2, medium: 0, low: 0, other: 0 }])
    expect(JSON.stringify(report)).not.toMatch(/QUOTE|words of a patient/)
    const withText = await read({ withText: true })
    expect(withText.open_tasks.listed.map(({ text }) => text)).toEqual(Array(3).fill('The words of a patient.'))
    expect(JSON.stringify(withText)).not.toContain('QUOTE')
  })

  it('names a region by the id of the location, then by its name, and what of the file no review has', async () => {
    const at = (id: number | null, name: string) => ({ location: { id, name } })
    const report = await reportOn(
      [
        reviewRecord(1, day('2025-12-01'), at(1, 'One')),
        reviewRecord(2, day('2025-12-01'), at(2, ' two ')),
        reviewRecord(3, day('2025-11-01'), at(3, 'Three')),
        reviewRecord(4, day('2025-12-01')),
      ],
      {
        regions: [
          { location_id: '1', location_name: 'Two', region: 'North' },
          { location_id: null, location_name: 'TWO', region: 'South' },
          { location_id: '9', location_name: null, region: 'South' },
        ],
      },
    )
    expect(report.has_regions).toBe(true)
    expect(report.unknown_regions).toEqual(['the location 9'])
    expect(report.regions.find(({ key }) => key === 'North')?.figures.reviews).toEqual(compared(1, 0, 1))
    expect(report.regions.find(({ key }) => key === '(unknown)')?.figures.reviews).toEqual(compared(1, 1, 0))
  })

  it('has the regions of the file where it is given none', async () => {
    const report = () => readReport(snapshot, { now })
    expect(
      (await reportOn([reviewRecord(1, day('2025-12-01'), { location: { id: 1, name: 'One' } })])).has_regions,
    ).toBe(false)
    await snapshot.db.run("INSERT INTO _regions VALUES (1, NULL, 'North')")
    expect(await report()).toMatchObject({ has_regions: true, unknown_regions: [], regions: [{ key: 'North' }] })
  })

  it('counts tonalities by category and sub-category', async () => {
    const sentiment = (category: string | undefined, tonality: string, subCategory?: string) => ({
      id: 1,
      category,
      subCategory,
      tonality,
      score: 4,
    })
    const report = await reportOn([
      reviewRecord(1, day('2025-12-01'), {
        contents: [
          {
            id: 1,
            sentiments: [sentiment('Staff', 'positive', 'Courtesy'), sentiment('Staff', 'NEGATIVE', 'Courtesy')],
          },
        ],
      }),
      reviewRecord(2, day('2025-11-01'), { contents: [{ id: 1, sentiments: [sentiment(undefined, 'positive')] }] }),
    ])
    expect(report.categories).toMatchObject([
      {
        name: 'Staff / Courtesy',
        figures: { sentiments: compared(2, 0, 2), positive: compared(1, 0, 1), negative: compared(1, 0, 1) },
      },
      { figures: { sentiments: compared(0, 1, -1), positive: compared(0, 1, -1) } },
    ])
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
    const { health } = await read()
    const when = { rows: 1, first: '2026-01-02T00:00:00.000Z', last: '2026-01-02T00:00:00.000Z' }
    expect(health.undeclared).toEqual([
      { stream: 'deleted_reviews', attribute: 'why', ...when },
      { stream: 'reviews', attribute: 'mood', ...when },
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

  it('is empty without the stream of reviews, without reviews and without mention times', async () => {
    await writeMessages(snapshot, [startedMessage(deletedReviewsInfo()), finishedMessage('deleted_reviews')])
    expect(await read()).toMatchObject({ data: null, month: '2025-12', figures: {}, owners: [], alerts: { total: 0 } })
    expect(await reportOn([])).toMatchObject({ data: { reviews: 0 }, open_tasks: { total: 0 }, locations: [] })
    expect(await reportOn([reviewRecord(1, null, { rating: 3 })])).toMatchObject({
      data: { reviews: 1, undated: 1, first_month: null },
      trend: [],
    })
  })

  it('compares answers and closed tasks at the same age, of the reviews that have had the time', async () => {
    const answer = (time: string) => ({ engagements: [{ engagementTime: day(time) }] })
    const report = await reportOn([
      // Read on January 2: the last two have not had 7 days, the last three not 30.
      reviewRecord(1, day('2025-11-01'), answer('2025-11-08')),
      reviewRecord(2, day('2025-11-02'), answer('2025-11-10')),
      reviewRecord(3, day('2025-11-03'), answer('2025-12-31')),
      reviewRecord(4, day('2025-12-01'), answer('2025-12-02')),
      reviewRecord(5, day('2025-12-20'), answer('2025-12-21')),
      reviewRecord(6, day('2025-12-27'), answer('2025-12-28')),
      reviewRecord(7, day('2025-12-28')),
    ])
    expect(report.figures).toMatchObject({
      share_answered_7: { ...compared(1, 0.33, 0.67), test: { n: 2, previous_n: 3, p: null, mark: null } },
      share_answered_30: { ...compared(1, 0.67, 0.33), test: { n: 1, previous_n: 3 } },
    })
  })

  it('takes a task for closed when it first came so, and gives bounds where it came closed already', async () => {
    const task = (status: string) => ({ taskDetails: { id: 1, status } })
    const version = (id: number, status: string, modifiedTime: string) =>
      reviewRecord(id, day('2025-12-01'), { ...task(status), modifiedTime: day(modifiedTime) })
    const load = (...texts: ReadonlyArray<string>) =>
      writeMessages(snapshot, streamMessages(stream, ...texts), { history: true })
    await load(
      version(1, 'pending', '2025-12-01'),
      version(2, 'pending', '2025-12-01'),
      version(3, 'Completed', '2025-12-05'),
      version(4, 'completed', '2025-12-20'),
      version(5, 'pending', '2025-12-20'),
    )
    await load(version(1, 'completed', '2025-12-03'), version(2, 'completed', '2025-12-30'))
    // Later changes of a closed task do not count.
    await load(version(3, 'completed', '2025-12-31'))
    const { share_closed_7, share_closed_30 } = (await read()).figures
    expect(share_closed_7).toMatchObject({ value: null, test: { n: 5, range: [0.4, 0.6] } })
    expect(share_closed_30).toMatchObject({ ...compared(0.8, null, null), test: { n: 5 } })
  })

  it('judges no change of a month that is not over', async () => {
    const days = (month: string, rating: number) =>
      Array.from({ length: 12 }, (_, i) => [day(`${month}-01`), rating, i] as const)
    await reportOn(
      [...days('2025-11', 5), ...days('2025-12', 1), ...days('2026-01', 5)].map(([time, rating], i) =>
        reviewRecord(i + 1, time, { rating }),
      ),
    )
    expect((await read({ month: '2025-12' })).figures.average_rating).toMatchObject({
      ...compared(1, 5, -4),
      test: { n: 12, previous_n: 12, mark: 'worse' },
    })
    const open = await read({ month: '2026-01' })
    expect(open.figures.average_rating).toMatchObject({ ...compared(5, 1, 4), test: { p: null, mark: null } })
    expect(open.judgement).toEqual({ compared: 0, threshold: null })
  })

  it('leaves the views as they were defined for all reviews, and announces each section', async () => {
    const sections: Array<string> = []
    await reportOn([reviewRecord(1, day('2025-12-01')), reviewRecord(2, day('2024-12-01'))], {
      onSection: (name) => sections.push(name),
    })
    expect(await snapshot.db.scalar('SELECT count(*) FROM reviews_current')).toBe(2)
    expect(sections.slice(0, 4)).toEqual(['reviews', 'figures', 'the curves', 'alerts'])
    expect(sections.at(-1)).toMatch(/^health of the data/)
  })
})
