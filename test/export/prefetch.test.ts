import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Task } from 'fp-ts/Task'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import type { ExportPage } from '../../connector/export/fetch-page'
import { createPrefetcher, nextPageRequest, type PageRequest, requestsAhead } from '../../connector/export/fetch-page'
import { newScanState, type ScanState } from '../../connector/export/scan/state'

const request = (offset: number): PageRequest => ({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset, limit: 10 })
const from = (offset: number, count: number) => Array.from({ length: count }, (_, i) => request(offset + i))
const page: ExportPage = { rows: [], filter: {}, unknownPaths: [] }
const noWait: Task<void> = async () => undefined

/**
 * Reads pages from a service whose answers take `answerTime` milliseconds. Working on a page takes `workTime`, on each of the first four
 * `coldTime`, on some `workTimes` by their offset. `ahead`: how far ahead of each page requests were sent.
 */
const readPages = async ({
  answerTime,
  workTime,
  pages,
  coldTime = workTime,
  workTimes = {},
}: Record<'answerTime' | 'workTime' | 'pages', number> & { coldTime?: number; workTimes?: Record<number, number> }) => {
  let clock = 0
  let pending = 0
  let mostPending = 0
  let waitTime = 0
  const offsets: number[] = []
  const ahead: number[] = []
  const due: Array<{ readonly at: number; readonly answer: () => void }> = []
  const fetch =
    ({ offset }: PageRequest, beforeCut = noWait) =>
    async (): Promise<E.Either<ApiError, ExportPage>> => {
      offsets.push(offset)
      pending += 1
      mostPending = Math.max(mostPending, pending)
      await new Promise<void>((answer) => due.push({ at: clock + answerTime, answer }))
      pending -= 1
      await beforeCut()
      return E.right({ ...page, filter: { offset } })
    }
  /** Advances the clock; each answer that is due by then arrives at its time. */
  const advanceClock = async (until: number): Promise<void> => {
    for (;;) {
      const [next] = due.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      clock = Math.max(clock, next.at)
      due.splice(due.indexOf(next), 1)
      next.answer()
      await flushEvents()
    }
    clock = Math.max(clock, until)
  }
  const prefetcher = createPrefetcher(fetch, () => clock)
  for (let offset = 0; offset < pages; offset += 1) {
    let hasArrived = false
    const taken = prefetcher
      .takePage(request(offset))()
      .finally(() => {
        hasArrived = true
      })
    await flushEvents()
    const waitStart = clock
    while (!hasArrived) await advanceClock(Math.min(...due.map(({ at }) => at)))
    waitTime += clock - waitStart
    expect(await taken).toEqual(E.right({ ...page, filter: { offset } }))
    const sent = offsets.length
    prefetcher.prefetchPages(from(offset + 1, 8))
    ahead.push(Math.max(...offsets.slice(sent - 1)) - offset)
    await advanceClock(clock + (workTimes[offset] ?? (offset < 4 ? coldTime : workTime)))
  }
  return { offsets, ahead, mostPending, waitTime }
}

const flushEvents = () => new Promise((resolve) => setImmediate(resolve))

describe('prefetched pages', () => {
  it('are as many as allowed if the service is slow, so that eight at a time cost an eighth of the waiting', async () => {
    const { offsets, mostPending, waitTime } = await readPages({ answerTime: 200, workTime: 5, pages: 80 })
    expect(offsets).toEqual([...new Set(offsets)])
    expect(mostPending).toBe(8)
    expect(waitTime).toBeLessThan((80 / 8 + 2) * 200)
  })

  it('are not fewer because the first pages take long to work on', async () => {
    const { offsets } = await readPages({ answerTime: 200, workTime: 40, coldTime: 400, pages: 5 })
    expect(Math.max(...offsets)).toBe(4 + 8)
  })

  it('are just enough to never wait for a service of medium speed', async () => {
    const { offsets, waitTime } = await readPages({ answerTime: 40, workTime: 20, pages: 80 })
    expect(Math.max(...offsets)).toBe(79 + 4)
    expect(waitTime).toBeLessThan(3 * 40)
  })

  it('are only one if the service is faster than the work on a page', async () => {
    const { offsets, waitTime } = await readPages({ answerTime: 5, workTime: 20, pages: 40 })
    expect(Math.max(...offsets)).toBe(40)
    expect(waitTime).toBeLessThan(3 * 5)
  })

  it('are not fewer after pages that took longer to work on than the fastest', async () => {
    const { ahead } = await readPages({ answerTime: 40, workTime: 20, workTimes: { 4: 40, 10: 30, 11: 30 }, pages: 14 })
    expect(ahead).toEqual([8, 8, 8, 8, 8, 7, 6, 5, 4, 4, 4, 4, 4, 4])
  })

  it('are as many as allowed where working on pages takes no time, also after a page that did not come', async () => {
    const asked: number[] = []
    const prefetcher = createPrefetcher(
      ({ offset }, beforeCut = noWait) =>
        async () => {
          asked.push(offset)
          if (offset !== 6) await beforeCut()
          return E.right(page)
        },
      () => 0,
    )
    for (let offset = 0; offset < 8; offset += 1) await prefetcher.takePage(request(offset))()
    prefetcher.prefetchPages(from(8, 3))
    expect(asked.slice(8)).toEqual([8, 9, 10])
  })

  it('are requested when they are expected, and cut when they are taken', async () => {
    const log: string[] = []
    const prefetcher = createPrefetcher(
      ({ offset }, beforeCut = noWait) =>
        async () => {
          log.push(`ask ${offset}`)
          await beforeCut()
          log.push(`cut ${offset}`)
          return E.right(page)
        },
      () => 0,
    )
    prefetcher.prefetchPages(from(0, 3))
    await flushEvents()
    expect(log).toEqual(['ask 0', 'ask 1', 'ask 2'])
    await prefetcher.takePage(request(1))()
    expect(log.slice(3)).toEqual(['cut 1'])
    await prefetcher.takePage(request(7))()
    expect(log.slice(4)).toEqual(['ask 7', 'cut 7'])
  })

  it('are requested once while they are expected, and dropped when others are expected', async () => {
    const asked: number[] = []
    const prefetcher = createPrefetcher(
      ({ offset }) =>
        async () => {
          asked.push(offset)
          return E.right(page)
        },
      () => 0,
    )
    for (const first of [0, 1, 2]) prefetcher.prefetchPages(from(first, 4))
    expect(asked).toEqual([0, 1, 2, 3, 4, 5])
    prefetcher.prefetchPages(from(100, 1))
    await prefetcher.takePage(request(3))()
    expect(asked.slice(6)).toEqual([100, 3])
  })

  it('are known as such until they are taken, but for the one that is needed next', async () => {
    const prefetcher = createPrefetcher(
      () => async () => E.right(page),
      () => 0,
    )
    expect(prefetcher.isPrefetched(request(0))).toBe(false)
    prefetcher.prefetchPages(from(0, 3))
    expect(from(0, 4).map(prefetcher.isPrefetched)).toEqual([false, true, true, false])
    prefetcher.prefetchPages(from(1, 1))
    expect(from(0, 4).map(prefetcher.isPrefetched)).toEqual([false, true, false, false])
    await prefetcher.takePage(request(1))()
    expect(from(0, 4).map(prefetcher.isPrefetched)).toEqual([false, false, false, false])
  })

  it('may fail without an effect on a page that is taken', async () => {
    const prefetcher = createPrefetcher(
      ({ offset }) =>
        () =>
          offset === 1 ? Promise.reject(new Error('lost')) : Promise.resolve(E.right(page)),
      () => 0,
    )
    prefetcher.prefetchPages(from(0, 2))
    await flushEvents()
    expect(await prefetcher.takePage(request(0))()).toEqual(E.right(page))
    await expect(prefetcher.takePage(request(1))()).rejects.toThrow('lost')
  })
})

describe('the requests of a scan', () => {
  const state: ScanState = {
    ...newScanState({
      origin: { startDate: Date.UTC(2026, 0, 1, 0, 0, 1), cursor: O.none, lookback: 0 },
      now: 0,
      limit: 50,
      cutoff: 0,
      windows: [{ kind: 'part' }],
    }),
    longestPage: 50,
  }
  const atPass = (more: Partial<ScanState['pass']>): ScanState => ({
    ...state,
    pass: { ...state.pass, offset: 80, ...more },
  })

  it('are those of the first window, at the offset of the pass', () => {
    const first = { modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset: 80, limit: 50, sources: [3] }
    const windows = [{ kind: 'part', mentionTimeAfter: '2026-01-01T00:00:00.000Z' }, { kind: 'sweep' }] as const
    expect(nextPageRequest({ sources: [3] }, { ...atPass({}), windows })).toEqual({
      ...first,
      mentionTimeAfter: '2026-01-01T00:00:00.000Z',
    })
    expect(nextPageRequest({ sources: [3] }, { ...atPass({}), windows: [] })).toEqual(first)
    expect(requestsAhead(2, { sources: [3] }, state, atPass({ fullPagesInARow: 2 }))).toEqual([
      first,
      { ...first, offset: 120 },
    ])
  })

  const fullSoFar = atPass({ pageCount: 3, fullPagesInARow: 3 })
  it.each<[string, number, ScanState, ScanState, ReadonlyArray<number>]>([
    ['no others if only one may be pending', 1, state, atPass({ fullPagesInARow: 2 }), []],
    ['none without a window', 4, state, { ...atPass({ fullPagesInARow: 2 }), windows: [] }, []],
    ['as many as allowed after two full pages', 4, state, atPass({ fullPagesInARow: 2 }), [80, 120, 160, 200]],
    ['as many after one that has all rows asked for', 3, state, atPass({ fullPagesInARow: 1 }), [80, 120, 160]],
    ['one after one that may not be full', 3, state, { ...atPass({ fullPagesInARow: 1 }), limit: 51 }, [80]],
    ['as many after two that may not be full', 2, state, { ...atPass({ fullPagesInARow: 2 }), limit: 51 }, [80, 120]],
    ['one behind the last row', 3, state, atPass({ fullPagesInARow: 2, isConfirmingEnd: true }), [80]],
    ['one for a look at the start', 3, state, atPass({ fullPagesInARow: 2, foundAtStart: 0 }), [80]],
    ['one at the start', 3, state, atPass({ offset: 80 }), [80]],
    ['the end after the first short page', 3, fullSoFar, atPass({ pageCount: 4 }), [80, 90]],
    ['one after a second short page', 3, atPass({ pageCount: 4, fullPagesInARow: 3 }), atPass({ pageCount: 5 }), [80]],
    ['one after a page thrown away', 3, fullSoFar, atPass({ pageCount: 3 }), [80]],
    ['one after a short first page', 3, state, atPass({ pageCount: 1 }), [80]],
    ['one where pages have one row', 3, state, { ...atPass({ fullPagesInARow: 2 }), longestPage: 0 }, [80]],
  ])('ahead are %s', (_, concurrency, before, now, offsets) => {
    expect(requestsAhead(concurrency, {}, before, now).map(({ offset }) => offset)).toEqual(offsets)
  })
})
