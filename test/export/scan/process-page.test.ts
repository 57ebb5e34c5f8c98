import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { transientFailure } from '../../../connector/cdk/failure'
import type { CutRecord } from '../../../connector/export/cut/record'
import type { ExportPage } from '../../../connector/export/fetch-page'
import { createRowHistory, type RowHistory } from '../../../connector/export/scan/history'
import { processPage } from '../../../connector/export/scan/process-page'
import {
  allScanRules,
  firstExactRound,
  newScanState,
  type ScanContext,
  type ScanState,
} from '../../../connector/export/scan/state'
import { reviewRecord } from '../../support/export-record'

const at = Date.UTC(2026, 0, 31, 12)
const cutoff = at - 5000
const origin = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const context: ScanContext = { operation: 'export', hasMentionTime: true, filters: {}, origin, rules: allScanRules }
const first = newScanState({
  ...{ origin, now: at, limit: 50, cutoff: undefined, windows: [{ kind: 'part' as const }] },
})
/** After ten rows, 0 to 9. */
const later: ScanState = {
  ...{ ...first, cutoff, longestPage: 10, longestFullPage: 10, limit: 10, pageCount: 1 },
  pass: { ...first.pass, offset: 5, pageCount: 1 },
}
/** Rows of an hour ago, a second apart. */
const row = (id: number, more: object = {}): CutRecord => reviewRecord(id, at - 3_600_000 + 1000 * id, more)
const rows = (from: number, to: number): ReadonlyArray<CutRecord> =>
  Array.from({ length: to - from }, (_, i) => row(from + i))
const timed = (...times: ReadonlyArray<number>): ReadonlyArray<CutRecord> =>
  times.map((time, id) => reviewRecord(id, time))
const pageOf = (given: ReadonlyArray<CutRecord>, more: Partial<ExportPage> = {}): ExportPage => ({
  ...{ rows: given, filter: {}, unknownPaths: [], servedAt: at },
  ...more,
})
const tenRows = (): RowHistory => {
  const history = createRowHistory([])
  history.addPage(rows(0, 10), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 0)
  return history
}

type Given = {
  readonly state?: Partial<ScanState>
  readonly pass?: Partial<ScanState['pass']>
  readonly history?: RowHistory
  readonly context?: Partial<ScanContext>
  readonly isPrefetched?: boolean
  readonly now?: number
}
const processed = (before: ScanState, page: ExportPage, given: Given = {}) =>
  processPage({ ...context, ...given.context }, given.history ?? createRowHistory([]))(
    { ...before, ...given.state, pass: { ...before.pass, ...given.pass } },
    { ...page, isPrefetched: given.isPrefetched ?? false },
    given.now ?? at,
  )
const resultOf = (...given: Parameters<typeof processed>) => {
  const result = processed(...given)
  if (E.isLeft(result)) throw new Error(result.left.message)
  return result.right
}
const sentIds = (...given: Parameters<typeof processed>) => resultOf(...given).rows.map(({ id }) => id)

describe('a page tells', () => {
  test('the cutoff, if it is the first', () => {
    expect(resultOf(first, pageOf(rows(0, 2)))).toMatchObject({ state: { cutoff }, notes: [] })
    expect(resultOf(later, pageOf(rows(5, 9), { servedAt: at + 60_000 }), { history: tenRows() })).toMatchObject({
      state: { cutoff },
      notes: [],
    })
    const { servedAt: _, ...untimed } = pageOf([])
    expect(resultOf(first, untimed).notes).toEqual([
      { level: 'warn', message: expect.stringContaining('no Date header') },
    ])
  })

  test.each<[string, ReadonlyArray<number>, number | undefined, Given?]>([
    ['the newest but one', [at - 30, at - 10, at - 20], at - 20],
    ['the newest but one, in whatever order', [at - 10, at - 20, at - 30], at - 20],
    ['nothing of one row', [at - 10], undefined],
    ['nothing of rows from the future', [at + 1001, at + 1002, at - 10], undefined],
    ['one of a second ahead', [at + 1000, at + 1000], at + 1000],
    ['less what has passed since the start', [at - 10, at - 10], at - 510, { now: at + 500 }],
    ['no more if the clock went back', [at - 10, at - 10], at - 10, { now: at - 500 }],
    ['what was known before, if later', [at - 10, at - 10], at - 5, { state: { rowClockAtStart: at - 5 } }],
    ['something later than before', [at - 10, at - 10], at - 10, { state: { rowClockAtStart: at - 15 } }],
    ['what was known before, of one row', [at - 10], at - 50, { state: { rowClockAtStart: at - 50 } }],
  ])('how far the clock of the rows was: %s', (_, times, rowClockAtStart, given) => {
    expect(resultOf(first, pageOf(timed(...times)), given).state.rowClockAtStart).toBe(rowClockAtStart)
  })

  test('how far that clock was by the local one, without a Date', () => {
    const { servedAt: _, ...untimed } = pageOf(timed(at + 1001, at + 1000, at + 900))
    expect(resultOf(first, untimed).state.rowClockAtStart).toBe(at + 900)
  })

  test.each<[number, ExportPage['filter'], number, number]>([
    [4, {}, 7, 0],
    [8, {}, 8, 0],
    [4, { limit: 4 }, 4, 0],
    [5, { limit: 4 }, 5, 0],
    [4, { limit: 5 }, 7, 0],
    [4, { limit: null }, 7, 0],
    [0, { limit: 0 }, 7, 0],
    [4, { limit: 0 }, 7, 0],
    [12, {}, 12, 12],
    [13, {}, 13, 13],
  ])('by its %i rows and its echo %j how long pages are: %i, full ones %i', (length, filter, longest, full) => {
    const state = { longestPage: 7, limit: 12 }
    expect(resultOf(first, pageOf(rows(0, length), { filter }), { state }).state).toMatchObject({
      longestPage: longest,
      longestFullPage: full,
    })
    expect(
      resultOf(first, pageOf(rows(0, length), { filter }), { state: { ...state, longestFullPage: 20 } }).state,
    ).toMatchObject({ longestFullPage: 20 })
  })

  test.each<[string, ReadonlyArray<number>, number | undefined, Given?]>([
    ['the newest up to the cutoff', [cutoff - 9, cutoff, cutoff + 1], cutoff],
    ['the newest, in whatever order', [cutoff - 3, cutoff - 9], cutoff - 3],
    ['an earlier one', [cutoff - 9], cutoff - 2, { state: { newestRowTime: cutoff - 2 } }],
    ['none', [cutoff + 1], undefined],
    ['none at a look at the start', [cutoff - 9], undefined, { pass: { foundAtStart: 0 } }],
  ])('the time of the newest row: %s', (_, times, newestRowTime, given) => {
    expect(resultOf(first, pageOf(timed(...times)), given).state.newestRowTime).toBe(newestRowTime)
  })

  test('that a round begins over a window without order', () => {
    const windows: ScanState['windows'] = [{ kind: 'exact' }]
    const exactRounds = resultOf(first, pageOf(rows(0, 3)), { state: { windows } }).state.exactRounds
    expect(exactRounds).toMatchObject({ round: 1, rowCount: 3, newRows: 3, listLength: 3 })
    const second = { ...firstExactRound(), round: 2 }
    const state = { windows, exactRounds: second }
    expect(resultOf(first, pageOf(rows(0, 3)), { state }).state.exactRounds).toMatchObject({ round: 2, rowCount: 3 })
    expect(resultOf(first, pageOf(rows(0, 3))).state.exactRounds).toBeUndefined()
  })

  test('three times in a row that the service has lowered its limit', () => {
    const lowered = (lengths: ReadonlyArray<number>, page: ReadonlyArray<CutRecord>, longestPage = 10) => {
      const history = createRowHistory([])
      let start = 0
      for (const length of lengths) {
        history.addPage(
          rows(start, start + length),
          rows(start, start + length).map((_, i) => start + i),
          start,
        )
        start += length
      }
      return resultOf(later, pageOf(page), { history, state: { longestPage }, pass: { offset: 1 } }).state.longestPage
    }
    expect(lowered([10, 8, 8], rows(20, 28))).toBe(8)
    expect(lowered([10, 8], rows(12, 20))).toBe(10)
    expect(lowered([8], rows(4, 12))).toBe(10)
    expect(lowered([10, 9, 8], rows(21, 29))).toBe(10)
    expect(lowered([10, 8, 8], rows(20, 27))).toBe(10)
    expect(lowered([10, 8, 8], rows(18, 26))).toBe(10)
    expect(lowered([10, 8, 8], rows(20, 28), 8)).toBe(8)
    expect(lowered([1, 1, 1], rows(3, 4))).toBe(10)
  })
})

describe('the rows that leave', () => {
  test('are those up to the cutoff', () => {
    expect(sentIds(first, pageOf(timed(cutoff - 1, cutoff, cutoff + 1)))).toEqual(['0', '1'])
  })

  test('are new, or later versions', () => {
    const history = createRowHistory([])
    history.addPage(timed(cutoff - 50, cutoff - 50, cutoff - 50, cutoff + 50, cutoff), [0, 1, 2, 3, 4], 0)
    const page = pageOf([
      ...timed(cutoff - 50, cutoff - 49, cutoff - 51, cutoff - 10, cutoff - 10),
      reviewRecord(5, cutoff),
    ])
    expect(sentIds(later, page, { history, pass: { offset: 0 } })).toEqual(['1', '3', '5'])
  })

  test('have the newest version of an id last, in one page and behind another', () => {
    const history = createRowHistory([])
    const versions = (...given: ReadonlyArray<readonly [id: number, ago: number]>) =>
      given.map(([id, ago]) => reviewRecord(id, cutoff - ago))
    const page = resultOf(first, pageOf(versions([7, 100], [8, 200], [7, 300], [9, -1])), { history })
    const sent = page.rows.map(({ id, modifiedTime }) => [id, cutoff - modifiedTime])
    expect(sent).toEqual([
      ['7', 300],
      ['8', 200],
      ['7', 100],
    ])
    expect(page.state.sentRows.rows.get('7')?.modifiedTime).toBe(cutoff - 100)
    const next = pageOf(versions([8, 200], [7, 300], [7, 200], [9, 50], [9, -1], [9, 60]))
    const rowsBehind = resultOf(page.state, next, { history }).rows
    expect(rowsBehind.map(({ id, modifiedTime }) => [id, cutoff - modifiedTime])).toEqual([
      ['9', 60],
      ['9', 50],
    ])
  })

  test('are in rounds those that were not sent in this version', () => {
    const versions = new Map([
      ['0', cutoff - 50],
      ['1', cutoff - 50],
      ['2', cutoff - 50],
    ])
    const state: Partial<ScanState> = {
      ...{ windows: [{ kind: 'exact' }], exactRounds: { ...firstExactRound(), versions } },
    }
    const page = pageOf(timed(cutoff - 50, cutoff - 49, cutoff - 51, cutoff - 10))
    expect(sentIds(later, page, { state, pass: { offset: 0 } })).toEqual(['1', '3'])
  })

  const mixed = [row(0, { mentionTime: '2026-01-01T00:00:00.000Z' }), row(1), row(2)]
  test('of a sweep are those without a mention time', () => {
    const windows: ScanState['windows'] = [{ kind: 'sweep' }]
    const { rows: sent, state } = resultOf(first, pageOf(mixed), { state: { windows, rowsWithoutMention: 4 } })
    expect(sent.map(({ id }) => id)).toEqual(['1', '2'])
    expect(state.rowsWithoutMention).toBe(6)
    expect([...state.sentRows.rows.keys()]).toEqual(['1', '2'])
    const inRounds = resultOf(first, pageOf(mixed), { state: { windows: [{ kind: 'exactSweep' }] } })
    expect(inRounds.rows.map(({ id }) => id)).toEqual(['1', '2'])
    expect(inRounds.state.exactRounds).toMatchObject({ newRows: 2, rowCount: 3 })
    const mentioned = pageOf([row(0, { mentionTime: '2026-01-01T00:00:00.000Z' })])
    const idlePages = (kind: 'part' | 'exactSweep') =>
      resultOf(first, mentioned, { state: { windows: [{ kind }] } }).state.pass.pagesWithoutNewRows
    expect([idlePages('part'), idlePages('exactSweep')]).toEqual([0, 1])
    const part = resultOf(first, pageOf(mixed), { state: { rowsWithoutMention: 4 } })
    expect(part.rows.length).toBe(3)
    expect(part.state.rowsWithoutMention).toBe(4)
  })

  test('are remembered for the next run, and so are those that had left before', () => {
    const { state } = resultOf(later, pageOf([...rows(5, 12), reviewRecord(13, cutoff + 1)]), { history: tenRows() })
    expect([...state.sentRows.rows.keys()]).toEqual(['5', '6', '7', '8', '9', '10', '11'])
    expect(state.pageCount).toBe(2)
  })

  test('are none at a look at the start, which the history does not remember', () => {
    const history = tenRows()
    const { rows: sent, state } = resultOf(later, pageOf(rows(20, 25)), {
      history,
      pass: { offset: 0, foundAtStart: 0, insertedRows: 40 },
    })
    expect(sent).toEqual([])
    expect([...state.sentRows.rows.keys()]).toEqual([])
    expect(history.findRow('20')).toBeUndefined()
  })

  test('are none of a page that does not join', () => {
    const history = tenRows()
    const { state, ...others } = resultOf(later, pageOf(rows(30, 40)), { history, pass: { offset: 8 } })
    expect(others).toEqual({ rows: [], notes: [] })
    expect(state).toMatchObject({ pageCount: 1, pass: { offset: 3, rewinds: 1 } })
    expect(history.findRow('30')).toBeUndefined()
  })
})

describe('the positions of rows', () => {
  test('begin at 0, and follow the last one where none is known', () => {
    const start = createRowHistory([])
    resultOf(first, pageOf(rows(0, 3)), { history: start })
    expect(start.findRow('2')).toMatchObject({ position: 2, index: 2 })
    const again = tenRows()
    resultOf(later, pageOf(rows(20, 23)), { history: again, pass: { offset: 0 } })
    expect(again.findRow('20')).toMatchObject({ position: 0, index: 0 })
    const behind = tenRows()
    const state: Partial<ScanState> = { windows: [{ kind: 'exact' }], longestPage: 1 }
    const inRounds = resultOf(later, pageOf(rows(20, 23)), {
      history: behind,
      state,
      pass: { offset: 10, rewinds: 99 },
    })
    expect(behind.findRow('20')).toMatchObject({ position: 10, index: 10 })
    expect(inRounds.state.pass.insertedRows).toBe(0)
  })

  test('lead on from the end of what was read', () => {
    const { state } = resultOf(later, pageOf(rows(0, 10)), {
      ...{ history: tenRows(), pass: { offset: 0 }, state: { longestPage: 10 } },
    })
    expect(state.pass).toMatchObject({ offset: 5, pagesWithoutNewRows: 1 })
    const early = resultOf(later, pageOf(rows(0, 7)), {
      ...{ history: tenRows(), pass: { offset: 0 }, state: { longestPage: 7 } },
    })
    expect(early.state.pass.offset).toBe(7 - 3 + 3)
    const offsetOf = (state: Partial<ScanState>) =>
      resultOf(later, pageOf(rows(0, 7)), {
        ...{ history: tenRows(), pass: { offset: 0 }, state: { longestPage: 7, ...state } },
      }).state.pass.offset
    expect(offsetOf({ isUncertified: true })).toBe(7 - 3)
    expect(offsetOf({ windows: [{ kind: 'exact' }] })).toBe(7 - 5)
  })

  test('lead on from the page among rows of which only samples are known, and behind the last one from the end', () => {
    const offsetBehind = (samples: number, read: ReadonlyArray<number>) => {
      const history = createRowHistory(rows(0, samples).map(({ id, modifiedTime }, i) => [id, modifiedTime, i]))
      history.addPage(
        read.map((id) => row(id)),
        read,
        0,
      )
      return resultOf(later, pageOf(rows(0, 10)), { history, pass: { offset: 0 } }).state.pass.offset
    }
    expect(offsetBehind(11, [])).toBe(10 - 5)
    expect(offsetBehind(10, [10, 11, 12])).toBe(10 - 5 + 3)
  })
})

describe('an empty first page', () => {
  const empty = (given: Given) => resultOf({ ...later, pass: first.pass }, pageOf([]), given).pause
  test.each<[string, Given, number | undefined]>([
    ['is the end', {}, undefined],
    ['contradicts rows that were read', { history: tenRows() }, 500],
    ['contradicts one row that was read', { history: createRowHistory([['1', 1, 0]]) }, 500],
    [
      'contradicts rows of earlier rounds',
      { state: { exactRounds: { ...firstExactRound(), versions: new Map([['1', 1]]) } } },
      500,
    ],
    [
      'is the end of a round without rows',
      { state: { windows: [{ kind: 'exact' }], exactRounds: firstExactRound() } },
      undefined,
    ],
    ['contradicts rows of a larger window', { state: { windows: [{ kind: 'part', hasRows: true }] } }, 500],
    ['may contradict a larger window', { state: { windows: [{ kind: 'part', hasRows: false }] } }, 500],
    ['may contradict it five times', { state: { windows: [{ kind: 'part', hasRows: false }], rereads: 4 } }, 8000],
    ['is believed then', { state: { windows: [{ kind: 'part', hasRows: false }], rereads: 5 } }, undefined],
  ])('%s', (_, given, pause) => {
    expect(empty(given)).toBe(pause)
  })

  test('is waited out, and then the scan fails', () => {
    const asked = (rereads: number) =>
      resultOf({ ...later, pass: first.pass }, pageOf([]), { history: tenRows(), state: { rereads } })
    expect([0, 1, 2, 3, 4].map((rereads) => asked(rereads).pause)).toEqual([500, 1000, 2000, 4000, 8000])
    const once = asked(1)
    expect(once).toMatchObject({ rows: [], state: { rereads: 2, pageCount: 1 } })
    expect(once.notes).toEqual([
      {
        level: 'info',
        message: 'export: the list ends before rows that the service has shown; asking again in 1000 ms.',
      },
    ])
    const failed = asked(5)
    expect(failed).toMatchObject({ rows: [], notes: [], state: { rereads: 6 } })
    expect([failed.pause, failed.failure]).toEqual([
      undefined,
      transientFailure(
        'export: the list ends before rows that the service has shown, in 6 answers within 15.5 s. The cursor of the stream did not move: run again.',
      ),
    ])
  })

  test('tells what is amiss with the clock too', () => {
    const skewed = { history: tenRows(), now: at + 61_000 }
    expect(resultOf(first, pageOf([]), skewed).notes.map(({ level }) => level)).toEqual(['warn', 'info'])
  })
})

describe('the end', () => {
  const seemingEnd = { history: tenRows(), pass: { offset: 10, isConfirmingEnd: true } }
  test('is confirmed by an empty page', () => {
    expect(resultOf(later, pageOf([]), seemingEnd).state.windows).toEqual([])
  })

  test('is confirmed by rows that were read, and by none that was not and is due', () => {
    const confirmed = (...more: ReadonlyArray<CutRecord>) =>
      resultOf(later, pageOf([...rows(8, 10), ...more]), {
        ...{ history: tenRows(), pass: { offset: 8, isConfirmingEnd: true } },
      }).state.windows.length === 0
    expect([confirmed(), confirmed(reviewRecord(10, cutoff + 1)), confirmed(row(10))]).toEqual([true, true, false])
  })

  test('is near where a short page has nothing but rows that the next run reads again', () => {
    const latePages = (time: number) =>
      resultOf(later, pageOf(timed(time)), {
        ...{ state: { rowClockAtStart: cutoff - 100 }, pass: { offset: 0 } },
      }).state.pass.latePages
    expect([cutoff - 99, cutoff - 100, cutoff - 150].map(latePages)).toEqual([1, 0, 0])
  })

  test('is near rows of the last day alone, however far back the clock of the rows is', () => {
    const latePages = (time: number) =>
      resultOf(later, pageOf(timed(time)), {
        ...{ state: { rowClockAtStart: cutoff - 3 * 86_400_000 }, pass: { offset: 0 } },
      }).state.pass.latePages
    expect([cutoff - 86_399_999, cutoff - 86_400_000].map(latePages)).toEqual([1, 0])
  })

  test('is where rows later than the cutoff, all of them known, stand at the place of the last row', () => {
    const changed = new Map([
      [2, cutoff],
      [3, cutoff + 3],
      [4, cutoff + 4],
    ])
    const read = rows(0, 10).map((one, id) => reviewRecord(id, changed.get(id) ?? one.modifiedTime))
    const isEnd = (page: ReadonlyArray<CutRecord | undefined>, offset: number) => {
      const history = createRowHistory([])
      history.addPage(read, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 0, cutoff)
      const given = { history, pass: { offset, isConfirmingEnd: true } }
      return resultOf(later, pageOf(page.flatMap((one) => one ?? [])), given).state.windows.length === 0
    }
    expect(isEnd([read[3], read[4]], 8)).toBe(true)
    expect(isEnd([read[3], read[4]], 7)).toBe(false)
    expect(isEnd([read[2], read[4]], 8)).toBe(false)
    expect(isEnd([reviewRecord(77, cutoff + 1), read[3]], 8)).toBe(false)
  })

  test.each<[number, number | undefined, boolean]>([
    [10, undefined, false],
    [20, 10, false],
    [20, undefined, true],
  ])(
    'may be behind a short page that follows a full one, where the limit is %i and its echo %j: %s',
    (limit, echo, isConfirmingEnd) => {
      const page = pageOf(rows(4, 10), echo === undefined ? {} : { filter: { limit: echo } })
      const given = { history: tenRows(), state: { limit }, pass: { offset: 4, fullPagesInARow: 1 } }
      expect(resultOf(later, page, given).state.pass).toMatchObject({ offset: 10, isConfirmingEnd })
    },
  )

  test('is not yet reached where the rows at the start are no newer than any that was read', () => {
    const newestRowTime = cutoff - 1000
    const look = (time: number) =>
      resultOf(later, pageOf(timed(time)), {
        ...{ context: { hasMentionTime: false }, pass: { offset: 0, foundAtStart: 0, insertedRows: 1 } },
        state: { newestRowTime, rowClockAtStart: cutoff - 5000 },
      }).state.windows
    expect(look(newestRowTime)).toEqual([expect.objectContaining({ kind: 'exact' })])
    expect(look(newestRowTime + 1)).toEqual([])
  })

  test('is in doubt for as long as rows are missing', () => {
    const history = tenRows()
    const state = { rereads: 2, longestPage: 20 }
    const missing = resultOf(later, pageOf(rows(0, 8)), { history, state, pass: { offset: 0 } })
    expect(missing.state).toMatchObject({ rereads: 2, pass: { isConfirmingEnd: true, missingRows: 2, offset: 8 } })
    const whole = resultOf(later, pageOf(rows(0, 10)), { history: tenRows(), state, pass: { offset: 0 } })
    expect(whole.state).toMatchObject({ rereads: 0, pass: { isConfirmingEnd: true, missingRows: 0, offset: 10 } })
    const more = resultOf(later, pageOf(rows(4, 14)), { history: tenRows(), state: { rereads: 2 } })
    expect(more.state).toMatchObject({ rereads: 0, pass: { isConfirmingEnd: false } })
  })

  test('of a narrow window is asked for after its first page', () => {
    const confirms = (windows: ScanState['windows']) =>
      resultOf(first, pageOf(rows(0, 3)), { state: { windows, longestPage: 10 } }).state.pass.isConfirmingEnd
    expect(confirms([{ kind: 'part', sources: [1] }])).toBe(true)
    expect(confirms([{ kind: 'part' }])).toBe(false)
    expect(confirms([{ kind: 'part', hasRows: true }])).toBe(false)
    expect(confirms([{ kind: 'sweep', sources: [1] }])).toBe(false)
  })

  test('comes after a hundred pages without a new row, and in rounds after more', () => {
    const known = { history: tenRows(), pass: { offset: 0, pagesWithoutNewRows: 99 } }
    const idle = (given: Given) => resultOf(later, pageOf(rows(0, 10)), { ...known, ...given })
    expect(idle({ context: { hasMentionTime: false } }).state.windows[0]?.kind).toBe('exact')
    const versions = new Map(rows(0, 10).map(({ id, modifiedTime }) => [id, modifiedTime]))
    const inRounds: Partial<ScanState> = {
      ...{ windows: [{ kind: 'exact' }], exactRounds: { ...firstExactRound(), versions } },
    }
    const pagesOf = (pagesWithoutNewRows: number) =>
      idle({ state: inRounds, history: tenRows(), pass: { offset: 0, pagesWithoutNewRows } }).state.exactRounds?.round
    expect([106, 107].map(pagesOf)).toEqual([1, 2])
  })
})

test('a list that ends before its rows is a contradiction, unless the service refuses the offset', () => {
  const given = { history: tenRows(), pass: { offset: 10, rewinds: 99 }, context: { hasMentionTime: false } }
  expect(resultOf(later, pageOf([]), given).pause).toBe(500)
  const refused = resultOf(later, pageOf([], { isRefused: true }), { ...given, history: tenRows() })
  expect(refused.pause).toBeUndefined()
})

test('an offset that the service refuses ends a window without order, which cannot be read deeper', () => {
  const refused = pageOf([], { isRefused: true })
  const given: Given = {
    history: tenRows(),
    state: { windows: [{ kind: 'exact' }] },
    pass: { offset: 70, rewinds: 99 },
  }
  expect(processed(later, refused, given)).toEqual(
    E.left(
      transientFailure(
        "export: the service refuses offset 70, and the export cannot be split into smaller parts, so it cannot be read to its end. The cursor of the stream did not move. Run again; if it stays so, ask the service's operator for deeper offsets, or for sources to read one by one.",
      ),
    ),
  )
  expect(resultOf(later, refused, { ...given, history: tenRows(), pass: { offset: 70 } })).toMatchObject({
    state: { pass: { rewinds: 1 } },
  })
  const part = { ...given, history: tenRows(), state: {} }
  expect(resultOf(later, refused, { ...part, context: { hasMentionTime: false } }).state.windows[0]?.kind).toBe('exact')
})

describe('a page that comes again', () => {
  const again = (given: Given = {}, page: Partial<ExportPage> = {}, read = rows(0, 10)) =>
    processed(later, pageOf(read, page), { history: tenRows(), pass: { offset: 5, repeatedPages: 2 }, ...given })
  const stateOf = (...given: Parameters<typeof again>) => {
    const result = again(...given)
    return E.isRight(result) ? result.right.state : undefined
  }

  test('for the third time has all rows if it is shorter than its echo allows', () => {
    const full = { context: { hasMentionTime: false } }
    expect(stateOf(full, { filter: { limit: 50 } })?.windows[0]?.kind).toBe('exact')
    const shorter: Partial<ScanState> = { longestFullPage: 0, limit: 50 }
    const done = again({ state: shorter }, { filter: { limit: 50 } })
    expect(E.isRight(done) && done.right.state.windows).toEqual([])
    expect(E.isRight(done) && done.right.notes[0]?.message).toContain('the same 10 rows come at every offset')
    const split = { context: { hasMentionTime: false }, state: shorter }
    expect(stateOf(split, { filter: { limit: 10 } })?.windows[0]?.kind).toBe('exact')
    expect(stateOf(split)?.windows[0]?.kind).toBe('exact')
    expect(stateOf(split, { filter: { limit: null } })?.windows[0]?.kind).toBe('exact')
  })

  test('is one only at another offset, and with the same rows', () => {
    expect(stateOf({ pass: { offset: 0, repeatedPages: 2 } })?.pass.repeatedPages).toBe(0)
    expect(stateOf({ pass: { offset: 0, repeatedPages: 1 } })?.pass.repeatedPages).toBe(0)
    expect(stateOf({ pass: { offset: 5, repeatedPages: 1 } })?.pass.repeatedPages).toBe(2)
    expect(stateOf({ pass: { offset: 5, repeatedPages: 1 } }, {}, rows(1, 11))?.pass.repeatedPages).toBe(0)
    const history = tenRows()
    history.addPage([], [], 10)
    expect(stateOf({ history, pass: { offset: 20, repeatedPages: 0 } }, {}, [])?.pass.repeatedPages).toBe(0)
  })

  test('does not count in a round', () => {
    const state: Partial<ScanState> = { windows: [{ kind: 'exact' }] }
    const pass = { offset: 5, repeatedPages: 0 }
    expect(stateOf({ state, pass })?.exactRounds).toMatchObject({ rowCount: 0, listLength: 0 })
    expect(stateOf({ state, pass }, {}, rows(1, 11))?.exactRounds).toMatchObject({ rowCount: 10, listLength: 15 })
  })
})

describe('rows in another order', () => {
  /** The rows 4 to 9 with an unread one among them. */
  const doubtful = [
    row(4),
    row(5),
    reviewRecord(77, at - 7_200_000),
    row(6),
    row(7),
    row(8),
    row(9),
    row(10),
    row(11),
    row(12),
  ]
  const given = { history: tenRows(), pass: { offset: 4 } }
  test('end a pass that relies on it', () => {
    const { state } = resultOf(later, pageOf(doubtful), { ...given, context: { hasMentionTime: false } })
    expect(state.windows[0]?.kind).toBe('exact')
    expect(resultOf(later, pageOf(doubtful), { ...given, history: tenRows(), isPrefetched: true })).toMatchObject({
      rows: [],
      state: { pageCount: 1, pass: { offset: 4 } },
    })
  })

  test('are nothing to a round', () => {
    const state: Partial<ScanState> = { windows: [{ kind: 'exact' }] }
    const result = resultOf(later, pageOf(doubtful), { ...given, history: tenRows(), state })
    expect(result.state).toMatchObject({ isUncertified: false, pageCount: 2 })
  })

  test('are explained by changes within the lookback before the cutoff', () => {
    const withChange = (time: number) => {
      const page = doubtful.map((one) => (one.id === '77' ? reviewRecord(77, time) : one))
      return resultOf(later, pageOf(page), { ...given, history: tenRows(), context: { hasMentionTime: false } }).state
    }
    expect(withChange(cutoff - 599_999).windows[0]?.kind).toBe('part')
    expect(withChange(cutoff - 600_000).windows[0]?.kind).toBe('exact')
  })
})
