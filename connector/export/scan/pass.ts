import { findDirection, type OrderCheck, type RowVersion } from './history'
import type { Pass, ScanRules } from './state'

/** A page, compared with what the pass has read before. */
export type PageEvidence = {
  readonly rows: ReadonlyArray<RowVersion>
  /** The service refuses the offset, so there are no rows. */
  readonly isRefused: boolean
  /** It was asked for ahead, so it may be older than the page before it. */
  readonly isPrefetched: boolean
  /** For each row its position, if this pass has already read the row in this version: the row is a witness. */
  readonly knownPositions: ReadonlyArray<number | undefined>
  /** Rows up to the cutoff that were not sent before. */
  readonly newRows: ReadonlyArray<RowVersion>
  /** Rows up to the cutoff that this pass has not read, whether they were sent before or not. */
  readonly unreadRows: ReadonlyArray<RowVersion>
  /** The length of the longest page so far, this one included. */
  readonly longestPage: number
  /** The longest page had as many rows as the service serves at a time, as far as requests and echoes tell. */
  readonly isLongestPageFull: boolean
  readonly overlap: number
  /** The window is a part of the export, cut so that one page may hold all of it. */
  readonly isNarrowWindow: boolean
  /** What speaks against an unchanged order; not judged where the order does not matter. */
  readonly orderCheck: OrderCheck
  /** Whether rows must be there because some were read before; `unknown`: they probably are. */
  readonly hasRows: boolean | 'unknown'
  /** How many times in a row an end that contradicts what was read has been asked for again. */
  readonly rereads: number
  /** The length of the last page that was accepted; none at the start. */
  readonly lastLength: number | undefined
  /** The page has exactly the rows of the page before, though its offset is another. */
  readonly isRepeatedPage: boolean
  /** The page is shorter than the limit that its echo tells, and no full page had this length. */
  readonly isBelowEchoedLimit: boolean
  /** How many rows that this pass has read stand behind the last row of the page. */
  readonly distanceToEnd: number
  /** Behind the page stand rows that were read before a restart, of which only samples are known: nobody can tell how many are left. */
  readonly isAmongSamples: boolean
  /** Milliseconds. The next run reads rows that are later than this again, so a pass need not wait for them. */
  readonly certainTime: number
  /** The newest modifiedTime read so far that is not later than the cutoff; milliseconds. */
  readonly newestTime: number
  /** After so many pages in a row without new rows the pass is over. */
  readonly maxPagesWithoutNewRows: number
}

export type PageVerdict =
  /** The page does not join the rows read so far: it is thrown away and `pass` asks for another. */
  | { readonly _tag: 'Rewind'; readonly pass: Pass }
  /** The list ends before rows that were read or must be there: it is asked for again after a pause, and then the scan fails. */
  | { readonly _tag: 'Contradiction'; readonly pass: Pass }
  | { readonly _tag: 'Next'; readonly pass: Pass }
  /** The pass is over and nothing spoke against it. `isOffsetIgnored`: the service answers every offset with the same page. */
  | { readonly _tag: 'Done'; readonly isOffsetIgnored?: true }
  /** The pass can no longer be certified. `pass` goes on anyway; none if there is nothing more to ask for. */
  | {
      readonly _tag: 'Uncertified'
      readonly reason: string
      readonly pass: Pass | undefined
      readonly isOffsetIgnored?: true
    }

export type Accepted = Exclude<PageVerdict, { readonly _tag: 'Rewind' | 'Contradiction' }>

/** Six rows come in their old order by chance once in 720 times (6!). A single row always does, so it proves no order. */
const minWitnesses = 6
/** Rows inserted in front can shift a page by exactly its length, so that it comes again. Three times in a row is no chance. */
const maxPageRepeats = 3
const maxLatePages = 4
const maxOverlapDoublings = 10
/** How often an end that contradicts what was read is asked for again. */
export const maxRereads = 5

/** Decides whether a page joins the rows read so far, and what the pass does next. */
export const certifyPage =
  (rules: ScanRules) =>
  (pass: Pass, given: PageEvidence): PageVerdict => {
    if (pass.foundAtStart !== undefined) return checkStart(pass, pass.foundAtStart, given)
    const verdict = certifyNextPage(rules)(pass, given)
    const insertedRows = pass.insertedRows + given.orderCheck.insertedRows
    return rules.witness && verdict._tag === 'Done' && !verdict.isOffsetIgnored && insertedRows > 0
      ? { _tag: 'Next', pass: { ...pass, insertedRows, offset: 0, foundAtStart: 0, isConfirmingEnd: false } }
      : verdict
  }

const certifyNextPage =
  (rules: ScanRules) =>
  (before: Pass, given: PageEvidence): PageVerdict => {
    const pass = { ...before, repeatedPages: given.isRepeatedPage ? before.repeatedPages + 1 : 0 }
    if (pass.repeatedPages >= maxPageRepeats) return repeatedPageVerdict(given)
    const evidence = rules.overlap ? given : { ...given, overlap: 0 }
    const { rows, newRows, overlap } = evidence
    if (rows.length === 0 && pass.offset === 0)
      return given.hasRows === true || (given.hasRows === 'unknown' && given.rereads < maxRereads)
        ? { _tag: 'Contradiction', pass }
        : { _tag: 'Done' }
    // The page at this offset was empty and the page at offset 0 has as many rows: these are all rows.
    const isWhole = pass.offset === 0 && pass.emptyOffset === rows.length
    if (isWhole && (newRows.length === 0 || areUnreadRowsLate(pass, evidence))) return { _tag: 'Done' }

    if (rules.witness && rules.overlap && hasDoubt(pass, evidence))
      return evidence.isPrefetched
        ? { _tag: 'Rewind', pass }
        : uncertifiedVerdict('rows that were not read stand among those that were', pass, evidence)
    const witnesses = evidence.knownPositions.filter((position) => position !== undefined)
    const isInverted = witnesses.some((position, i) => position < (witnesses[i - 1] ?? position))
    const endVerdict = pass.isConfirmingEnd ? checkEnd(pass, evidence, witnesses.length, isInverted) : undefined
    if (endVerdict !== undefined) return endVerdict
    const needsWitness = rules.witness && rules.overlap && pass.offset > 0
    const isJoined = evidence.orderCheck.isInPlace && evidence.distanceToEnd === 0
    if (needsWitness && !isJoined && witnesses.length < Math.max(1, Math.min(minWitnesses, overlap))) {
      if (hasTooManyRewinds(pass))
        return rows.length === 0 && !evidence.isRefused
          ? { _tag: 'Contradiction', pass }
          : uncertifiedVerdict('the pages no longer join', pass, evidence)
      if (overlap === 0 && rows.length > 0)
        return uncertifiedVerdict('the pages are too short to overlap', pass, evidence)
      return { _tag: 'Rewind', pass: rewindPass(pass, evidence) }
    }
    // The list was found to end where this page of known rows ends.
    const isEnd = needsWitness && pass.emptyOffset === pass.offset + rows.length && evidence.distanceToEnd === 0
    if (isEnd && !isInverted && witnesses.length === rows.length) return { _tag: 'Done' }
    return isInverted
      ? uncertifiedVerdict('the order of the rows changes from page to page', pass, evidence)
      : advancePass(pass, evidence)
  }

/** Fewer rows than a page may hold, the same at every offset, are all rows there are. */
const repeatedPageVerdict = ({ isBelowEchoedLimit, knownPositions }: PageEvidence): PageVerdict =>
  isBelowEchoedLimit && knownPositions[0] === 0
    ? { _tag: 'Done', isOffsetIgnored: true }
    : { _tag: 'Uncertified', reason: 'the same rows come again and again', pass: undefined, isOffsetIgnored: true }

/**
 * Rows may come in front of others only where the newest come first. A page comes again if as many rows came in front of it, or if the
 * service ignores the offset: then it comes three times. Otherwise the pass ends with a look for these rows at the start.
 */
const hasDoubt = ({ isNewestFirst }: Pass, { rows, orderCheck, isRepeatedPage }: PageEvidence): boolean =>
  orderCheck.hasUnreadRow ||
  (orderCheck.insertedRows > 0 && !isRepeatedPage && findDirection(isNewestFirst, rows) !== true)

/** Whether inserted rows stand at the start of the list, where the newest come first. One may have gone again, so three quarters will do. */
const checkStart = (pass: Pass, foundBefore: number, { rows, certainTime, newestTime }: PageEvidence): PageVerdict => {
  const firstOlder = rows.findIndex(({ modifiedTime }) => modifiedTime <= Math.max(certainTime, newestTime))
  const foundAtStart = foundBefore + (firstOlder < 0 ? rows.length : firstOlder)
  if (foundAtStart >= pass.insertedRows * 0.75) return { _tag: 'Done' }
  return firstOlder < 0 && rows.length > 0
    ? { _tag: 'Next', pass: { ...pass, offset: pass.offset + rows.length, foundAtStart } }
    : { _tag: 'Uncertified', reason: 'rows that were not read came in front of those that were', pass: undefined }
}

/** Decides on the page behind what seemed to be the last row; `undefined`: treat it as any other page. */
const checkEnd = (
  pass: Pass,
  evidence: PageEvidence,
  witnessCount: number,
  isInverted: boolean,
): PageVerdict | undefined => {
  const { rows, unreadRows, longestPage, lastLength = longestPage, rereads, distanceToEnd, overlap } = evidence
  const isLate = areUnreadRowsLate(pass, evidence)
  const isInPlace = !isInverted && distanceToEnd === 0
  // The service may have lowered its limit untold, and rows after the cutoff may fill pages: only a page shorter than the last one ends the list.
  const isShort = rows.length === 0 || rows.length < Math.min(longestPage, evidence.lastLength ?? 0)
  const isMissing = pass.missingRows > 0
  if (isMissing && pass.insertedRows > 0) return uncertifiedVerdict('the last row cannot be determined', pass, evidence)
  if (isMissing && rows.length === 0 && pass.hasRecheckedEnd && (pass.isCutShort || rereads < maxRereads))
    return { _tag: 'Contradiction', pass: rewindFromEnd(pass, overlap, true) }
  // Where the newest rows come first, a row that was not read stands at the start of the list, whatever its time.
  const isNearStart = findDirection(pass.isNewestFirst, rows) === true && witnessCount < rows.length
  const isEnd = isShort && !isNearStart && (!isMissing || (rows.length === 0 && pass.hasRecheckedEnd))
  if (isInPlace && isEnd && (unreadRows.length === 0 || (isLate && pass.latePages >= maxLatePages)))
    return { _tag: 'Done' }
  if (isInPlace && witnessCount > 0) return undefined
  return hasTooManyRewinds(pass)
    ? uncertifiedVerdict('the last row cannot be determined', pass, evidence)
    : { _tag: 'Rewind', pass: rewindFromEnd(pass, Math.min(overlap, Math.ceil(lastLength / 2)), isLate) }
}

/** Where the newest rows come first, late rows stand at the start of the list and say nothing about its end. */
const areUnreadRowsLate = ({ isNewestFirst }: Pass, { rows, unreadRows, certainTime }: PageEvidence): boolean =>
  unreadRows.length > 0 &&
  unreadRows.every(({ modifiedTime }) => modifiedTime > certainTime) &&
  findDirection(isNewestFirst, rows) !== true

const followsCutPage = (
  { pageCount }: Pass,
  { lastLength, longestPage, unreadRows, certainTime }: PageEvidence,
): boolean =>
  pageCount > 0 &&
  lastLength !== undefined &&
  lastLength < longestPage &&
  unreadRows.some(({ modifiedTime }) => modifiedTime <= certainTime)

const hasTooManyRewinds = ({ rewinds, pageCount }: Pass): boolean => rewinds >= 10 + pageCount / 10

/** Accepts the page all the same, so that its rows are sent before the window is read in another way. */
const uncertifiedVerdict = (reason: string, pass: Pass, evidence: PageEvidence): PageVerdict => {
  const next = advancePass(pass, evidence)
  return { _tag: 'Uncertified', reason, pass: next._tag === 'Done' ? undefined : next.pass }
}

/** Goes back half a page, twice as far with each rewind in a row, and doubles the overlap. */
const rewindPass = (pass: Pass, { rows, longestPage }: PageEvidence): Pass => ({
  ...pass,
  offset: Math.max(0, pass.offset - Math.max(1, Math.floor(longestPage / 2)) * 2 ** pass.rewindsInARow),
  overlapDoublings: Math.min(maxOverlapDoublings, pass.overlapDoublings + 1),
  pagesSinceOverlapChange: 0,
  rewindsInARow: pass.rewindsInARow + 1,
  rewinds: pass.rewinds + 1,
  fullPagesInARow: 0,
  isConfirmingEnd: false,
  emptyOffset: rows.length === 0 ? pass.offset : undefined,
})

/** It was not the end: goes back by one overlap and reads on. */
const rewindFromEnd = (pass: Pass, overlap: number, isLate: boolean): Pass => ({
  ...pass,
  offset: Math.max(0, pass.offset - overlap),
  rewinds: pass.rewinds + (isLate ? 0 : 1),
  hasRecheckedEnd: pass.missingRows > 0,
  latePages: pass.latePages + (isLate ? 1 : 0),
  isConfirmingEnd: false,
})

/**
 * Accepts the page and chooses the next offset. A short page without new rows may be the last, so the page behind it must confirm that.
 * If the service cut it and a row in front of it is deleted or changes, the page behind it has no row to send all the same. So known rows
 * must follow that page, as any other without witnesses, where this is likely: behind a full page, so that the short page alone speaks
 * for an end, and where the service has already cut pages and rows have changed places.
 */
const advancePass = (pass: Pass, evidence: PageEvidence): Accepted => {
  const { rows, newRows, longestPage, overlap, distanceToEnd, isNarrowWindow, maxPagesWithoutNewRows } = evidence
  const isShort = rows.length < longestPage
  const isLate = isShort && areUnreadRowsLate(pass, evidence)
  const hasCutPages = pass.hasCutPages || followsCutPage(pass, evidence)
  const isEndLikely = pass.fullPagesInARow <= (evidence.isLongestPageFull ? 0 : 1) && !(hasCutPages && pass.rewinds > 0)
  const isStable = pass.pagesSinceOverlapChange >= 15
  const accepted: Pass = {
    ...pass,
    overlapDoublings: isStable ? Math.max(0, pass.overlapDoublings - 1) : pass.overlapDoublings,
    pagesSinceOverlapChange: isStable ? 0 : pass.pagesSinceOverlapChange + 1,
    rewindsInARow: 0,
    pageCount: pass.pageCount + 1,
    fullPagesInARow: isShort ? 0 : pass.fullPagesInARow + 1,
    pagesWithoutNewRows: newRows.length === 0 ? pass.pagesWithoutNewRows + 1 : 0,
    latePages: isLate ? pass.latePages + 1 : isShort ? pass.latePages : 0,
    isConfirmingEnd: false,
    hasRecheckedEnd: pass.hasRecheckedEnd && newRows.length === 0,
    emptyOffset: undefined,
    isNewestFirst: findDirection(pass.isNewestFirst, rows),
    insertedRows: pass.insertedRows + evidence.orderCheck.insertedRows,
    hasCutPages,
    isCutShort: newRows.length === 0 && (pass.isCutShort || (distanceToEnd > 0 && pass.fullPagesInARow > 0)),
  }
  const endOffset = pass.offset + rows.length
  if (isLate && accepted.latePages >= maxLatePages) return { _tag: 'Done' }
  if (isShort && (newRows.length === 0 || (isNarrowWindow && pass.offset === 0)))
    return {
      _tag: 'Next',
      pass: {
        ...accepted,
        offset: endOffset,
        isConfirmingEnd: isEndLikely || distanceToEnd > 0 || hasTooManyRewinds(pass),
        missingRows: distanceToEnd,
      },
    }
  const skipped = evidence.isAmongSamples ? 0 : distanceToEnd
  const idleReason = `${maxPagesWithoutNewRows} pages in a row brought nothing but later changes`
  return accepted.pagesWithoutNewRows >= maxPagesWithoutNewRows
    ? { _tag: 'Uncertified', reason: idleReason, pass: undefined }
    : { _tag: 'Next', pass: { ...accepted, offset: Math.max(0, endOffset - overlap + skipped) } }
}
