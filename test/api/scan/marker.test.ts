import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { earliest, filtersDigest, isResumable, type Marker, toMarker } from '../../../connector/api/scan/marker'
import { remember } from '../../../connector/api/scan/memory'
import { begin, fromMarker, toMarker as markerOf, trailOf } from '../../../connector/api/scan/state'
import { whole } from '../../../connector/api/scan/window'

const at = Date.UTC(2026, 0, 31)
const from = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const state = {
  ...begin({ from, now: at, limit: 1000, sorted: false, signpost: at - 5000, windows: [whole] }),
  taken: 3,
  longest: 50,
  reached: at - 10,
}
const marker = markerOf(state, trailOf(state, remember([['7', at, 4]])), { sources: [1] }, from)

describe('a marker', () => {
  test('comes back from a state as it was, with what was read last', () => {
    const read = toMarker(JSON.parse(JSON.stringify(marker)))
    expect(read).toEqual(O.some(marker))
    expect(fromMarker(marker)).toEqual(state)
    expect(marker.trail).toEqual([['7', at, 4]])
  })

  test('of another make is none', () => {
    expect(toMarker({ offset: 3 })).toEqual(O.none)
    expect(toMarker(undefined)).toEqual(O.none)
  })

  test('is good for a day, for the same start and the same filters', () => {
    const wanted = { now: at + 3_600_000, from: state.from, filters: { sources: [1] } }
    expect(isResumable(wanted)(marker)).toBe(true)
    expect(isResumable({ ...wanted, now: at + 86_400_000 })(marker)).toBe(false)
    expect(isResumable({ ...wanted, from: state.from + 1000 })(marker)).toBe(false)
    expect(isResumable({ ...wanted, filters: { sources: [2] } })(marker)).toBe(false)
  })

  test('of streams that share a scan: the least advanced, none if they are of several scans', () => {
    const further: Marker = { ...marker, taken: 9 }
    expect(earliest([further, marker, further])).toEqual(O.some(marker))
    expect(earliest([marker, { ...further, begun: '2026-01-30T00:00:00.000Z' }])).toEqual(O.none)
    expect(earliest([])).toEqual(O.none)
  })
})

test('a digest of filters does not depend on their order', () => {
  expect(filtersDigest({ sources: [1], additionalFields: ['brand'] })).toBe(
    filtersDigest({ additionalFields: ['brand'], sources: [1] }),
  )
  expect(filtersDigest({ sources: [1] })).not.toBe(filtersDigest({ sources: [2] }))
})
