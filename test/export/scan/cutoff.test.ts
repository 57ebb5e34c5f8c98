import fc from 'fast-check'
import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import {
  ceilToSecond,
  chooseCutoff,
  collectSentRows,
  cursorSlack,
  emptyCollector,
  filterFrom,
  infoNote,
  matchesSentRow,
  nextCursor,
  restoreCollector,
  sentRowsSince,
} from '../../../connector/export/scan/cutoff'
import { draws } from '../../support/draws'
import { reviewRecord } from '../../support/export-record'

const at = Date.UTC(2026, 0, 31, 12, 0, 0, 700)
const minute = 60_000

test.each([
  ['the start date if there is no cursor', O.none, '2025-12-31T23:59:59.000Z'],
  ['the cursor less the lookback', O.some(at), '2026-01-31T11:49:59.000Z'],
  [
    'the start date if the cursor less the lookback is earlier',
    O.some(Date.UTC(2026, 0, 1, 0, 5)),
    '2025-12-31T23:59:59.000Z',
  ],
])('a filter starts a second before %s', (_, cursor, from) => {
  expect(new Date(filterFrom(Date.UTC(2026, 0, 1), cursor, 10 * minute)).toISOString()).toBe(from)
})

test('a cursor never moves backwards, and stays if nothing was read', () => {
  expect(nextCursor(O.some(5), O.some(3))).toEqual(O.some(5))
  expect(nextCursor(O.some(5), O.some(8))).toEqual(O.some(8))
  expect(nextCursor(O.some(5), O.none)).toEqual(O.some(5))
  expect(nextCursor(O.none, O.none)).toEqual(O.none)
  expect(nextCursor(O.none, O.some(3))).toEqual(O.some(3))
})

test('whole seconds are at or after a time', () => {
  expect([1000, 1001, 1999, 2000].map(ceilToSecond)).toEqual([1000, 2000, 2000, 2000])
})

test('slack is the whole time between the cursor and what is certain, so that the lookback stays whole', () => {
  expect(cursorSlack(O.some(at), O.some(at), 0)).toBe(0)
  expect(cursorSlack(O.some(at), O.some(at - 1), 0)).toBe(1)
  expect(cursorSlack(O.some(at), O.some(at - 40 * minute), 0)).toBe(40 * minute)
  expect(cursorSlack(O.some(at), O.some(at + minute), 0)).toBe(0)
  expect(cursorSlack(O.some(at), O.none, at - minute)).toBe(minute)
  expect(cursorSlack(O.none, O.some(at), 0)).toBe(0)
  expect(cursorSlack(O.none, O.none, 0)).toBe(0)
})

test('whatever the lookback, the next filter starts a whole lookback before what is certain', () => {
  fc.assert(
    fc.property(fc.nat(3_600_000), fc.nat(7_200_000), (lookback, passed) => {
      const certain = at - passed
      const slack = cursorSlack(O.some(at), O.some(certain), 0)
      expect(filterFrom(0, O.some(at), lookback + slack)).toBeLessThanOrEqual(certain - lookback)
    }),
    draws(100),
  )
})

describe('the cutoff', () => {
  test("is the service's time less 5 s", () => {
    expect(chooseCutoff(at, at + 30_000)).toEqual([at - 5000, []])
  })
  test('comes with a warning if the local clock is off by more than a minute, either way', () => {
    expect(chooseCutoff(at, at + 61_000)[1][0]?.message).toContain('61 s ahead of')
    expect(chooseCutoff(at, at - 3_600_000)[1][0]?.message).toContain('3600 s behind')
    expect(chooseCutoff(at, at + 60_001)).toEqual([
      at - 5000,
      [
        {
          level: 'warn',
          message:
            "The clock here is 60 s ahead of the service's (2026-01-31T12:00:00.700Z). The service's is used; set the clock of this machine.",
        },
      ],
    ])
    expect([60_000, -60_000].map((skew) => chooseCutoff(at, at + skew)[1])).toEqual([[], []])
  })
  test('is the local time less 5 minutes, with a warning, if there is no Date header', () => {
    const [time, notes] = chooseCutoff(undefined, at)
    expect(time).toBe(at - 5 * minute)
    expect(notes).toEqual([
      { level: 'warn', message: expect.stringContaining('no Date header): changes of the last 5 minutes are left') },
    ])
    expect(infoNote('fine')).toEqual({ level: 'info', message: 'fine' })
  })
})

describe('the rows that the next run has again', () => {
  const page = (from: number, count: number): ReturnType<typeof reviewRecord>[] =>
    Array.from({ length: count }, (_, i) => reviewRecord(from + i, 1000 * (from + i)))

  test('recognises exactly the rows that were sent, to the byte', () => {
    const sentRows = sentRowsSince(collectSentRows(emptyCollector, page(1, 3), 0), 0)
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
      const isSent = matchesSentRow(sentRowsSince(collectSentRows(emptyCollector, page(1, 1), 0), 0))
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
    expect(sentRowsSince(collectSentRows(emptyCollector, [sent], 0), 0)).toEqual([['1', 1000, 'A3ySFO73TMO']])
  })

  test('do not change with the bytes of their page', () => {
    const sent = { ...reviewRecord(1, 1000), json: Buffer.from('{"id":1}') }
    const collector = collectSentRows(emptyCollector, [sent], 0)
    sent.json.fill(0)
    expect(sentRowsSince(collector, 0)).toEqual([['1', 1000, 'A3ySFO73TMO']])
  })

  test('have all of the times that the filter serves, up to the last one', () => {
    const all = collectSentRows(emptyCollector, [...page(1, 3), ...page(5, 1)], 2000)
    expect([...all.rows.keys()]).toEqual(['2', '3', '5'])
    expect([...collectSentRows(all, page(3, 2), 3000).rows.keys()]).toEqual(['3', '5', '4'])
    expect(sentRowsSince(all, 3000).map(([id]) => id)).toEqual(['3', '5'])
  })

  test('are those of the latest versions, whichever is read last', () => {
    const later = collectSentRows(emptyCollector, [reviewRecord(1, 2000)], 0)
    expect(sentRowsSince(collectSentRows(later, [reviewRecord(1, 1000)], 0), 0).map(([, time]) => time)).toEqual([2000])
    const both = [reviewRecord(1, 2000), reviewRecord(1, 1000)]
    expect(sentRowsSince(collectSentRows(emptyCollector, both, 0), 0).map(([, time]) => time)).toEqual([2000])
  })

  test('are a thousand at most, and after more none up to the last of them', () => {
    const full = collectSentRows(emptyCollector, page(1, 1000), 0)
    expect(full.horizon).toBe(Number.NEGATIVE_INFINITY)
    expect(full.rows.size).toBe(1000)
    const dropped = collectSentRows(full, [reviewRecord(2000, 500)], 0)
    expect(dropped).toEqual({ horizon: 1_000_000, rows: new Map() })
    expect(collectSentRows(full, [reviewRecord(2000, 2_000_000)], 0).horizon).toBe(2_000_000)
    expect(collectSentRows(dropped, page(1000, 2), 0).rows.size).toBe(1)
    expect(sentRowsSince(collectSentRows(dropped, page(1001, 1), 0), 1_000_000)).toEqual([])
    expect(sentRowsSince(collectSentRows(dropped, page(1001, 1), 0), 1_000_001).length).toBe(1)
  })

  test('reveals nothing of text that did not leave', () => {
    const sent = reviewRecord(1, 1000)
    const withHiddenText = (words: string) => ({ ...sent, raw: Buffer.from(words) })
    expect(sentRowsSince(collectSentRows(emptyCollector, [withHiddenText('fine')], 0), 0)).toEqual(
      sentRowsSince(collectSentRows(emptyCollector, [withHiddenText('awful')], 0), 0),
    )
  })

  test('keeps only the rows that the next filter serves again', () => {
    const all = collectSentRows(emptyCollector, page(1, 10), 0)
    expect(sentRowsSince(all, 8000).map(([id]) => id)).toEqual(['8', '9', '10'])
    expect(sentRowsSince(collectSentRows(all, page(11, 1), 10_000), 0).map(([id]) => id)).toEqual(['10', '11'])
  })

  test('drops all rows if there are more than 1,000, and starts again with later ones', () => {
    const full = collectSentRows(emptyCollector, page(1, 1001), 0)
    expect(sentRowsSince(full, 0)).toEqual([])
    const later = collectSentRows(full, [...page(900, 10), ...page(1002, 5)], 0)
    expect(sentRowsSince(later, 0)).toEqual([])
    expect(sentRowsSince(later, 1_002_000).map(([id]) => id)).toEqual(['1002', '1003', '1004', '1005', '1006'])
  })

  test('keeps the first text of a version, and the later version of a row', () => {
    const first = collectSentRows(emptyCollector, [reviewRecord(1, 1000)], 0)
    const isSent = matchesSentRow(sentRowsSince(collectSentRows(first, [reviewRecord(1, 1000, { rating: 4 })], 0), 0))
    expect([reviewRecord(1, 1000), reviewRecord(1, 1000, { rating: 4 })].map(isSent)).toEqual([true, false])
    expect(sentRowsSince(collectSentRows(first, [reviewRecord(1, 2000)], 0), 0).map(([, time]) => time)).toEqual([2000])
  })

  test('is the same after a restart', () => {
    const part = collectSentRows(emptyCollector, page(1, 5), 0)
    const restored = restoreCollector(part.horizon, JSON.parse(JSON.stringify(sentRowsSince(part, 0))))
    expect(sentRowsSince(collectSentRows(restored, page(6, 2), 0), 0)).toEqual(
      sentRowsSince(collectSentRows(part, page(6, 2), 0), 0),
    )
  })

  test('keeps only digests of earlier pages', () => {
    const two = collectSentRows(collectSentRows(emptyCollector, page(1, 2), 0), page(3, 2), 0)
    expect([...two.rows.values()].map(({ text }) => typeof text)).toEqual(['string', 'string', 'object', 'object'])
  })
})
