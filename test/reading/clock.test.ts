import fc from 'fast-check'
import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import {
  ceilToSecond,
  chooseCutoff,
  confirmedTime,
  cursorSlack,
  filterFrom,
  floorToSecond,
  infoNote,
  nextCursor,
} from '../../connector/reading/clock'
import { draws } from '../support/draws'

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

test('whole seconds are before and after a time', () => {
  expect([1000, 1001, 1999, 2000].map(ceilToSecond)).toEqual([1000, 2000, 2000, 2000])
  expect([1000, 1001, 1999, 2000].map(floorToSecond)).toEqual([1000, 1000, 1000, 2000])
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
            "The clock here is 60 s ahead of the service's (2026-01-31T12:00:00.700Z). " +
            "The run uses the service's clock; set the clock of this machine.",
        },
      ],
    ])
    expect([60_000, -60_000].map((skew) => chooseCutoff(at, at + skew)[1])).toEqual([[], []])
  })
  test('is the local time less 5 minutes, with a warning, if there is no Date header', () => {
    const [time, notes] = chooseCutoff(undefined, at)
    expect(time).toBe(at - 5 * minute)
    expect(notes).toEqual([
      {
        level: 'warn',
        message: expect.stringContaining('no Date header): the next run reads the changes of the last'),
      },
    ])
    expect(infoNote('fine')).toEqual({ level: 'info', message: 'fine' })
  })
})

test.each<[string, ReadonlyArray<number>, number]>([
  ['unknown without two rows', [5], Number.NEGATIVE_INFINITY],
  ['the newest time but one', [5, 9, 7], 7],
  ['a time that two rows have', [9, 5, 9], 9],
  ['not that of rows later than the answer', [5, 7, 11, 12], 5],
])('the clock that stamps rows has reached a time that is %s', (_, times, expected) => {
  expect(
    confirmedTime(
      times.map((modifiedTime) => ({ modifiedTime })),
      10,
    ),
  ).toBe(expected)
})
