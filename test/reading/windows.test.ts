import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Window } from '../../connector/reading/list'
import { halve } from '../../connector/reading/windows'
import { draws } from '../support/draws'
import { simulateExport, stableTraits } from '../support/export-simulation'
import {
  listStart,
  readAll,
  readService,
  reviewList,
  serve,
  type TestRow,
  testRow,
  testRows,
} from '../support/read-list'

const second = 1000
const at = Date.UTC(2026, 0, 1)

/** A service serves this mention time; its bounds may be inclusive or not. */
const serves =
  (isInclusive: boolean, time: number) =>
  ({ after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY }: Window): boolean =>
    isInclusive ? time >= after && time <= before : time > after && time < before

describe('halves of a window', () => {
  test('together have every mention time, and each has fewer, or the window is a few seconds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: at, max: at + 60 * second }), { minLength: 1, maxLength: 60 }),
        fc.boolean(),
        (mentions, isInclusive) => {
          const read = (window: Window, depth: number): ReadonlyArray<number> => {
            const matching = mentions.filter((time) => serves(isInclusive, time)(window))
            if (matching.length <= 3) return matching
            expect(depth).toBeLessThan(40)
            const halves = halve(window, matching.slice(0, 20))
            if (halves !== undefined) return halves.flatMap((half) => read(half, depth + 1))
            expect((window.before ?? at) - (window.after ?? 0)).toBeLessThan(10 * second)
            return matching
          }
          expect(new Set(read({}, 0))).toEqual(new Set(mentions))
        },
      ),
      draws(200),
    )
  })

  test('meet at a whole second in the middle of the rows, not of the time', () => {
    const window = { after: at - 90 * second, before: at + 9000 * second }
    const times = Array.from({ length: 99 }, (_, i) => at + i * 5 * second + 400)
    const [lower, upper] = halve(window, times) ?? []
    expect(lower).toEqual({ ...window, before: at + 245 * second })
    expect(upper).toEqual({ ...window, after: at + 245 * second - 1 })
  })

  test('leave a crowded second whole', () => {
    const crowd = Array.from({ length: 50 }, () => at + 300)
    const [lower, upper] = halve({}, [...crowd, at - 5000 * second, at + 5000 * second]) ?? []
    for (const half of [lower, upper])
      expect([at, at + 999].map((time) => serves(false, time)(half ?? {}))).toEqual(
        serves(false, at)(half ?? {}) ? [true, true] : [false, false],
      )
  })

  test.each([
    ['of a few seconds', { after: at, before: at + 5999 }, [at + 3000]],
    ['without a known mention time', {}, []],
  ])('are none of a window %s', (_, window, times) => {
    expect(halve(window, times)).toBeUndefined()
  })
})

test('windows of a list without order are read several at a time', async () => {
  const service = simulateExport({ ...stableTraits, rows: 2000, order: 'random' }, 1)
  const { failure, read, notes } = await readService(service, { concurrency: 4 })
  expect(failure).toBeUndefined()
  expect(read.size).toBe(2000)
  expect(service.mostPending()).toBeGreaterThanOrEqual(4)
  expect(notes).toEqual([expect.stringContaining('the whole list is read in smaller windows, some rows twice')])
})

test('a share of a backfill has the rows of its window, and the last one those without a mention time', async () => {
  const rows = testRows(300, (id) => testRow(id, undefined, id % 10 === 0 ? { mention: undefined } : {}))
  const idsIn = (isInside: (row: TestRow) => boolean) => new Set(rows.filter(isInside).map(({ id }) => id))
  const middle = listStart - 150 * 3_600_000 + 1
  const shareOf = async (...windows: ReadonlyArray<Window>) => {
    const { read, isComplete } = await readAll(reviewList(serve(() => rows)), {}, { windows })
    expect(isComplete).toBe(true)
    return read
  }
  expect(await shareOf({ before: middle })).toEqual(idsIn(({ mention }) => mention !== undefined && mention < middle))
  expect(await shareOf({ after: middle }, { unmentioned: true })).toEqual(
    idsIn(({ mention }) => mention === undefined || mention >= middle),
  )
})

test('windows that together have fewer rows than the list are not complete', async () => {
  const all = testRows(400)
  const lacking = serve(({ offset }) => (offset < 5 ? all.filter((_, i) => i < 10 || i >= 15) : all))
  const { isComplete, failure } = await readAll(reviewList(lacking))
  expect(isComplete).toBe(false)
  expect(failure?.message).toMatch(/the list has 400 rows, and its windows together had 395.*\(A1: /)
})
