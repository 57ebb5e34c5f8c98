import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { createRowHistory } from '../../../connector/export/scan/history'
import {
  createWindowToken,
  decodeResumeToken,
  digestFilters,
  fromResumeToken,
  isResumable,
  leastAdvancedToken,
  type ResumeToken,
  sampleRows,
  scanStartTime,
  toResumeToken,
} from '../../../connector/export/scan/resume-token'
import { restoreCollector } from '../../../connector/export/scan/sent-rows'
import { firstExactRound, newScanState, type ScanState } from '../../../connector/export/scan/state'
import { wholeWindow } from '../../../connector/export/scan/window'

const at = Date.UTC(2026, 0, 31)
const origin = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const filters = { sources: [1] }
const state: ScanState = {
  ...newScanState({ origin, now: at, limit: 1000, cutoff: at - 5000, windows: [wholeWindow] }),
  pageCount: 3,
  longestPage: 50,
  rowClockAtStart: at - 10,
}
const token = toResumeToken(state, sampleRows(state, createRowHistory([['7', at, 4]])), filters, origin, at)

describe('a resume token', () => {
  test('gives back the state and the rows read last', () => {
    const read = decodeResumeToken(JSON.parse(JSON.stringify(token)))
    expect(read).toEqual(O.some(token))
    expect(fromResumeToken(token)).toEqual(state)
    expect(token.trail).toEqual([['7', at, 4]])
    expect(toResumeToken(state, [], filters, origin, at).pass).not.toHaveProperty('inserted')
  })

  test('has the keys that are in users’ state files', () => {
    const busy: ScanState = {
      ...state,
      newestRowTime: at - 20,
      sentRows: restoreCollector(at - 30, []),
      isUncertified: true,
      rowsWithoutMention: 2,
      pass: {
        from: state.from,
        offset: 11,
        overlapDoublings: 1,
        pagesSinceOverlapChange: 2,
        rewindsInARow: 3,
        rewinds: 4,
        pageCount: 5,
        fullPagesInARow: 6,
        pagesWithoutNewRows: 7,
        latePages: 8,
        isConfirmingEnd: true,
        missingRows: 9,
        hasRecheckedEnd: true,
        repeatedPages: 0,
        emptyOffset: 10,
        isNewestFirst: undefined,
        insertedRows: 11,
        isCutShort: false,
        hasCutPages: false,
        foundAtStart: undefined,
      },
    }
    const written = toResumeToken(busy, [], filters, origin, at)
    expect(written).toEqual({
      from: '2025-12-31T23:59:59.000Z',
      filters: digestFilters(filters),
      begun: '2026-01-31T00:00:00.000Z',
      taken: 3,
      windows: [{ kind: 'part' }],
      pass: {
        ...{ from: '2025-12-31T23:59:59.000Z', offset: 11, growth: 1, good: 2, lost: 3, losses: 4, pages: 5 },
        ...{ full: 6, barren: 7, late: 8, gap: 9, doubted: true, confirming: true, emptyAt: 10, inserted: 11 },
      },
      trail: [],
      longest: 50,
      limit: 1000,
      flawed: true,
      unmentioned: 2,
      recent: [],
      signpost: '2026-01-30T23:59:55.000Z',
      reached: at - 10,
      newest: at - 20,
      horizon: at - 30,
      saved: '2026-01-31T00:00:00.000Z',
    })
    expect(fromResumeToken(written)).toEqual(busy)
  })

  test('of another form is none', () => {
    expect(decodeResumeToken({ offset: 3 })).toEqual(O.none)
    expect(decodeResumeToken(undefined)).toEqual(O.none)
  })

  const paths = (value: object): ReadonlyArray<ReadonlyArray<string>> =>
    Object.entries(value).flatMap(([key, inner]) => [
      [key],
      ...(typeof inner === 'object' && !Array.isArray(inner) ? paths(inner).map((path) => [key, ...path]) : []),
    ])
  const changed = (value: unknown, [key, ...rest]: ReadonlyArray<string>, change: 'drop' | 'spoil'): unknown => {
    if (key === undefined) return change === 'drop' ? undefined : { no: 'token' }
    return { ...(value as object), [key]: changed((value as Record<string, unknown>)[key], rest, change) }
  }
  const written = { ...token, newest: 3, horizon: 4, pass: { ...token.pass, emptyAt: 5, inserted: 6 } }
  const optional = ['signpost', 'reached', 'newest', 'horizon', 'saved', 'pass,emptyAt', 'pass,inserted']
  test.each(paths(written).map((path) => [path.join()]))('needs %s in its form', (path) => {
    expect(decodeResumeToken(written)).toEqual(O.some(written))
    expect(O.isSome(decodeResumeToken(changed(written, path.split(','), 'drop')))).toBe(optional.includes(path))
    expect(decodeResumeToken(changed(written, path.split(','), 'spoil'))).toEqual(O.none)
  })

  test('takes only samples and sent rows that are whole', () => {
    for (const [key, row] of [
      ['trail', [1, 2, 3]],
      ['trail', ['1', '2', 3]],
      ['trail', ['1', 2]],
      ['recent', ['1', 2]],
      ['recent', [1, 2, '3']],
    ] as const)
      expect(decodeResumeToken({ ...token, [key]: [row] })).toEqual(O.none)
  })

  test('of a part that is read in rounds begins it again, without its rows', () => {
    const inRounds: ScanState = {
      ...state,
      exactRounds: firstExactRound(),
      pass: { ...state.pass, from: state.from + 5000, offset: 70 },
    }
    expect(sampleRows(inRounds, createRowHistory([['7', at, 4]]))).toEqual([])
    const begun = fromResumeToken(toResumeToken(inRounds, [], filters, origin, at))
    expect(begun).toEqual({ ...state, pass: { ...state.pass, from: state.from + 5000 } })
  })

  test('before the first page has no cutoff', () => {
    const before = { ...state, cutoff: undefined, rowClockAtStart: undefined }
    const first = toResumeToken(before, [], filters, origin, at)
    expect(Object.keys(first)).toEqual(Object.keys(token).filter((key) => key !== 'signpost' && key !== 'reached'))
    expect(fromResumeToken(first)).toEqual(before)
    expect(scanStartTime(first)).toEqual(O.none)
    expect(scanStartTime(token)).toEqual(O.some(at - 5000))
  })

  test('keeps the rows that the next filter serves again', () => {
    const sentRows = restoreCollector(Number.NEGATIVE_INFINITY, [['3', at, 'digest']])
    const kept = toResumeToken({ ...state, sentRows }, [], filters, origin, at)
    expect(kept.recent).toEqual([['3', at, 'digest']])
    expect(fromResumeToken(kept).sentRows).toEqual(sentRows)
  })

  test('can name the windows that are left, all others being read', () => {
    const left = createWindowToken(filters, origin, {
      windows: [{ kind: 'sweep' }],
      reached: at - 1000,
      certain: at - 3000,
      recent: [['3', at, 'digest']],
      limit: 70,
      now: at,
    })
    expect(fromResumeToken(left)).toMatchObject({
      ...{ windows: [{ kind: 'sweep' }], cutoff: at - 1000, newestRowTime: at - 1000, rowClockAtStart: at - 3000 },
      ...{ limit: 70, startedAt: at, pageCount: 0 },
    })
    expect([left.recent, left.trail]).toEqual([[['3', at, 'digest']], []])
    expect(left.filters).toBe(digestFilters(filters))
  })

  test('is valid for a day since it was made, however long ago its scan began', () => {
    const old = { ...token, begun: '2026-01-20T00:00:00.000Z' }
    const planned = { now: at + 3_600_000, from: state.from, filters }
    expect(isResumable(planned)(old)).toBe(true)
    expect(isResumable({ ...planned, now: at + 86_399_999 })(old)).toBe(true)
    expect(isResumable({ ...planned, now: at + 86_400_000 })(old)).toBe(false)
    expect(isResumable({ ...planned, now: at - 86_400_000 })(old)).toBe(false)
    expect(isResumable({ ...planned, now: at - 86_399_999 })(old)).toBe(true)
    const { saved: _, ...tokenOfOldVersion } = token
    expect(isResumable(planned)(tokenOfOldVersion)).toBe(true)
    expect(isResumable(planned)({ ...tokenOfOldVersion, begun: old.begun })).toBe(false)
  })

  test('is valid for the same start and the same filters', () => {
    const planned = { now: at + 3_600_000, from: state.from, filters }
    expect(isResumable(planned)(token)).toBe(true)
    expect(isResumable({ ...planned, from: state.from + 1000 })(token)).toBe(false)
    expect(isResumable({ ...planned, filters: { sources: [2] } })(token)).toBe(false)
  })

  test('of several streams that share a scan is the least advanced one, and none if they belong to several scans', () => {
    const further: ResumeToken = { ...token, taken: 9 }
    expect(leastAdvancedToken([further, token, further])).toEqual(O.some(token))
    expect(leastAdvancedToken([token, { ...further, begun: '2026-01-30T00:00:00.000Z' }])).toEqual(O.none)
    expect(leastAdvancedToken([token, { ...further, signpost: '2026-01-30T00:00:00.000Z' }])).toEqual(O.none)
    expect(leastAdvancedToken([token, { ...further, from: '2026-01-30T00:00:00.000Z' }])).toEqual(O.none)
    expect(leastAdvancedToken([token, { ...further, filters: 'others' }])).toEqual(O.none)
    expect(leastAdvancedToken([token, further, { ...further, filters: 'others' }])).toEqual(O.none)
    const alike: ResumeToken = { ...token, longest: 7 }
    expect(leastAdvancedToken([token, alike])).toEqual(O.some(token))
    expect(leastAdvancedToken([])).toEqual(O.none)
  })
})

test('a digest of filters does not depend on their order', () => {
  expect(digestFilters({ sources: [1], additionalFields: ['brand'] })).toBe(
    digestFilters({ additionalFields: ['brand'], sources: [1] }),
  )
  expect(digestFilters({ sources: [1] })).not.toBe(digestFilters({ sources: [2] }))
  // A digest of another form would end every unfinished scan of a user.
  expect(digestFilters({ sources: [1], additionalFields: ['brand'] })).toBe('MYkFaRvxrIS')
})
