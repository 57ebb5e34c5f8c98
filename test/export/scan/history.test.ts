import { expect, test } from 'vitest'
import { assignPositions, createRowHistory } from '../../../connector/export/scan/history'

const row = (id: number): { id: string; modifiedTime: number } => ({ id: String(id), modifiedTime: 1000 + id })

test('knows a row in its place as long as it is unchanged and of this pass', () => {
  const memory = createRowHistory([])
  memory.addPage([row(1), row(2)], [0, 1])
  const place = (one: ReturnType<typeof row>): number | undefined => memory.positionOf(one, memory.findRow(one.id))
  expect(place(row(2))).toBe(1)
  expect(place({ id: '2', modifiedTime: 5 })).toBeUndefined()
  memory.startPass()
  expect(place(row(2))).toBeUndefined()
  expect(memory.findRow('2')?.modifiedTime).toBe(1002)
  expect(memory.lastPosition()).toBe(-1)
})

test('forgets what is older than 32 pages, and keeps a trail of the rest', () => {
  const memory = createRowHistory([])
  for (let page = 0; page < 40; page++) {
    const ids = Array.from({ length: 100 }, (_, i) => page * 100 + i)
    memory.addPage(ids.map(row), ids)
  }
  expect(memory.findRow('799')).toBeUndefined()
  expect(memory.findRow('800')).toBeDefined()
  const trail = memory.sampleRows(20)
  expect(trail.length).toBeLessThan(300)
  expect(trail.slice(-20).map(([id]) => Number(id))).toEqual(Array.from({ length: 20 }, (_, i) => 3980 + i))
  const resumed = createRowHistory(trail)
  expect(resumed.positionOf(row(3999), resumed.findRow('3999'))).toBe(3999)
  expect(resumed.lastPosition()).toBe(3999)
})

test.each([
  ['new rows follow the last one read', [8, 9, undefined, undefined], [8, 9, 10, 11]],
  ['a row that came late stands between its neighbours', [5, undefined, 6, 9], [5, 5.5, 6, 9]],
  ['rows before the first known stand before it', [undefined, undefined, 6, 9], [4, 5, 6, 9]],
  ['a page with nothing known starts where it is told to', [undefined, undefined], [20, 21]],
])('%s', (_, known, places) => {
  expect(assignPositions(known, 9, 20)).toEqual(places)
})
