import * as E from 'fp-ts/Either'
import type { Task } from 'fp-ts/Task'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { ExportPage } from '../../../connector/export/export-page'
import { createPrefetcher, type PageRequest } from '../../../connector/export/scan/prefetch'

const request = (offset: number): PageRequest => ({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset, limit: 10 })
const from = (offset: number, count: number) => Array.from({ length: count }, (_, i) => request(offset + i))
const page: ExportPage = { rows: [], filter: {}, unknownPaths: [] }
const now: Task<void> = async () => undefined

/** A service whose answers take `taking` milliseconds of a clock of ours, while we are busy `busy` with each page, `cold` with each of the first four. */
const readPages = async ({
  taking,
  busy,
  pages,
  cold = busy,
}: Record<'taking' | 'busy' | 'pages', number> & { cold?: number }) => {
  let clock = 0
  let underWay = 0
  let most = 0
  let waited = 0
  const asked: number[] = []
  const due: Array<{ readonly at: number; readonly answer: () => void }> = []
  const fetch =
    ({ offset }: PageRequest, turn = now) =>
    async (): Promise<E.Either<ApiError, ExportPage>> => {
      asked.push(offset)
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise<void>((answer) => due.push({ at: clock + taking, answer }))
      underWay -= 1
      await turn()
      return E.right({ ...page, filter: { offset } })
    }
  /** Lets time pass, and all that is due by then arrive at its time. */
  const pass = async (until: number): Promise<void> => {
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
  const ahead = createPrefetcher(fetch, () => clock)
  for (let offset = 0; offset < pages; offset += 1) {
    let here = false
    const wanted = ahead
      .takePage(request(offset))()
      .finally(() => {
        here = true
      })
    await flushEvents()
    const since = clock
    while (!here) await pass(Math.min(...due.map(({ at }) => at)))
    waited += clock - since
    expect(await wanted).toEqual(E.right({ ...page, filter: { offset } }))
    ahead.prefetchPages(from(offset + 1, 8))
    await pass(clock + (offset < 4 ? cold : busy))
  }
  return { asked, most, waited }
}

const flushEvents = () => new Promise((resolve) => setImmediate(resolve))

describe('pages ahead', () => {
  it('are as many as may be of a slow service, which is then waited for an eighth of the time', async () => {
    const { asked, most, waited } = await readPages({ taking: 200, busy: 5, pages: 80 })
    expect(asked).toEqual([...new Set(asked)])
    expect(most).toBe(8)
    expect(waited).toBeLessThan((80 / 8 + 2) * 200)
  })

  it('are not fewer for the first pages being dear', async () => {
    const { asked } = await readPages({ taking: 200, busy: 40, cold: 400, pages: 5 })
    expect(Math.max(...asked)).toBe(4 + 8)
  })

  it('are so many that a service of some latency keeps us busy, and not many more', async () => {
    const { asked, waited } = await readPages({ taking: 40, busy: 20, pages: 80 })
    expect(Math.max(...asked)).toBe(79 + 4)
    expect(waited).toBeLessThan(3 * 40)
  })

  it('are only one of a service that is faster than we are', async () => {
    const { asked, waited } = await readPages({ taking: 5, busy: 20, pages: 40 })
    expect(Math.max(...asked)).toBe(40)
    expect(waited).toBeLessThan(3 * 5)
  })

  it('are asked for where they are expected, and cut where they are taken', async () => {
    const log: string[] = []
    const ahead = createPrefetcher(
      ({ offset }, turn = now) =>
        async () => {
          log.push(`ask ${offset}`)
          await turn()
          log.push(`cut ${offset}`)
          return E.right(page)
        },
      () => 0,
    )
    ahead.prefetchPages(from(0, 3))
    await flushEvents()
    expect(log).toEqual(['ask 0', 'ask 1', 'ask 2'])
    await ahead.takePage(request(1))()
    expect(log.slice(3)).toEqual(['cut 1'])
    await ahead.takePage(request(7))()
    expect(log.slice(4)).toEqual(['ask 7', 'cut 7'])
  })

  it('are asked for once while they are expected, and forgotten where others are', async () => {
    const asked: number[] = []
    const ahead = createPrefetcher(
      ({ offset }) =>
        async () => {
          asked.push(offset)
          return E.right(page)
        },
      () => 0,
    )
    for (const first of [0, 1, 2]) ahead.prefetchPages(from(first, 4))
    expect(asked).toEqual([0, 1, 2, 3, 4, 5])
    ahead.prefetchPages(from(100, 1))
    await ahead.takePage(request(3))()
    expect(asked.slice(6)).toEqual([100, 3])
  })
})
