import { expect, test } from 'vitest'
import { assignPositions, createRowHistory } from '../../../connector/export/scan/history'

const row = (id: number): { id: string; modifiedTime: number } => ({ id: String(id), modifiedTime: 1000 + id })

test('gives the position of a row if it is unchanged and was read in this pass', () => {
  const history = createRowHistory([])
  history.addPage([row(1), row(2)], [0, 1])
  const positionOf = (one: ReturnType<typeof row>): number | undefined =>
    history.findPosition(one, history.findRow(one.id))
  expect(positionOf(row(2))).toBe(1)
  expect(positionOf({ id: '2', modifiedTime: 5 })).toBeUndefined()
  history.startPass()
  expect(positionOf(row(2))).toBeUndefined()
  expect(history.findRow('2')?.modifiedTime).toBe(1002)
  expect(history.lastPosition()).toBe(-1)
})

test('drops pages older than the last 32 and samples the others for a resume token', () => {
  const history = createRowHistory([])
  for (let page = 0; page < 40; page++) {
    const ids = Array.from({ length: 100 }, (_, i) => page * 100 + i)
    history.addPage(ids.map(row), ids)
  }
  expect(history.findRow('799')).toBeUndefined()
  expect(history.findRow('800')).toBeDefined()
  const samples = history.sampleRows(20)
  expect(samples.length).toBeLessThan(300)
  expect(samples.slice(-20).map(([id]) => Number(id))).toEqual(Array.from({ length: 20 }, (_, i) => 3980 + i))
  const resumed = createRowHistory(samples)
  expect(resumed.findPosition(row(3999), resumed.findRow('3999'))).toBe(3999)
  expect(resumed.lastPosition()).toBe(3999)
})

test.each([
  ['new rows follow the last row read', [8, 9, undefined, undefined], [8, 9, 10, 11]],
  ['a row that became visible late stands between its neighbours', [5, undefined, 6, 9], [5, 5.5, 6, 9]],
  ['rows in front of the first known row stand before it', [undefined, undefined, 6, 9], [4, 5, 6, 9]],
  ['a page without known rows starts at the given position', [undefined, undefined], [20, 21]],
])('%s', (_, known, positions) => {
  expect(assignPositions(known, 9, 20)).toEqual(positions)
})
