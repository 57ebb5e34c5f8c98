import type { RowVersion } from './history'

/** The safeguards of a pass; only a test takes one away. */
export type ScanRules = { readonly overlap: boolean; readonly witness: boolean; readonly halving: boolean }

export const allScanRules: ScanRules = { overlap: true, witness: true, halving: true }

/** Where a pass over one window stands. */
export type Pass = {
  /** The `modifiedTimeFrom` it asks with; milliseconds. */
  readonly from: number
  /** Of the page to be asked for next. */
  readonly offset: number
  /** How often the overlap has been doubled. */
  readonly growth: number
  /** Pages with a witness since the overlap changed. */
  readonly good: number
  /** Pages without a witness: in a row, and all in all. */
  readonly lost: number
  readonly losses: number
  readonly pages: number
  /** Pages in a row as long as any: the next one is worth asking for ahead. */
  readonly full: number
  /** Pages in a row without a new row up to the signpost. */
  readonly barren: number
  /** Short pages in a row whose new rows are all too late to matter. */
  readonly late: number
  /** The page asked for stands behind what seems to be the end. */
  readonly confirming: boolean
  /** Rows read before that were missing there, and whether they were found missing twice. */
  readonly gap: number
  readonly doubted: boolean
  /** How often in a row the very rows of the page before came at a further offset. */
  readonly repeats: number
  /** The offset of an empty page from which we stepped back. */
  readonly emptyAt: number | undefined
}

export const newPass = (from: number): Pass => ({
  from,
  offset: 0,
  growth: 0,
  good: 0,
  lost: 0,
  losses: 0,
  pages: 0,
  full: 0,
  barren: 0,
  late: 0,
  confirming: false,
  gap: 0,
  doubted: false,
  repeats: 0,
  emptyAt: undefined,
})

/** Rows that two successive pages share: 10 or a fiftieth of the longest page, more after a loss, at most half a page. */
export const overlapSize = (longest: number, growth: number): number =>
  Math.min(Math.floor(longest / 2), Math.max(10, Math.floor(longest / 50)) * 2 ** growth)

/** A page, held against what the pass has read before. */
export type PageEvidence = {
  readonly rows: ReadonlyArray<RowVersion>
  /** Where each row stood, if this pass has read it before, unchanged. */
  readonly knownPositions: ReadonlyArray<number | undefined>
  /** Rows up to the signpost that were not sent before. */
  readonly newRows: ReadonlyArray<RowVersion>
  /** The longest page so far, this one included. */
  readonly longestPage: number
  readonly overlap: number
  /** The window is a part cut so that a page may hold all of it. */
  readonly isPartWindow: boolean
  /** A pass that cannot be certified any more: what looks new on its last page may be old, and keeps it there for ever. */
  readonly isUncertifiable: boolean
  /** These are the rows of the page before, though the offset is another. */
  readonly isRepeatedPage: boolean
  /** By the answer's own word a page may hold more rows than came (Scrolling rule), and none so long was full before. */
  readonly isBelowLimit: boolean
  /** How many rows lie between the last row of this page and the last row read. */
  readonly distanceToEnd: number
  /** The cursor, if the scan ended now; rows later than this are the next run's anyway. */
  readonly certainTime: number
}

export type PageVerdict =
  /** The page does not join on to what was read: thrown away, another is asked for. */
  | { readonly _tag: 'Back'; readonly pass: Pass }
  | { readonly _tag: 'Next'; readonly pass: Pass }
  /** Every row of the window that nobody touched has been served; `unmoved`: by a service that does not turn its pages. */
  | { readonly _tag: 'Done'; readonly unmoved?: true }
  /** That can no longer be shown; `pass` goes on all the same, none if there is nothing more. */
  | { readonly _tag: 'Broken'; readonly why: string; readonly pass: Pass | undefined; readonly unmoved?: true }

/** So many rows come in their old order by chance once in 720 times; one alone would prove no order. */
const minWitnesses = 6
const maxPagesWithoutNewRows = 100
/** Rows that arrive before the ones read could shift a page back on its predecessor once, but hardly so often by just its length. */
const maxPageRepeats = 3
const maxLatePages = 4
const maxOverlapGrowth = 10

/** What to make of a page. */
export const certifyPage =
  (rules: ScanRules) =>
  (before: Pass, seen: PageEvidence): PageVerdict => {
    const pass = { ...before, repeats: seen.isRepeatedPage ? before.repeats + 1 : 0 }
    if (pass.repeats >= maxPageRepeats)
      return seen.isBelowLimit && seen.knownPositions[0] === 0
        ? { _tag: 'Done', unmoved: true }
        : { _tag: 'Broken', why: 'the same rows come at further offsets', pass: undefined, unmoved: true }
    const sight = rules.overlap ? seen : { ...seen, overlap: 0 }
    const { rows, newRows, overlap } = sight
    const known = sight.knownPositions.filter((place) => place !== undefined)
    const late = newRows.length > 0 && newRows.every(({ modifiedTime }) => modifiedTime > sight.certainTime)
    if (rows.length === 0 && pass.offset === 0) return { _tag: 'Done' }
    if (pass.offset === 0 && pass.emptyAt === rows.length && (newRows.length === 0 || late)) return { _tag: 'Done' }
    const tooOften = pass.losses >= 10 + pass.pages / 10
    const inverted = known.some((place, i) => place < (known[i - 1] ?? place))
    if (pass.confirming) {
      const inPlace = known.length === 0 || (!inverted && sight.distanceToEnd === 0)
      const over = rows.length < sight.longestPage && (pass.gap === 0 || (rows.length === 0 && pass.doubted))
      if (inPlace && over && (newRows.length === 0 || (late && pass.late >= maxLatePages))) return { _tag: 'Done' }
      if (!inPlace || known.length === 0)
        return tooOften
          ? toBrokenVerdict('the end cannot be made out', advancePass(pass, sight))
          : { _tag: 'Back', pass: resumePass(pass, overlap, late) }
    }
    if (
      rules.witness &&
      rules.overlap &&
      pass.offset > 0 &&
      known.length < Math.max(1, Math.min(minWitnesses, overlap))
    ) {
      if (tooOften) return toBrokenVerdict('the pages no longer join', advancePass(pass, sight))
      if (overlap === 0 && rows.length > 0)
        return toBrokenVerdict('the pages are too short to overlap', advancePass(pass, sight))
      return { _tag: 'Back', pass: rewindPass(pass, sight) }
    }
    if (inverted) return toBrokenVerdict('the order of the rows changes from page to page', advancePass(pass, sight))
    return advancePass(pass, sight)
  }

const toBrokenVerdict = (why: string, onward: PageVerdict): PageVerdict => ({
  _tag: 'Broken',
  why,
  pass: onward._tag === 'Done' ? undefined : onward.pass,
})

const rewindPass = (pass: Pass, { rows, longestPage }: PageEvidence): Pass => ({
  ...pass,
  offset: Math.max(0, pass.offset - Math.max(1, Math.floor(longestPage / 2)) * 2 ** pass.lost),
  growth: Math.min(maxOverlapGrowth, pass.growth + 1),
  good: 0,
  lost: pass.lost + 1,
  losses: pass.losses + 1,
  full: 0,
  confirming: false,
  emptyAt: rows.length === 0 ? pass.offset : undefined,
})

/** It was not the end: reads on where it was taken for it. */
const resumePass = (pass: Pass, overlap: number, late: boolean): Pass => ({
  ...pass,
  offset: Math.max(0, pass.offset - overlap),
  losses: pass.losses + (late ? 0 : 1),
  doubted: pass.gap > 0,
  late: pass.late + (late ? 1 : 0),
  confirming: false,
})

const advancePass = (
  pass: Pass,
  { rows, newRows, longestPage, overlap, distanceToEnd, certainTime, isPartWindow, isUncertifiable }: PageEvidence,
): PageVerdict => {
  const short = rows.length < longestPage
  const late = short && newRows.length > 0 && newRows.every(({ modifiedTime }) => modifiedTime > certainTime)
  const calm = pass.good >= 15
  const taken: Pass = {
    ...pass,
    growth: calm ? Math.max(0, pass.growth - 1) : pass.growth,
    good: calm ? 0 : pass.good + 1,
    lost: 0,
    pages: pass.pages + 1,
    full: short ? 0 : pass.full + 1,
    barren: newRows.length === 0 ? pass.barren + 1 : 0,
    late: late ? pass.late + 1 : short ? pass.late : 0,
    confirming: false,
    doubted: pass.doubted && newRows.length === 0,
    emptyAt: undefined,
  }
  const beyond = pass.offset + rows.length
  if (late && taken.late >= maxLatePages) return { _tag: 'Done' }
  if (short && (newRows.length === 0 || isUncertifiable || (isPartWindow && pass.offset === 0)))
    return { _tag: 'Next', pass: { ...taken, offset: beyond, confirming: true, gap: distanceToEnd } }
  const next: Pass = { ...taken, offset: Math.max(0, beyond - overlap + distanceToEnd) }
  return taken.barren >= maxPagesWithoutNewRows
    ? { _tag: 'Broken', why: `${maxPagesWithoutNewRows} pages brought nothing but later changes`, pass: undefined }
    : { _tag: 'Next', pass: next }
}
