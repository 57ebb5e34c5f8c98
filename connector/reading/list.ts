import type { Task } from 'fp-ts/Task'
import type { TaskEither } from 'fp-ts/TaskEither'
import { defined, type Failure } from '../cdk'

/** A row in one version: its id and the time of its last change, milliseconds since 1970. */
export type RowVersion = { readonly id: string; readonly modifiedTime: number }

/** A row of a list; `json` is its text as it leaves. */
export type ListRow = RowVersion & { readonly json: Uint8Array }

/** Bounds of mention time as a request sends them, milliseconds; whether the service includes them is not known. */
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
  /** The limit and the bounds that the answer says it applied, where it does. */
  readonly limit?: number
  readonly bounds?: Bounds
  /** The service refuses this offset, so there are no rows. */
  readonly isRefused?: boolean
  /** The service's clock when it began to answer, milliseconds, where it is known. */
  readonly servedAt?: number
  /** The rows are no longer read: their bytes may be overwritten. */
  readonly release?: () => void
}

/** TooLarge: fewer rows may fit. */
export type ListError = { readonly _tag: 'TooLarge' | 'Failed'; readonly failure: Failure }

/** Fetches one page. An answer that has arrived waits for `turn` before it is worked on. */
export type FetchListPage<R extends ListRow> = (
  request: PageRequest,
  turn?: Task<void>,
) => TaskEither<ListError, ListPage<R>>

/** A list of the service that changes while it is read. */
export type List<R extends ListRow> = {
  /** What messages call it. */
  readonly name: string
  readonly fetch: FetchListPage<R>
  /** The mention time of a row, milliseconds, by which the list can be cut; without it no filter cuts the list. */
  readonly mentionTime?: (row: R) => number | undefined
}

/** The rows whose mention time lies in a window leave; `unmentioned`: those without one, in the whole list. */
export type Window = Bounds & {
  /** How it is read: pages that join, or halves where they do not; none: pages. */
  readonly by?: 'halves' | 'rounds'
  readonly unmentioned?: boolean
  /** Of `unmentioned`: how many rows the windows before it have had. */
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

/** A key for each row of one answer: its id, and a number where the answer lists the id more than once. */
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

/** Rows inserted in front can shift a page by its length, so that it comes again. Three times in a row is no chance. */
const maxRepeats = 3

/** Tells whether the same rows have come at one offset after another, too often for chance. */
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

/** Tells whether two answers have the same rows, without holding either. */
const signatureOf = (rows: ReadonlyArray<RowVersion>): string =>
  [rows.length, rows[0], rows.at(Math.floor(rows.length / 2)), rows.at(-1)]
    .map((row) => (typeof row === 'object' ? `${row.id} ${row.modifiedTime}` : row))
    .join(' ')

/**
 * The rows, with the newest version of each id last: many a target keeps the record that comes last. They are in the
 * order of their times where a page has an older version behind a newer one, and else as they were.
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
