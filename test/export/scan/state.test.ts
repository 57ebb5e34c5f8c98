import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import {
  addToRound,
  areRowsCounted,
  certainTime,
  countStableRounds,
  type ExactRounds,
  firstExactRound,
  isUpToCutoff,
  lacksRows,
  newPass,
  newScanState,
  nextFilterFrom,
  type ScanState,
  windowOverlap,
} from '../../../connector/export/scan/state'

const at = Date.UTC(2026, 0, 31)
const origin = { startDate: Date.UTC(2026, 0, 1), cursor: O.some(at - 100_000), lookback: 600_000 }
const state: ScanState = newScanState({
  ...{ origin, now: at, limit: 50, cutoff: at - 5000, windows: [{ kind: 'exact' }] },
})
const row = (id: string, modifiedTime: number) => ({ id, modifiedTime })

test('a scan begins with its first window, at the start, with nothing read', () => {
  const from = at - 701_000
  expect(state).toEqual({
    ...{
      cutoff: at - 5000,
      from,
      startedAt: at,
      pageCount: 0,
      windows: [{ kind: 'exact' }],
      limit: 50,
    },
    ...{ longestPage: 0, longestFullPage: 0, isUncertified: false, rowsWithoutMention: 0, rereads: 0 },
    ...{ rowClockAtStart: undefined, newestRowTime: undefined, exactRounds: undefined },
    sentRows: { horizon: Number.NEGATIVE_INFINITY, rows: new Map() },
    pass: {
      ...{
        from,
        offset: 0,
        overlapDoublings: 0,
        pagesSinceOverlapChange: 0,
        rewindsInARow: 0,
        rewinds: 0,
        pageCount: 0,
      },
      ...{ fullPagesInARow: 0, pagesWithoutNewRows: 0, latePages: 0, isConfirmingEnd: false, missingRows: 0 },
      ...{ hasRecheckedEnd: false, repeatedPages: 0, emptyOffset: undefined, isNewestFirst: undefined },
      ...{ insertedRows: 0, isCutShort: false, hasCutPages: false, foundAtStart: undefined },
    },
  })
  expect(newPass(7).from).toBe(7)
})

test.each<[number | undefined, number | undefined, O.Option<number>]>([
  [10, 5, O.some(5)],
  [5, 10, O.some(5)],
  [undefined, 5, O.none],
  [5, undefined, O.none],
])(
  'with the cutoff %s and the clock of the rows at %s, nothing was missed up to %j',
  (cutoff, rowClockAtStart, time) => {
    expect(certainTime({ ...state, cutoff, rowClockAtStart })).toEqual(time)
  },
)

test('the next run reads from the lookback before what is certain, not before the start', () => {
  expect(nextFilterFrom(origin, { ...state, rowClockAtStart: at - 9000 })).toBe(at - 610_000)
  expect(nextFilterFrom(origin, state)).toBe(at - 701_000)
})

test('a row belongs to the run up to the cutoff, and no row before the cutoff is known', () => {
  const times = [at - 5001, at - 5000, at - 4999]
  const belong = (of: ScanState) => times.map((time) => isUpToCutoff(of)(row('1', time)))
  expect(belong(state)).toEqual([true, true, false])
  expect(belong({ ...state, cutoff: undefined })).toEqual([false, false, false])
})

test.each<[ScanState['windows'], number, number, number]>([
  [[{ kind: 'exact' }], 51, 0, 38],
  [[{ kind: 'exactSweep' }], 4, 3, 3],
  [[{ kind: 'part' }], 51, 0, 10],
  [[{ kind: 'sweep' }], 1000, 1, 40],
  [[], 1000, 1, 40],
])('pages of %j share, of %i rows with the overlap doubled %i times, %i', (windows, longestPage, doublings, rows) => {
  expect(windowOverlap({ ...state, windows, longestPage, pass: { ...newPass(0), overlapDoublings: doublings } })).toBe(
    rows,
  )
})

describe('a round over a window without order', () => {
  const empty = { emptyRounds: 0, lateRows: 0, rowsBefore: 0, firstLength: undefined }
  const afterPage = (rounds: ExactRounds, offset: number, ...pages: [ReadonlyArray<string>, ReadonlyArray<string>]) => {
    const [rows, sent] = pages.map((ids) => ids.map((id) => row(id, at - 9000)))
    return addToRound(rounds, state, offset, rows ?? [], sent ?? [])
  }

  test('counts each version of a row once, and the length of the list', () => {
    const first = firstExactRound()
    expect(first).toEqual({
      ...empty,
      ...{ round: 1, newRows: 0, rowCount: 0, listLength: 0, versions: new Map(), readIn: new Map() },
      ...{ places: [], isStable: true, stableRounds: 0 },
    })
    const second = afterPage(afterPage(first, 0, ['a', 'b'], ['a']), 1, ['b', 'c'], ['b', 'c'])
    expect(second).toEqual({
      ...empty,
      ...{ round: 1, newRows: 3, rowCount: 3, listLength: 3 },
      versions: new Map(['a', 'b', 'c'].map((id) => [id, at - 9000])),
      readIn: new Map(['a', 'b', 'c'].map((id) => [`${id} ${at - 9000}`, 1])),
      ...{ places: ['a', 'b', 'c'].map((id) => `${id} ${at - 9000}`), isStable: true, stableRounds: 0 },
    })
    expect(afterPage(second, 9, [], []).listLength).toBe(3)
    expect(afterPage(second, 0, ['a'], []).listLength).toBe(3)
    const next = afterPage({ ...second, round: 2, rowCount: 0, newRows: 0 }, 0, ['a', 'd'], [])
    expect([next.rowCount, next.newRows, next.readIn.size]).toEqual([2, 0, 4])
    expect(next.readIn.get(`a ${at - 9000}`)).toBe(2)
  })

  test('is not stable where a page comes before those in front of it', () => {
    expect(afterPage(firstExactRound(), 1, ['b'], [])).toMatchObject({ isStable: false, places: [] })
    expect(afterPage(firstExactRound(), 0, ['a', 'b'], [])).toMatchObject({ isStable: true })
  })

  test('counts rows after the cutoff', () => {
    const rows = [row('a', at - 5000), row('b', at - 4999), row('b', at), row('b', at)]
    expect(addToRound(firstExactRound(), state, 0, rows, [])).toMatchObject({ rowCount: 3, lateRows: 2 })
    expect(addToRound(firstExactRound(), { ...state, cutoff: undefined }, 0, rows, [])).toMatchObject({ lateRows: 3 })
  })

  type Page = readonly [offset: number, ids: string]
  test.each<[string, ReadonlyArray<Page>, ReadonlyArray<Page>, number]>([
    [
      'its pages and the round before show the same rows',
      [
        [0, 'abca'],
        [2, 'cade'],
      ],
      [
        [0, 'abca'],
        [2, 'cade'],
      ],
      2,
    ],
    ['a page shows another row than the round before', [[0, 'abca']], [[0, 'abcd']], 0],
    [
      'pages of a round contradict each other',
      [[0, 'abc']],
      [
        [0, 'abd'],
        [0, 'abc'],
      ],
      0,
    ],
    ['the list has grown', [[0, 'abc']], [[0, 'abcd']], 0],
    ['the list has become shorter', [[0, 'abc']], [[0, 'ab']], 0],
    [
      'a page is missing',
      [
        [0, 'ab'],
        [3, 'de'],
      ],
      [
        [0, 'ab'],
        [3, 'de'],
      ],
      0,
    ],
    [
      'only the second round is as the first one ended',
      [
        [0, 'abc'],
        [0, 'abd'],
      ],
      [[0, 'abd']],
      1,
    ],
  ])('is stable or not if %s', (_, first, second, stable) => {
    const readRound = (rounds: ExactRounds, pages: ReadonlyArray<Page>): ExactRounds =>
      pages.reduce((read, [offset, ids]) => afterPage(read, offset, [...ids], []), rounds)
    const before = readRound(firstExactRound(), first)
    const next = { ...before, round: 2, listLength: 0, isStable: true, stableRounds: countStableRounds(before) }
    expect(countStableRounds(readRound({ ...next, places: [...before.places] }, second))).toBe(stable)
  })

  test.each([
    [10, 10, 0, false],
    [11, 10, 0, true],
    [11, 10, 3, true],
    [11, 10, 4, false],
    [9, 10, 0, false],
  ])('of a list of %i rows, %i of them read and %i late, lacks rows: %s', (listLength, read, lateRows, lacks) => {
    const readIn = new Map(Array.from({ length: read }, (_, i) => [String(i), 1]))
    expect(lacksRows({ ...firstExactRound(), listLength, lateRows, readIn })).toBe(lacks)
  })

  test('counts two million rows at most', () => {
    // Only its size and what is added to it matter.
    const almostFull = new Map<string, number>()
    Object.defineProperty(almostFull, 'size', { get: () => 1_999_999 })
    const full = new Map<string, number>()
    Object.defineProperty(full, 'size', { get: () => 2_000_000 })
    const rounds = (readIn: Map<string, number>): ExactRounds => ({ ...firstExactRound(), readIn, listLength: 9e9 })
    expect([almostFull, full].map((readIn) => areRowsCounted(rounds(readIn)))).toEqual([true, false])
    expect([almostFull, full].map((readIn) => lacksRows(rounds(readIn)))).toEqual([true, false])
    afterPage(rounds(almostFull), 0, ['a'], [])
    afterPage(rounds(full), 0, ['a'], [])
    expect([[...almostFull.keys()].length, [...full.keys()].length]).toEqual([1, 0])
  })
})
