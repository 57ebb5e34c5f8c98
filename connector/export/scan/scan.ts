import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from '../../api'
import { type Failure, type Feed, type FeedStep, unfoldFeed } from '../../cdk'
import type { CutRecord, ExportPage, FetchPage } from '../export-page'
import { infoNote, type RunNote } from './cutoff'
import { createRowHistory } from './history'
import { allScanRules, type ScanRules } from './pass'
import { createPrefetcher, nextPageRequest, type PageRequest, requestsAhead } from './prefetch'
import { processPage } from './process-page'
import type { ResumeToken } from './resume-token'
import { type SentRows, sentRowsSince } from './sent-rows'
import {
  certainTime,
  fromResumeToken,
  newScanState,
  type ScanOrigin,
  type ScanState,
  sampleRows,
  toResumeToken,
} from './state'
import { type ScanFilters, type ScanScope, type ScanWindow, wholeWindow } from './window'

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
  readonly from: ScanOrigin
  readonly filters: ScanFilters
  /** The windows to read in place of everything: a share of a backfill. */
  readonly windows?: ReadonlyArray<ScanWindow>
  /** Where to go on, if `isResumable` says so. */
  readonly resumeToken: O.Option<ResumeToken>
  /** The signpost of the run if another scan has set it; milliseconds. */
  readonly cutoff?: number
}

/** What a page brought. */
export type ScanItem = {
  /** Up to the signpost; what `recent` of the last run holds is still among them. Their bytes last until the next item is asked for. */
  readonly rows: ReadonlyArray<CutRecord>
  /** Where to go on once these rows are safe: a value of the moment they were read, whenever it is called. */
  readonly resumeToken: () => ResumeToken
  readonly notes: ReadonlyArray<RunNote>
  /** In the order of modifiedTime only: a cursor that covers all rows so far; milliseconds. */
  readonly safeCursor?: number
  /** On the final item, which has no rows: the export is complete up to here. */
  readonly completion?: {
    /** For `nextCursor`: the newest modifiedTime read up to the signpost; none where nothing was. */
    readonly newest: O.Option<number>
    /** The time up to which nothing can have been missed, by whichever clock rows are stamped; not later than `newest`. */
    readonly certain: O.Option<number>
    readonly signpost: number
    /** The rows that the filter `from` (milliseconds) will serve again. */
    readonly recent: (from: number) => SentRows
  }
}

/**
 * Reads an export as it stood at the signpost, without loss though the service promises no order and changes meanwhile.
 * Its failure means: nothing is certain, leave the cursor where it was.
 */
export const scan =
  (env: ScanEnv, rules: ScanRules = allScanRules) =>
  (start: ScanStart): Feed<Failure, ScanItem> => {
    const resumed = O.toUndefined(start.resumeToken)
    const memory = createRowHistory(resumed?.trail ?? [])
    const ahead = createPrefetcher(env.fetch, env.now)
    const judged = processPage({ ...env, ...start, rules }, memory)

    const item = (state: ScanState, rows: ReadonlyArray<CutRecord>, notes: ReadonlyArray<RunNote>): ScanItem => {
      // Of this moment: by the time a marker is wanted the next page may have changed the memory, though none of its rows left.
      const trail = sampleRows(state, memory)
      return {
        rows,
        notes,
        resumeToken: once(() => toResumeToken(state, trail, scanScope(start), start.from)),
        ...(state.isSorted && state.pass.from > state.from ? { safeCursor: state.pass.from } : {}),
      }
    }

    /** What an offset behind the last row is answered with is not shown: a refusal of the offset alone is an empty page. */
    const beyondTheEnd = async (asked: PageRequest, error: ApiError): Promise<E.Either<ApiError, ExportPage>> => {
      if (error._tag !== 'Http' || error.status !== 400 || asked.offset === 0) return E.left(error)
      const first = await env.fetch({ ...asked, offset: 0, limit: 1 })()
      return E.isLeft(first) ? E.left(error) : E.right({ ...first.right, rows: [], filter: {} })
    }

    let done: ExportPage['release']
    const step = (state: ScanState): TE.TaskEither<Failure, FeedStep<ScanState, ScanItem>> =>
      state.windows.length === 0
        ? TE.right([{ ...item(state, [], []), completion: completionOf(state) }, O.none])
        : async () => {
            // Whoever asks for the next item has done with the one before.
            done?.()
            const wanted = nextPageRequest(start.filters, state)
            const asked = await ahead.takePage(wanted)()
            const answer = E.isLeft(asked) ? await beyondTheEnd(wanted, asked.left) : asked
            done = E.isRight(answer) ? answer.right.release : undefined
            if (E.isRight(answer))
              return pipe(
                judged(state, answer.right, env.now()),
                E.map((after) => {
                  ahead.prefetchPages(requestsAhead(env.concurrency, start.filters, state, after.state))
                  return [item(after.state, after.rows, after.notes), O.some(after.state)] as const
                }),
              )
            const limit = Math.floor(state.limit / 2)
            if (answer.left._tag !== 'TooLarge' || limit < 1) return E.left(toFailure(env.operation, answer.left))
            const smaller = { ...state, limit, longestPage: Math.min(state.longestPage, limit) }
            const note = infoNote(`${env.operation}: a page is too large; asking for ${limit} rows at a time.`)
            return E.right([item(smaller, [], [note]), O.some(smaller)])
          }

    return unfoldFeed(step)(
      resumed === undefined
        ? newScanState({
            ...env,
            ...start,
            now: env.now(),
            sorted: env.order === 'modified_time' && start.windows === undefined,
            signpost: start.cutoff,
            windows: start.windows ?? [wholeWindow],
          })
        : fromResumeToken(resumed),
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
export const scanScope = ({ filters, windows }: Pick<ScanStart, 'filters' | 'windows'>): ScanScope =>
  windows === undefined ? filters : { ...filters, windows }

const completionOf = (state: ScanState): NonNullable<ScanItem['completion']> => ({
  newest: O.fromNullable(state.newestRowTime),
  certain: certainTime(state),
  signpost: state.cutoff ?? 0,
  recent: (from) => sentRowsSince(state.sentRows, from),
})
