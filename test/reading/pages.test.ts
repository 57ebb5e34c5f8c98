import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { overlapSize } from '../../connector/reading/pages'
import type { ReadStart } from '../../connector/reading/read'
import { decodeResumeToken } from '../../connector/reading/resume-token'
import { simulateExport, stableTraits } from '../support/export-simulation'
import { random } from '../support/random'
import {
  listStart,
  type ReadOutcome,
  readAll,
  readService,
  reviewList,
  serve,
  servedAt,
  type TestRow,
  testRow,
  testRows,
} from '../support/read-list'

const all = testRows(190)
const offsets = ({ requests }: ReadOutcome<TestRow>) => requests.map(({ offset, limit }) => `${offset}+${limit}`)
const goOnFrom = ({ items }: ReadOutcome<TestRow>): Partial<ReadStart> => ({
  resumeToken: decodeResumeToken(JSON.parse(JSON.stringify(items.at(-1)?.resumeToken()))),
})

test.each([
  [1, 0],
  [2, 1],
  [9, 4],
  [20, 10],
  [50, 10],
  [1000, 20],
  [5000, 100],
])('pages of %i rows share %i', (length, overlap) => {
  expect(overlapSize(length)).toBe(overlap)
})

describe('pages of a quiet list', () => {
  test('each begin with rows of the one before, and a probe asks for the last four rows and the next', async () => {
    const outcome = await readAll(reviewList(serve(() => all)))
    expect(offsets(outcome)).toEqual(['0+50', '40+50', '80+50', '120+50', '160+50', '186+40'])
    expect(outcome.ids).toEqual(all.map(({ id }) => id))
  })

  test('are asked for ahead, the probe too, and none twice', async () => {
    for (const concurrency of [2, 4, 8]) {
      const outcome = await readAll(reviewList(serve(() => all)), { concurrency })
      expect(new Set(offsets(outcome)).size).toBe(outcome.requests.length)
      expect(outcome.requests.length).toBeLessThan(6 + concurrency)
      expect(outcome.ids).toEqual(all.map(({ id }) => id))
    }
  })

  test('leave rows after the cutoff to the next run', async () => {
    const rows = [...all, testRow(500, servedAt - 5000), testRow(501, servedAt - 4999)]
    const { ids, items } = await readAll(reviewList(serve(() => rows)))
    expect(ids.slice(-2)).toEqual(['190', '500'])
    expect(items.at(-1)?.completion?.newestRowTime).toEqual(O.some(servedAt - 5000))
  })
})

describe('pages that do not join', () => {
  test('are looked for further back', async () => {
    let n = 0
    const outcome = await readAll(reviewList(serve(() => (n++ < 2 ? all : all.slice(45)))))
    expect(outcome).toMatchObject({ isComplete: true, notes: [] })
    expect(outcome.read.size).toBe(190)
  })

  test('are read in windows if rows have changed places', async () => {
    for (let by = 1; by < 60; by += 1) {
      const rows = testRows(60, (id) => testRow(id, listStart))
      let n = 0
      /** From the second request on the last rows are the first. */
      const turned = serve(() => (n++ === 0 ? rows : [...rows.slice(-by), ...rows.slice(0, -by)]))
      const { failure, read } = await readAll(reviewList(turned), { limit: 30 })
      expect(failure).toBeUndefined()
      expect(read.size, `turned by ${by}`).toBe(60)
    }
  })

  /** The list from the second answer on. */
  const thenAs = (rows: ReadonlyArray<TestRow>) => {
    let n = 0
    return readAll(reviewList(serve(() => (n++ === 0 ? all : rows))))
  }
  test('come of rows that change places with rows read before', async () => {
    for (const from of [60, 100, 189])
      for (const to of [5, 30, 39]) {
        const rows = all.map((row, i) => (i === from ? all[to] : i === to ? all[from] : row) ?? row)
        const { isComplete, read } = await thenAs(rows)
        expect(isComplete).toBe(true)
        expect(read.size, `${from} and ${to}`).toBe(190)
      }
  })
  test('come from rows that move ahead of the reader, replacing deleted rows', async () => {
    const moved = [...all.slice(60, 62)]
    const rows = all
      .map((row, i) => (i === 30 ? moved[0] : i === 44 ? moved[1] : row) ?? row)
      .filter((row, i) => !moved.includes(row) || i < 60)
    const { isComplete, read } = await thenAs(rows)
    expect(isComplete).toBe(true)
    expect(rows.filter(({ id }) => !read.has(id))).toEqual([])
  })

  test('are believed to be the last if some of the last rows are gone for good', async () => {
    let n = 0
    const { failure, read } = await readAll(reviewList(serve(() => (n++ < 5 ? all : all.slice(0, -3)))))
    expect(failure).toBeUndefined()
    expect(read.size).toBe(190)
  })
})

test('pages asked for ahead that are older than the one in front of them are asked for again', async () => {
  for (const order of ['descending', 'id'] as const)
    for (let seed = 0; seed < 6; seed += 1) {
      const traits = { order, rows: 2000, changes: 1, deletions: 0.5, additions: 0.5 }
      const { notes, failure } = await readService(simulateExport({ ...stableTraits, ...traits }, seed), {
        concurrency: 8,
      })
      expect({ notes, failure }).toEqual({ notes: [], failure: undefined })
    }
})

describe('a read that continues', () => {
  const list = testRows(3000)
  const stopped = () => readAll(reviewList(serve(() => list)), { concurrency: 4 }, {}, (_, items) => items === 38)

  test('asks for the page after the last one, and sends nothing again', async () => {
    const before = await stopped()
    const after = await readAll(reviewList(serve(() => list)), {}, goOnFrom(before))
    expect(after.requests[0]?.offset).toBe(1520)
    expect([...before.ids, ...after.ids]).toEqual(list.map(({ id }) => id))
  })

  test.each(
    (['modifiedTime', 'id', 'newest first'] as const).flatMap((order) =>
      [5, 20, 60, 300, 1000, 1500].map((removed) => [order, removed] as const),
    ),
  )('lacks nothing although rows in front of its place were deleted: by %s, %i of 1,530', async (order, removed) => {
    const draw = random(removed)
    const time = (i: number): number =>
      listStart + 60_000 * (order === 'id' ? Math.floor(draw() * 3000) : order === 'modifiedTime' ? i : 3000 - i)
    const rows = testRows(3000, (id) => testRow(id, time(id)))
    const before = await readAll(reviewList(serve(() => rows)), {}, {}, (_, items) => items === 38)
    const gone = new Set<number>()
    while (gone.size < removed) gone.add(Math.floor(draw() * 1530))
    const left = rows.filter((_, i) => !gone.has(i))
    const after = await readAll(reviewList(serve(() => left)), {}, goOnFrom(before))
    expect(after).toMatchObject({ failure: undefined })
    expect(left.filter(({ id }) => !before.read.has(id) && !after.read.has(id))).toEqual([])
  })

  test('begins again if none of the rows that it knows are left', async () => {
    const others = testRows(100, (id) => testRow(10_000 + id))
    const after = await readAll(reviewList(serve(() => others)), {}, goOnFrom(await stopped()))
    expect(after.read.size).toBe(100)
    expect(after.isComplete).toBe(true)
  })
})
