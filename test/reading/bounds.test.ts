import { expect, test } from 'vitest'
import { Breach } from '../../connector/reading/assumptions'
import { checkBounds } from '../../connector/reading/bounds'
import type { List, Window } from '../../connector/reading/list'
import type { Session } from '../../connector/reading/session'
import { deletionList, reviewList, serve, type TestRow, testRow } from '../support/read-list'

const at = Date.UTC(2026, 0, 1)
const sessionOf = (list: List<TestRow>) => ({ env: { list }, anchors: [] }) as unknown as Session<TestRow>
const reviews = sessionOf(reviewList(serve(() => [])))
const rowsAt = (...times: ReadonlyArray<number | undefined>) =>
  times.map((time, id) => testRow(id, at, { mention: time === undefined ? undefined : at + time }))

test.each<[string, Window, ReadonlyArray<number | undefined>, boolean]>([
  ['rows within', { after: at, before: at + 9000 }, [1, 8999], true],
  ['rows at the bounds and up to a second outside', { after: at, before: at + 9000 }, [-1000, 10_000], true],
  ['a row before them', { after: at, before: at + 9000 }, [5, -1001], false],
  ['a row behind them', { after: at, before: at + 9000 }, [10_001], false],
  ['a row before a single bound', { after: at }, [-1001], false],
  ['a row behind a single bound', { before: at }, [1001], false],
  ['rows far behind the lower bound', { after: at }, [1e12], true],
  ['a row without a mention time', { after: at }, [5, undefined], false],
  ['any rows where there are no bounds', {}, [undefined, 1e12], true],
  ['no rows', { after: at }, [], true],
])('the bounds of a window allow %s', (_, window, times, isAllowed) => {
  const check = () => checkBounds(reviews, window, rowsAt(...times))
  if (isAllowed) check()
  else expect(check).toThrow(Breach)
})

test('bounds are ignored by many rows as by a few, and mean nothing where no filter cuts the list', () => {
  const outside = rowsAt(...Array.from({ length: 1000 }, () => -5000))
  expect(() => checkBounds(reviews, { after: at }, outside)).toThrow('does not keep to the filters by mention time')
  checkBounds(sessionOf(deletionList(serve(() => []))), { after: at }, outside)
})
