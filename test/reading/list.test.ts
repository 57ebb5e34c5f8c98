import { expect, test } from 'vitest'
import { describeWindow, putNewestLast, type Window } from '../../connector/reading/list'

const at = Date.UTC(2026, 0, 1)

test.each<[Window, string]>([
  [{}, 'the whole list'],
  [{ unmentioned: true, rows: 5 }, 'the reviews without a mention time'],
  [{ after: at, by: 'halves' }, 'what was mentioned from 2026-01-01T00:00:00.000Z to now'],
  [{ before: at }, 'what was mentioned from the beginning to 2026-01-01T00:00:00.000Z'],
])('a window %j is called %s', (window, name) => {
  expect(describeWindow(window)).toBe(name)
})

test('the newest version of each id is put last, and rows are left alone where it is', () => {
  const of = (...times: ReadonlyArray<readonly [id: string, modifiedTime: number]>) =>
    times.map(([id, modifiedTime]) => ({ id, modifiedTime }))
  const fine = of(['7', 1], ['8', 9], ['7', 3], ['7', 3], ['9', 2])
  expect(putNewestLast(fine)).toBe(fine)
  expect(putNewestLast(of(['7', 3], ['8', 2], ['7', 1], ['9', 2]))).toEqual(of(['7', 1], ['8', 2], ['9', 2], ['7', 3]))
  expect(putNewestLast(of(['7', 1], ['7', 3], ['7', 2])).at(-1)).toEqual({ id: '7', modifiedTime: 3 })
})
