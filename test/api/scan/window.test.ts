import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toInstant, toMillis } from '../../../connector/api/model/scalar'
import { cut, type Window, whole, within } from '../../../connector/api/scan/window'

const at = Date.UTC(2026, 0, 1)
const glimpse = { mentions: [at, at + 10_000, at + 20_000], signpost: at + 30_000 }
const parts = (windows: ReadonlyArray<Window>): ReadonlyArray<Window> => windows.filter(({ kind }) => kind !== 'sweep')

/** Whether a service serves a mention time for a window; whether bounds are inclusive is not known. */
const serves =
  (inclusive: boolean, time: number) =>
  ({ mentionTimeAfter, mentionTimeBefore }: Window): boolean => {
    const after = mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(mentionTimeAfter)
    const before = mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(mentionTimeBefore)
    return inclusive ? time >= after && time <= before : time > after && time < before
  }

describe('a window that could not be certified', () => {
  test('is cut at the median of its mention times, open at its outer ends, and swept for reviews without one', () => {
    expect(cut({}, whole, glimpse)).toEqual([
      { kind: 'part', mentionTimeBefore: '2026-01-01T00:00:10.000Z' },
      { kind: 'part', mentionTimeAfter: '2026-01-01T00:00:09.999Z' },
      { kind: 'sweep' },
    ])
  })

  test('keeps the bounds and the sources that were configured', () => {
    const filters = { mentionTimeAfter: toInstant(at - 1), sources: [3, 4], additionalFields: ['brand'] }
    const [lower] = cut(filters, whole, glimpse)
    expect(within(filters, lower ?? whole)).toEqual({
      ...filters,
      mentionTimeBefore: '2026-01-01T00:00:10.000Z',
    })
  })

  test('is cut again and again without losing a time, until a millisecond is left', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: at, max: at + 5000 }), { minLength: 1, maxLength: 30 }),
        fc.boolean(),
        (mentions, inclusive) => {
          const read = (window: Window, depth: number): ReadonlyArray<number> => {
            const held = mentions.filter((time) => serves(inclusive, time)(window))
            if (held.length <= 1) return held
            expect(depth).toBeLessThan(100)
            const halves = parts(cut({}, window, { ...glimpse, mentions: held.slice(0, 5) }))
            return halves.some(({ kind }) => kind === 'exact') ? held : halves.flatMap((half) => read(half, depth + 1))
          }
          expect(new Set(read(whole, 0))).toEqual(new Set(mentions))
        },
      ),
    )
  })

  test('of one millisecond is cut by source, and of one source is read the exact way', () => {
    const instant: Window = {
      kind: 'part',
      mentionTimeAfter: toInstant(at - 1),
      mentionTimeBefore: toInstant(at + 1),
    }
    const filters = { sources: [1, 2, 3] }
    const [first, second] = cut(filters, instant, { ...glimpse, mentions: [at] })
    expect(first?.sources).toEqual([1, 2])
    expect(second?.sources).toEqual([3])
    expect(cut(filters, second ?? whole, { ...glimpse, mentions: [at] })).toEqual([
      { ...instant, sources: [3], kind: 'exact' },
    ])
  })

  test('of an export without mention times is cut by the sources asked for at once', () => {
    const deletions = { ...glimpse, mentions: undefined }
    expect(cut({ sources: [7, 8] }, whole, deletions).map(({ sources }) => sources)).toEqual([[7], [8]])
    expect(cut({ sources: [7] }, whole, deletions)).toEqual([{ kind: 'exact' }])
    expect(cut({}, whole, deletions)).toEqual([{ kind: 'exact' }])
  })

  test('is not cut by mention time where the service does not heed the bounds', () => {
    const bounded: Window = { kind: 'part', mentionTimeBefore: toInstant(at) }
    expect(cut({}, bounded, glimpse)).toEqual([{ ...bounded, kind: 'exact' }])
  })

  test('of which no mention time is known is cut in the middle', () => {
    const halves = parts(cut({}, whole, { ...glimpse, mentions: [] }))
    expect(halves.length).toBe(2)
    expect(halves.map(({ kind }) => kind)).toEqual(['part', 'part'])
  })
})
