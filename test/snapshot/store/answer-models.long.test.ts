import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import type { ModelOptions } from '../../../connector/snapshot/store/models'
import { createModelViews } from '../../../connector/snapshot/store/views'
import { reviewsStream } from '../../../connector/streams/reviews'
import { openMemorySnapshot, streamMessages, writeMessages } from '../../support/snapshot-messages'

/** A month, and what was answered in it to a question of a type. */
type Answers = readonly [month: string, answers: ReadonlyArray<string>]

const reviews = { ...reviewsStream, syncMode: 'incremental' as const }
const promoter = 'Promoter (Radio)'
const repeat = (answer: string, times: number): ReadonlyArray<string> => Array.from({ length: times }, () => answer)

const toReviews = (type: string | undefined, months: ReadonlyArray<Answers>): ReadonlyArray<string> =>
  months.flatMap(([month, answers], m) =>
    (answers.length === 0 ? [undefined] : answers).map((response, i) =>
      JSON.stringify({
        id: 1000 * m + i + 1,
        modifiedTime: `${month}-10T12:00:00.000Z`,
        mentionTime: `${month}-10T10:00:00.000Z`,
        location: { id: 1, name: 'North' },
        contents: response === undefined ? [] : [{ id: 1, questionCode: 'Q', questionType: type, response }],
      }),
    ),
  )

let snapshot: Snapshot
beforeEach(async () => {
  snapshot = await openMemorySnapshot()
  await snapshot.db.giveAllMemory()
})
afterEach(() => snapshot.db.close())

const ask = async (type: string | undefined, months: ReadonlyArray<Answers>, options: ModelOptions = {}) => {
  await writeMessages(snapshot, streamMessages(reviews, ...toReviews(type, months)))
  await createModelViews(snapshot.db, options)
  const query = (sql: string) => snapshot.db.query(sql)
  return {
    scale: (await query('SELECT answers::INTEGER AS answers, gap, nps_gap FROM question_scales'))[0],
    nps: await query(`
      SELECT strftime(month, '%Y-%m') AS month, answers::INTEGER AS answers, nps, nps_low, nps_high, gap
      FROM nps_monthly
      WHERE scope = 'all'
      ORDER BY month`),
    top: await query(`
      SELECT answers::INTEGER AS answers, share_best, share_low, share_high, gap
      FROM top_box_monthly
      WHERE scope = 'all'
      ORDER BY month`),
    answers: await query(`
      SELECT answer, answer_number, answer_date::VARCHAR AS answer_date, answer_choice, parsed::INTEGER AS parsed
      FROM review_answers
      ORDER BY review_id`),
  }
}

describe('the net promoter score', () => {
  it('is the share of 9 and 10 less that of 0 to 6, with its interval', async () => {
    const answers = [...repeat('10', 5), ...repeat('9', 5), ...repeat('8', 4), ...repeat('6', 3), ...repeat('0', 3)]
    const { nps, top } = await ask(promoter, [['2026-03', answers]])
    // (10.75 - 6.75) / 23 = 0.1739; (10.75 + 6.75) / 23 - 0.1739² = 0.7306; 1.96 √(0.7306 / 23) = 0.3493
    expect(nps).toEqual([{ month: '2026-03', answers: 20, nps: 20, nps_low: -17.5, nps_high: 52.3, gap: null }])
    // Wilson for 5 of 20, as statistics programs print it: 0.1119, 0.4687
    expect(top).toEqual([{ answers: 20, share_best: 0.25, share_low: 0.11, share_high: 0.47, gap: null }])
  })

  it('has an interval of some width where all answers agree', async () => {
    const { nps, top } = await ask(promoter, [['2026-03', repeat('10', 10)]])
    expect(nps).toMatchObject([{ nps: 100, nps_low: 47.5, nps_high: 100 }])
    expect(top).toMatchObject([{ share_best: 1, share_low: 0.72, share_high: 1 }])
  })

  it('of an empty month and of too few answers is a gap', async () => {
    const { nps, top } = await ask(promoter, [
      ['2026-01', repeat('9', 10)],
      ['2026-02', []],
      ['2026-04', ['9']],
    ])
    const none = { nps: null, nps_low: null, nps_high: null }
    expect(nps).toMatchObject([
      { month: '2026-01', answers: 10, nps: 100, gap: null },
      { month: '2026-02', answers: 0, ...none, gap: 'no answers' },
      { month: '2026-03', answers: 0, ...none, gap: 'no answers' },
      { month: '2026-04', answers: 1, ...none, gap: 'fewer than 10 answers' },
    ])
    expect(top.map(({ share_best, gap }) => [share_best, gap])).toEqual([
      [0, null],
      [null, 'no answers'],
      [null, 'no answers'],
      [null, 'fewer than 10 answers'],
    ])
  })

  it('counts fewer answers where the least number is lower', async () => {
    const { nps } = await ask(promoter, [['2026-01', ['9']]], { variables: { min_answers: 1 } })
    expect(nps).toMatchObject([{ answers: 1, nps: 100, gap: null }])
  })

  it.each<[string, string, string, ReadonlyArray<string>]>([
    ['texts', promoter, '1 of 12 answers do not fit the scale', [...repeat('9', 11), 'Very likely']],
    ['texts alone', promoter, '12 of 12 answers do not fit the scale', repeat('Very likely', 12)],
    ['units', promoter, '1 of 12 answers do not fit the scale', [...repeat('9', 11), '9/10']],
    ['a number beyond the scale', promoter, '1 of 12 answers do not fit the scale', [...repeat('9', 11), '11']],
    ['a number below the scale', promoter, '1 of 12 answers do not fit the scale', [...repeat('9', 11), '-1']],
    ['a half', promoter, '1 of 12 answers do not fit the scale', [...repeat('9', 11), '8.5']],
    [
      'a scale of 1 to 10',
      'Single Choice (Rating)',
      '9 of 12 answers do not fit the scale',
      [...repeat('9', 9), ...repeat('5', 3)],
    ],
    ['no scale', 'Single Choice (Slider)', 'no scale is known', repeat('3', 12)],
    ['no scale, by an unknown type', 'Stars', 'no scale is known', repeat('3', 12)],
  ])('and the top box leave a question with %s out by name', async (_case, type, gap, answers) => {
    const { scale, nps, top } = await ask(type, [['2026-03', answers]])
    expect([scale?.gap, nps, top]).toEqual([gap, [], []])
    expect(scale?.nps_gap).toBe(type === promoter ? gap : 'no promoter question')
  })
})

describe('a scale that is given', () => {
  const oneToTen = { question_id: 'Q', lowest: 1, highest: 10, best: null }

  it('of 1 to 10 for a promoter question leaves it out of NPS alone', async () => {
    const answers = [...repeat('10', 6), ...repeat('1', 6)]
    const { scale, nps, top } = await ask(promoter, [['2026-03', answers]], { scales: [oneToTen] })
    expect(scale).toEqual({ answers: 12, gap: null, nps_gap: 'the scale is not 0 to 10' })
    expect(nps).toEqual([])
    expect(top).toMatchObject([{ answers: 12, share_best: 0.5 }])
  })

  it('counts before that of the type, may begin with the best answer, and makes numbers of a choice', async () => {
    const grades = [...repeat('1', 3), ...repeat('6', 9)]
    const scale = { question_id: 'Q', lowest: 1, highest: 6, best: 1 }
    const { top, answers } = await ask('Single Choice (Radio)', [['2026-03', grades]], { scales: [scale] })
    expect(top).toMatchObject([{ answers: 12, share_best: 0.25 }])
    expect(answers[0]).toEqual({ answer: '1', answer_number: 1, answer_date: null, answer_choice: '1', parsed: 1 })
  })

  it('comes from the table _scales of a file; two for a question are none', async () => {
    await writeMessages(snapshot, streamMessages(reviews, ...toReviews('Stars', [['2026-03', repeat('3', 12)]])))
    const gap = () => snapshot.db.scalar('SELECT gap FROM question_scales')
    expect(await gap()).toBe('no scale is known')
    await snapshot.db.run("INSERT INTO _scales VALUES ('Q', 1, 3, NULL)")
    expect(await gap()).toBeNull()
    expect(await snapshot.db.scalar("SELECT share_best FROM top_box_monthly WHERE scope = 'location'")).toBe(1)
    await snapshot.db.run("INSERT INTO _scales VALUES ('Q', 1, 5, NULL)")
    expect(await gap()).toBe('several scales are given')
    await snapshot.db.run("DELETE FROM _scales; INSERT INTO _scales VALUES ('Q', 5, 1, NULL)")
    expect(await gap()).toBe('the scale that is given is none')
  })
})

describe('an answer', () => {
  it('is the number that it is, and nothing is guessed', async () => {
    const numbers = [' 4 ', '4.50', '007', '-1'] as const
    const others = ['4,5', '4/5', '42 years', '1e3', '+4', '.5', 'NaN', '4\n', '1234567890123456']
    const { answers } = await ask('Age (Text Field)', [['2026-03', [...numbers, ...others]]])
    expect(answers.map(({ answer_number, parsed }) => [answer_number, parsed])).toEqual([
      ...[4, 4.5, 7, -1].map((number) => [number, 1]),
      ...others.map(() => [null, 0]),
    ])
  })

  it('to a question of a date is a day that there is, as it is written', async () => {
    const days = ['2026-10-31', '2026-10-31T23:30:00.000-05:00', '2024-02-29 08:00']
    const impossible = ['2026-02-29', '2026-02-30', '2026-13-01', '2026-1-1', '0000-01-01']
    const others = ['10/11/2026', '2026-10-31 or so', '20261031']
    const { answers } = await ask('Completion Date (Date Field)', [['2026-03', [...days, ...impossible, ...others]]])
    expect(answers.map(({ answer_date, parsed }) => [answer_date, parsed])).toEqual([
      ...days.map((day) => [day.slice(0, 10), 1]),
      ...[...impossible, ...others].map(() => [null, 0]),
    ])
  })

  it('of a text or of an unknown type is its text alone', async () => {
    const { answers } = await ask('Free Form (Text Area)', [['2026-03', ['5']]])
    expect(answers).toEqual([{ answer: '5', answer_number: null, answer_date: null, answer_choice: null, parsed: 1 }])
  })

  it('of spaces is none', async () => expect((await ask(promoter, [['2026-03', [' ']]])).answers).toEqual([]))
})
