import { describe, expect, test, vi } from 'vitest'
import {
  assignPositions,
  checkOrder,
  createRowHistory,
  findDirection,
  type HistoryRow,
  putNewestLast,
} from '../../../connector/export/scan/history'

const row = (id: number): { id: string; modifiedTime: number } => ({ id: String(id), modifiedTime: 1000 + id })
const upTo = (length: number, first = 0): ReadonlyArray<number> => Array.from({ length }, (_, i) => first + i)

test('gives the position of a row if it is unchanged and was read in this pass', () => {
  const history = createRowHistory([])
  history.addPage([row(1), row(2)], [0, 1])
  const positionOf = (one: ReturnType<typeof row>): number | undefined =>
    history.findPosition(one, history.findRow(one.id))
  expect(positionOf(row(2))).toBe(1)
  expect(positionOf(row(3))).toBeUndefined()
  expect(positionOf({ id: '2', modifiedTime: 5 })).toBeUndefined()
  history.startPass()
  expect(positionOf(row(2))).toBeUndefined()
  expect(history.findRow('2')?.modifiedTime).toBe(1002)
  expect(history.lastPosition()).toBe(-1)
})

test('finds a row where it was read last, on whichever page', () => {
  const history = createRowHistory([['0', 1000, 7]])
  history.addPage([row(1), row(2), row(3)], [8, 9, 10], 100)
  history.addPage([row(4), row(2)], [11, 12], 200)
  const read = { isSampled: false }
  expect(['0', '1', '3', '4', '2', '5'].map(history.findRow)).toEqual([
    { ...row(0), position: 7, index: 7, page: 0, isSampled: true },
    { ...row(1), position: 8, index: 100, page: 1, ...read },
    { ...row(3), position: 10, index: 102, page: 1, ...read },
    { ...row(4), position: 11, index: 200, page: 2, ...read },
    { ...row(2), position: 12, index: 201, page: 2, ...read },
    undefined,
  ])
})

test('knows which rows are of this pass, in whatever version', () => {
  const history = createRowHistory([])
  history.addPage([row(1)], [0], 0)
  const earlier = history.findRow('1')
  expect(history.isOfPass(earlier)).toBe(true)
  expect(history.isOfPass(undefined)).toBe(false)
  history.startPass()
  history.addPage([row(2)], [0], 0)
  expect(history.isOfPass(earlier)).toBe(false)
  expect(history.isOfPass(history.findRow('2'))).toBe(true)
})

test('knows the newest version of each id, whichever was read last, and later ones only where no other was read', () => {
  const cutoff = 2000
  const history = createRowHistory([['9', 1500, 0]])
  const newest = (id: string): number | undefined => history.newestTime(history.findRow(id))
  let offset = 1
  const read = (...times: ReadonlyArray<readonly [id: string, modifiedTime: number]>): void => {
    history.addPage(
      times.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      upTo(times.length, offset),
      offset,
      cutoff,
    )
    offset += times.length
  }
  read(['1', 1300], ['1', 1100], ['2', 2001], ['9', 1400])
  expect(['1', '2', '9', '3'].map(newest)).toEqual([1300, 2001, 1500, undefined])
  expect(history.findRow('1')?.modifiedTime).toBe(1100)
  read(['1', 1200], ['2', 1900], ['9', 1600])
  expect(['1', '2', '9'].map(newest)).toEqual([1300, 1900, 1600])
  read(['1', 2001], ['2', 1800])
  expect(['1', '2'].map(newest)).toEqual([1300, 1900])
  read(['1', 1300], ['2', 2000])
  expect(['1', '2'].map(newest)).toEqual([1300, 2000])
  read(['1', 1000], ['2', 1900])
  expect(newest('2')).toBe(2000)
  for (let page = 0; page < 32; page++) read([`page ${page}`, 1000])
  expect(newest('1')).toBeUndefined()
  read(['1', 1100])
  expect(newest('1')).toBe(1100)
})

test('puts the newest version of each id last, and leaves rows alone where it is', () => {
  const of = (...times: ReadonlyArray<readonly [id: string, modifiedTime: number]>) =>
    times.map(([id, modifiedTime]) => ({ id, modifiedTime }))
  const fine = of(['7', 1], ['8', 9], ['7', 3], ['7', 3], ['9', 2])
  expect(putNewestLast(fine)).toBe(fine)
  expect(putNewestLast(of(['7', 3], ['8', 2], ['7', 1], ['9', 2]))).toEqual(of(['7', 1], ['8', 2], ['9', 2], ['7', 3]))
  expect(putNewestLast(of(['7', 1], ['7', 3], ['7', 2])).at(-1)).toEqual({ id: '7', modifiedTime: 3 })
})

test('tells the lengths of the last pages of this pass, the last one first, samples left out', () => {
  const history = createRowHistory([['9', 1, 0]])
  expect(history.lastLengths(2)).toEqual([])
  for (const length of [3, 1, 2]) history.addPage(upTo(length).map(row), upTo(length), 0)
  expect(history.lastLengths(2)).toEqual([2, 1])
  expect(history.lastLengths(5)).toEqual([2, 1, 3])
  history.startPass()
  expect(history.lastLengths(2)).toEqual([])
  history.addPage([row(1)], [0], 0)
  expect(history.lastLengths(2)).toEqual([1])
})

test('recognises the last page of this pass by all of its rows', () => {
  const history = createRowHistory([])
  expect(history.isLastPage([])).toBe(false)
  history.addPage([row(1)], [0], 0)
  history.addPage([row(1), row(2)], [0, 1], 0)
  expect(history.isLastPage([row(1), row(2)])).toBe(true)
  for (const other of [
    [],
    [row(1)],
    [row(1), row(3)],
    [row(1), { ...row(2), id: '3' }],
    [row(1), { ...row(2), modifiedTime: 5 }],
    [row(2), row(1)],
    [row(1), row(2), row(3)],
  ])
    expect(history.isLastPage(other)).toBe(false)
  history.startPass()
  expect(history.isLastPage([row(1), row(2)])).toBe(false)
})

test('tells up to where only samples are known, until a new pass begins', () => {
  const history = createRowHistory([
    ['1', 1, 4],
    ['2', 2, 9],
  ])
  history.addPage([row(3)], [12], 0)
  expect([history.sampledUntil(), history.lastPosition()]).toEqual([9, 12])
  history.addPage([row(1)], [4], 0)
  expect(history.lastPosition()).toBe(12)
  history.startPass()
  expect([history.sampledUntil(), history.lastPosition()]).toEqual([-1, -1])
  const empty = createRowHistory([])
  expect([empty.sampledUntil(), empty.lastPosition()]).toEqual([-1, -1])
})

test('drops pages older than the last 32 and samples the others for a resume token', () => {
  const history = createRowHistory([])
  for (let page = 0; page < 40; page++) {
    const ids = upTo(100, page * 100)
    history.addPage(ids.map(row), ids)
  }
  expect(history.findRow('799')).toBeUndefined()
  expect(history.findRow('800')).toBeDefined()
  const samples = history.sampleRows(20)
  expect(samples.length).toBeLessThan(300)
  expect(samples.slice(-20).map(([id]) => Number(id))).toEqual(upTo(20, 3980))
  const resumed = createRowHistory(samples)
  expect(resumed.findPosition(row(3999), resumed.findRow('3999'))).toBe(3999)
  expect(resumed.lastPosition()).toBe(3999)
})

test('forgets with a page only the rows that no later page has brought', () => {
  const history = createRowHistory([])
  history.addPage([row(1), row(2)], [0, 1], 0)
  for (let page = 1; page <= 31; page++) history.addPage([row(100 + page), row(2)], [page + 1, 1], page)
  expect(history.findRow('1')?.page).toBe(0)
  history.addPage([row(200)], [40], 40)
  expect(history.findRow('1')).toBeUndefined()
  expect(history.findRow('101')?.page).toBe(1)
  expect(history.findRow('2')?.page).toBe(31)
  history.addPage([row(201)], [41], 41)
  expect(history.findRow('101')).toBeUndefined()
  expect(history.findRow('102')?.page).toBe(2)
})

test('holds no ids of dropped pages, so that its memory is bounded', () => {
  const set = vi.spyOn(Map.prototype, 'set')
  const history = createRowHistory([])
  for (let page = 0; page < 40; page++) history.addPage(upTo(10, page * 10).map(row), upTo(10, page * 10), page * 10)
  const [numbers] = set.mock.contexts
  set.mockRestore()
  expect(numbers).toHaveProperty('size', 320)
})

test('samples every row of the overlap, and a seventh of the others of this pass, in the order of their positions', () => {
  const history = createRowHistory([])
  history.addPage([row(500), row(501)], [0, 1], 0)
  history.startPass()
  // Pages of 14 rows; the second page stands in front of the first, and the last one brings the row at 20 again.
  for (const first of [14, 0, 28, 42, 56, 70]) history.addPage(upTo(14, first).map(row), upTo(14, first), first)
  expect(history.sampleRows(50)).toEqual(
    upTo(84)
      .filter((n) => n % 2 === 0 || n > 33)
      .map((n) => [String(n), 1000 + n, n]),
  )
  history.addPage([row(20)], [84], 84)
  const samples = history.sampleRows(1)
  expect(samples.map(([id]) => Number(id))).toEqual(
    [...upTo(42).map((n) => 2 * n), 20].filter((n, i) => n !== 20 || i > 20),
  )
  expect(samples[samples.length - 1]).toEqual(['20', 1020, 84])
})

test.each<[string, ReadonlyArray<number | undefined>, ReadonlyArray<number>, sampledUntil?: number]>([
  ['new rows follow the last row read', [8, 9, undefined, undefined], [8, 9, 10, 11]],
  ['rows behind a single known row follow the last row read', [5, undefined], [5, 10]],
  ['rows behind the row at 0 follow the last row read', [0, undefined], [0, 10]],
  ['rows among samples follow the last known one', [2, 3, undefined], [2, 3, 4], 5],
  ['rows behind the last sample follow the last row read', [2, 5, undefined], [2, 5, 10], 5],
  ['a row that became visible late stands between its neighbours', [5, undefined, 6, 9], [5, 5.5, 6, 9]],
  ['rows in front of the first known row stand before it', [undefined, undefined, 6, 9], [4, 5, 6, 9]],
  ['a page without known rows starts at the given position', [undefined, undefined], [20, 21]],
])('%s', (_, known, positions, sampledUntil) => {
  expect(assignPositions(known, 9, 20, sampledUntil)).toEqual(positions)
})

describe('the order of a page', () => {
  /** A row of a page: its time, and where it was read before. `read`: in this version; `changed`: in another one. */
  type Cell = { time?: number; read?: number; changed?: number; sampled?: boolean }
  const check = (cells: ReadonlyArray<Cell>, offset = 0) =>
    checkOrder({
      offset,
      rows: cells.map(({ time = 50 }, i) => ({ id: String(i), modifiedTime: time })),
      found: cells.map(({ time = 50, read, changed, sampled = false }, i): HistoryRow | undefined => {
        const index = read ?? changed
        return index === undefined
          ? undefined
          : { id: String(i), modifiedTime: time, position: index, index, page: 0, isSampled: sampled }
      }),
      known: cells.map(({ read }) => read),
      isOfPass: (found) => found !== undefined,
      youngFrom: 100,
      cutoff: 200,
    })
  const inPlace = { hasUnreadRow: false, insertedRows: 0, isInPlace: true }
  const moved = { ...inPlace, isInPlace: false }

  test.each<[string, ReadonlyArray<Cell>, Partial<ReturnType<typeof checkOrder>>]>([
    ['says nothing without a known row', [{}, {}], moved],
    ['says nothing of an empty page', [], moved],
    ['is kept by rows in their place', [{ read: 10 }, { read: 11 }], inPlace],
    ['is kept by a single row', [{ read: 10 }, {}, {}], inPlace],
    ['is not kept by a row in front of its place', [{ read: 11 }, { read: 12 }], moved],
    ['is broken by a row that was inserted', [{ read: 10 }, { read: 9 }], { ...moved, insertedRows: 2 }],
    ['tells the most rows inserted, whole ones', [{ read: 7.5 }, { read: 9 }], { ...moved, insertedRows: 3 }],
    ['is broken by an unread row', [{}, { read: 11 }], { ...moved, hasUnreadRow: true }],
    ['is broken by an unread row at any place', [{ read: 10 }, {}, { read: 12 }], { ...moved, hasUnreadRow: true }],
    ['stays broken', [{}, { read: 11 }, { read: 12 }], { ...moved, hasUnreadRow: true }],
    ['is not broken in front of a sample', [{}, { read: 11, sampled: true }, { read: 12 }], moved],
    ['is not broken by a changed row', [{ changed: 3 }, { read: 11 }], moved],
    ['is not kept by a row that changed in its place', [{ read: 10 }, { changed: 11 }, { read: 12 }], moved],
    ['is not broken by a young row of its own time', [{ time: 150 }, { read: 10 }], moved],
    ['counts the shift that a young row explains', [{ time: 150 }, { read: 9 }], { ...moved, insertedRows: 1 }],
    ['counts each young row', [{ time: 150 }, { time: 160 }, { read: 9 }], { ...moved, insertedRows: 1 }],
    ['is broken by a row that is not young', [{ time: 100 }, { read: 11 }], { ...moved, hasUnreadRow: true }],
    [
      'is broken by a young row of the time of a known one',
      [{ time: 150 }, { time: 150, read: 11 }],
      { ...moved, hasUnreadRow: true },
    ],
    [
      'is not judged by a young row if there are known rows of several times',
      [
        { time: 150, read: 5 },
        { time: 160, read: 11 },
      ],
      moved,
    ],
    [
      'is judged by young rows of one time',
      [
        { time: 150, read: 5 },
        { time: 150, read: 11 },
      ],
      { ...moved, insertedRows: 5 },
    ],
    [
      'is judged by old rows of several times',
      [
        { time: 50, read: 5 },
        { time: 60, read: 11 },
      ],
      { ...moved, insertedRows: 5 },
    ],
    ['is not judged by a row after the cutoff', [{ time: 201, read: 5 }], moved],
    ['is not broken in front of a row after the cutoff', [{}, { time: 201, read: 11 }], moved],
    ['is judged by a row at the cutoff', [{ time: 200, read: 5 }], { ...moved, insertedRows: 5 }],
    ['is not judged by rows behind the last known one', [{ read: 10 }, {}, { changed: 3 }], inPlace],
  ])('%s', (_, cells, verdict) => {
    expect(check(cells, 10)).toEqual(verdict)
  })
})

test.each<[string, boolean | undefined, ReadonlyArray<number>, boolean | undefined]>([
  ['unknown after no row', undefined, [], undefined],
  ['unknown after one row', undefined, [5], undefined],
  ['unknown after rows of one time', undefined, [5, 5], undefined],
  ['the newest first after a step down', undefined, [5, 5, 4], true],
  ['not the newest first after a step up', undefined, [4, 5, 5], false],
  ['not the newest first after steps in both directions', undefined, [5, 4, 5], false],
  ['the newest first as before', true, [5, 5], true],
  ['not the newest first any more', true, [5, 6], false],
  ['not the newest first as before', false, [5, 4], false],
])('the direction is %s', (_, before, times, after) => {
  const rows = times.map((modifiedTime, i) => ({ id: String(i), modifiedTime }))
  expect(findDirection(before, rows)).toBe(after)
})
