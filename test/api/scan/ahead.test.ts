import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import type { Page } from '../../../connector/api/page'
import { type PageRequest, pagesAhead } from '../../../connector/api/scan/ahead'

const request = (offset: number): PageRequest => ({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset, limit: 10 })
const following = (offset: number, count: number) => Array.from({ length: count }, (_, i) => request(offset + i + 1))
const page: Page = { rows: [], filter: {}, unknown: [] }

/** A service whose answers come when they are let go. */
const service = () => {
  const waiting = new Map<number, () => void>()
  const asked: number[] = []
  return {
    asked,
    fetch:
      ({ offset }: PageRequest) =>
      () => {
        asked.push(offset)
        return new Promise<E.Either<ApiError, Page>>((resolve) =>
          waiting.set(offset, () => resolve(E.right({ ...page, filter: { offset } }))),
        )
      },
    answer: (offset: number) => waiting.get(offset)?.(),
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('pages ahead', () => {
  it('are asked for once, and more of them while each is waited for', async () => {
    const { asked, fetch, answer } = service()
    const ahead = pagesAhead(fetch)
    for (let offset = 0; offset < 6; offset += 1) {
      const wanted = ahead(request(offset), following(offset, 7))()
      await settle()
      answer(offset)
      expect(await wanted).toEqual(E.right({ ...page, filter: { offset } }))
    }
    expect(asked).toEqual([...new Set(asked)])
    expect(asked).toContain(5 + 7)
  })

  it('are only the next one while they lie here before they are wanted', async () => {
    const { asked, fetch, answer } = service()
    const ahead = pagesAhead(fetch)
    for (let offset = 0; offset < 20; offset += 1) {
      const wanted = ahead(request(offset), following(offset, 7))()
      for (const one of asked) answer(one)
      await wanted
      await settle()
    }
    expect(Math.max(...asked)).toBe(20)
  })

  it('are forgotten where others are wanted', async () => {
    const { asked, fetch, answer } = service()
    const ahead = pagesAhead(fetch)
    const first = ahead(request(0), following(0, 2))()
    answer(0)
    await first
    void ahead(request(100), [])()
    void ahead(request(1), [])()
    await settle()
    expect(asked.filter((offset) => offset === 1).length).toBe(2)
  })
})
