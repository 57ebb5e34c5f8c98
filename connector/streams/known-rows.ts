import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import { toInstant } from '../api'
import { type Failure, type Feed, transientFailure } from '../cdk'
import type { FetchPage } from '../export'
import { isInRange } from '../reading'
import type { ExportStreamState } from './export-state'
import { watchPages } from './watch-pages'

/**
 * The rows that a state lists as sent and that match the filter come again if the service reads `modifiedTimeFrom` the
 * way we send it. If it reads it in another time zone, it leaves out rows that no later run requests.
 */
type KnownState = Pick<ExportStreamState, 'sentRows' | 'sentRange'>

const second = 1000

/** A single missing row may have been deleted between two requests. */
const fewestMissing = 2

/** Passes pages on and remembers which of the rows known to the states come. */
export const watchKnownRows = (
  fetch: FetchPage,
  states: ReadonlyArray<KnownState>,
): {
  readonly fetch: FetchPage
  /**
   * The rows of a state that have not come, if none of those that match the filter `from` (milliseconds) has; otherwise
   * none.
   */
  readonly findMissing: (state: KnownState, from: number) => MissingRows
} => {
  const known = new Set(states.flatMap(({ sentRows }) => sentRows.map(([id]) => id)))
  const ranges = states.flatMap(({ sentRange }) => O.toUndefined(sentRange) ?? [])
  const came = new Set<string>()
  const cameOf = new Set<(typeof ranges)[number]>()
  let rowCount = 0
  return {
    fetch: watchPages(fetch, ({ rows }) => {
      for (const row of rows) {
        if (known.has(row.id)) came.add(row.id)
        for (const range of ranges) if (isInRange(row, range)) cameOf.add(range)
      }
      rowCount += rows.length
    }),
    findMissing: ({ sentRows, sentRange }, from) => {
      const range = O.toUndefined(sentRange)
      // A service may compare whole seconds, and include the bound or not.
      const ids = sentRows.filter(([, modifiedTime]) => modifiedTime >= from + second).map(([id]) => id)
      const hasCome = sentRows.some(([id]) => came.has(id)) || (range !== undefined && cameOf.has(range))
      // Rows of a range that all came in later versions cannot be distinguished from others.
      const uncounted = range === undefined || range.from < from ? 0 : Math.max(0, range.count - rowCount)
      return hasCome ? noneMissing : { ids: new Set(ids), uncounted }
    },
  }
}

/** Rows that did not come: those with known ids, and how many others. */
export type MissingRows = { readonly ids: ReadonlySet<string>; readonly uncounted: number }

export const noneMissing: MissingRows = { ids: new Set(), uncounted: 0 }

/** The rows that any of several streams misses. */
export const joinMissing = (missing: ReadonlyArray<MissingRows>): MissingRows => ({
  ids: new Set(missing.flatMap(({ ids }) => [...ids])),
  uncounted: Math.max(0, ...missing.map(({ uncounted }) => uncounted)),
})

/** Those that are still missing. */
export const stillMissing = ({ ids, uncounted }: MissingRows, rest: MissingRows): MissingRows => ({
  ids: new Set([...ids].filter((id) => rest.ids.has(id))),
  uncounted: Math.min(uncounted, rest.uncounted),
})

export const areMissing = ({ ids, uncounted }: MissingRows): boolean => ids.size + uncounted >= fewestMissing

/**
 * The missing rows without those that the other export shows: they were deleted, or restored. `readOther` reads all
 * changes there with the given fetch.
 */
export const withoutMoved =
  (fetch: FetchPage, readOther: (fetch: FetchPage) => Feed<Failure, unknown>) =>
  (missing: MissingRows): TaskEither<Failure, MissingRows> =>
  async () => {
    const shown = new Set<string>()
    const watched = watchPages(fetch, ({ rows }) => {
      for (const { id } of rows) shown.add(id)
    })
    for await (const item of readOther(watched)) if (E.isLeft(item)) return item
    const others = [...shown].filter((id) => !missing.ids.has(id)).length
    return E.right({
      ids: new Set([...missing.ids].filter((id) => !shown.has(id))),
      uncounted: Math.max(0, missing.uncounted - others),
    })
  }

/** How long to wait before the rows are requested again, in milliseconds. */
export const missingRowsPause = 8_000

const describeMissing = (stream: string, { ids, uncounted }: MissingRows, from: number): string =>
  [
    `${stream}: none of the ${ids.size + uncounted} rows that the ` +
      'last run sent come again, although they changed after',
    `${toInstant(from)}, where this run starts, and the service does ` +
      `not list them as ${stream === 'deleted_reviews' ? 'restored' : 'deleted'}.`,
    'Either it reads modifiedTimeFrom in its own time zone, not as UTC, and leaves ' +
      'out rows that changed meanwhile; or it answers from a replica that is behind.',
  ].join(' ')

export const missingRowsNote = (name: string): string =>
  `${name}: no row that the last run sent comes again. Asking again in ${missingRowsPause / 1000} s.`

export const missingRowsWarning = (stream: string, missing: MissingRows, from: number): string =>
  `${describeMissing(stream, missing, from)} What came was sent, and the cursor ` +
  'stays where it was. If the next run finds the same, the stream ends INCOMPLETE.'

export const missingRowsFailure = (stream: string, missing: MissingRows, from: number): Failure =>
  transientFailure(
    `${describeMissing(stream, missing, from)} The previous run found the same. The cursor ` +
      `stays where it was. Set lookback_minutes to more than the zone's distance from UTC (1440 ` +
      `covers every zone), or ask the service's operator; feedback check tests the filter.`,
  )
