import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { createRowHistory } from '../../../connector/export/scan/history'
import {
  decodeResumeToken,
  digestFilters,
  fromResumeToken,
  isResumable,
  leastAdvancedToken,
  type ResumeToken,
  sampleRows,
  toResumeToken,
} from '../../../connector/export/scan/resume-token'
import { newScanState, type ScanState } from '../../../connector/export/scan/state'
import { wholeWindow } from '../../../connector/export/scan/window'

const at = Date.UTC(2026, 0, 31)
const origin = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const filters = { sources: [1] }
const state: ScanState = {
  ...newScanState({ origin, now: at, limit: 1000, isSorted: false, cutoff: at - 5000, windows: [wholeWindow] }),
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
  })

  test('has the keys that are in users’ state files', () => {
    const busy: ScanState = {
      ...state,
      newestRowTime: at - 20,
      sentRows: { horizon: at - 30, rows: new Map() },
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
      sorted: false,
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

  test('is valid for a day since it was made, however long ago its scan began', () => {
    const old = { ...token, begun: '2026-01-20T00:00:00.000Z' }
    const planned = { now: at + 3_600_000, from: state.from, filters }
    expect(isResumable(planned)(old)).toBe(true)
    expect(isResumable({ ...planned, now: at + 86_400_000 })(old)).toBe(false)
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
    expect(leastAdvancedToken([])).toEqual(O.none)
  })
})

test('a digest of filters does not depend on their order', () => {
  expect(digestFilters({ sources: [1], additionalFields: ['brand'] })).toBe(
    digestFilters({ additionalFields: ['brand'], sources: [1] }),
  )
  expect(digestFilters({ sources: [1] })).not.toBe(digestFilters({ sources: [2] }))
})
