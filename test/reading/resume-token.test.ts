import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import {
  createWindowToken,
  decodeResumeToken,
  digestFilters,
  fromResumeToken,
  isResumable,
  leastAdvancedToken,
  type ResumeToken,
  readStartTime,
  toResumeToken,
} from '../../connector/reading/resume-token'
import { createRowsSent } from '../../connector/reading/sent-rows'
import type { Progress } from '../../connector/reading/session'

const at = Date.UTC(2026, 0, 31)
const origin = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const plan = { from: Date.UTC(2025, 11, 31, 23, 59, 59), origin, scope: digestFilters({ sources: [1] }) }
const progress: Progress = {
  startedAt: at,
  cutoff: at - 5000,
  rowClock: at - 10,
  newest: at - 20,
  sent: createRowsSent(at - 86_400_000 * 40, [['3', at - 30, 'A3ySFO73TMM']]),
  limit: 1000,
  pages: 3,
  windows: [{ after: 5, before: 9000, by: 'halves' }, { unmentioned: true, rows: 7 }, {}],
  offset: 80,
  inserted: 0,
}
const token = toResumeToken(plan, progress, [['7', at, 4]], at)

describe('a resume token', () => {
  test('is written so, and gives back how far the read had come', () => {
    expect(token).toEqual({
      v: 1,
      from: '2025-12-31T23:59:59.000Z',
      filters: plan.scope,
      begun: '2026-01-31T00:00:00.000Z',
      pages: 3,
      windows: [{ after: 5, before: 9000, by: 'halves' }, { unmentioned: true, rows: 7 }, {}],
      offset: 80,
      inserted: 0,
      tail: [['7', at, 4]],
      limit: 1000,
      recent: [['3', at - 30, 'A3ySFO73TMM']],
      saved: '2026-01-31T00:00:00.000Z',
      cutoff: '2026-01-30T23:59:55.000Z',
      rowClock: at - 10,
      newest: at - 20,
      horizon: at - 86_400_000 * 40,
    })
    expect(decodeResumeToken(JSON.parse(JSON.stringify(token)))).toEqual(O.some(token))
    expect(fromResumeToken(token)).toEqual(progress)
  })

  test('before the first page has no cutoff and no rows, and begins at the first row', () => {
    const before = { ...progress, cutoff: undefined, rowClock: undefined, newest: undefined }
    const first = toResumeToken(plan, before, [], at)
    expect(first).not.toHaveProperty('cutoff')
    expect(fromResumeToken(first)).toEqual({ ...before, offset: 0 })
    expect([first, token].map(readStartTime)).toEqual([O.none, O.some(at - 5000)])
  })

  const optional = ['cutoff', 'rowClock', 'newest', 'horizon']
  test.each(Object.keys(token))('needs %s in its form', (key) => {
    const { [key as 'v']: _, ...rest } = token
    expect(O.isSome(decodeResumeToken(rest))).toBe(optional.includes(key))
    expect(decodeResumeToken({ ...token, [key]: { no: 'token' } })).toEqual(O.none)
  })

  test.each([
    ['of another version', { v: 2 }],
    ['with a tail that is not whole', { tail: [['1', 2]] }],
    ['with sent rows that are not whole', { recent: [['1', 2]] }],
    ['with a window that is read in another way', { windows: [{ by: 'guess' }] }],
    ['with a bound that is no number', { windows: [{ after: '2026-01-01T00:00:00.000Z' }] }],
  ])('%s is none', (_, change) => {
    expect(decodeResumeToken({ ...token, ...change })).toEqual(O.none)
  })

  test('is valid for a day since it was made, however long ago its read began, for the same start and filters', () => {
    const planned = { now: at + 3_600_000, from: plan.from, filters: plan.scope }
    const old = { ...token, begun: '2026-01-20T00:00:00.000Z' }
    expect(isResumable(planned)(old)).toBe(true)
    const isValid = [86_399_999, 86_400_000, -86_399_999, -86_400_000].map((age) =>
      isResumable({ ...planned, now: at + age })(old),
    )
    expect(isValid).toEqual([true, false, true, false])
    expect(isResumable({ ...planned, from: plan.from + 1000 })(token)).toBe(false)
    expect(isResumable({ ...planned, filters: digestFilters({ sources: [2] }) })(token)).toBe(false)
  })

  test('of streams that share a read is the least advanced one, and none if they belong to several reads', () => {
    const further: ResumeToken = { ...token, pages: 9 }
    expect(leastAdvancedToken([further, token, further])).toEqual(O.some(token))
    expect(leastAdvancedToken([])).toEqual(O.none)
    for (const other of [
      { begun: '2026-01-30T00:00:00.000Z' },
      { cutoff: '2026-01-30T00:00:00.000Z' },
      { from: '2026-01-30T00:00:00.000Z' },
      { filters: 'others' },
    ])
      expect(leastAdvancedToken([token, further, { ...further, ...other }])).toEqual(O.none)
  })

  test('can name the windows that are left, all others being read', () => {
    const windows = [{ unmentioned: true }]
    const left = { windows, reached: at - 1000, certain: at - 3000, limit: 70, now: at }
    const made = createWindowToken(plan.scope, origin, { ...left, recent: [['3', at, 'A3ySFO73TMM']] })
    expect(made).toMatchObject({ from: token.from, filters: plan.scope, tail: [], recent: [['3', at, 'A3ySFO73TMM']] })
    expect(fromResumeToken(made)).toMatchObject({
      ...{ windows, cutoff: at - 1000, newest: at - 1000, rowClock: at - 3000, limit: 70, startedAt: at },
      ...{ pages: 0, offset: 0 },
    })
  })
})

test('a digest of filters does not depend on their order', () => {
  const digest = digestFilters({ sources: [1], additionalFields: ['brand'] })
  expect(digest).toBe(digestFilters({ additionalFields: ['brand'], sources: [1] }))
  expect(digest).not.toBe(digestFilters({ sources: [2], additionalFields: ['brand'] }))
})
