import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, Integer, toInstant, toMillis } from '../../api'
import { SentRows } from './sent-rows'
import { type ScanScope, ScanWindow } from './window'

/** Where a scan under way stands: what `scan` in a state holds. Rows are `[id, modifiedTime in milliseconds, …]`. */
export const ResumeToken = t.intersection([
  t.type({
    /** The filter sent, before any re-anchoring. */
    from: Instant,
    filters: t.string,
    /** When the scan began, by the clock here. */
    begun: Instant,
    /** Pages taken so far: how far one scan is, compared with itself. */
    taken: Integer,
    /** Yet to be read; the first is under way. */
    windows: t.readonlyArray(ScanWindow),
    pass: t.intersection([
      t.type({
        from: Instant,
        offset: Integer,
        growth: Integer,
        good: Integer,
        lost: Integer,
        losses: Integer,
        pages: Integer,
        full: Integer,
        barren: Integer,
        late: Integer,
        gap: Integer,
        doubted: t.boolean,
        confirming: t.boolean,
      }),
      t.partial({ emptyAt: Integer }),
    ]),
    trail: t.readonlyArray(t.tuple([t.string, t.number, t.number])),
    longest: Integer,
    limit: Integer,
    sorted: t.boolean,
    flawed: t.boolean,
    unmentioned: Integer,
    recent: SentRows,
  }),
  /** `signpost` is there once a page has come. */
  t.partial({ signpost: Instant, reached: t.number, newest: t.number, horizon: t.number }),
])
export type ResumeToken = t.TypeOf<typeof ResumeToken>

/** Reads a marker out of a state; one of another make is none. */
export const decodeResumeToken = (value: unknown): O.Option<ResumeToken> =>
  O.fromEither(E.mapLeft(() => undefined)(ResumeToken.decode(value)))

/** A short digest of filters and windows, so that a marker tells what it was made for. */
export const digestFilters = (filters: ScanScope): string =>
  createHash('sha256')
    .update(JSON.stringify(Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest('base64url')
    .slice(0, 11)

const day = 86_400_000

/** May a scan that would start from `from` (milliseconds) go on from the marker instead? Not after 24 h. */
export const isResumable =
  (wanted: { readonly now: number; readonly from: number; readonly filters: ScanScope }) =>
  (marker: ResumeToken): boolean =>
    Math.abs(wanted.now - toMillis(marker.begun)) < day &&
    marker.from === toInstant(wanted.from) &&
    marker.filters === digestFilters(wanted.filters)

/** The least advanced of the markers of one scan; none if they are of several. */
export const leastAdvancedToken = (markers: ReadonlyArray<ResumeToken>): O.Option<ResumeToken> => {
  const [first, ...others] = markers
  if (first === undefined) return O.none
  const one = others.every(
    ({ signpost, from, filters, begun }) =>
      signpost === first.signpost && from === first.from && filters === first.filters && begun === first.begun,
  )
  return one ? O.some(others.reduce((a, b) => (b.taken < a.taken ? b : a), first)) : O.none
}
