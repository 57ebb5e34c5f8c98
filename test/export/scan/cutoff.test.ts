import fc from 'fast-check'
import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { chooseCutoff, cursorSlack, filterFrom, nextCursor } from '../../../connector/export/scan/cutoff'

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
})

test('slack is the whole time between the cursor and what is certain, so that the lookback stays whole', () => {
  expect(cursorSlack(O.some(at), O.some(at))).toBe(0)
  expect(cursorSlack(O.some(at), O.some(at - 1))).toBe(1)
  expect(cursorSlack(O.some(at), O.some(at - 40 * minute))).toBe(40 * minute)
  expect(cursorSlack(O.some(at), O.some(at + minute))).toBe(0)
  expect(cursorSlack(O.some(at), O.none)).toBe(0)
})

test('whatever the lookback, the next filter starts a whole lookback before what is certain', () => {
  fc.assert(
    fc.property(fc.nat(3_600_000), fc.nat(7_200_000), (lookback, passed) => {
      const certain = at - passed
      const slack = cursorSlack(O.some(at), O.some(certain))
      expect(filterFrom(0, O.some(at), lookback + slack)).toBeLessThanOrEqual(certain - lookback)
    }),
  )
})

describe('the cutoff', () => {
  test("is the service's time less 5 s", () => {
    expect(chooseCutoff(at, at + 30_000)).toEqual([at - 5000, []])
  })
  test('comes with a warning if the local clock is off by more than a minute, either way', () => {
    expect(chooseCutoff(at, at + 61_000)[1][0]?.message).toContain('61 s ahead of')
    expect(chooseCutoff(at, at - 3_600_000)[1][0]?.message).toContain('3600 s behind')
  })
  test('is the local time less 5 minutes, with a warning, if there is no Date header', () => {
    const [time, notes] = chooseCutoff(undefined, at)
    expect(time).toBe(at - 5 * minute)
    expect(notes[0]?.message).toContain('no Date header')
  })
})
