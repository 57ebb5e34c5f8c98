import { describe, expect, test } from 'vitest'
import { certifyPage, maxRereads, type PageEvidence } from '../../../connector/export/scan/pass'
import { allScanRules, newPass, overlapSize, type Pass } from '../../../connector/export/scan/state'

const row = (id: number): { id: string; modifiedTime: number } => ({ id: String(id), modifiedTime: id })
const rows = (from: number, to: number): ReturnType<typeof row>[] =>
  Array.from({ length: to - from }, (_, i) => row(from + i))

/** A page with the rows from `from` up to `to`; the pass has read those below `read`, in this order. */
const evidence = (from: number, to: number, read: number, more: Partial<PageEvidence> = {}): PageEvidence => {
  const page = rows(from, to)
  return {
    rows: page,
    knownPositions: page.map((_, i) => (from + i < read ? from + i : undefined)),
    newRows: page.filter((_, i) => from + i >= read),
    unreadRows: page.filter((_, i) => from + i >= read),
    longestPage: 50,
    overlap: 10,
    isNarrowWindow: false,
    isRefused: false,
    isPrefetched: false,
    orderCheck: { hasUnreadRow: false, insertedRows: 0, isInPlace: false },
    hasRows: read > 0,
    rereads: 0,
    lastLength: read === 0 ? undefined : 50,
    maxPagesWithoutNewRows: 100,
    isRepeatedPage: false,
    isBelowEchoedLimit: false,
    distanceToEnd: 0,
    isAmongSamples: false,
    certainTime: 1000,
    newestTime: 0,
    ...more,
  }
}
const pass = (more: Partial<Pass>): Pass => ({ ...newPass(0), pageCount: 1, ...more })
const verdict = certifyPage(allScanRules)

describe('a pass', () => {
  test('goes on ten rows before the end of a full page that joins the rows read', () => {
    expect(verdict(pass({ offset: 40 }), evidence(40, 90, 50))).toMatchObject({ _tag: 'Next', pass: { offset: 80 } })
  })

  test('rewinds twice as far each time a page does not join, with a larger overlap', () => {
    const once = verdict(pass({ offset: 400 }), evidence(500, 550, 450))
    expect(once).toMatchObject({
      _tag: 'Rewind',
      pass: { offset: 375, overlapDoublings: 1, rewindsInARow: 1, rewinds: 1 },
    })
    const twice = verdict(pass({ offset: 375, rewindsInARow: 1, rewinds: 1 }), evidence(500, 550, 450))
    expect(twice).toMatchObject({ _tag: 'Rewind', pass: { offset: 325, rewindsInARow: 2, rewinds: 2 } })
  })

  test('cannot be certified after too many rewinds, in a changed order, or after 100 pages of later changes', () => {
    expect(verdict(pass({ offset: 400, rewinds: 11 }), evidence(500, 550, 450))._tag).toBe('Uncertified')
    const known = [...rows(40, 50).map((_, i) => 49 - i), ...rows(50, 90).map(() => undefined)]
    expect(verdict(pass({ offset: 40 }), evidence(40, 90, 50, { knownPositions: known }))._tag).toBe('Uncertified')
    expect(verdict(pass({ offset: 40, pagesWithoutNewRows: 99 }), evidence(40, 90, 50, { newRows: [] }))._tag).toBe(
      'Uncertified',
    )
  })

  test('is not over at a short page that brings new rows', () => {
    expect(verdict(pass({ offset: 40 }), evidence(40, 60, 50))).toMatchObject({
      _tag: 'Next',
      pass: { offset: 50, isConfirmingEnd: false },
    })
  })

  test('is over when a short page brings no new rows and the page behind it confirms the end', () => {
    const seemingEnd = verdict(pass({ offset: 50 }), evidence(50, 60, 60))
    expect(seemingEnd).toMatchObject({ _tag: 'Next', pass: { offset: 60, isConfirmingEnd: true } })
    const confirming = pass({ offset: 60, isConfirmingEnd: true })
    expect(verdict(confirming, evidence(60, 60, 60))._tag).toBe('Done')
    expect(verdict(confirming, evidence(60, 62, 60))).toMatchObject({ _tag: 'Rewind', pass: { offset: 50 } })
  })

  test('is over at once if the export is empty', () => {
    expect(verdict(newPass(0), evidence(0, 0, 0))._tag).toBe('Done')
  })

  test('asks for the end once more if rows that were read before are missing there', () => {
    const confirming = pass({ offset: 60, isConfirmingEnd: true, missingRows: 3 })
    expect(verdict(confirming, evidence(60, 60, 60))._tag).toBe('Rewind')
    const rechecked = { ...confirming, hasRecheckedEnd: true }
    expect(verdict(rechecked, evidence(60, 60, 60))).toMatchObject({ _tag: 'Contradiction', pass: { offset: 50 } })
    expect(verdict(rechecked, evidence(60, 60, 60, { rereads: maxRereads }))._tag).toBe('Done')
    expect(verdict({ ...rechecked, isCutShort: true }, evidence(60, 60, 60, { rereads: maxRereads }))._tag).toBe(
      'Contradiction',
    )
  })

  test.each([
    ['as long as the one before, as under a limit lowered untold', 8, 8, 'Rewind'],
    ['longer than the one before', 9, 8, 'Rewind'],
    ['of unknown length before, after a restart', 8, undefined, 'Rewind'],
    ['shorter than the one before', 7, 8, 'Done'],
    ['empty', 0, undefined, 'Done'],
  ])('behind its seeming end finds a page of rows after the cutoff, %s', (_, length, lastLength, tag) => {
    const later = evidence(60, 60 + length, 60, { newRows: [], unreadRows: [], lastLength })
    expect(verdict(pass({ offset: 60, isConfirmingEnd: true }), later)._tag).toBe(tag)
  })

  test.each([
    ['the newest first', true, 'Rewind'],
    ['the oldest first', false, 'Done'],
  ])(
    'is not over at two short pages of rows after the cutoff if they stand at the start: %s',
    (_, isNewestFirst, tag) => {
      const page = isNewestFirst ? rows(14, 27).reverse() : rows(14, 27)
      const later = evidence(14, 27, 14, { rows: page, newRows: [], unreadRows: [], lastLength: 14 })
      expect(verdict(pass({ offset: 14, isConfirmingEnd: true, isNewestFirst }), later)._tag).toBe(tag)
    },
  )

  test('over a narrow window confirms the end as soon as one page is short', () => {
    expect(verdict(newPass(0), evidence(0, 30, 0, { isNarrowWindow: true }))).toMatchObject({
      pass: { offset: 30, isConfirmingEnd: true },
    })
  })
})

test.each([
  [1, 0, 0],
  [2, 0, 1],
  [3, 0, 1],
  [20, 0, 10],
  [50, 0, 10],
  [1000, 0, 20],
  [1000, 1, 40],
  [1000, 9, 500],
])('pages of %i rows, with the overlap doubled %i times, overlap by %i rows', (longestPage, doublings, rows) => {
  expect(overlapSize(longestPage, doublings)).toBe(rows)
})
