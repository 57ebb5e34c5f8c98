import { expect, test } from 'vitest'
import { simulateExport, stableTraits } from '../support/export-simulation'
import { readAll, readService, reviewList, serve, testRow, testRows } from '../support/read-list'

test.each([0.0015, 0.1, 0.5])(
  'all reviews are read although a share of %d have no mention time',
  async (unmentioned) => {
    for (let seed = 0; seed < 3; seed += 1) {
      const service = simulateExport({ ...stableTraits, rows: 700, order: 'random', unmentioned }, seed)
      const { failure, read } = await readService(service)
      expect(failure).toBeUndefined()
      expect(read.size).toBe(700)
    }
  },
)

test('reviews without a mention time are not searched for if there are none', async () => {
  const countRequests = async (rows: number, unmentioned: number) => {
    const service = simulateExport({ ...stableTraits, rows, order: 'random', unmentioned }, 1)
    await readService(service, { limit: 1000 })
    return service.requests()
  }
  expect(await countRequests(5000, 0)).toBeLessThan(30)
  expect(await countRequests(5000, 0)).toBeLessThan((await countRequests(5000, 0.01)) / 2)
})

test('only reviews without a mention time leave, and no others of the pages that they are on', async () => {
  const rows = testRows(120, (id) => testRow(id, undefined, id % 30 === 0 ? { mention: undefined } : {}))
  const { ids, isComplete } = await readAll(reviewList(serve(() => rows)), {}, { windows: [{ unmentioned: true }] })
  expect(ids).toEqual(['30', '60', '90', '120'])
  expect(isComplete).toBe(true)
})
