import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import { describe, expect, it } from 'vitest'
import type { ListError, ListPage, PageRequest } from '../../connector/reading/list'
import { createPrefetcher } from '../../connector/reading/prefetch'
import type { TestRow } from '../support/read-list'

const request = (offset: number): PageRequest => ({ from: 0, bounds: {}, offset, limit: 10 })
const from = (offset: number, count: number) => Array.from({ length: count }, (_, i) => request(offset + i))
const page: ListPage<TestRow> = { rows: [] }
const noWait: Task<void> = async () => undefined

/**
 * Reads pages from a service whose answers take `answerTime` milliseconds. Processing a page takes `workTime`, for each
 * of the first four `coldTime`, for some `workTimes` by offset. `ahead`: how far ahead of each page requests were sent.
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
    ({ offset }: PageRequest, turn = noWait) =>
    async (): Promise<E.Either<ListError, ListPage<TestRow>>> => {
      offsets.push(offset)
      pending += 1
      mostPending = Math.max(mostPending, pending)
      await new Promise<void>((answer) => due.push({ at: clock + answerTime, answer }))
      pending -= 1
      await turn()
      return E.right({ ...page, limit: offset })
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
      .take(request(offset))()
      .finally(() => {
        hasArrived = true
      })
    await flushEvents()
    const waitStart = clock
    while (!hasArrived) await advanceClock(Math.min(...due.map(({ at }) => at)))
    waitTime += clock - waitStart
    expect(await taken).toEqual(E.right({ ...page, limit: offset }))
    const sent = offsets.length
    prefetcher.prefetch(from(offset + 1, 8))
    ahead.push(Math.max(...offsets.slice(sent - 1)) - offset)
    await advanceClock(clock + (workTimes[offset] ?? (offset < 4 ? coldTime : workTime)))
  }
  return { offsets, ahead, mostPending, waitTime }
}

const flushEvents = () => new Promise((resolve) => setImmediate(resolve))

describe('prefetched pages', () => {
  it('are as many as allowed if the service is slow: eight at a time cost an eighth of the waiting', async () => {
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
      ({ offset }, turn = noWait) =>
        async () => {
          asked.push(offset)
          if (offset !== 6) await turn()
          return E.right(page)
        },
      () => 0,
    )
    for (let offset = 0; offset < 8; offset += 1) await prefetcher.take(request(offset))()
    prefetcher.prefetch(from(8, 3))
    expect(asked.slice(8)).toEqual([8, 9, 10])
  })

  it('are requested when they are expected, and cut when they are taken', async () => {
    const log: string[] = []
    const prefetcher = createPrefetcher(
      ({ offset }, turn = noWait) =>
        async () => {
          log.push(`ask ${offset}`)
          await turn()
          log.push(`cut ${offset}`)
          return E.right(page)
        },
      () => 0,
    )
    prefetcher.prefetch(from(0, 3))
    await flushEvents()
    expect(log).toEqual(['ask 0', 'ask 1', 'ask 2'])
    await prefetcher.take(request(1))()
    expect(log.slice(3)).toEqual(['cut 1'])
    await prefetcher.take(request(7))()
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
    for (const first of [0, 1, 2]) prefetcher.prefetch(from(first, 4))
    expect(asked).toEqual([0, 1, 2, 3, 4, 5])
    prefetcher.prefetch(from(100, 1))
    await prefetcher.take(request(3))()
    expect(asked.slice(6)).toEqual([100, 3])
  })

  it('are known as such until they are taken, but for the one that is needed next', async () => {
    const prefetcher = createPrefetcher(
      () => async () => E.right(page),
      () => 0,
    )
    expect(prefetcher.isPrefetched(request(0))).toBe(false)
    prefetcher.prefetch(from(0, 3))
    expect(from(0, 4).map(prefetcher.isPrefetched)).toEqual([false, true, true, false])
    prefetcher.prefetch(from(1, 1))
    expect(from(0, 4).map(prefetcher.isPrefetched)).toEqual([false, true, false, false])
    await prefetcher.take(request(1))()
    expect(from(0, 4).map(prefetcher.isPrefetched)).toEqual([false, false, false, false])
  })

  it('may fail without an effect on a page that is taken', async () => {
    const prefetcher = createPrefetcher(
      ({ offset }) =>
        () =>
          offset === 1 ? Promise.reject(new Error('lost')) : Promise.resolve(E.right(page)),
      () => 0,
    )
    prefetcher.prefetch(from(0, 2))
    await flushEvents()
    expect(await prefetcher.take(request(0))()).toEqual(E.right(page))
    await expect(prefetcher.take(request(1))()).rejects.toThrow('lost')
  })
})
