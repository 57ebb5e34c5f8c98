import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toInstant, toMillis } from '../../../connector/cdk/scalar'
import {
  containsMention,
  ignoresBounds,
  isExact,
  isSweep,
  readMentionTime,
  ScanWindow,
  splitWindow,
  toExactWindows,
  wholeWindow,
  windowFilters,
} from '../../../connector/export/scan/window'
import { draws } from '../../support/draws'
import { reviewRecord } from '../../support/export-record'

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
      draws(100),
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

  const between = (after: number, before: number): ScanWindow => ({
    kind: 'part',
    ...(Number.isFinite(after) ? { mentionTimeAfter: toInstant(after) } : {}),
    ...(Number.isFinite(before) ? { mentionTimeBefore: toInstant(before) } : {}),
  })
  const infinity = Number.POSITIVE_INFINITY
  test.each<[string, ScanWindow, ReadonlyArray<number>, ReadonlyArray<ScanWindow>]>([
    ['of three milliseconds', between(at, at + 3), [at + 1], [between(at, at + 2), between(at + 1, at + 3)]],
    ['of two milliseconds', between(at, at + 2), [at + 1], [{ ...between(at, at + 2), kind: 'exact' }]],
    ['of three milliseconds, empty', between(at, at + 3), [], [between(at, at + 2), between(at + 1, at + 3)]],
    ['of two milliseconds, empty', between(at, at + 2), [], [{ ...between(at, at + 2), kind: 'exact' }]],
    ['whose rows are at its start', between(at, at + 9), [at], [between(at, at + 2), between(at + 1, at + 9)]],
    ['whose rows are at its end', between(at, at + 9), [at + 9], [between(at, at + 8), between(at + 7, at + 9)]],
    [
      'in the middle of its rows, not of its time, just before a second',
      between(at, at + 90_000),
      [at + 9000, at + 80_000, at + 5500, at + 8000],
      [between(at, at + 9000), between(at + 8999, at + 90_000)],
    ],
    [
      'with rows up to a second outside',
      between(at, at + 9000),
      [at - 1000, at + 5500, at + 10_000],
      [between(at, at + 5000), between(at + 4999, at + 9000)],
    ],
    ['with a row before it', between(at, at + 9000), [at - 1001], [{ ...between(at, at + 9000), kind: 'exact' }]],
    ['with a row behind it', between(at, at + 9000), [at + 10_001], [{ ...between(at, at + 9000), kind: 'exact' }]],
    [
      'after the cutoff, empty',
      between(at + 172_800_000, infinity),
      [],
      [between(at + 172_800_000, at + 172_800_002), between(at + 172_800_001, infinity)],
    ],
    [
      'up to the cutoff, empty: up to a day later',
      between(at, infinity),
      [],
      [between(at, at + 43_215_000), between(at + 43_214_999, infinity)],
    ],
    ['from 1970, empty', between(-infinity, 200_000), [], [between(-infinity, 100_000), between(99_999, 200_000)]],
    ['before 1970, empty', between(-infinity, 2), [], [between(-infinity, 0), between(-1, 2)]],
  ])('%s, is split so', (_, window, mentionTimes, expected) => {
    expect(splitWindow({}, window, { ...sample, mentionTimes })).toEqual(expected)
  })

  test('keeps what it is limited by in all of its parts', () => {
    const window: ScanWindow = { ...between(at, at + 90_000), sources: [3] }
    for (const part of splitWindow({}, window, sample)) expect(part.sources).toEqual([3])
    expect(
      splitWindow({ sources: [1, 2] }, { kind: 'part', sources: [3, 4] }, { ...sample, mentionTimes: undefined }),
    ).toEqual([
      { kind: 'part', sources: [3] },
      { kind: 'part', sources: [4] },
    ])
  })
})

test.each<[ScanWindow['kind'] | undefined, boolean, boolean]>([
  ['part', false, false],
  ['sweep', false, true],
  ['exact', true, false],
  ['exactSweep', true, true],
  [undefined, false, false],
])('a window %s: exact %s, sweep %s', (kind, exact, sweep) => {
  const window = kind && { kind }
  expect([isExact(window), isSweep(window)]).toEqual([exact, sweep])
})

test('a request has the bounds of its window, and not what the scan knows of it', () => {
  expect(windowFilters({ sources: [1] }, { kind: 'part', hasRows: true, mentionTimeAfter: toInstant(at) })).toEqual({
    sources: [1],
    mentionTimeAfter: toInstant(at),
  })
})

test.each<[string, string, number | undefined]>([
  ['its mention time', '{"mentionTime":"2026-01-01T00:00:00.000Z"}', at],
  ['none', '{"rating":3}', undefined],
  ['none at its own level', '{"parent":{"mentionTime":"2026-01-01T00:00:00.000Z"}}', undefined],
  ['one that is no text', '{"mentionTime":1767225600000}', undefined],
  ['one that is no time', '{"mentionTime":"yesterday"}', undefined],
  ['null in place of one', '{"mentionTime":null}', undefined],
  ['the name alone', '"a \\"mentionTime\\""', undefined],
  ['the name in a list', '["mentionTime"]', undefined],
])('of a review is read %s', (_, text, time) => {
  const bytes = Buffer.from(`[${text},{}]`)
  const raw = bytes.subarray(1, 1 + Buffer.byteLength(text))
  expect(readMentionTime({ ...reviewRecord(1, 1), raw })).toBe(time)
})

test('a window in a state has a kind, and bounds, sources and rows in their form', () => {
  const whole = { kind: 'part', mentionTimeAfter: toInstant(at), mentionTimeBefore: toInstant(at), sources: [1] }
  expect([whole, { kind: 'exactSweep', hasRows: true }, wholeWindow].map(ScanWindow.is)).toEqual([true, true, true])
  for (const spoilt of [
    { kind: 'other' },
    { kind: undefined },
    { mentionTimeAfter: 'today' },
    { mentionTimeBefore: 5 },
    { sources: ['1'] },
    { hasRows: 1 },
  ])
    expect(ScanWindow.is({ ...whole, ...spoilt })).toBe(false)
})

describe('the mention times of a page', () => {
  const window: ScanWindow = { kind: 'part', mentionTimeAfter: toInstant(at), mentionTimeBefore: toInstant(at + 9) }
  const after: ScanWindow = { kind: 'part', mentionTimeAfter: toInstant(at) }
  const before: ScanWindow = { kind: 'part', mentionTimeBefore: toInstant(at) }

  test.each<[ScanWindow, ReadonlyArray<number>, boolean]>([
    [window, [at + 1], true],
    [window, [at + 8], true],
    [window, [at], false],
    [window, [at + 9], false],
    [window, [at - 5, at + 5], true],
    [window, [], false],
    [after, [at + 1e9], true],
    [before, [at - 1e9], true],
    [before, [at], false],
  ])('show that %j, of %j, surely has rows: %s', (one, times, has) => {
    expect(containsMention(one, times)).toBe(has)
  })

  test.each<[ScanWindow, ReadonlyArray<number | undefined>, boolean]>([
    [window, [at - 1000, at + 1009], false],
    [window, [at - 1001], true],
    [window, [at + 1010], true],
    [window, [at + 5, undefined], true],
    [window, [], false],
    [after, [at - 1001], true],
    [before, [at + 1001], true],
    [before, [at - 1e9], false],
    [wholeWindow, [undefined, 0], false],
  ])('show that the bounds %j are ignored, of %j: %s', (one, times, ignored) => {
    expect(ignoresBounds(one, times)).toBe(ignored)
  })
})

test('windows that do not become smaller are read whole, each that was asked for once', () => {
  const bounded = (after: number, before: number, kind: ScanWindow['kind'] = 'part'): ScanWindow => ({
    kind,
    mentionTimeAfter: toInstant(at + after),
    mentionTimeBefore: toInstant(at + before),
  })
  expect(toExactWindows([wholeWindow], [bounded(0, 5), bounded(4, 9), { kind: 'sweep' }])).toEqual([{ kind: 'exact' }])
  expect(toExactWindows([bounded(0, 9), bounded(8, 20)], [bounded(0, 9), bounded(8, 15), bounded(14, 20)])).toEqual([
    bounded(0, 9, 'exact'),
    bounded(8, 20, 'exact'),
  ])
  expect(toExactWindows([bounded(5, 9)], [bounded(4, 9), bounded(5, 10)])).toEqual([
    bounded(4, 9, 'exact'),
    bounded(5, 10, 'exact'),
  ])
  expect(toExactWindows([{ kind: 'sweep' }], [{ kind: 'sweep' }])).toEqual([{ kind: 'exactSweep' }])
})
