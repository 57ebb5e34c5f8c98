import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type ApiError, isRefusalInBody, outageKind, toFailure, toInstant, toMillis } from '../api'
import { defined } from '../cdk'
import type { Bounds, List, ListError, ListPage, PageRequest } from '../reading'
import type { CutRecord } from './cut/record'
import type { ExportPage, ExportPageRequest, FetchPage } from './fetch-page'
import { type ExportFilters, readMentionTime } from './filters'

/** An export as a list to read: its other request parameters, and if mention time can divide it. */
export type ExportListing = {
  /** The name of the operation in messages. */
  readonly operation: string
  readonly fetch: FetchPage
  readonly filters: ExportFilters
  /** Reviews can be narrowed by mention time, deletions cannot. */
  readonly hasMentionTime: boolean
}

export const toList = ({ operation, fetch, filters, hasMentionTime }: ExportListing): List<CutRecord> => ({
  name: operation,
  fetch: (request, turn) => async () =>
    pipe(
      await takePage(fetch, toExportRequest(filters, request), turn),
      E.bimap(
        (error): ListError => ({
          _tag: error._tag === 'TooLarge' ? 'TooLarge' : 'Failed',
          failure: toFailure(operation, error),
        }),
        (page) => toListPage(filters, page),
      ),
    ),
  ...(hasMentionTime ? { mentionTime: readMentionTime } : {}),
})

/** The bounds of a request stay within those of the config. */
const toExportRequest = (filters: ExportFilters, { from, bounds, offset, limit }: PageRequest): ExportPageRequest => {
  const configured = boundsOf(filters)
  const after = Math.max(bounds.after ?? Number.NEGATIVE_INFINITY, configured.after ?? Number.NEGATIVE_INFINITY)
  const before = Math.min(bounds.before ?? Number.POSITIVE_INFINITY, configured.before ?? Number.POSITIVE_INFINITY)
  return {
    modifiedTimeFrom: toInstant(from),
    ...filters,
    ...(Number.isFinite(after) ? { mentionTimeAfter: toInstant(after) } : {}),
    ...(Number.isFinite(before) ? { mentionTimeBefore: toInstant(before) } : {}),
    offset,
    limit,
  }
}

/** The bounds that a request or its answer names. */
export const boundsOf = (filter: {
  readonly mentionTimeAfter?: string | null | undefined
  readonly mentionTimeBefore?: string | null | undefined
}): Bounds =>
  defined({
    after: filter.mentionTimeAfter == null ? undefined : toMillis(filter.mentionTimeAfter),
    before: filter.mentionTimeBefore == null ? undefined : toMillis(filter.mentionTimeBefore),
  })

/** Ignores what the answer says about bounds that the config sets: those are checked elsewhere. */
const toListPage = (
  { mentionTimeAfter, mentionTimeBefore }: ExportFilters,
  { rows, filter, isRefused, servedAt, release }: ExportPage,
): ListPage<CutRecord> => {
  const { after, before } = boundsOf(filter)
  return {
    rows,
    bounds: defined({
      after: mentionTimeAfter === undefined ? after : undefined,
      before: mentionTimeBefore === undefined ? before : undefined,
    }),
    ...defined({ limit: filter.limit ?? undefined, isRefused, servedAt, release }),
  }
}

/** An error that may only concern the offset of its request. Outages, rate limits and tokens do not. */
const mayRefuseOffset = (error: ApiError): boolean =>
  error._tag === 'Http'
    ? error.status === 204 || (error.status >= 400 && error.status !== 401 && outageKind(error) === undefined)
    : isRefusalInBody(error)

/**
 * Accepts the answer to a request. The specification does not say how the service answers an offset after the last row,
 * or one deeper than it can serve. If it refuses this offset but not offset 0, the page counts as refused.
 */
const takePage = async (
  fetch: FetchPage,
  request: ExportPageRequest,
  turn: Parameters<FetchPage>[1],
): Promise<E.Either<ApiError, ExportPage>> => {
  const answer = await fetch(request, turn)()
  if (E.isRight(answer) || request.offset === 0 || !mayRefuseOffset(answer.left)) return answer
  const first = await fetch({ ...request, offset: 0, limit: 1 })()
  if (E.isLeft(first)) return first
  first.right.release?.()
  const { servedAt } = first.right
  return E.right({ rows: [], filter: {}, unknownPaths: [], isRefused: true, ...defined({ servedAt }) })
}
