import { expect, it } from 'vitest'
import { countMarks, expectPlanted } from '../support/report-world'

it('marks next to nothing if months differ only by chance and time', async () => {
  const marks = []
  for (const seed of [1, 2]) marks.push(await countMarks(seed))
  expect(marks.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1)
})

it('marks every planted change', () => expectPlanted(1))
