import { expect, it } from 'vitest'
import { countMarks, expectPlanted } from '../support/report-world'

it('marks at most 25 changes in the reports of 50 services without any trend', async () => {
  let marks = 0
  for (let seed = 1; seed <= 50; seed += 1) marks += await countMarks(seed)
  expect(marks).toBeLessThanOrEqual(25)
}, 600_000)

it('marks every planted change of 5 services', async () => {
  for (let seed = 1; seed <= 5; seed += 1) await expectPlanted(seed)
}, 120_000)
