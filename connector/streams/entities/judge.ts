import type { Listing, ListPage } from './listing'

/** What the answers so far have taught about how long they can be. */
export type Lengths = {
  /** The most rows ever listed under one entity, and in one answer. */
  readonly listing: number
  readonly answer: number
  /** Whether the pages that answers count have not yet been found wrong. */
  readonly counted: boolean
}

export const noLengths: Lengths = { listing: 0, answer: 0, counted: true }

const sum = ({ listings }: ListPage): number => listings.reduce((rows, listing) => rows + listing.rows.length, 0)

export const learn = (lengths: Lengths, page: ListPage): Lengths => ({
  ...lengths,
  listing: Math.max(lengths.listing, ...page.listings.map(({ rows }) => rows.length)),
  answer: Math.max(lengths.answer, sum(page)),
})

/** Fewer rows than this are no page cut short by a limit that the service does not tell. */
const few = 10

/**
 * Whether a listing came whole: it is shorter than a page may be. One as long as any before may end where a limit that nobody
 * told cuts it, and one of several pages by the answer's own count has more: those are in doubt until the next page is empty.
 */
export const judge = (
  lengths: Lengths,
  listing: Listing | undefined,
  { perPage }: Pick<ListPage, 'perPage'>,
): 'whole' | 'doubtful' | 'more' => {
  if (listing === undefined || perPage === Number.POSITIVE_INFINITY) return 'whole'
  const { rows, pages = 1 } = listing
  if (rows.length >= perPage) return 'more'
  return (lengths.counted && pages > 1) || (rows.length >= few && rows.length >= lengths.listing) ? 'doubtful' : 'whole'
}

/** Whether an answer for many may be one page over all of them: as long as a page may be, or as any answer before. */
export const isFull = (lengths: Lengths, page: ListPage): boolean => {
  const rows = sum(page)
  if (page.perPage === Number.POSITIVE_INFINITY) return false
  return rows === page.perPage || (rows >= few && rows >= lengths.answer)
}

/** At most so many, since comments are not spread evenly: of a window cut finely at once most parts would be empty. */
const mostParts = 4

/** How many windows to cut a listing's into: by its own count of pages, else in two. */
export const partsFor = ({ counted }: Lengths, listing: Listing | undefined): number =>
  counted ? Math.min(mostParts, Math.max(2, listing?.pages ?? 0)) : 2

export const isEmpty = (page: ListPage): boolean => sum(page) === 0

/** Whether a page beyond the first holds nothing but rows of the first, as where a service repeats its last page. */
export const isRepeated = (key: string, first: ListPage, next: ListPage): boolean => {
  const known = new Set(first.listings.flatMap(({ id, rows }) => rows.map((row) => `${id} ${row[key]}`)))
  return next.listings.every(({ id, rows }) => rows.every((row) => known.has(`${id} ${row[key]}`)))
}
