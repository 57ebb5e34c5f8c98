import { describe, expect, test } from 'vitest'
import type { FetchListPage } from '../../connector/reading/list'
import { simulateExport, stableTraits } from '../support/export-simulation'
import { random } from '../support/random'
import {
  deletionList,
  disturb,
  listStart,
  readAll,
  readService,
  serve,
  type TestRow,
  testRow,
  testRows,
} from '../support/read-list'

const shuffled = (rows: (n: number) => ReadonlyArray<TestRow>): FetchListPage<TestRow> => {
  const draw = random(1)
  let n = 0
  return serve(() =>
    rows(n++)
      .map((row) => ({ row, key: draw() }))
      .sort((a, b) => a.key - b.key)
      .map(({ row }) => row),
  )
}

describe('a list that no filter cuts and that keeps no order', () => {
  test('is read in rounds until nothing new comes, each row sent once', async () => {
    const rows = testRows(3000)
    const { failure, ids, notes, requests } = await readAll(deletionList(shuffled(() => rows)), { limit: 1000 })
    expect(failure).toBeUndefined()
    expect(new Set(ids).size).toBe(3000)
    expect(notes).toEqual([
      expect.stringMatching(/^export deletions: .*; the whole list is read in rounds until nothing new comes\.$/),
      'export deletions: 3000 ids were held in memory to read what keeps no order.',
    ])
    expect(requests.length).toBeLessThan(80)
  })

  test('is read although rows are deleted, and newer versions come', async () => {
    for (let seed = 0; seed < 5; seed += 1) {
      const traits = { order: 'random', rows: 400, clamp: 100, deletions: 0.05, changes: 0.05 } as const
      const service = simulateExport({ ...stableTraits, ...traits }, seed)
      const before = service.truth()
      const { failure, read } = await readService(service, { isReviews: false })
      const lost = [...service.truth()].filter(([id, version]) => before.get(id) === version && !read.has(id))
      if (failure === undefined) expect(lost).toEqual([])
      else expect(failure.message).toContain('cursor of the stream did not move')
    }
  })

  test('ends INCOMPLETE if it grows faster than it is read', async () => {
    const growing = shuffled((n) => testRows(60 + 3 * n))
    const { failure, requests } = await readAll(deletionList(growing), { limit: 30 })
    expect(failure?.message).toMatch(
      /the whole list had different rows from before.*A3.*cursor of the stream did not move/,
    )
    expect(requests.length).toBeLessThan(400)
  })

  test('ends INCOMPLETE if it has other rows each time', async () => {
    let n = 0
    const moving = serve(() => {
      n += 1
      return testRows(3000, (id) => testRow(n * 10_000 + id, listStart))
    })
    const { failure, isComplete } = await readAll(deletionList(moving))
    expect(isComplete).toBe(false)
    expect(failure?.message).toMatch(/cursor of the stream did not move: run again/)
  })

  test('ends INCOMPLETE if a row is never shown, however quiet the rounds are', async () => {
    const rows = testRows(400)
    /** The row at place 300 changes with the pages, and the one at 350 is never shown. */
    const hiding = serve(({ offset }) =>
      rows.map((row, i) => rows[i === 300 ? Math.floor(offset / 25) % 7 : i === 350 ? 0 : i] ?? row),
    )
    const inPages = disturb(hiding, (page) => ({ ...page, rows: page.rows.slice(0, 100) }))
    const { isComplete, failure } = await readAll(deletionList(inPages), { limit: 100 })
    expect(isComplete).toBe(false)
    expect(failure?.message).toMatch(/cursor of the stream did not move/)
  })
})
