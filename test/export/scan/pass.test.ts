import { describe, expect, test } from 'vitest'
import {
  allScanRules,
  certifyPage,
  newPass,
  overlapSize,
  type PageEvidence,
  type Pass,
} from '../../../connector/export/scan/pass'

const row = (id: number): { id: string; modifiedTime: number } => ({ id: String(id), modifiedTime: id })
const rows = (from: number, to: number): ReturnType<typeof row>[] =>
  Array.from({ length: to - from }, (_, i) => row(from + i))

/** A page of rows, those below `read` known in their order. */
const evidence = (from: number, to: number, read: number, more: Partial<PageEvidence> = {}): PageEvidence => {
  const page = rows(from, to)
  return {
    rows: page,
    knownPositions: page.map((_, i) => (from + i < read ? from + i : undefined)),
    newRows: page.filter((_, i) => from + i >= read),
    longestPage: 50,
    overlap: 10,
    isPartWindow: false,
    isUncertifiable: false,
    isRepeatedPage: false,
    isBelowLimit: false,
    distanceToEnd: 0,
    certainTime: 1000,
    ...more,
  }
}
const pass = (more: Partial<Pass>): Pass => ({ ...newPass(0), pages: 1, ...more })
const verdict = certifyPage(allScanRules)

describe('a pass', () => {
  test('goes on where a full page joins on, ten rows back', () => {
    expect(verdict(pass({ offset: 40 }), evidence(40, 90, 50))).toMatchObject({ _tag: 'Next', pass: { offset: 80 } })
  })

  test('steps back further each time no page joins on, with a larger overlap', () => {
    const once = verdict(pass({ offset: 400 }), evidence(500, 550, 450))
    expect(once).toMatchObject({ _tag: 'Back', pass: { offset: 375, growth: 1, lost: 1, losses: 1 } })
    const twice = verdict(pass({ offset: 375, lost: 1, losses: 1 }), evidence(500, 550, 450))
    expect(twice).toMatchObject({ _tag: 'Back', pass: { offset: 325, lost: 2, losses: 2 } })
  })

  test('is broken after ten losses, by a changed order, or by 100 pages of later changes', () => {
    expect(verdict(pass({ offset: 400, losses: 11 }), evidence(500, 550, 450))._tag).toBe('Broken')
    const known = [...rows(40, 50).map((_, i) => 49 - i), ...rows(50, 90).map(() => undefined)]
    expect(verdict(pass({ offset: 40 }), evidence(40, 90, 50, { knownPositions: known }))._tag).toBe('Broken')
    expect(verdict(pass({ offset: 40, barren: 99 }), evidence(40, 90, 50, { newRows: [] }))._tag).toBe('Broken')
  })

  test('is not over at a short page that brings new rows', () => {
    expect(verdict(pass({ offset: 40 }), evidence(40, 60, 50))).toMatchObject({
      _tag: 'Next',
      pass: { offset: 50, confirming: false },
    })
  })

  test('is over where a short page brings none and nothing stands behind it', () => {
    const candidate = verdict(pass({ offset: 50 }), evidence(50, 60, 60))
    expect(candidate).toMatchObject({ _tag: 'Next', pass: { offset: 60, confirming: true } })
    const confirming = pass({ offset: 60, confirming: true })
    expect(verdict(confirming, evidence(60, 60, 60))._tag).toBe('Done')
    expect(verdict(confirming, evidence(60, 62, 60))).toMatchObject({ _tag: 'Back', pass: { offset: 50 } })
  })

  test('is over at once where the export is empty', () => {
    expect(verdict(newPass(0), evidence(0, 0, 0))._tag).toBe('Done')
  })

  test('asks once more where rows read before are missing at the end', () => {
    const confirming = pass({ offset: 60, confirming: true, gap: 3 })
    expect(verdict(confirming, evidence(60, 60, 60))._tag).toBe('Back')
    expect(verdict({ ...confirming, doubted: true }, evidence(60, 60, 60))._tag).toBe('Done')
  })

  test('over a part that a page may hold is over where one does', () => {
    expect(verdict(newPass(0), evidence(0, 30, 0, { isPartWindow: true }))).toMatchObject({
      pass: { offset: 30, confirming: true },
    })
  })
})

test('a pass that cannot be certified leaves a short page, though its rows look new', () => {
  expect(verdict(pass({ offset: 40 }), evidence(40, 60, 50, { isUncertifiable: true }))).toMatchObject({
    pass: { offset: 60, confirming: true },
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
])('pages of %i rows, after %i losses, overlap by %i', (longest, growth, rows) => {
  expect(overlapSize(longest, growth)).toBe(rows)
})
