import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { toInstant } from '../api'
import { defined } from '../cdk'
import type { CutRecord, ExportPage, FetchPage } from '../export'
import {
  type EntityFacts,
  listConfiguredEntities,
  type ProbeError,
  type ProbeGate,
  probeEntities,
  probeWindow,
  type SourceEnv,
  windowOperations,
} from '../streams'
import { mayRefuseRequest } from './client'

/** What a probe found; undefined: it has not started or not finished. */
export type Probed<A> = E.Either<ProbeError, A> | undefined

export type RowOrder = 'ascending' | 'descending' | 'by id' | 'none' | 'one time' | 'one row' | 'no rows'

/** The first two pages of the export, as a run asks for them. */
export type PageFacts = {
  readonly asked: number
  /** Number of rows on the first and on the second page. */
  readonly rows: readonly [number, number]
  /** Number of different rows on both pages. */
  readonly distinct: number
  /**
   * 'seen' if the end of the list was seen; undefined: there may be more rows. An error: the second page did not come.
   */
  readonly ending: 'seen' | ProbeError | undefined
  /** The limit in the echo of the first answer. */
  readonly echoedLimit?: number
  readonly order: RowOrder
  /** Time per page that has rows, fetched one after the other. */
  readonly millis: number
}

/** The number of reviews: at least `min`, at most `max`. Without `max`, `limit` says why there may be more. */
export type CountFacts = {
  readonly min: number
  readonly max?: number
  readonly limit?:
    | { readonly _tag: 'Stopped'; readonly error?: ProbeError }
    | { readonly _tag: 'Refused' | 'Repeated'; readonly offset: number }
}

export type WindowFacts = { readonly operation: string; readonly evidence: Probed<boolean | undefined> }

/** What the probes have found so far. They fill it in as they go, so that a check can end at any time. */
export type ProbeFacts = {
  pages: Probed<PageFacts>
  count: Probed<CountFacts>
  entities: Probed<EntityFacts>
  windows: ReadonlyArray<WindowFacts>
}

/** The most requests of all probes together. */
export const maxProbeRequests = 36

type ProbeEnv = {
  readonly source: SourceEnv
  readonly fetchPage: FetchPage
  readonly send: ProbeGate
  /** Milliseconds of a monotonic clock. */
  readonly ticks: () => number
}

/** Sends requests as long as `isOpen` returns true. */
export const createProbeGate =
  (isOpen: () => boolean): ProbeGate =>
  (request) =>
  async () =>
    isOpen() ? request() : E.left({ _tag: 'Stopped' })

/** Finds out what a run will meet, into `facts`. */
export const runProbes = async (env: ProbeEnv, facts: ProbeFacts): Promise<void> => {
  const { source, send } = env
  facts.pages = await measurePages(env)()
  if (listConfiguredEntities(source).length > 0) {
    facts.entities = await probeEntities(source, send)()
    facts.windows = await probeWindows(env, facts.entities)
  }
  if (E.isRight(facts.pages)) facts.count = await countReviews(env, facts.pages.right)()
}

/** Probes a window of the first known entity with both feedback operations. */
const probeWindows = async ({ source, send }: ProbeEnv, entities: Probed<EntityFacts>) => {
  const unknown = entities !== undefined && E.isRight(entities) ? entities.right.unknown : []
  const entity = listConfiguredEntities(source).find(
    ({ key, id }) => !unknown.some((other) => other.key === key && other.id === id),
  )
  return entity === undefined
    ? []
    : Promise.all(
        windowOperations.map(
          async (operation): Promise<WindowFacts> => ({
            operation: operation.name,
            evidence: await send(probeWindow(operation, source, entity))(),
          }),
        ),
      )
}

const fetchRows = (
  { source, fetchPage, send }: ProbeEnv,
  offset: number,
  limit: number,
): TaskEither<ProbeError, ExportPage> =>
  send(fetchPage({ ...source.filters, modifiedTimeFrom: toInstant(source.startDate), offset, limit }))

type RowKey = Pick<CutRecord, 'id' | 'modifiedTime'>

/** The keys of a page. Releases the page's bytes. */
const takeKeys = (page: ExportPage): ReadonlyArray<RowKey> => {
  const keys = page.rows.map(({ id, modifiedTime }) => ({ id, modifiedTime }))
  page.release?.()
  return keys
}

const measurePages = (env: ProbeEnv): TaskEither<ProbeError, PageFacts> => {
  const asked = env.source.pageSize
  const startedAt = env.ticks()
  return async () => {
    const page = await fetchRows(env, 0, asked)()
    if (E.isLeft(page)) return page
    const first = takeKeys(page.right)
    const isShort = first.length < asked
    let millis = env.ticks() - startedAt
    let [second, ending]: [ReadonlyArray<RowKey>, PageFacts['ending']] = [[], 'seen']
    if (first.length > 0) {
      const next = await fetchRows(env, first.length, asked)()
      // The service may refuse an offset after the end, and a short page is the end.
      if (E.isLeft(next)) ending = isShort && isOffsetRefusal(next.left) ? 'seen' : next.left
      else {
        second = takeKeys(next.right)
        ending = second.length === 0 ? 'seen' : undefined
        if (second.length > 0) millis = env.ticks() - startedAt
      }
    }
    const ids = new Set(first.map(({ id }) => id))
    const more = second.filter(({ id }) => !ids.has(id)).length
    return E.right({
      asked,
      rows: [first.length, second.length],
      distinct: ids.size + more,
      // The service may answer an offset after the end with rows that it already returned.
      ending: second.length > 0 && more === 0 ? 'seen' : ending,
      ...defined({ echoedLimit: page.right.filter.limit ?? undefined }),
      order: findOrder(more === 0 ? first : [...first, ...second]),
      millis,
    })
  }
}

/** Finds the order of the rows. */
const findOrder = (rows: ReadonlyArray<RowKey>): RowOrder => {
  const [first] = rows
  if (first === undefined) return 'no rows'
  if (rows.length === 1) return 'one row'
  const keeps = (isKept: (before: RowKey, after: RowKey) => boolean): boolean =>
    rows.every((row, i) => i === 0 || isKept(rows[i - 1] ?? row, row))
  const isByTime = rows.every(({ modifiedTime }) => modifiedTime === first.modifiedTime)
  if (keeps((a, b) => BigInt(a.id) < BigInt(b.id)) && !keeps((a, b) => a.modifiedTime <= b.modifiedTime)) return 'by id'
  if (isByTime) return 'one time'
  if (keeps((a, b) => a.modifiedTime <= b.modifiedTime)) return 'ascending'
  return keeps((a, b) => a.modifiedTime >= b.modifiedTime) ? 'descending' : 'none'
}

/** The service may have refused the offset, not the request as such. */
const isOffsetRefusal = (error: ProbeError): boolean => {
  if (error._tag === 'Stopped' || error._tag === 'Failed' || (error._tag === 'Http' && error.status < 400)) return false
  return mayRefuseRequest(error)
}

/** The largest offset that a probe requests. */
const maxOffset = 100_000_000

/** Counting stops once the count is known to within this fraction. */
const countPrecision = 0.15

/** What single rows at some offsets have shown. Infinity: no offset was empty, or none was refused. */
type Bounds = { readonly min: number; readonly empty: number; readonly refused: number }

/**
 * Counts the rows, which no answer states, by requesting single rows further and further back, and then in between.
 * Works for any order of the rows.
 */
const countReviews = (env: ProbeEnv, { distinct, ending }: PageFacts): TaskEither<ProbeError, CountFacts> => {
  if (ending === 'seen') return TE.right({ min: distinct, max: distinct })
  if (ending !== undefined)
    return TE.right({
      min: distinct,
      limit: isOffsetRefusal(ending) ? { _tag: 'Refused', offset: distinct } : { _tag: 'Stopped', error: ending },
    })
  return async () => {
    const ids = new Set<string>()
    let bounds: Bounds = { min: distinct, empty: Number.POSITIVE_INFINITY, refused: Number.POSITIVE_INFINITY }
    for (;;) {
      const offsets = chooseOffsets(bounds, Math.min(4, env.source.concurrency))
      if (offsets.length === 0) return E.right(toCount(bounds))
      const answers = await Promise.all(offsets.map((offset) => fetchRows(env, offset, 1)()))
      for (const [i, offset] of offsets.entries()) {
        const answer = answers[i]
        if (answer === undefined) return E.right(toCount(bounds))
        if (E.isLeft(answer) && !isOffsetRefusal(answer.left)) return E.right(toCount(bounds, answer.left))
        const [row] = E.isRight(answer) ? takeKeys(answer.right) : []
        if (E.isLeft(answer)) bounds = { ...bounds, refused: Math.min(bounds.refused, offset) }
        else if (row === undefined) bounds = { ...bounds, empty: Math.min(bounds.empty, offset) }
        else if (ids.has(row.id)) return E.right({ min: distinct, limit: { _tag: 'Repeated', offset } })
        else bounds = toConsistent({ ...bounds, min: Math.max(bounds.min, offset + 1) })
        if (row !== undefined) ids.add(row.id)
      }
    }
  }
}

/** If rows came from an offset after an empty or refused one, that answer was wrong or outdated. */
const toConsistent = ({ min, empty, refused }: Bounds): Bounds => ({
  min,
  empty: empty < min ? Number.POSITIVE_INFINITY : empty,
  refused: refused < min ? Number.POSITIVE_INFINITY : refused,
})

/** The next offsets to request, at most `count`; none once the bounds are close enough. */
const chooseOffsets = ({ min, empty, refused }: Bounds, count: number): ReadonlyArray<number> => {
  const end = Math.min(empty, refused)
  if (end === Number.POSITIVE_INFINITY)
    return Array.from({ length: count }, (_, i) => min * 4 ** i).filter((offset) => offset <= maxOffset)
  if (end - min <= countPrecision * min) return []
  const step = (end - min) / (count + 1)
  return [...new Set(Array.from({ length: count }, (_, i) => Math.floor(min + step * (i + 1))))]
}

const toCount = ({ min, empty, refused }: Bounds, error?: ProbeError): CountFacts => {
  if (empty < Number.POSITIVE_INFINITY && empty <= refused) return { min, max: empty }
  return {
    min,
    limit:
      refused < Number.POSITIVE_INFINITY
        ? { _tag: 'Refused', offset: refused }
        : { _tag: 'Stopped', ...defined({ error }) },
  }
}
