import type * as E from 'fp-ts/Either'
import type * as TE from 'fp-ts/TaskEither'
import type { FetchListPage, ListError, ListPage, ListRow, PageRequest } from './list'

/** Sends requests for pages before they are needed. */
export type Prefetcher<R extends ListRow> = {
  /**
   * Requests the pages that are probably needed next and drops pending ones that are not among them. Never has more in
   * flight than needed to avoid waiting (twice the answer time divided by the processing time), since more would only
   * take memory.
   */
  readonly prefetch: (requests: ReadonlyArray<PageRequest>) => void
  /** True if the page was requested before the page preceding it was taken, so it may be older than that one. */
  readonly isPrefetched: (request: PageRequest) => boolean
  /** The page of a request, prefetched or not. It is parsed only now; until then it is just bytes. */
  readonly take: (request: PageRequest) => TE.TaskEither<ListError, ListPage<R>>
}

/** The first pages are not measured: until our code is compiled, they take far longer than later ones. */
const warmUpPages = 4

type PendingPage<R extends ListRow> = {
  readonly page: Promise<E.Either<ListError, ListPage<R>>>
  readonly startWork: () => void
  /** Other pages come before it. */
  readonly isAhead: boolean
}

/** `now`: milliseconds. */
export const createPrefetcher = <R extends ListRow>(fetch: FetchListPage<R>, now: () => number): Prefetcher<R> => {
  const pending = new Map<string, PendingPage<R>>()
  /**
   * Milliseconds from a request to its answer, and from taking a page to requesting the next. Decaying minimums,
   * because a busy event loop inflates single measurements.
   */
  let answerTime: number | undefined
  let workTime: number | undefined
  let workStart: number | undefined
  let takenPages = 0

  const request = (page: PageRequest, isAhead: boolean): PendingPage<R> => {
    const key = JSON.stringify(page)
    const earlier = pending.get(key)
    if (earlier !== undefined) return earlier
    const sentAt = now()
    let startWork = () => {}
    const isTaken = new Promise<void>((resolve) => {
      startWork = resolve
    })
    const answer = fetch(page, async () => {
      answerTime = decayMinimum(answerTime, now() - sentAt)
      await isTaken
      workStart = now()
    })()
    answer.catch(() => undefined)
    const started = { page: answer, startWork, isAhead }
    pending.set(key, started)
    return started
  }
  return {
    prefetch: (requests) => {
      const keys = new Set(requests.map((one) => JSON.stringify(one)))
      for (const key of pending.keys()) if (!keys.has(key)) pending.delete(key)
      const depth =
        workTime === undefined || workTime === 0
          ? requests.length
          : Math.ceil((2 * (answerTime ?? workTime)) / workTime)
      for (const [i, one] of requests.slice(0, Math.max(1, depth)).entries()) request(one, i > 0)
    },
    isPrefetched: (one) => pending.get(JSON.stringify(one))?.isAhead === true,
    take: (one) => async () => {
      if (workStart !== undefined && takenPages > warmUpPages) workTime = decayMinimum(workTime, now() - workStart)
      takenPages += 1
      workStart = undefined
      const { page, startWork } = request(one, false)
      startWork()
      pending.delete(JSON.stringify(one))
      return page
    },
  }
}

/** A minimum that forgets: it moves a sixteenth of the way towards a larger value. */
const decayMinimum = (minimum: number | undefined, value: number): number =>
  minimum === undefined || value < minimum ? value : minimum + (value - minimum) / 16
