import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import type { ApiError } from '../../connector/api/error'
import type { Failure } from '../../connector/cdk/failure'
import type { ExportPage, FetchPage } from '../../connector/export/fetch-page'
import { toList } from '../../connector/export/list'
import type { ReadItem } from '../../connector/reading/item'
import type { FetchListPage, List, ListPage, ListRow, PageRequest } from '../../connector/reading/list'
import { type ReadStart, read } from '../../connector/reading/read'
import type { ReadEnv } from '../../connector/reading/session'
import type { SimulatedExport } from './export-simulation'

/** A row with its mention time, milliseconds; undefined: it has none. */
export type TestRow = ListRow & { readonly mention: number | undefined }
export type TestPage = ListPage<TestRow>

/** When the lists of tests begin, and the time of their service's clock, which does not move. */
export const [listStart, servedAt] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 31)]

export const testRow = (id: number, modifiedTime = listStart + id * 60_000, more: Partial<TestRow> = {}): TestRow => ({
  id: String(id),
  modifiedTime,
  json: Buffer.from(`{"id":${id},"at":${modifiedTime}}`),
  mention: listStart - id * 3_600_000,
  ...more,
})

export const testRows = (count: number, make = (id: number): TestRow => testRow(id)): ReadonlyArray<TestRow> =>
  Array.from({ length: count }, (_, i) => make(i + 1))

/**
 * The rows that match a request, as a service that keeps the specification returns them. `rows` is asked for each
 * request.
 */
export const serve =
  (rows: (request: PageRequest) => ReadonlyArray<TestRow>): FetchListPage<TestRow> =>
  (request) => {
    const { from, offset, limit, bounds } = request
    const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = bounds
    const isBounded = bounds.after !== undefined || bounds.before !== undefined
    const matching = rows(request).filter(
      ({ modifiedTime, mention }) =>
        modifiedTime >= from && (mention === undefined ? !isBounded : mention >= after && mention < before),
    )
    return TE.right({ rows: matching.slice(offset, offset + limit), servedAt })
  }

/** Answers some requests otherwise; `n`: the number of the request, from 1. */
export const disturb = <R extends ListRow>(
  fetch: FetchListPage<R>,
  change: (page: ListPage<R>, request: PageRequest, n: number) => ListPage<R>,
): FetchListPage<R> => {
  let n = 0
  return (request, turn) => {
    n += 1
    const number = n
    return TE.map((page: ListPage<R>) => change(page, request, number))(fetch(request, turn))
  }
}

export const reviewList = (fetch: FetchListPage<TestRow>): List<TestRow> => ({
  name: 'export reviews',
  fetch,
  mentionTime: ({ mention }) => mention,
})

/** As deletions: no filter cuts it. */
export const deletionList = (fetch: FetchListPage<TestRow>): List<TestRow> => ({ name: 'export deletions', fetch })

export type ReadOutcome<R extends ListRow> = {
  readonly items: ReadonlyArray<ReadItem<R>>
  readonly ids: ReadonlyArray<string>
  /** All rows once. */
  readonly read: ReadonlySet<string>
  readonly notes: ReadonlyArray<string>
  readonly failure: Failure | undefined
  readonly isComplete: boolean
  readonly requests: ReadonlyArray<PageRequest>
  readonly waits: ReadonlyArray<number>
}

/** Reads a list to its end, or up to the item with which `stop` is true. */
export const readAll = async <R extends ListRow>(
  list: List<R>,
  env: Partial<ReadEnv<R>> = {},
  start: Partial<ReadStart> = {},
  stop: (item: ReadItem<R>, items: number) => boolean = () => false,
): Promise<ReadOutcome<R>> => {
  const items: ReadItem<R>[] = []
  const requests: PageRequest[] = []
  const waits: number[] = []
  let failure: Failure | undefined
  const feed = read<R>({
    list: {
      ...list,
      fetch: (request, turn) => {
        requests.push(request)
        if (requests.length > 5000) throw new Error('the read does not end')
        return list.fetch(request, turn)
      },
    },
    now: () => servedAt,
    wait: (millis) => async () => void waits.push(millis),
    concurrency: 1,
    limit: 50,
    ...env,
  })({
    origin: { startDate: Date.UTC(2025, 0, 1), cursor: O.none, lookback: 600_000 },
    scope: '',
    resumeToken: O.none,
    ...start,
  })
  for await (const item of feed) {
    if (E.isLeft(item)) failure = item.left
    else items.push(item.right)
    if (E.isRight(item) && stop(item.right, items.length)) break
  }
  const ids = items.flatMap(({ rows }) => rows.map(({ id }) => id))
  return {
    ...{ items, ids, read: new Set(ids), failure, requests, waits },
    notes: items.flatMap(({ notes }) => notes.map(({ message }) => message)),
    isComplete: items.at(-1)?.completion !== undefined,
  }
}

/** Reads the reviews, or the deletions, of a simulated service; waits pass in its time. */
export const readService = (
  service: SimulatedExport,
  {
    isReviews = true,
    fetch = service.reviews,
    ...env
  }: Partial<
    Omit<ReadEnv<never>, 'list'> & { readonly isReviews: boolean; readonly fetch: SimulatedExport['reviews'] }
  > = {},
  start: Partial<ReadStart> = {},
) =>
  readAll(
    toList({ operation: 'export reviews', fetch, filters: {}, hasMentionTime: isReviews }),
    { now: service.now, wait: (millis) => async () => service.sleep(millis), ...env },
    start,
  )

/** A service that answers offsets after the last row with an error. */
export const refuseEnd =
  (fetch: FetchPage, error: ApiError = { _tag: 'Http', status: 416, message: 'offset' }): FetchPage =>
  (request, turn) =>
    TE.filterOrElse(
      ({ rows }: ExportPage) => rows.length > 0 || request.offset === 0,
      () => error,
    )(fetch(request, turn))
