import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readModels } from '../../../connector/snapshot/store/models'
import { describedRelations } from '../../support/described-relations'
import { createJsonFolder } from '../../support/files'
import { readModelRows, toComparable } from '../../support/model-rows'
import { expectedModels, type ModelRows, roundHalves } from '../../support/oracle'
import { expectedAnswers } from '../../support/oracle-answers'
import { expectedScorecards } from '../../support/oracle-scorecards'
import { runProgram } from '../../support/program'
import { reviewsConfig, startTestSandbox } from '../../support/sandbox'

const root = join(__dirname, '..', '..', '..')
const names = [...readModels().keys()]
const regions = [
  { location_id: '1001', location_name: null, region: 'North' },
  { location_id: '1002', location_name: null, region: 'North' },
  { location_id: null, location_name: ' oak hill URGENT care', region: 'South' },
]

/** Models without regions, which the script does not know. */
const printedNames = ['owner_scorecard', 'deleted_reviews_by_source']
/** What the script of docs/models.md prints. */
const printExpected = (name: string, db: string, { asOf, timeZone }: { asOf: Date; timeZone: string }) => {
  const settings = ['--as-of', asOf.toISOString(), '--time-zone', timeZone]
  const args = [join(root, 'scripts', 'expected-models.mjs'), name, '--db', db, ...settings]
  const lines = execFileSync(process.execPath, args, { encoding: 'utf8' }).trim().split('\n')
  return lines.map((line) => JSON.parse(line))
}

describe('the numbers of every model', () => {
  let found: ModelRows
  let expected: ModelRows
  const printed: Record<string, ModelRows[string]> = {}

  beforeAll(async () => {
    let ahead = 0
    const sandbox = await startTestSandbox({ reviews: 400, now: () => Date.now() + ahead })
    const files = createJsonFolder()
    const settings = { reporting_time_zone: 'America/New_York' }
    const config = files.put('config.json', reviewsConfig(sandbox, settings))
    const db = `${files.path}/reviews.duckdb`
    const sync = async () =>
      expect(await runProgram('feedback', ['sync', '--config', config, '--db', db, '--history'])).toMatchObject({
        status: 0,
      })
    await sync()
    const earlier = (await sandbox.truth()).reviews
    await sandbox.churn({ change: 60, delete: 25, add: 20 })
    ahead += 10_000
    await sandbox.churn({ restore: 5 })
    ahead += 10_000
    await sync()
    const asOf = new Date(Date.now() + 3_600_000)
    const { reviews, deleted } = await sandbox.truth()
    const thresholds = { openDays: 30, lowScore: 2, minReviews: 3 }
    const variables = { alert_open_days: 30, alert_score: 2, min_reviews: 3 }
    found = await readModelRows(db, { asOf, regions, variables }, names)
    const input = {
      reviews,
      deletions: deleted,
      earlier,
      regions,
      asOf: asOf.getTime(),
      timeZone: settings.reporting_time_zone,
      ...thresholds,
    }
    expected = { ...expectedModels(input), ...expectedScorecards(input), ...expectedAnswers(input) }
    for (const name of printedNames) printed[name] = printExpected(name, db, { asOf, timeZone: input.timeZone })
    await sandbox.close()
    files.remove()
  })

  it('are computed for every model', () => expect(Object.keys(expected).sort()).toEqual([...names].sort()))

  it.each(names)('%s equals a computation in plain TypeScript over the raw reviews', (name) => {
    expect(expected[name]?.length).toBeGreaterThan(0)
    expect(toComparable(found[name])).toEqual(toComparable(expected[name]))
  })

  it.each(printedNames)('%s is printed for a comparison by hand', (name) =>
    expect(toComparable(printed[name])).toEqual(toComparable(found[name])),
  )

  it.each(names)('%s has its columns, in their order, in the package', (name) => {
    const columns = Object.keys(found[name]?.[0] ?? {})
    const described = describedRelations.models.find((model) => model.name === name)?.columns ?? []
    expect(described.map((column) => column.name)).toEqual(columns)
  })
})

it.each([
  [2.345, 2, 2.35],
  [-2.345, 2, -2.35],
  [3.1249999999999996, 2, 3.13],
  [12.65, 1, 12.7],
  [-0.001, 2, 0],
  [1e6 + 0.005, 2, 1000000.01],
])('%d rounded to %d digits is %d', (value, digits, result) => expect(roundHalves(value, digits)).toBe(result))
