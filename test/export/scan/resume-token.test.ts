import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { createRowHistory } from '../../../connector/export/scan/history'
import {
  decodeResumeToken,
  digestFilters,
  isResumable,
  leastAdvancedToken,
  type ResumeToken,
} from '../../../connector/export/scan/resume-token'
import {
  fromResumeToken,
  toResumeToken as markerOf,
  newScanState,
  sampleRows,
} from '../../../connector/export/scan/state'
import { wholeWindow } from '../../../connector/export/scan/window'

const at = Date.UTC(2026, 0, 31)
const from = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const state = {
  ...newScanState({ from, now: at, limit: 1000, sorted: false, signpost: at - 5000, windows: [wholeWindow] }),
  pageCount: 3,
  longestPage: 50,
  rowClock: at - 10,
}
const token = markerOf(state, sampleRows(state, createRowHistory([['7', at, 4]])), { sources: [1] }, from)

describe('a marker', () => {
  test('comes back from a state as it was, with what was read last', () => {
    const read = decodeResumeToken(JSON.parse(JSON.stringify(token)))
    expect(read).toEqual(O.some(token))
    expect(fromResumeToken(token)).toEqual(state)
    expect(token.trail).toEqual([['7', at, 4]])
  })

  test('of another make is none', () => {
    expect(decodeResumeToken({ offset: 3 })).toEqual(O.none)
    expect(decodeResumeToken(undefined)).toEqual(O.none)
  })

  test('is good for a day, for the same start and the same filters', () => {
    const wanted = { now: at + 3_600_000, from: state.from, filters: { sources: [1] } }
    expect(isResumable(wanted)(token)).toBe(true)
    expect(isResumable({ ...wanted, now: at + 86_400_000 })(token)).toBe(false)
    expect(isResumable({ ...wanted, from: state.from + 1000 })(token)).toBe(false)
    expect(isResumable({ ...wanted, filters: { sources: [2] } })(token)).toBe(false)
  })

  test('of streams that share a scan: the least advanced, none if they are of several scans', () => {
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
