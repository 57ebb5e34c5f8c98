import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, isRefusalInBody, outageKind, toFailure } from '../../api'
import { type Failure, type Feed, type FeedStep, unfoldFeed } from '../../cdk'
import type { CutRecord } from '../cut/record'
import {
  createPrefetcher,
  type ExportPage,
  type FetchPage,
  nextPageRequest,
  type PageRequest,
  requestsAhead,
} from '../fetch-page'
import { infoNote, type RunNote } from './cutoff'
import { createRowHistory } from './history'
import { processPage } from './process-page'
import { fromResumeToken, type ResumeToken, sampleRows, toResumeToken } from './resume-token'
import { hasSameRows, type SentBefore, type SentRange, sentRowsSince } from './sent-rows'
import { allScanRules, certainTime, newScanState, type ScanOrigin, type ScanRules, type ScanState } from './state'
import { type ScanFilters, type ScanScope, type ScanWindow, wholeWindow } from './window'

export type ScanEnv = {
  /** The name of the operation in messages. */
  readonly operation: string
  readonly fetch: FetchPage
  /** Milliseconds since 1970, by the local clock. */
  readonly now: () => number
  /** Waits so many milliseconds before an answer is asked for again that cannot be right; none: does not wait. */
  readonly wait?: (millis: number) => Task<void>
  /** The most requests at a time. */
  readonly concurrency: number
  /** Rows asked for in each request. */
  readonly limit: number
  /** Whether the export can be narrowed by mention time: reviews can, deletions cannot. */
  readonly hasMentionTime: boolean
}

export type ScanStart = {
  readonly origin: ScanOrigin
  readonly filters: ScanFilters
  /** The windows to read instead of everything: a share of a backfill. */
  readonly windows?: ReadonlyArray<ScanWindow>
  /** Where to go on; the caller has checked it with `isResumable`. */
  readonly resumeToken: O.Option<ResumeToken>
  /** The cutoff of the run if another scan has chosen it; milliseconds. */
  readonly cutoff?: number
}

/** What a page brought. */
export type ScanItem = {
  /** Rows up to the cutoff, those that the last run has already sent included. Their bytes last until the next item is asked for. */
  readonly rows: ReadonlyArray<CutRecord>
  /** Where to go on once these rows are stored. Gives the same token whenever it is called. */
  readonly resumeToken: () => ResumeToken
  readonly notes: ReadonlyArray<RunNote>
  /** Only on the last item, which has no rows. */
  readonly completion?: ScanCompletion
}

/** The export is complete up to the cutoff; times in milliseconds. */
export type ScanCompletion = {
  /** The newest modifiedTime read up to the cutoff, for `nextCursor`; none if nothing was read. */
  readonly newestRowTime: O.Option<number>
  /** The time up to which nothing can have been missed, whichever clock stamps the rows. */
  readonly certainTime: O.Option<number>
  readonly cutoff: number
  /** What is known of the rows that the next run's filter `from` (milliseconds) serves again. */
  readonly sentRowsSince: (from: number) => SentBefore
  /** Whether the scan has met exactly the rows of a range that an earlier one has sent; `origin.rangeFrom` is not later than it. */
  readonly hasSameRows: (range: SentRange) => boolean
}

/**
 * Reads an export as it was at the cutoff, without loss although the service promises no order and changes meanwhile: asks for a
 * page, processes it, asks for the next, until no window is left (docs/lossless-export.md). After a failure nothing is certain:
 * the cursor must stay where it was.
 */
export const scan =
  (env: ScanEnv, rules: ScanRules = allScanRules) =>
  (start: ScanStart): Feed<Failure, ScanItem> => {
    const token = O.toUndefined(start.resumeToken)
    let history = createRowHistory(token?.trail ?? [])
    const prefetcher = createPrefetcher(env.fetch, env.now)
    let applyPage = processPage({ ...env, ...start, rules }, history)
    const { isRefused, takePage } = createPageTaker(env.fetch)
    let releasePage: ExportPage['release']
    let pause = 0
    let failure: Failure | undefined
    // Only what a stopped run has read is known.
    let isResumed = token !== undefined
    const firstState = (): ScanState =>
      newScanState({
        origin: start.origin,
        now: env.now(),
        limit: env.limit,
        cutoff: start.cutoff,
        windows: start.windows ?? [wholeWindow],
      })

    const toItem = (state: ScanState, rows: ReadonlyArray<CutRecord>, notes: ReadonlyArray<RunNote>): ScanItem => {
      // Copied now: when the token is asked for, the next page may have changed the history although none of its rows has left.
      const samples = sampleRows(state, history)
      const now = env.now()
      return {
        rows,
        notes,
        resumeToken: once(() => toResumeToken(state, samples, scanScope(start), start.origin, now)),
      }
    }

    const step = (state: ScanState): TE.TaskEither<Failure, FeedStep<ScanState, ScanItem>> =>
      state.windows.length === 0
        ? TE.right([{ ...toItem(state, [], []), completion: toCompletion(state) }, O.none])
        : async () => {
            // Whoever asks for the next item no longer reads the bytes of the one before.
            releasePage?.()
            if (failure !== undefined) return E.left(failure)
            if (pause > 0) await env.wait?.(pause)()
            pause = 0
            const request = nextPageRequest(start.filters, state)
            const isPrefetched = prefetcher.isPrefetched(request)
            const answer = await takePage(request, prefetcher.takePage(request))
            releasePage = E.isRight(answer) ? answer.right.release : undefined
            if (E.isLeft(answer)) return shrinkPages(state, answer.left)
            return pipe(
              applyPage(state, { ...answer.right, isPrefetched }, env.now()),
              E.map((result) => {
                pause = result.pause ?? 0
                failure = result.failure
                if (pause > 0) {
                  prefetcher.prefetchPages([])
                  return [toItem(result.state, [], result.notes), O.some(result.state)] as const
                }
                if (failure !== undefined) {
                  // Nobody must go on from rows that the service no longer shows.
                  history = createRowHistory([])
                  applyPage = processPage({ ...env, ...start, rules }, history)
                  const anew = firstState()
                  if (!isResumed) return [toItem(anew, [], result.notes), O.some(anew)] as const
                  // Since the stopped run, all its rows may have been deleted.
                  failure = undefined
                  isResumed = false
                  return [toItem(anew, [], [...result.notes, beginAnewNote(env)]), O.some(anew)] as const
                }
                isResumed &&= answer.right.rows.length === 0
                const ahead = requestsAhead(env.concurrency, start.filters, state, result.state)
                prefetcher.prefetchPages(ahead.filter((request) => !isRefused(request)))
                return [toItem(result.state, result.rows, result.notes), O.some(result.state)] as const
              }),
            )
          }

    /** Halves the limit after an answer that is too large; any other error ends the scan. */
    const shrinkPages = (state: ScanState, error: ApiError): E.Either<Failure, FeedStep<ScanState, ScanItem>> => {
      const limit = Math.floor(state.limit / 2)
      if (error._tag !== 'TooLarge' || limit < 1) return E.left(toFailure(env.operation, error))
      const smaller = { ...state, limit, longestPage: Math.min(state.longestPage, limit) }
      const note = infoNote(`${env.operation}: a page is too large; asking for ${limit} rows at a time.`)
      return E.right([toItem(smaller, [], [note]), O.some(smaller)])
    }

    return unfoldFeed(step)(token === undefined ? firstState() : fromResumeToken(token))
  }

/** Whether an error may be about the offset of its request alone. Outages, rate limits and tokens are not. */
const mayRefuseOffset = (error: ApiError): boolean =>
  error._tag === 'Http'
    ? error.status === 204 || (error.status >= 400 && error.status !== 401 && outageKind(error) === undefined)
    : isRefusalInBody(error)

/** Where the service has refused an offset of a window. */
type RefusedOffset = {
  readonly offset: number
  /** It had shown rows behind this offset: it does not serve offsets so deep, however long the list becomes. */
  readonly isTooDeep: boolean
}

/**
 * Takes the answer to a request. The specification does not say how the service answers an offset behind the last row, or one deeper
 * than it can serve: if it refuses this offset but not offset 0, the page counts as empty. It is then not asked for such an offset
 * of the same window again, since each of its refusals may cost several attempts, unless the list has since grown past it. Another
 * window may have more rows.
 */
const createPageTaker = (fetchPage: FetchPage) => {
  const refusedOffsets = new Map<string, RefusedOffset>()
  /** By window, the end of the last row shown. */
  const ends = new Map<string, number>()
  const toKey = ({ offset: _, limit: __, ...window }: PageRequest): string => JSON.stringify(window)
  const isRefused = (request: PageRequest): boolean =>
    request.offset >= (refusedOffsets.get(toKey(request))?.offset ?? Number.POSITIVE_INFINITY)
  const noteRows = (request: PageRequest, rowCount: number): void => {
    const key = toKey(request)
    const end = rowCount === 0 ? 0 : request.offset + rowCount
    const refused = refusedOffsets.get(key)
    if (refused !== undefined && !refused.isTooDeep && end > refused.offset) refusedOffsets.delete(key)
    ends.set(key, Math.max(end, ends.get(key) ?? 0))
  }
  const takePage = async (
    request: PageRequest,
    page: TE.TaskEither<ApiError, ExportPage>,
  ): Promise<E.Either<ApiError, ExportPage>> => {
    if (isRefused(request)) return E.right({ rows: [], filter: {}, unknownPaths: [], isRefused: true })
    const answer = await page()
    if (E.isRight(answer)) noteRows(request, answer.right.rows.length)
    if (E.isRight(answer) || request.offset === 0 || !mayRefuseOffset(answer.left)) return answer
    const first = await fetchPage({ ...request, offset: 0, limit: 1 })()
    if (E.isLeft(first)) return first
    const key = toKey(request)
    refusedOffsets.set(key, { offset: request.offset, isTooDeep: (ends.get(key) ?? 0) > request.offset })
    return E.right({ ...first.right, rows: [], filter: {}, isRefused: true })
  }
  return { isRefused, takePage }
}

/** Several streams may ask for the same token. */
const once = <A>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => {
    made ??= make()
    return made
  }
}

const beginAnewNote = ({ operation }: ScanEnv): RunNote =>
  infoNote(
    `${operation}: the service shows none of the rows that the stopped run has read before; everything is read from the beginning.`,
  )

/** What a resume token of this scan is valid for. */
export const scanScope = ({ filters, windows }: Pick<ScanStart, 'filters' | 'windows'>): ScanScope =>
  windows === undefined ? filters : { ...filters, windows }

const toCompletion = (state: ScanState): ScanCompletion => ({
  newestRowTime: O.fromNullable(state.newestRowTime),
  certainTime: certainTime(state),
  cutoff: state.cutoff ?? 0,
  sentRowsSince: (from) => sentRowsSince(state.sentRows, from),
  hasSameRows: (range) => hasSameRows(state.sentRows, range),
})
