import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readModels } from '../../../connector/snapshot/store/models'
import { type DrawnCase, drawnCase } from '../../support/drawn-reviews'
import { draws } from '../../support/draws'
import { loadReviews } from '../../support/loaded-reviews'
import { readViewRows, toComparable } from '../../support/model-rows'
import { expectedModels } from '../../support/oracle'
import { expectedAnswers } from '../../support/oracle-answers'
import { expectedScorecards } from '../../support/oracle-scorecards'

const tries = draws(2)
const names = [...readModels().keys()]

/** The texts that `others` do not have. */
const listMissing = (texts: ReadonlyArray<string>, others: ReadonlyArray<string>): ReadonlyArray<string> => {
  const known = new Set(others)
  return texts.filter((text) => !known.has(text))
}

const expectEqual = async ({ reads, ...settings }: DrawnCase): Promise<number> => {
  const snapshot = await loadReviews(reads, settings.timeZone)
  try {
    const { asOf, regions, scales, openDays, lowScore, minReviews, minAnswers } = settings
    const variables = {
      alert_open_days: openDays,
      alert_score: lowScore,
      min_reviews: minReviews,
      min_answers: minAnswers,
    }
    const found = await readViewRows(snapshot, { asOf: new Date(asOf), regions, scales, variables }, names)
    const last = reads.at(-1) ?? { reviews: [], deletions: [] }
    const toTexts = (texts: ReadonlyArray<string> = []) => texts.map((json) => ({ json }))
    const input = {
      reviews: toTexts(last.reviews),
      deletions: last.deletions,
      earlier: toTexts(reads.slice(0, -1).flatMap(({ reviews }) => reviews)),
      ...settings,
    }
    const expected = { ...expectedModels(input), ...expectedScorecards(input), ...expectedAnswers(input) }
    for (const name of names) {
      const [rows, wanted] = [toComparable(found[name]), toComparable(expected[name])]
      const differ = { beyond: listMissing(rows, wanted), lacks: listMissing(wanted, rows) }
      expect({ name, rows: rows.length, ...differ }).toEqual({ name, rows: wanted.length, beyond: [], lacks: [] })
    }
    return Object.values(found).reduce((sum, rows) => sum + rows.length, 0)
  } finally {
    snapshot.db.close()
  }
}

it('every model equals a computation in plain TypeScript, whatever the reviews', async () => {
  let rows = 0
  await fc.assert(
    fc.asyncProperty(drawnCase(100), async (drawn) => {
      rows += await expectEqual(drawn)
    }),
    { ...tries, endOnFailure: true },
  )
  expect(rows).toBeGreaterThan(tries.numRuns * 10)
})
