import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import type { Failure } from '../cdk/failure'
import { type Feed, type Step, unfold } from '../cdk/feed'
import { type ApiError, toFailure } from './error'
import type { Cut, FetchPage, Page } from './page'
import { type PageRequest, pagesAhead } from './scan/ahead'
import type { Marker } from './scan/marker'
import { remember } from './scan/memory'
import { allRules, type Rules } from './scan/pass'
import { type Recent, recentSince } from './scan/recent'
import { following, request } from './scan/requests'
import { info, type Note } from './scan/signpost'
import { begin, certainNow, type From, fromMarker, type State, toMarker, trailOf } from './scan/state'
import { turn } from './scan/turn'
import { type Filters, type Scope, type Window, whole } from './scan/window'

export type ScanEnv = {
  /** As it is called in messages. */
  readonly operation: string
  readonly fetch: FetchPage
  /** Milliseconds since 1970, by the clock here. */
  readonly now: () => number
  /** Pages under way at a time. */
  readonly concurrency: number
  /** Rows asked for a page. */
  readonly limit: number
  /** What the operator knows of the service's order. */
  readonly order: 'unspecified' | 'modified_time'
  /** Whether the export can be narrowed by mention time: reviews can, deletions cannot. */
  readonly hasMentionTime: boolean
}

export type ScanStart = {
  readonly from: From
  readonly filters: Filters
  /** The windows to read in place of everything: a share of a backfill. */
  readonly windows?: ReadonlyArray<Window>
  /** Where to go on, if `isResumable` says so. */
  readonly marker: O.Option<Marker>
  /** The signpost of the run if another scan has set it; milliseconds. */
  readonly signpost?: number
}

/** What a page brought. */
export type ScanItem = {
  /** Up to the signpost; what `recent` of the last run holds is still among them. Their bytes last until the next item is asked for. */
  readonly rows: ReadonlyArray<Cut>
  /** Where to go on once these rows are safe: a value of the moment they were read, whenever it is called. */
  readonly marker: () => Marker
  readonly notes: ReadonlyArray<Note>
  /** In the order of modifiedTime only: a cursor that covers all rows so far; milliseconds. */
  readonly safe?: number
  /** On the final item, which has no rows: the export is complete up to here. */
  readonly last?: {
    /** For `nextCursor`: the newest modifiedTime read up to the signpost; none where nothing was. */
    readonly newest: O.Option<number>
    /** The time up to which nothing can have been missed, by whichever clock rows are stamped; not later than `newest`. */
    readonly certain: O.Option<number>
    readonly signpost: number
    /** The rows that the filter `from` (milliseconds) will serve again. */
    readonly recent: (from: number) => Recent
  }
}

/**
 * Reads an export as it stood at the signpost, without loss though the service promises no order and changes meanwhile.
 * Its failure means: nothing is certain, leave the cursor where it was.
 */
export const scan =
  (env: ScanEnv, rules: Rules = allRules) =>
  (start: ScanStart): Feed<Failure, ScanItem> => {
    const resumed = O.toUndefined(start.marker)
    const memory = remember(resumed?.trail ?? [])
    const ahead = pagesAhead(env.fetch, env.now)
    const judged = turn({ ...env, ...start, rules }, memory)

    const item = (state: State, rows: ReadonlyArray<Cut>, notes: ReadonlyArray<Note>): ScanItem => {
      // Of this moment: by the time a marker is wanted the next page may have changed the memory, though none of its rows left.
      const trail = trailOf(state, memory)
      return {
        rows,
        notes,
        marker: once(() => toMarker(state, trail, scopeOf(start), start.from)),
        ...(state.sorted && state.pass.from > state.from ? { safe: state.pass.from } : {}),
      }
    }

    /** What an offset behind the last row is answered with is not shown: a refusal of the offset alone is an empty page. */
    const beyondTheEnd = async (asked: PageRequest, error: ApiError): Promise<E.Either<ApiError, Page>> => {
      if (error._tag !== 'Http' || error.status !== 400 || asked.offset === 0) return E.left(error)
      const first = await env.fetch({ ...asked, offset: 0, limit: 1 })()
      return E.isLeft(first) ? E.left(error) : E.right({ ...first.right, rows: [], filter: {} })
    }

    let done: Page['release']
    const step = (state: State): TE.TaskEither<Failure, Step<State, ScanItem>> =>
      state.windows.length === 0
        ? TE.right([{ ...item(state, [], []), last: ending(state) }, O.none])
        : async () => {
            // Whoever asks for the next item has done with the one before.
            done?.()
            const wanted = request(start.filters, state)
            const asked = await ahead.take(wanted)()
            const answer = E.isLeft(asked) ? await beyondTheEnd(wanted, asked.left) : asked
            done = E.isRight(answer) ? answer.right.release : undefined
            if (E.isRight(answer))
              return pipe(
                judged(state, answer.right, env.now()),
                E.map((after) => {
                  ahead.expect(following(env.concurrency, start.filters, state, after.state))
                  return [item(after.state, after.rows, after.notes), O.some(after.state)] as const
                }),
              )
            const limit = Math.floor(state.limit / 2)
            if (answer.left._tag !== 'TooLarge' || limit < 1) return E.left(toFailure(env.operation, answer.left))
            const smaller = { ...state, limit, longest: Math.min(state.longest, limit) }
            const note = info(`${env.operation}: a page is too large; asking for ${limit} rows at a time.`)
            return E.right([item(smaller, [], [note]), O.some(smaller)])
          }

    return unfold(step)(
      resumed === undefined
        ? begin({
            ...env,
            ...start,
            now: env.now(),
            sorted: env.order === 'modified_time' && start.windows === undefined,
            signpost: start.signpost,
            windows: start.windows ?? [whole],
          })
        : fromMarker(resumed),
    )
  }

/** Many streams may ask for the same marker. */
const once = <A>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** What a marker of this scan is good for. */
export const scopeOf = ({ filters, windows }: Pick<ScanStart, 'filters' | 'windows'>): Scope =>
  windows === undefined ? filters : { ...filters, windows }

const ending = (state: State): NonNullable<ScanItem['last']> => ({
  newest: O.fromNullable(state.newest),
  certain: certainNow(state),
  signpost: state.signpost ?? 0,
  recent: (from) => recentSince(state.recent, from),
})
