import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FigureGroup } from '../../connector/report/comparisons'
import { type Report, readReport } from '../../connector/report/report'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { setReportingTimeZone } from '../../connector/snapshot/store/views'
import { drawnCase } from '../support/drawn-reviews'
import { draws } from '../support/draws'
import { loadReviews } from '../support/loaded-reviews'
import type { OracleInput } from '../support/oracle'
import { expectedReport } from '../support/oracle-report'
import { loadWorld, worldTime } from '../support/report-world'

type Figures = Report['figures']

/** The figures without their probabilities, which two computations give to some digits. */
const withoutP = (figures: Figures): Figures =>
  Object.fromEntries(
    Object.entries(figures).map(([name, figure]) => [
      name,
      figure.test === undefined
        ? figure
        : { ...figure, test: { ...figure.test, p: figure.test.p === null ? null : 0 } },
    ]),
  )

const expectFigures = (of: string, found: Figures, wanted: Figures): void => {
  expect({ of, ...withoutP(found) }).toEqual({ of, ...withoutP(wanted) })
  for (const [name, { test }] of Object.entries(found)) {
    const [p, other] = [test?.p ?? 1, wanted[name]?.test?.p ?? 1]
    if (Math.abs(p - other) > 1e-3 * other + 2e-12) expect({ of, name, p }).toEqual({ of, name, p: other })
  }
}

/** Sorts groups, since two may have the same key. */
const sortGroups = (groups: ReadonlyArray<{ readonly figures: Figures }>): ReadonlyArray<Figures> =>
  groups.map(({ figures }) => figures).toSorted((a, b) => (order(a) < order(b) ? -1 : 1))
const order = (figures: Figures): string => JSON.stringify(Object.entries(withoutP(figures)).toSorted())

/** Compares a report with the oracle; returns how many figures were judged. */
const expectReport = async (snapshot: Snapshot, input: OracleInput, month?: string): Promise<number> => {
  const options = { now: input.asOf, regions: input.regions, month }
  const report = await readReport(snapshot, options)
  const wanted = expectedReport(input, {
    month: report.month,
    previous: report.previous_month,
    readAt: report.read_at ?? '',
    isOver: report.is_over,
    hasRegions: report.has_regions,
  })
  expectFigures('all', report.figures, wanted.figures as Figures)
  expect(report.judgement.compared).toBe(wanted.compared)
  for (const [name, groups] of Object.entries(wanted.groups)) {
    const found = sortGroups(report[name as 'owners'] as ReadonlyArray<FigureGroup>)
    const expected = sortGroups(groups as unknown as ReadonlyArray<{ readonly figures: Figures }>)
    expect([name, found.length]).toEqual([name, expected.length])
    for (const [i, figures] of found.entries()) expectFigures(name, figures, expected[i] ?? {})
  }
  const { total, listed, backlog } = report.alerts
  expect({
    total,
    listed: listed.map(({ review_id }) => review_id),
    backlog: backlog.listed.map(({ review_id }) => review_id),
  }).toEqual(wanted.alerts)
  expect(report.open_tasks.listed.map(({ review_id }) => review_id)).toEqual(wanted.open_tasks)
  const counts = (groups: ReadonlyArray<FigureGroup>) =>
    groups.map(({ name, figures }) => [name, figures.reviews?.value, figures.reviews?.previous])
  expect(counts(report.ratings)).toEqual(wanted.ratings)
  expect(counts(report.response_times)).toEqual(wanted.response_times)
  expect(report.location_estimates.map((row) => Object.values(row))).toEqual(wanted.location_estimates)
  const liabilities = report.open_liabilities.map(({ category, high, medium, low, other }) => [
    ...[category, high, medium, low, other],
  ])
  const toOrder = (row: unknown) => JSON.stringify(row)
  expect(liabilities.toSorted((a, b) => (toOrder(a) < toOrder(b) ? -1 : 1))).toEqual(wanted.open_liabilities)
  const trend = report.trend.filter(({ reviews }) => reviews > 0)
  expect(trend).toEqual(wanted.trend.toSorted((a, b) => (a.month < b.month ? -1 : 1)).slice(-trend.length))
  return wanted.compared
}

const settings = { openDays: 14, lowScore: 1.5, minReviews: 5 }

describe('a report with planted changes', () => {
  let world: Awaited<ReturnType<typeof loadWorld>>
  beforeAll(async () => {
    world = await loadWorld({ seed: 5, trend: 'planted', reviews: 1_500 })
  })
  afterAll(() => world.snapshot.db.close())

  it.each(['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Auckland'])(
    'has the figures and marks of an independent computation in %s',
    async (timeZone) => {
      await setReportingTimeZone(world.snapshot, timeZone)
      const input = {
        reviews: world.texts.map((json) => ({ json })),
        earlier: world.earlier.map((json) => ({ json })),
        ...{ deletions: [], regions: [{ location_id: '1001', location_name: null, region: 'North' }] },
        ...{ asOf: worldTime, timeZone, ...settings },
      }
      expect(await expectReport(world.snapshot, input)).toBeGreaterThan(50)
    },
  )
})

it('every figure equals an independent computation, whatever the reviews', async () => {
  await fc.assert(
    fc.asyncProperty(drawnCase(100), async ({ reads, ...drawn }) => {
      const snapshot = await loadReviews(reads, drawn.timeZone)
      const toTexts = (texts: ReadonlyArray<string> = []) => texts.map((json) => ({ json }))
      const last = reads.at(-1) ?? { reviews: [], deletions: [] }
      const input = {
        ...drawn,
        ...settings,
        reviews: toTexts(last.reviews),
        deletions: last.deletions,
        earlier: toTexts(reads.slice(0, -1).flatMap(({ reviews }) => reviews)),
      }
      try {
        for (const month of [undefined, '2025-03', '2025-01']) await expectReport(snapshot, input, month)
      } finally {
        snapshot.db.close()
      }
    }),
    { ...draws(2), endOnFailure: true },
  )
})
