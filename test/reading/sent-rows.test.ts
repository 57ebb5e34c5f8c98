import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CutRecord } from '../../connector/export/cut/record'
import {
  addRowsSent,
  createRowsSent,
  hasSameRows,
  listRowsSent,
  matchesSentRow,
  type RowsSent,
  type SentRange,
  sentRowsSince,
} from '../../connector/reading/sent-rows'
import { draws } from '../support/draws'
import { reviewRecord } from '../support/export-record'

const rowsSince = (sent: RowsSent, from: number) => sentRowsSince(sent, from).rows

/** What is known after pages, each read while the next filter began at `from`. */
const afterPages = (
  pages: ReadonlyArray<ReadonlyArray<CutRecord>>,
  from = 0,
  mostKnown?: number,
  sent = createRowsSent(),
) => {
  for (const page of pages) addRowsSent(sent, page, from, mostKnown)
  return sent
}

describe('of more rows than are listed', () => {
  const rows = (count: number, timeOf: (i: number) => number = (i) => 1000 * i) =>
    Array.from({ length: count }, (_, i) => reviewRecord(i + 1, timeOf(i + 1)))
  const collect = (all: ReadonlyArray<CutRecord>, from = 0, sent = createRowsSent()) => {
    for (let i = 0; i < all.length; i += 300) addRowsSent(sent, all.slice(i, i + 300), from)
    return sent
  }
  const rangeOf = (sent: RowsSent, from: number): SentRange => {
    const { range } = sentRowsSince(sent, from)
    if (range === undefined) throw new Error('there is no range')
    return range
  }

  test('the newest thousand are listed, and of all others there are a number and a digest', () => {
    const { rows: listed, range } = sentRowsSince(collect(rows(1000)), 0)
    expect([listed.length, range]).toEqual([1000, undefined])
    const known = sentRowsSince(collect(rows(3000)), 5_000)
    expect(known.rows.map(([id]) => Number(id)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 1000 }, (_, i) => 2001 + i),
    )
    expect(known.range).toMatchObject({ from: 5_000, until: 2_000_000, count: 1996 })
  })

  test('those of one time are never divided', () => {
    const known = sentRowsSince(collect(rows(3000, (i) => (i < 2900 ? 7000 : 8000))), 0)
    expect(known.rows).toHaveLength(101)
    expect(known.range).toMatchObject({ until: 7000, count: 2899 })
  })

  test('a state stays small: less than 60 KB after 100,000 rows', () => {
    const known = sentRowsSince(collect(rows(100_000, (i) => 1_000_000 + (i % 500))), 0)
    expect(known.rows.length + (known.range?.count ?? 0)).toBe(100_000)
    expect(JSON.stringify(known).length).toBeLessThan(60_000)
  })

  test('the same rows are the same in whatever order and pages they come, and however often', () => {
    const range = rangeOf(collect(rows(3000)), 0)
    expect(hasSameRows(collect([...rows(3000)].reverse()), range)).toBe(true)
    expect(hasSameRows(collect([...rows(3000), ...rows(2500)]), range)).toBe(true)
    expect(hasSameRows(collect([...rows(3000), reviewRecord(1, 999)]), range)).toBe(true)
  })

  test('one that comes, changes or goes makes them others', () => {
    const range = rangeOf(collect(rows(3000)), 0)
    const [first, ...others] = rows(3000)
    expect(first).toEqual(reviewRecord(1, 1000))
    expect(hasSameRows(collect(others), range)).toBe(false)
    expect(hasSameRows(collect([...others, reviewRecord(1, 1000, { rating: 1 })]), range)).toBe(false)
    expect(hasSameRows(collect([...others, reviewRecord(1, 1001)]), range)).toBe(false)
    expect(hasSameRows(collect([...others, reviewRecord(1, 9_000_000)]), range)).toBe(false)
    expect(hasSameRows(collect([...rows(3000), reviewRecord(5000, 1_000_500)]), range)).toBe(false)
    expect(hasSameRows(collect([...rows(3000), reviewRecord(5000, 2_000_500)]), range)).toBe(true)
    // Two that go and come again as each other keep the number.
    const swapped = [reviewRecord(1, 2000), reviewRecord(2, 1000), ...rows(3000).slice(2)]
    expect(hasSameRows(collect(swapped), range)).toBe(false)
  })

  test('a resume token lists the newest, and nothing is claimed of what it leaves out', () => {
    const part = collect(rows(3000))
    const { rows: listed, horizon } = listRowsSent(part, 0)
    expect([listed.length, horizon]).toEqual([1000, 2_000_000])
    const resumed = collect(rows(3100).slice(3000), 0, createRowsSent(horizon, listed))
    expect(sentRowsSince(resumed, 0)).toEqual({ rows: [] })
    expect(sentRowsSince(resumed, 2_000_000)).toEqual({ rows: [] })
    expect(hasSameRows(resumed, rangeOf(part, 0))).toBe(false)
    expect(sentRowsSince(resumed, 2_000_001)).toMatchObject({ rows: { length: 1000 }, range: { count: 100 } })
  })

  test('beyond the most that memory is to hold, nothing is known up to the newest of those', () => {
    const full = afterPages([rows(5000)], 0, 5000)
    expect(full.horizon).toBe(Number.NEGATIVE_INFINITY)
    const late = reviewRecord(6000, 500)
    for (const many of [afterPages([[...rows(5000), late]], 0, 5000), afterPages([[late]], 0, 5000, full)]) {
      expect(many.horizon).toBe(4_000_000)
      expect(sentRowsSince(many, 0)).toEqual({ rows: [] })
      expect(sentRowsSince(many, 4_000_001).rows).toHaveLength(1000)
    }
  })

  test('a long list whose filter moves on keeps only what the next filter serves', () => {
    const sent = createRowsSent()
    const all = rows(40_000)
    for (let i = 0; i < 40_000; i += 4000) addRowsSent(sent, all.slice(i, i + 4000), 1000 * i, 10_000)
    expect(sent.horizon).toBe(Number.NEGATIVE_INFINITY)
    expect(rangeOf(sent, 36_000_001)).toMatchObject({ count: 3000 })
    expect(sent.times.length).toBeLessThan(20_000)
  })

  test('it knows what a list of all of them would know, whatever comes in whatever order', () => {
    const anyRow = fc.record({ id: fc.integer({ min: 1, max: 2500 }), time: fc.integer({ min: 1, max: 40 }) })
    const anyPages = fc.array(
      fc.record({ rows: fc.array(anyRow, { maxLength: 40 }), bulk: fc.constantFrom(0, 0, 900, 1500), from: fc.nat(6) }),
      { minLength: 1, maxLength: 8 },
    )
    fc.assert(
      fc.property(anyPages, fc.nat(30), fc.nat(2500), (pages, later, victim) => {
        const sent = createRowsSent()
        let from = 0
        const newest = new Map<string, CutRecord>()
        for (const page of pages) {
          from += page.from
          const bulk = Array.from({ length: page.bulk }, (_, i) => reviewRecord(i + 1, 10 + (i % 7) + from))
          const records = [...bulk, ...page.rows.map(({ id, time }) => reviewRecord(id, time))]
          addRowsSent(sent, records, from)
          for (const record of records)
            if (record.modifiedTime > (newest.get(record.id)?.modifiedTime ?? 0)) newest.set(record.id, record)
        }
        const since = from + later
        const naive = [...newest.values()].filter(({ modifiedTime }) => modifiedTime >= since)
        const { rows: listed, range } = sentRowsSince(sent, since)
        const until = range?.until ?? 0
        const wasSent = matchesSentRow(listed)
        expect(naive.filter(wasSent).map(({ id }) => id)).toEqual(
          naive.filter(({ modifiedTime }) => modifiedTime > until).map(({ id }) => id),
        )
        expect(listed.length).toBe(naive.filter(({ modifiedTime }) => modifiedTime > until).length)
        expect(listed.length).toBeLessThanOrEqual(1000)
        expect(range?.count ?? 0).toBe(naive.length - listed.length)
        if (range === undefined) return
        expect(hasSameRows(collect([...naive].reverse(), since), range)).toBe(true)
        const without = naive.filter((_, i) => i !== victim % naive.length)
        const isOfRange = (naive[victim % naive.length]?.modifiedTime ?? 0) <= until
        expect(hasSameRows(collect(without, since), range)).toBe(!isOfRange)
      }),
      draws(60),
    )
  })
})

describe('the rows that the next run has again', () => {
  const page = (from: number, count: number): ReturnType<typeof reviewRecord>[] =>
    Array.from({ length: count }, (_, i) => reviewRecord(from + i, 1000 * (from + i)))

  test('recognises exactly the rows that were sent, to the byte', () => {
    const sentRows = rowsSince(afterPages([page(1, 3)]), 0)
    const isSent = matchesSentRow(sentRows)
    expect(page(1, 3).map(isSent)).toEqual([true, true, true])
    expect(isSent(reviewRecord(1, 1000, { rating: 4 }))).toBe(false)
    expect(isSent(reviewRecord(1, 1001))).toBe(false)
    expect(isSent({ ...reviewRecord(1, 1000), modifiedTime: 1001 })).toBe(false)
    expect(isSent(reviewRecord(4, 4000))).toBe(false)
  })

  describe('of an id that the service lists in several versions', () => {
    const [newer, older] = [reviewRecord(1, 1000), reviewRecord(1, 999)]
    const rowsSent = (...rows: ReadonlyArray<typeof newer>) => {
      const isSent = matchesSentRow(rowsSince(afterPages([page(1, 1)]), 0))
      return rows.filter((row) => !isSent(row))
    }

    test('stand for the older one behind the version that was sent', () => {
      expect(rowsSent(newer, older, newer)).toEqual([])
    })

    test('are sent again behind an older one', () => {
      expect(rowsSent(older, newer)).toEqual([older, newer])
    })

    test('do not stand for an older version alone, which is what the service has now', () => {
      expect(rowsSent(older)).toEqual([older])
      expect(rowsSent(reviewRecord(2, 999))).toHaveLength(1)
    })
  })

  test('have digests that states of users hold', () => {
    const sent = { ...reviewRecord(1, 1000), json: Buffer.from('{"id":1}') }
    expect(rowsSince(afterPages([[sent]]), 0)).toEqual([['1', 1000, 'A3ySFO73TMM']])
  })

  test('do not change with the bytes of their page', () => {
    const sent = { ...reviewRecord(1, 1000), json: Buffer.from('{"id":1}') }
    const known = afterPages([[sent]])
    sent.json.fill(0)
    expect(rowsSince(known, 0)).toEqual([['1', 1000, 'A3ySFO73TMM']])
  })

  test('have all of the times that the filter serves, up to the last one', () => {
    const all = afterPages([[...page(1, 3), ...page(5, 1)]], 2000)
    expect(rowsSince(all, 0).map(([id]) => id)).toEqual(['2', '3', '5'])
    expect(rowsSince(afterPages([page(3, 2)], 3000, undefined, all), 3000).map(([id]) => id)).toEqual(['3', '5', '4'])
    expect(rowsSince(all, 4000).map(([id]) => id)).toEqual(['5', '4'])
  })

  test('are those of the latest versions, whichever is read last', () => {
    const [newer, older] = [reviewRecord(1, 2000), reviewRecord(1, 1000)]
    for (const pages of [[[newer], [older]], [[older], [newer]], [[newer, older]], [[older, newer]]])
      expect(rowsSince(afterPages(pages), 0).map(([, time]) => time)).toEqual([2000])
  })

  test('reveals nothing of text that did not leave', () => {
    const sent = reviewRecord(1, 1000)
    const withHiddenText = (words: string) => ({ ...sent, raw: Buffer.from(words) })
    expect(rowsSince(afterPages([[withHiddenText('fine')]]), 0)).toEqual(
      rowsSince(afterPages([[withHiddenText('awful')]]), 0),
    )
  })

  test('keeps the first text of a version', () => {
    const isSent = matchesSentRow(
      rowsSince(afterPages([[reviewRecord(1, 1000)], [reviewRecord(1, 1000, { rating: 4 })]]), 0),
    )
    expect([reviewRecord(1, 1000), reviewRecord(1, 1000, { rating: 4 })].map(isSent)).toEqual([true, false])
  })

  test('is the same after a restart', () => {
    const part = afterPages([page(1, 5)])
    const restored = createRowsSent(part.horizon, JSON.parse(JSON.stringify(rowsSince(part, 0))))
    expect(rowsSince(afterPages([page(6, 2)], 0, undefined, restored), 0)).toEqual(
      rowsSince(afterPages([page(6, 2)], 0, undefined, part), 0),
    )
  })

  test.each(['', 'x', '?!', 'A3ySFO73TMOA3ySFO73TMO'])(
    'takes the digest %j of a token that somebody wrote',
    (digest) => {
      expect(rowsSince(createRowsSent(0, [['1', 1000, digest]]), 1).map(([id]) => id)).toEqual(['1'])
    },
  )
})
