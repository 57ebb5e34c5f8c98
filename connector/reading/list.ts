import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import { defined, type Failure } from '../cdk'

/** A row in one version: its id and the time of its last change, milliseconds since 1970. */
export type RowVersion = { readonly id: string; readonly modifiedTime: number }

/** A row of a list; `json` is its text as it is sent. */
export type ListRow = RowVersion & { readonly json: Uint8Array }

/** Bounds of mention time as sent in a request, milliseconds. It is unknown if the service includes them. */
export type Bounds = { readonly after?: number; readonly before?: number }

export type PageRequest = {
  /** Rows that changed since then, milliseconds. */
  readonly from: number
  readonly bounds: Bounds
  readonly offset: number
  readonly limit: number
}

/** What the service answers to a request for a page. */
export type ListPage<R extends ListRow> = {
  readonly rows: ReadonlyArray<R>
  /** The limit and bounds that the answer says it applied, if it does. */
  readonly limit?: number
  readonly bounds?: Bounds
  /** The service refused this offset, so there are no rows. */
  readonly isRefused?: boolean
  /** The service's clock when it began to answer, milliseconds, if known. */
  readonly servedAt?: number
  /** The rows are no longer read: their bytes may be overwritten. */
  readonly release?: () => void
}

/** TooLarge: the answer was too large, and fewer rows may fit. */
export type ListError = { readonly _tag: 'TooLarge' | 'Failed'; readonly failure: Failure }

/** Fetches one page. An answer that has arrived waits for `turn` before it is processed. */
export type FetchListPage<R extends ListRow> = (
  request: PageRequest,
  turn?: Task<void>,
) => TaskEither<ListError, ListPage<R>>

/** A list of the service that changes while it is read. */
export type List<R extends ListRow> = {
  /** What messages call it. */
  readonly name: string
  readonly fetch: FetchListPage<R>
  /**
   * The mention time of a row, milliseconds, by which the list can be divided. Missing if no filter divides the list.
   */
  readonly mentionTime?: (row: R) => number | undefined
}

/**
 * A window sends the rows whose mention time lies in it; `unmentioned` covers the rows without one in the whole list.
 */
export type Window = Bounds & {
  /** How it is read: by halving, or in rounds; undefined: by overlapping pages. */
  readonly by?: 'halves' | 'rounds'
  readonly unmentioned?: boolean
  /** Only for `unmentioned`: how many rows the windows before it had. */
  readonly rows?: number
}

export const boundsOfWindow = ({ after, before }: Window): Bounds => defined({ after, before })

export const isBounded = ({ after, before }: Bounds): boolean => after !== undefined || before !== undefined

/** A window as messages name it. */
export const describeWindow = ({ after, before, unmentioned }: Window): string => {
  if (unmentioned) return 'the reviews without a mention time'
  if (after === undefined && before === undefined) return 'the whole list'
  const from = after === undefined ? 'the beginning' : new Date(after).toISOString()
  const to = before === undefined ? 'now' : new Date(before).toISOString()
  return `what was mentioned from ${from} to ${to}`
}

/** A key for each row of one answer: its id, plus a number if the answer lists the id more than once. */
export const keysOf = (rows: ReadonlyArray<RowVersion>): ReadonlyArray<string> => {
  const ids = rows.map(({ id }) => id)
  if (new Set(ids).size === ids.length) return ids
  const counts = new Map<string, number>()
  return ids.map((id) => {
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    return count === 1 ? id : `${id} ${count}`
  })
}

/**
 * Rows inserted before a page can shift it by its own length, so that it comes again. Three times in a row is no
 * coincidence.
 */
const maxRepeats = 3

/** Returns a check that is true once the same rows came at different offsets too often to be chance. */
export const watchRepeats = (): ((offset: number, rows: ReadonlyArray<RowVersion>) => boolean) => {
  let [lastOffset, lastRows, repeats] = [0, '', 0]
  return (offset, rows) => {
    const signature = signatureOf(rows)
    repeats = offset !== lastOffset && signature === lastRows ? repeats + 1 : 0
    lastOffset = offset
    lastRows = signature
    return repeats >= maxRepeats
  }
}

/** A digest that shows if two answers have the same rows without keeping either. */
const signatureOf = (rows: ReadonlyArray<RowVersion>): string =>
  [rows.length, rows[0], rows.at(Math.floor(rows.length / 2)), rows.at(-1)]
    .map((row) => (typeof row === 'object' ? `${row.id} ${row.modifiedTime}` : row))
    .join(' ')

/**
 * The rows, with the newest version of each id last, since many destinations keep the record that arrives last. Sorted
 * by time if the page has an older version after a newer one; otherwise unchanged.
 */
export const putNewestLast = <A extends RowVersion>(rows: ReadonlyArray<A>): ReadonlyArray<A> => {
  const times = new Map<string, number>()
  const hasOlderBehind = rows.some(({ id, modifiedTime }) => {
    const isOlder = modifiedTime < (times.get(id) ?? modifiedTime)
    times.set(id, modifiedTime)
    return isOlder
  })
  return hasOlderBehind ? [...rows].sort((a, b) => a.modifiedTime - b.modifiedTime) : rows
}
