import { expect, test, vi } from 'vitest'
import {
  addRows,
  assignPositions,
  createKnownRows,
  findRow,
  hasId,
  newestTime,
  startPass,
  tailOf,
} from '../../connector/reading/known-rows'

const row = (id: number) => ({ id: String(id), modifiedTime: 1000 + id })
const upTo = (length: number, first = 0): ReadonlyArray<number> => Array.from({ length }, (_, i) => first + i)
const cutoff = 2000

test('finds a row where it was read last, if it is unchanged and of this pass', () => {
  const known = createKnownRows([['0', 1000, 7]])
  addRows(known, [row(1), row(2), row(3)], 100, cutoff)
  addRows(known, [row(2), row(4)], 200, cutoff)
  expect([0, 1, 3, 2, 4, 5].map((id) => findRow(known, row(id)))).toEqual([
    { ...row(0), position: 7, index: 7, isTail: true },
    { ...row(1), position: 8, index: 100, isTail: false },
    { ...row(3), position: 10, index: 102, isTail: false },
    { ...row(2), position: 9, index: 200, isTail: false },
    { ...row(4), position: 11, index: 201, isTail: false },
    undefined,
  ])
  expect(findRow(known, { id: '1', modifiedTime: 5 })).toBeUndefined()
  expect([hasId(known, '1'), hasId(known, '9'), known.lastPosition]).toEqual([true, false, 11])
  startPass(known)
  expect([findRow(known, row(1)), hasId(known, '1'), known.lastPosition]).toEqual([undefined, false, -1])
  expect(newestTime(known, '1')).toBe(1001)
})

test('knows the newest version of each id, and a later one only where no other was read', () => {
  const known = createKnownRows([['9', 1500, 0]])
  const read = (...times: ReadonlyArray<readonly [id: string, modifiedTime: number]>): void =>
    addRows(
      known,
      times.map(([id, modifiedTime]) => ({ id, modifiedTime })),
      0,
      cutoff,
    )
  const newest = (...ids: ReadonlyArray<string>) => ids.map((id) => newestTime(known, id))
  read(['1', 1300], ['1', 1100], ['2', 2001], ['9', 1400])
  expect(newest('1', '2', '9', '3')).toEqual([1300, 2001, 1500, undefined])
  read(['1', 1200], ['2', 1900], ['9', 1600])
  expect(newest('1', '2', '9')).toEqual([1300, 1900, 1600])
  read(['1', 2001], ['2', 1800])
  expect(newest('1', '2')).toEqual([1300, 1900])
  read(['1', 1300], ['2', 2000])
  expect(newest('1', '2')).toEqual([1300, 2000])
  for (let page = 0; page < 32; page++) read([`page ${page}`, 1000])
  expect(newest('1')).toEqual([undefined])
})

test('forgets pages older than the last 32, but no row that a later page has brought', () => {
  const set = vi.spyOn(Map.prototype, 'set')
  const known = createKnownRows([])
  for (let page = 0; page < 40; page++) addRows(known, [row(5000), ...upTo(10, page * 10).map(row)], page * 10, cutoff)
  const [numbers] = set.mock.contexts
  set.mockRestore()
  expect(numbers).toHaveProperty('size', 321)
  expect([79, 80, 5000].map((id) => hasId(known, String(id)))).toEqual([false, true, true])
})

test('gives a tail with the last rows, and a seventh of the others of this pass, in order', () => {
  const known = createKnownRows([])
  addRows(known, [row(500)], 0, cutoff)
  startPass(known)
  for (let page = 0; page < 6; page++) addRows(known, upTo(14, page * 14).map(row), page * 14, cutoff)
  expect(tailOf(known, 20)).toEqual(
    upTo(84)
      .filter((n) => n % 2 === 0 || n > 63)
      .map((n) => [String(n), 1000 + n, n]),
  )
  const resumed = createKnownRows(tailOf(known, 20))
  expect(findRow(resumed, row(83))).toMatchObject({ position: 83, isTail: true })
  expect(resumed.lastPosition).toBe(83)
})

test.each<[string, ReadonlyArray<number | undefined>, ReadonlyArray<number>]>([
  ['new rows follow the last row read', [8, 9, undefined, undefined], [8, 9, 10, 11]],
  ['rows behind a single known row follow the last row read', [5, undefined], [5, 10]],
  ['a row that became visible late stands between its neighbours', [5, undefined, 6, 9], [5, 5.5, 6, 9]],
  ['rows in front of the first known row stand before it', [undefined, undefined, 6, 9], [4, 5, 6, 9]],
  ['a page without known rows follows the last row read', [undefined, undefined], [10, 11]],
])('%s', (_, known, positions) => {
  expect(assignPositions(known, 9)).toEqual(positions)
})
