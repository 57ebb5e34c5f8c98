import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { Page } from '../../../connector/api/page'
import { type PageRequest, pagesAhead } from '../../../connector/api/scan/ahead'

const request = (offset: number): PageRequest => ({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset, limit: 10 })
const following = (offset: number, count: number) => Array.from({ length: count }, (_, i) => request(offset + i + 1))
const page: Page = { rows: [], filter: {}, unknown: [] }

/** A service whose answers take `taking` milliseconds of a clock of ours, while we are busy `busy` with each page. */
const reading = async ({ taking, busy, pages }: { taking: number; busy: number; pages: number }) => {
  let clock = 0
  let underWay = 0
  let most = 0
  let waited = 0
  const asked: number[] = []
  const due: Array<{ readonly at: number; readonly answer: () => void }> = []
  const fetch =
    ({ offset }: PageRequest) =>
    () => {
      asked.push(offset)
      underWay += 1
      most = Math.max(most, underWay)
      return new Promise<E.Either<ApiError, Page>>((resolve) => {
        const answer = () => {
          underWay -= 1
          resolve(E.right({ ...page, filter: { offset } }))
        }
        due.push({ at: clock + taking, answer })
      })
    }
  /** Lets time pass, and all that is due by then arrive at its time. */
  const pass = async (until: number): Promise<void> => {
    for (;;) {
      const [next] = due.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      clock = Math.max(clock, next.at)
      due.splice(due.indexOf(next), 1)
      next.answer()
      await settle()
    }
    clock = Math.max(clock, until)
  }
  const ahead = pagesAhead(fetch, () => clock)
  for (let offset = 0; offset < pages; offset += 1) {
    let here = false
    const wanted = ahead(request(offset), following(offset, offset === 0 ? 0 : 7))().finally(() => {
      here = true
    })
    await settle()
    const since = clock
    while (!here) await pass(Math.min(...due.map(({ at }) => at)))
    waited += clock - since
    expect(await wanted).toEqual(E.right({ ...page, filter: { offset } }))
    await pass(clock + busy)
  }
  return { asked, most, waited }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('pages ahead', () => {
  it('are as many as may be of a slow service, which is then waited for an eighth of the time', async () => {
    const { asked, most, waited } = await reading({ taking: 200, busy: 5, pages: 80 })
    expect(asked).toEqual([...new Set(asked)])
    expect(most).toBe(8)
    expect(waited).toBeLessThan((80 / 8 + 2) * 200)
  })

  it('are so many that a service of some latency keeps us busy, and no more', async () => {
    const { most, waited } = await reading({ taking: 60, busy: 20, pages: 80 })
    expect(most).toBeLessThan(6)
    expect(waited).toBeLessThan(3 * 60)
  })

  it('are only one of a service that is faster than we are', async () => {
    const { asked, waited } = await reading({ taking: 10, busy: 20, pages: 40 })
    expect(Math.max(...asked)).toBe(40)
    expect(waited).toBeLessThan(3 * 10)
  })

  it('are forgotten where others are wanted', async () => {
    const asked: number[] = []
    const fetch =
      ({ offset }: PageRequest) =>
      async (): Promise<E.Either<ApiError, Page>> => {
        asked.push(offset)
        return E.right(page)
      }
    const ahead = pagesAhead(fetch, () => 0)
    await ahead(request(0), following(0, 2))()
    await ahead(request(100), [])()
    await ahead(request(1), [])()
    expect(asked.filter((offset) => offset === 1).length).toBe(2)
  })
})
