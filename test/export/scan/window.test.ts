import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toInstant, toMillis } from '../../../connector/api/model/scalar'
import { type ScanWindow, splitWindow, wholeWindow, windowFilters } from '../../../connector/export/scan/window'

const at = Date.UTC(2026, 0, 1)
const sample = { mentionTimes: [at, at + 10_000, at + 20_000], cutoff: at + 30_000 }
const parts = (windows: ReadonlyArray<ScanWindow>): ReadonlyArray<ScanWindow> =>
  windows.filter(({ kind }) => kind !== 'sweep')

/** Whether a service serves a review with this mention time for a window; its bounds may be inclusive or not. */
const serves =
  (inclusive: boolean, time: number) =>
  ({ mentionTimeAfter, mentionTimeBefore }: ScanWindow): boolean => {
    const after = mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(mentionTimeAfter)
    const before = mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(mentionTimeBefore)
    return inclusive ? time >= after && time <= before : time > after && time < before
  }

describe('a window that could not be certified', () => {
  test('is split at the median of its mention times, open at its outer ends, with a sweep for reviews without one', () => {
    expect(splitWindow({}, wholeWindow, sample)).toEqual([
      { kind: 'part', mentionTimeBefore: '2026-01-01T00:00:10.000Z' },
      { kind: 'part', mentionTimeAfter: '2026-01-01T00:00:09.999Z' },
      { kind: 'sweep' },
    ])
  })

  test('keeps the bounds and the sources that were configured', () => {
    const filters = { mentionTimeAfter: toInstant(at - 1), sources: [3, 4], additionalFields: ['brand'] }
    const [lower] = splitWindow(filters, wholeWindow, sample)
    expect(windowFilters(filters, lower ?? wholeWindow)).toEqual({
      ...filters,
      mentionTimeBefore: '2026-01-01T00:00:10.000Z',
    })
  })

  test('loses no mention time however often it is split, down to a millisecond', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: at, max: at + 5000 }), { minLength: 1, maxLength: 30 }),
        fc.boolean(),
        (mentions, inclusive) => {
          const read = (window: ScanWindow, depth: number): ReadonlyArray<number> => {
            const matching = mentions.filter((time) => serves(inclusive, time)(window))
            if (matching.length <= 1) return matching
            expect(depth).toBeLessThan(100)
            const halves = parts(splitWindow({}, window, { ...sample, mentionTimes: matching.slice(0, 5) }))
            return halves.some(({ kind }) => kind === 'exact')
              ? matching
              : halves.flatMap((half) => read(half, depth + 1))
          }
          expect(new Set(read(wholeWindow, 0))).toEqual(new Set(mentions))
        },
      ),
    )
  })

  test('of one millisecond is split by source, and of one source becomes an exact window', () => {
    const instant: ScanWindow = {
      kind: 'part',
      mentionTimeAfter: toInstant(at - 1),
      mentionTimeBefore: toInstant(at + 1),
    }
    const filters = { sources: [1, 2, 3] }
    const [first, second] = splitWindow(filters, instant, { ...sample, mentionTimes: [at] })
    expect(first?.sources).toEqual([1, 2])
    expect(second?.sources).toEqual([3])
    expect(splitWindow(filters, second ?? wholeWindow, { ...sample, mentionTimes: [at] })).toEqual([
      { ...instant, sources: [3], kind: 'exact' },
    ])
  })

  test('of an export without mention times is split by the sources asked for', () => {
    const deletions = { ...sample, mentionTimes: undefined }
    expect(splitWindow({ sources: [7, 8] }, wholeWindow, deletions).map(({ sources }) => sources)).toEqual([[7], [8]])
    expect(splitWindow({ sources: [7] }, wholeWindow, deletions)).toEqual([{ kind: 'exact' }])
    expect(splitWindow({}, wholeWindow, deletions)).toEqual([{ kind: 'exact' }])
  })

  test('is not split by mention time if the service ignores the bounds', () => {
    const bounded: ScanWindow = { kind: 'part', mentionTimeBefore: toInstant(at) }
    expect(splitWindow({}, bounded, sample)).toEqual([{ ...bounded, kind: 'exact' }])
  })

  test('is split in the middle if no mention time of it is known', () => {
    const halves = parts(splitWindow({}, wholeWindow, { ...sample, mentionTimes: [] }))
    expect(halves.length).toBe(2)
    expect(halves.map(({ kind }) => kind)).toEqual(['part', 'part'])
  })
})
