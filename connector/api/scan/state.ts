import * as O from 'fp-ts/Option'
import { toInstant, toMillis } from '../model/scalar'
import { filterFrom, nextCursor } from './cursor'
import type { Marker } from './marker'
import { filtersDigest } from './marker'
import type { Memory, Trail, Version } from './memory'
import { newPass, overlapOf, type Pass } from './pass'
import { type Gathering, gathered, nothing, recentSince } from './recent'
import type { Scope, Window } from './window'

/** Where a run reads from; milliseconds. */
export type From = { readonly startDate: number; readonly cursor: O.Option<number>; readonly lookback: number }

/** A part that is read until nothing new comes: all its rows by id. Changed in place. */
export type Exact = {
  readonly round: number
  /** Rounds in a row that brought nothing new. */
  readonly barren: number
  readonly unseen: number
  readonly held: Map<string, number>
}

/** Where a scan stands; times in milliseconds. */
export type State = {
  readonly signpost: number | undefined
  readonly from: number
  readonly begun: number
  readonly taken: number
  readonly windows: ReadonlyArray<Window>
  readonly pass: Pass
  readonly longest: number
  /** The longest page that held all the rows it was asked for. */
  readonly fullest: number
  readonly limit: number
  /** The service is still believed to serve in the order of modifiedTime. */
  readonly sorted: boolean
  /** The pass under way cannot be certified any more. */
  readonly flawed: boolean
  /** Reviews without a mention time that a sweep has met. */
  readonly unmentioned: number
  /** A time that the clock which stamps rows had certainly reached when the scan began. */
  readonly reached: number | undefined
  /** The newest modifiedTime met that is not later than the signpost. */
  readonly newest: number | undefined
  readonly recent: Gathering
  readonly exact: Exact | undefined
}

export const begin = (start: {
  readonly from: From
  readonly now: number
  readonly limit: number
  readonly sorted: boolean
  readonly signpost: number | undefined
  readonly windows: ReadonlyArray<Window>
}): State => {
  const from = filterFrom(start.from.startDate, start.from.cursor, start.from.lookback)
  return {
    signpost: start.signpost,
    from,
    begun: start.now,
    taken: 0,
    windows: start.windows,
    pass: newPass(from),
    longest: 0,
    fullest: 0,
    limit: start.limit,
    sorted: start.sorted,
    flawed: false,
    unmentioned: 0,
    reached: undefined,
    newest: undefined,
    recent: nothing,
    exact: undefined,
  }
}

/** The time up to which nothing can have been missed if the scan ended now, by whichever clock rows are stamped. */
export const certainNow = ({ signpost, reached }: State): O.Option<number> =>
  reached === undefined || signpost === undefined ? O.none : O.some(Math.min(signpost, reached))

/** Does the row belong to this run? Later changes are the next one's. */
export const isDue =
  ({ signpost }: State) =>
  ({ modifiedTime }: Version): boolean =>
    signpost !== undefined && modifiedTime <= signpost

/** What the next run's filter would be if the scan ended now. */
export const nextFrom = (from: From, state: State): number =>
  filterFrom(from.startDate, nextCursor(from.cursor, certainNow(state)), from.lookback)

/** Rows that two successive pages of the window under way share. */
export const overlapNow = ({ longest, pass, windows }: State): number =>
  windows[0]?.kind === 'exact' ? Math.floor((longest * 3) / 4) : overlapOf(longest, pass.growth)

/** What a marker keeps of the memory. Taken when the state is: the next page changes the memory. */
export const trailOf = (state: State, memory: Memory): Trail =>
  state.exact === undefined ? memory.trail(overlapNow(state)) : []

export const toMarker = (state: State, trail: Trail, filters: Scope, from: From): Marker => {
  const { emptyAt, repeats: _, ...pass } = state.exact === undefined ? state.pass : newPass(state.pass.from)
  const { horizon } = state.recent
  return {
    from: toInstant(state.from),
    filters: filtersDigest(filters),
    begun: toInstant(state.begun),
    taken: state.taken,
    windows: state.windows,
    pass: { ...pass, from: toInstant(pass.from), ...(emptyAt === undefined ? {} : { emptyAt }) },
    trail: trail.map(([...row]) => row),
    longest: state.longest,
    limit: state.limit,
    sorted: state.sorted,
    flawed: state.flawed,
    unmentioned: state.unmentioned,
    recent: recentSince(state.recent, nextFrom(from, state)),
    ...(state.signpost === undefined ? {} : { signpost: toInstant(state.signpost) }),
    ...(state.reached === undefined ? {} : { reached: state.reached }),
    ...(state.newest === undefined ? {} : { newest: state.newest }),
    ...(Number.isFinite(horizon) ? { horizon } : {}),
  }
}

export const fromMarker = (marker: Marker): State => ({
  signpost: marker.signpost === undefined ? undefined : toMillis(marker.signpost),
  from: toMillis(marker.from),
  begun: toMillis(marker.begun),
  taken: marker.taken,
  windows: marker.windows,
  pass: { ...marker.pass, from: toMillis(marker.pass.from), emptyAt: marker.pass.emptyAt, repeats: 0 },
  longest: marker.longest,
  fullest: 0,
  limit: marker.limit,
  sorted: marker.sorted,
  flawed: marker.flawed,
  unmentioned: marker.unmentioned,
  reached: marker.reached,
  newest: marker.newest,
  recent: gathered(marker.horizon ?? Number.NEGATIVE_INFINITY, marker.recent),
  exact: undefined,
})
