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
    isLongestPageFull: true,
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

  test('is over behind a full page, or where pages were cut and rewound, when known rows follow the empty page', () => {
    const fullPage = pass({ offset: 50, fullPagesInARow: 1 })
    const atEnd = verdict(fullPage, evidence(50, 60, 60))
    expect(atEnd).toMatchObject({ _tag: 'Next', pass: { offset: 60, isConfirmingEnd: false } })
    const empty = verdict(pass({ offset: 60 }), evidence(60, 60, 60))
    expect(empty).toMatchObject({ _tag: 'Rewind', pass: { offset: 35, emptyOffset: 60 } })
    const rewound = pass({ offset: 35, emptyOffset: 60 })
    expect(verdict(rewound, evidence(35, 60, 60))._tag).toBe('Done')
    expect(verdict(rewound, evidence(36, 61, 60))).toMatchObject({ _tag: 'Next', pass: { offset: 50 } })
    expect(verdict(pass({ offset: 50, rewinds: 1, hasCutPages: true }), evidence(50, 60, 60))).toMatchObject({
      pass: { offset: 60, isConfirmingEnd: false },
    })
    for (const more of [{ rewinds: 1 }, { hasCutPages: true }])
      expect(verdict(pass({ offset: 50, ...more }), evidence(50, 60, 60))).toMatchObject({
        pass: { offset: 60, isConfirmingEnd: true },
      })
    expect(verdict({ ...fullPage, rewinds: 11 }, evidence(50, 60, 60))).toMatchObject({
      pass: { offset: 60, isConfirmingEnd: true },
    })
    expect(verdict(fullPage, evidence(50, 60, 60, { distanceToEnd: 1 }))).toMatchObject({
      pass: { offset: 60, isConfirmingEnd: true },
    })
  })

  test.each([
    [1, true, false],
    [1, false, true],
    [2, false, false],
  ])(
    'takes %i pages of one length, full by the limit: %s, for cut by the limit',
    (fullPagesInARow, isLongestPageFull, isConfirmingEnd) => {
      expect(verdict(pass({ offset: 50, fullPagesInARow }), evidence(50, 60, 60, { isLongestPageFull }))).toMatchObject(
        {
          pass: { offset: 60, isConfirmingEnd },
        },
      )
    },
  )

  test('knows that the service cuts pages once rows that were there follow a short one', () => {
    const cut = (more: Partial<PageEvidence>, pageCount = 1): unknown => {
      const found = verdict(pass({ offset: 40, pageCount }), evidence(40, 90, 50, { lastLength: 40, ...more }))
      return 'pass' in found && found.pass?.hasCutPages
    }
    expect(cut({})).toBe(true)
    expect(cut({ lastLength: 50 })).toBe(false)
    expect(cut({ certainTime: 49 })).toBe(false)
    expect(cut({ certainTime: 50 })).toBe(true)
    expect(cut({}, 0)).toBe(false)
    expect(cut({ unreadRows: [] })).toBe(false)
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

describe('what a pass knows after a page', () => {
  const busy = pass({
    ...{
      offset: 40,
      rewindsInARow: 2,
      rewinds: 3,
      pagesSinceOverlapChange: 4,
      overlapDoublings: 2,
      fullPagesInARow: 3,
    },
    ...{
      pagesWithoutNewRows: 5,
      latePages: 2,
      hasRecheckedEnd: true,
      emptyOffset: 7,
      isCutShort: true,
      insertedRows: 1,
    },
  })
  const afterFullPage: Pass = {
    ...busy,
    ...{ offset: 80, rewindsInARow: 0, pagesSinceOverlapChange: 5, fullPagesInARow: 4, pagesWithoutNewRows: 0 },
    ...{ pageCount: 2, latePages: 0, hasRecheckedEnd: false, emptyOffset: undefined, isCutShort: false },
    isNewestFirst: false,
  }
  const inserted = { hasUnreadRow: false, insertedRows: 2, isInPlace: false }
  const descending = (page: PageEvidence): PageEvidence => ({ ...page, rows: page.rows.map((_, i) => row(900 - i)) })
  const late = { unreadRows: [row(1001)] }

  test.each<[string, Partial<Pass>, PageEvidence, Partial<Pass>]>([
    ['a full page', {}, evidence(40, 90, 50), {}],
    ['a page in front of rows that were read', {}, evidence(40, 90, 50, { distanceToEnd: 5 }), { offset: 85 }],
    [
      'a page in front of an unknown number of rows',
      {},
      evidence(40, 90, 50, { distanceToEnd: 5, isAmongSamples: true }),
      {},
    ],
    [
      'a page shorter than the overlap',
      {},
      evidence(40, 47, 50, { overlap: 60, newRows: rows(0, 1) }),
      { offset: 0, fullPagesInARow: 0, latePages: 2 },
    ],
    ['a full page of late rows', {}, evidence(40, 90, 50, late), {}],
    ['a short page with new rows', {}, evidence(40, 60, 50), { offset: 50, fullPagesInARow: 0, latePages: 2 }],
    [
      'a short page of late rows',
      { latePages: 1 },
      evidence(40, 60, 50, late),
      { offset: 50, fullPagesInARow: 0, latePages: 2 },
    ],
    [
      'a page without new rows',
      { isCutShort: false },
      evidence(40, 90, 90),
      { pagesWithoutNewRows: 6, hasRecheckedEnd: true },
    ],
    [
      'a page without new rows behind a cut',
      {},
      evidence(40, 90, 90),
      { pagesWithoutNewRows: 6, hasRecheckedEnd: true, isCutShort: true },
    ],
    [
      'a page without new rows, in front of others, after full pages',
      { isCutShort: false },
      evidence(40, 90, 90, { distanceToEnd: 5 }),
      { offset: 85, pagesWithoutNewRows: 6, hasRecheckedEnd: true, isCutShort: true },
    ],
    [
      'a page without new rows, in front of others, after short pages',
      { isCutShort: false, fullPagesInARow: 0 },
      evidence(40, 90, 90, { distanceToEnd: 5 }),
      { offset: 85, fullPagesInARow: 1, pagesWithoutNewRows: 6, hasRecheckedEnd: true },
    ],
    [
      'a short page without new rows, the last one as it seems',
      {},
      evidence(40, 60, 60, { distanceToEnd: 3 }),
      {
        ...{ offset: 60, isConfirmingEnd: true, missingRows: 3, fullPagesInARow: 0, pagesWithoutNewRows: 6 },
        ...{ latePages: 2, hasRecheckedEnd: true, isCutShort: true },
      },
    ],
    [
      'the 15th page since the overlap changed',
      { pagesSinceOverlapChange: 14 },
      evidence(40, 90, 50),
      { pagesSinceOverlapChange: 15 },
    ],
    [
      'the page after the 15th, with half the overlap',
      { pagesSinceOverlapChange: 15 },
      evidence(40, 90, 50),
      { pagesSinceOverlapChange: 0, overlapDoublings: 1 },
    ],
    [
      'the page after the 15th, with the smallest overlap',
      { pagesSinceOverlapChange: 15, overlapDoublings: 0 },
      evidence(40, 90, 50),
      { pagesSinceOverlapChange: 0, overlapDoublings: 0 },
    ],
    [
      'a page of the newest rows first, in front of which others came',
      {},
      descending(evidence(40, 90, 50, { orderCheck: inserted })),
      { isNewestFirst: true, insertedRows: 3 },
    ],
    [
      'a short page of a narrow window, which is not its first',
      {},
      evidence(40, 60, 50, { isNarrowWindow: true }),
      { offset: 50, fullPagesInARow: 0, latePages: 2 },
    ],
    [
      'the 99th page without new rows',
      { pagesWithoutNewRows: 98, isCutShort: false },
      evidence(40, 90, 90),
      { pagesWithoutNewRows: 99, hasRecheckedEnd: true },
    ],
  ])('%s', (_, before, page, after) => {
    expect(verdict({ ...busy, ...before }, page)).toEqual({ _tag: 'Next', pass: { ...afterFullPage, ...after } })
  })

  test('counts how often the same page comes again', () => {
    const again = evidence(40, 90, 50, { isRepeatedPage: true })
    expect(verdict(pass({ offset: 40, repeatedPages: 1 }), again)).toMatchObject({ pass: { repeatedPages: 2 } })
    expect(verdict(pass({ offset: 40, repeatedPages: 2 }), evidence(40, 90, 50))).toMatchObject({
      pass: { repeatedPages: 0 },
    })
  })

  test('is that it is over after four short pages in a row of late rows', () => {
    const short = evidence(40, 60, 50, late)
    expect(verdict({ ...busy, insertedRows: 0, latePages: 3 }, short)).toEqual({ _tag: 'Done' })
    expect(verdict({ ...busy, insertedRows: 0, latePages: 3 }, evidence(40, 60, 50))._tag).toBe('Next')
    expect(verdict({ ...busy, insertedRows: 0, latePages: 3 }, { ...short, certainTime: 1001 })._tag).toBe('Next')
    expect(verdict({ ...busy, insertedRows: 0, latePages: 3 }, descending(short))._tag).toBe('Next')
    expect(
      verdict({ ...busy, insertedRows: 0, latePages: 3 }, { ...short, unreadRows: [row(1001), row(1000)] })._tag,
    ).toBe('Next')
  })

  test('rewound, goes back by half a page for each rewind in a row, and by one row at least', () => {
    const lost = evidence(500, 550, 450)
    expect(verdict({ ...busy, offset: 400, rewindsInARow: 0 }, lost)).toEqual({
      _tag: 'Rewind',
      pass: {
        ...busy,
        ...{ offset: 375, overlapDoublings: 3, pagesSinceOverlapChange: 0, rewindsInARow: 1, rewinds: 4 },
        ...{ fullPagesInARow: 0, emptyOffset: undefined },
      },
    })
    const offsetOf = (before: Partial<Pass>, page: PageEvidence) => {
      const { _tag, ...given } = verdict({ ...busy, ...before }, page)
      return 'pass' in given
        ? [_tag, given.pass?.offset, given.pass?.overlapDoublings, given.pass?.emptyOffset]
        : [_tag]
    }
    expect(offsetOf({ offset: 10, rewindsInARow: 0 }, lost)).toEqual(['Rewind', 0, 3, undefined])
    expect(offsetOf({ offset: 10, overlapDoublings: 10 }, lost)).toEqual(['Rewind', 0, 10, undefined])
    const single = { longestPage: 1, overlap: 1 }
    expect(offsetOf({ offset: 10, rewindsInARow: 1 }, { ...lost, ...single })).toEqual(['Rewind', 8, 3, undefined])
    expect(offsetOf({ offset: 400, rewindsInARow: 0 }, evidence(0, 0, 50))).toEqual(['Rewind', 375, 3, 400])
  })
})

describe('a page joins the rows that were read', () => {
  const inPlace = { hasUnreadRow: false, insertedRows: 0, isInPlace: true }
  const known = (count: number, more: Partial<PageEvidence> = {}) => evidence(100 - count, 150 - count, 100, more)
  test.each<[string, Partial<Pass>, PageEvidence, string]>([
    ['by six of them', {}, known(6), 'Next'],
    ['not by five', {}, known(5), 'Rewind'],
    ['by five if their places are the same', {}, known(5, { orderCheck: inPlace }), 'Next'],
    ['not by five in their places if others follow', {}, known(5, { orderCheck: inPlace, distanceToEnd: 1 }), 'Rewind'],
    ['by as many as the overlap has', {}, known(2, { overlap: 2 }), 'Next'],
    ['not by fewer than the overlap has', {}, known(1, { overlap: 2 }), 'Rewind'],
    ['not without one, if a page has one row', {}, known(0, { overlap: 0 }), 'Uncertified'],
    ['not if it is empty', {}, evidence(0, 0, 50, { overlap: 0 }), 'Rewind'],
    ['whatever it has, at the start', { offset: 0 }, known(0), 'Next'],
    ['not in another order', {}, known(8, { knownPositions: [9, 8, 7, 6, 5, 4, 3, 2] }), 'Uncertified'],
    [
      'in their order with others among them',
      {},
      known(8, { knownPositions: [2, 3, undefined, 4, 4, 5, 6, 7] }),
      'Next',
    ],
    ['not after ten rewinds', { rewinds: 10, pageCount: 0 }, known(0), 'Uncertified'],
    ['not yet after nine rewinds', { rewinds: 9, pageCount: 0 }, known(0), 'Rewind'],
    ['not yet after ten rewinds of many pages', { rewinds: 10, pageCount: 10 }, known(0), 'Rewind'],
    ['never if it is empty again and again', { rewinds: 11 }, evidence(0, 0, 50), 'Contradiction'],
    ['never if its offset is refused', { rewinds: 11 }, evidence(0, 0, 50, { isRefused: true }), 'Uncertified'],
  ])('%s', (_, before, page, tag) => {
    expect(verdict(pass({ offset: 90, ...before }), page)._tag).toBe(tag)
  })

  test.each<[string, Partial<Pass>, PageEvidence, string | undefined]>([
    ['the pages no longer join', { rewinds: 11 }, known(0), undefined],
    ['the pages are too short to overlap', {}, known(0, { overlap: 0 }), undefined],
    [
      'the order of the rows changes from page to page',
      {},
      known(6, { knownPositions: [5, 4, 3, 2, 1, 0] }),
      undefined,
    ],
    [
      'rows that were not read stand among those that were',
      {},
      known(6, { orderCheck: { ...inPlace, hasUnreadRow: true } }),
      undefined,
    ],
    [
      'rows that were not read stand among those that were',
      {},
      known(6, { orderCheck: { ...inPlace, insertedRows: 1 } }),
      undefined,
    ],
    ['100 pages in a row brought nothing but later changes', { pagesWithoutNewRows: 99 }, known(50), undefined],
    [
      'the last row cannot be determined',
      { isConfirmingEnd: true, missingRows: 1, insertedRows: 1 },
      known(6),
      undefined,
    ],
    ['the last row cannot be determined', { isConfirmingEnd: true, rewinds: 11 }, known(0), undefined],
  ])('or the pass cannot be certified, because %s', (reason, before, page) => {
    expect(verdict(pass({ offset: 90, ...before }), page)).toMatchObject({ _tag: 'Uncertified', reason })
  })

  test('and goes on although it cannot be certified, unless there is nothing more to ask for', () => {
    const inverted = known(6, { knownPositions: [5, 4, 3, 2, 1, 0] })
    expect(verdict(pass({ offset: 90 }), inverted)).toMatchObject({ pass: { offset: 130, pageCount: 2 } })
    const ended = known(6, { knownPositions: [5, 4, 3, 2, 1, 0], longestPage: 60, unreadRows: [row(1001)] })
    expect(verdict(pass({ offset: 90, latePages: 3 }), ended)).toMatchObject({ pass: undefined })
    expect(verdict(pass({ offset: 90, pagesWithoutNewRows: 99 }), known(50))).toMatchObject({ pass: undefined })
  })

  test.each([
    ['an unread row', { ...inPlace, hasUnreadRow: true }],
    ['rows that came in front', { ...inPlace, insertedRows: 1 }],
  ])('is asked for again if it was prefetched and has %s', (_, orderCheck) => {
    const before = pass({ offset: 90, repeatedPages: 2 })
    expect(verdict(before, known(6, { orderCheck, isPrefetched: true }))).toEqual({
      _tag: 'Rewind',
      pass: { ...before, repeatedPages: 0 },
    })
  })

  test('whatever its order, without the rule that looks for witnesses or the one that overlaps', () => {
    const doubtful = known(0, { orderCheck: { ...inPlace, isInPlace: false, hasUnreadRow: true } })
    expect(certifyPage({ ...allScanRules, witness: false })(pass({ offset: 90 }), doubtful)).toMatchObject({
      _tag: 'Next',
      pass: { offset: 130 },
    })
    expect(certifyPage({ ...allScanRules, overlap: false })(pass({ offset: 90 }), doubtful)).toMatchObject({
      _tag: 'Next',
      pass: { offset: 140 },
    })
  })
})

describe('the same rows at every offset', () => {
  const again = evidence(0, 20, 20, { isRepeatedPage: true, isBelowEchoedLimit: true })
  test('are all rows there are if a page may hold more and they begin with the first', () => {
    const third = pass({ offset: 40, repeatedPages: 2 })
    expect(verdict(third, again)).toEqual({ _tag: 'Done', isOffsetIgnored: true })
    const uncertified = { _tag: 'Uncertified', reason: 'the same rows come again and again', isOffsetIgnored: true }
    expect(verdict(third, { ...again, isBelowEchoedLimit: false })).toEqual({ ...uncertified, pass: undefined })
    expect(verdict(third, { ...again, knownPositions: [3] })).toEqual({ ...uncertified, pass: undefined })
    expect(verdict(pass({ offset: 40, repeatedPages: 1 }), again)).not.toMatchObject({ isOffsetIgnored: true })
  })
  test('need no look at the start', () => {
    const orderCheck = { hasUnreadRow: false, insertedRows: 4, isInPlace: false }
    expect(verdict(pass({ offset: 40, repeatedPages: 2 }), { ...again, orderCheck })._tag).toBe('Done')
  })
})

describe('an empty first page', () => {
  test.each<[string, Partial<PageEvidence>, string]>([
    ['is the end', { hasRows: false }, 'Done'],
    ['contradicts rows that were read', { hasRows: true }, 'Contradiction'],
    ['contradicts them however often', { hasRows: true, rereads: maxRereads }, 'Contradiction'],
    ['contradicts rows that are probably there', { hasRows: 'unknown', rereads: maxRereads - 1 }, 'Contradiction'],
    ['is the end after five more', { hasRows: 'unknown', rereads: maxRereads }, 'Done'],
  ])('%s', (_, more, tag) => {
    expect(verdict(newPass(0), evidence(0, 0, 0, more))._tag).toBe(tag)
  })
})

describe('a page at the start with as many rows as the offset of the empty one', () => {
  const back = pass({ offset: 0, emptyOffset: 20 })
  test.each<[string, Partial<Pass>, PageEvidence, string]>([
    ['has all rows', {}, evidence(0, 20, 20), 'Done'],
    ['has all rows if the new ones are late', {}, evidence(0, 20, 0, { unreadRows: [row(1001)] }), 'Done'],
    ['is not all if some are new', {}, evidence(0, 20, 10), 'Next'],
    ['is not all at another offset', { offset: 20 }, evidence(0, 20, 20), 'Next'],
    ['is not all with another number of rows', { emptyOffset: 19 }, evidence(0, 20, 20), 'Next'],
  ])('%s', (_, before, page, tag) => {
    expect(verdict({ ...back, ...before }, page)._tag).toBe(tag)
  })
})

describe('a look at the start of the list for the rows that came in front', () => {
  const looking = pass({ offset: 0, foundAtStart: 0, insertedRows: 8 })
  const younger = (count: number, more: Partial<PageEvidence> = {}) =>
    evidence(0, 10, 10, {
      rows: rows(0, 10).map((one, i) => ({ ...one, modifiedTime: i < count ? 1001 : 1000 })),
      ...more,
    })
  const notFound = {
    _tag: 'Uncertified',
    reason: 'rows that were not read came in front of those that were',
    pass: undefined,
  }

  test('follows the end of a pass in which rows came in front', () => {
    const ending = pass({ offset: 60, isConfirmingEnd: true, insertedRows: 3, isNewestFirst: true })
    const orderCheck = { hasUnreadRow: false, insertedRows: 2, isInPlace: false }
    expect(verdict(ending, evidence(60, 60, 60, { orderCheck }))).toEqual({
      _tag: 'Next',
      pass: { ...ending, insertedRows: 5, offset: 0, foundAtStart: 0, isConfirmingEnd: false },
    })
    expect(verdict({ ...ending, insertedRows: 0 }, evidence(60, 60, 60))._tag).toBe('Done')
    const withoutWitness = certifyPage({ ...allScanRules, witness: false })
    expect(withoutWitness(ending, evidence(60, 60, 60))._tag).toBe('Done')
  })

  test.each<[string, Partial<Pass>, PageEvidence, object]>([
    ['finds three quarters of them', {}, younger(6), { _tag: 'Done' }],
    ['finds too few', {}, younger(5), notFound],
    ['finds the rest', { foundAtStart: 1 }, younger(5), { _tag: 'Done' }],
    [
      'goes on behind a page of later rows',
      { insertedRows: 80, foundAtStart: 5, offset: 5 },
      younger(10),
      { _tag: 'Next', pass: { ...looking, insertedRows: 80, offset: 15, foundAtStart: 15 } },
    ],
    ['ends behind the last row', {}, evidence(0, 0, 0), notFound],
    ['counts rows later than any that was read', {}, younger(10, { newestTime: 1001 }), notFound],
    ['counts rows later than what is certain', {}, younger(10, { newestTime: 1000, certainTime: 0 }), { _tag: 'Done' }],
  ])('%s', (_, before, page, expected) => {
    expect(verdict({ ...looking, ...before }, page)).toEqual(expected)
  })
})

describe('the page behind the last row', () => {
  const confirming = pass({ offset: 60, isConfirmingEnd: true, overlapDoublings: 1 })
  const missing = { missingRows: 3 }
  const lateRow = { unreadRows: [row(1001)], newRows: [row(1001)] }
  test.each<[string, Partial<Pass>, PageEvidence, string]>([
    ['is empty', {}, evidence(60, 60, 60), 'Done'],
    ['has rows that were read, in their order, and no others', {}, evidence(50, 58, 60, { lastLength: 9 }), 'Done'],
    [
      'has rows that were read in another order',
      {},
      evidence(50, 58, 60, { lastLength: 9, knownPositions: [9, 8, 7, 6, 5, 4, 3, 2] }),
      'Rewind',
    ],
    [
      'has rows that were read and others follow',
      {},
      evidence(50, 58, 60, { lastLength: 9, distanceToEnd: 2 }),
      'Rewind',
    ],
    ['has rows that were read and is as long as the last', {}, evidence(50, 58, 60, { lastLength: 8 }), 'Next'],
    ['is as long as the longest', {}, evidence(50, 58, 60, { lastLength: 9, longestPage: 8 }), 'Next'],
    ['has an unread row', {}, evidence(53, 61, 60), 'Next'],
    ['has an unread late row', {}, evidence(53, 61, 60, { ...lateRow, lastLength: 9 }), 'Next'],
    ['has unread late rows for the fifth time', { latePages: 4 }, evidence(60, 61, 60, lateRow), 'Done'],
    ['has unread late rows for the fourth time', { latePages: 3 }, evidence(60, 61, 60, lateRow), 'Rewind'],
    ['has unread rows after late ones', { latePages: 4 }, evidence(60, 61, 60), 'Rewind'],
    ['is empty but rows are missing', missing, evidence(60, 60, 60), 'Rewind'],
    [
      'is empty again and rows are missing',
      { ...missing, hasRecheckedEnd: true },
      evidence(60, 60, 60),
      'Contradiction',
    ],
    [
      'has rows where some are missing',
      { ...missing, hasRecheckedEnd: true },
      evidence(50, 58, 60, { lastLength: 9 }),
      'Next',
    ],
    ['is empty after too many rewinds', { ...missing, rewinds: 11 }, evidence(60, 60, 60), 'Uncertified'],
    [
      'has new rows first',
      { isNewestFirst: true },
      evidence(60, 60, 60, { rows: [row(9), row(8)], unreadRows: [], newRows: [], lastLength: 9 }),
      'Rewind',
    ],
    [
      'has rows that were read, the newest first',
      { isNewestFirst: true },
      evidence(58, 60, 60, { rows: [row(9), row(8)], lastLength: 9 }),
      'Done',
    ],
  ])('%s', (_, before, page, tag) => {
    expect(verdict({ ...confirming, ...before }, page)._tag).toBe(tag)
  })

  test('is asked for again an overlap before', () => {
    const next = { ...confirming, offset: 50, isConfirmingEnd: false }
    expect(verdict(confirming, evidence(60, 62, 60))).toEqual({ _tag: 'Rewind', pass: { ...next, rewinds: 1 } })
    expect(verdict(confirming, evidence(60, 62, 60, { lastLength: 5 }))).toMatchObject({ pass: { offset: 57 } })
    expect(verdict(confirming, evidence(60, 62, 60, { lastLength: undefined, longestPage: 8 }))).toMatchObject({
      pass: { offset: 56 },
    })
    expect(verdict({ ...confirming, offset: 4 }, evidence(60, 62, 60))).toMatchObject({ pass: { offset: 0 } })
    expect(verdict(confirming, evidence(60, 62, 60, lateRow))).toEqual({
      _tag: 'Rewind',
      pass: { ...next, latePages: 1 },
    })
    expect(verdict({ ...confirming, ...missing }, evidence(60, 60, 60))).toEqual({
      _tag: 'Rewind',
      pass: { ...next, ...missing, rewinds: 1, hasRecheckedEnd: true },
    })
    const rechecked = { ...confirming, ...missing, hasRecheckedEnd: true }
    expect(verdict(rechecked, evidence(60, 60, 60))).toEqual({
      _tag: 'Contradiction',
      pass: { ...rechecked, offset: 50, isConfirmingEnd: false, latePages: 1 },
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
