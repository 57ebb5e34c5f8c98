import { expect, it } from 'vitest'
import { loadReviews } from '../../support/loaded-reviews'
import { readViewRows } from '../../support/model-rows'
import type { ModelRow } from '../../support/oracle'

const asOf = new Date('2026-03-10T00:00:00Z')
type Fields = Readonly<Record<string, unknown>>
type Read = { readonly reviews: ReadonlyArray<Fields>; readonly deletions?: Readonly<Record<number, string>> }

/** A review whose id is its place in the list, with what matters to the test. */
const toReviews = (reviews: ReadonlyArray<Fields>): ReadonlyArray<string> =>
  reviews.map((review, i) => JSON.stringify({ id: i + 1, modifiedTime: '2026-03-09T00:00:00.000Z', ...review }))

const readModels = async <Name extends string>(
  reads: ReadonlyArray<Read>,
  names: ReadonlyArray<Name>,
): Promise<Readonly<Record<Name, ReadonlyArray<ModelRow>>>> => {
  const contents = reads.map(({ reviews, deletions = {} }) => ({
    reviews: toReviews(reviews),
    deletions: Object.entries(deletions).map(([id, modifiedTime]) => ({ id, modifiedTime })),
  }))
  const snapshot = await loadReviews(contents, 'UTC')
  try {
    return (await readViewRows(snapshot, { asOf, names }, names)) as Record<Name, ReadonlyArray<ModelRow>>
  } finally {
    snapshot.db.close()
  }
}
/** These columns of rows that belong to one review each, in the order of the reviews. */
const pickEach = (rows: ReadonlyArray<ModelRow>, names: ReadonlyArray<string>) =>
  [...rows]
    .sort((a, b) => Number(a.review_id) - Number(b.review_id))
    .map((row) => names.map((name) => row[name] ?? null))

it('month_over_month keeps the months of today beside times that no review can have', async () => {
  const times = ['0001-01-01T00:00:00Z', '1900-05-01T00:00:00Z', '2025-12-05T00:00:00Z', '2026-03-01T00:00:00Z']
  const reviews = [...times, '9999-12-31T00:00:00Z'].map((mentionTime) => ({ mentionTime }))
  const { month_over_month } = await readModels([{ reviews }], ['month_over_month'])
  const all = month_over_month.filter(({ scope, metric }) => scope === 'all' && metric === 'reviews')
  all.sort((a, b) => (String(a.month) < String(b.month) ? -1 : 1))
  expect(pickEach(all, ['month', 'value', 'previous_value', 'change'])).toEqual([
    ['2025-12-01', 1, null, null],
    ['2026-01-01', 0, 1, -1],
    ['2026-02-01', 0, 0, 0],
    ['2026-03-01', 1, 0, 1],
  ])
})

it('an answer earlier than its review has no hours, in no model', async () => {
  const cases: ReadonlyArray<readonly [mentionTime: string, engagementTime: string, hours: number | null]> = [
    ['2026-03-01T00:00:00.000Z', '2026-03-01T01:30:00.000Z', 1.5],
    ['2026-03-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z', 0],
    ['2026-03-01T00:00:00.000Z', '2026-02-28T23:59:59.999Z', null],
    ['2026-03-01T00:00:00.000Z', '2026-01-28T00:00:00.000Z', null],
    ['0001-01-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z', null],
  ]
  const reviews = cases.map(([mentionTime, engagementTime]) => ({
    ...{ mentionTime, engagements: [{ engagementTime }], taskDetails: { ownerName: 'Ada' } },
  }))
  const models = await readModels([{ reviews }], ['response_times', 'owner_scorecard', 'scope_monthly'])
  expect(pickEach(models.response_times, ['mention_time', 'first_response_time', 'hours'])).toEqual(cases)
  const median = { median_hours_to_answer: 0.8, share_answered: 1 }
  expect(models.owner_scorecard).toMatchObject([{ ...median, answered: 5 }])
  expect(models.scope_monthly).toMatchObject(Array.from({ length: 4 }, () => ({ ...median, answered: 4 })))
})

it('a source keeps its name where its last deletion has none', async () => {
  const first = [{ source: { id: 7, name: 'Survey' } }, { source: { id: 7 } }]
  const deletions = { 1: '2026-03-09T10:00:00.000Z', 2: '2026-03-09T11:00:00.000Z' }
  const reads = [{ reviews: first }, { reviews: [], deletions }]
  const { deleted_reviews_by_source } = await readModels(reads, ['deleted_reviews_by_source'])
  expect(deleted_reviews_by_source).toMatchObject([{ source_id: 7, source_name: 'Survey', deleted_reviews: 2 }])
})

it('a deleted review has the source that it had last', async () => {
  const of = (day: number, source: unknown) => ({
    reviews: [{ source, modifiedTime: `2026-03-0${day}T00:00:00.000Z` }],
  })
  const reads = [
    of(1, { id: 6, name: 'Old' }),
    of(2, { id: 7, name: 'Survey' }),
    of(3, { id: null, name: ' ' }),
    of(4, null),
  ]
  const deletion = { reviews: [], deletions: { 1: '2026-03-09T10:00:00.000Z' } }
  const { deleted_reviews_by_source } = await readModels([...reads, deletion], ['deleted_reviews_by_source'])
  expect(deleted_reviews_by_source).toMatchObject([{ source_id: 7, source_name: 'Survey', deleted_reviews: 1 }])
})

it('a provider, a location and a source keep their names where the last review has none', async () => {
  const named = (name: string | undefined, npi?: string) => ({
    mentionTime: '2026-03-01T00:00:00Z',
    ...{ provider: { id: 1, name, npi }, location: { id: 2, name }, source: { id: 3, name } },
  })
  const changed = { ...named(undefined), modifiedTime: '2026-03-09T08:00:00.000Z' }
  const reads = [{ reviews: [named('A', '1000000001'), named('B'), named('A'), changed, changed] }]
  const models = await readModels(reads, ['provider_scorecard', 'location_monthly', 'source_monthly'])
  expect(models.provider_scorecard).toMatchObject([{ provider_name: 'A', provider_npi: '1000000001', reviews: 5 }])
  expect(models.location_monthly).toMatchObject([{ location_name: 'A' }])
  expect(models.source_monthly).toMatchObject([{ source_name: 'A' }])
})

it('a task is closed by its status alone, in any case and with spaces at its ends', async () => {
  const cases: ReadonlyArray<readonly [status: string | null, closed: number]> = [
    ['completed', 1],
    [' Completed ', 1],
    ['COMPLETED', 1],
    ['completed\t', 0],
    ['complete', 0],
    ['', 0],
    [null, 0],
  ]
  const reviews = cases.map(([status]) => ({ taskDetails: { id: 1, status } }))
  const { review_facts } = await readModels([{ reviews }], ['review_facts'])
  expect(pickEach(review_facts, ['task_status', 'closed_task'])).toEqual(cases)
  expect(pickEach(review_facts, ['open_task'])).toEqual(cases.map(([, closed]) => [1 - closed]))
})

it('a rating of 0, or a value outside its scale, counts as none', async () => {
  const cases: ReadonlyArray<readonly [given: readonly [number, number], ...counted: ReadonlyArray<unknown>]> = [
    [[0, 0], null, 0, 'negative'],
    [[5, 5], 5, 5, 'positive'],
    [[0.5, 4], 0.5, 4, 'positive'],
    [[1, 3.999], 1, 3.999, 'neutral'],
    [[1, 2.5], 1, 2.5, 'neutral'],
    [[1, 2.499], 1, 2.499, 'negative'],
    [[-1, -0.5], null, null, null],
    [[5.001, 5.001], null, null, null],
    [[100, 50], null, null, null],
  ]
  const reviews = cases.map(([[rating, reviewScore]]) => ({ rating, reviewScore }))
  const { review_facts } = await readModels([{ reviews }], ['review_facts'])
  expect(pickEach(review_facts, ['rating', 'review_score', 'sentiment'])).toEqual(
    cases.map(([, ...counted]) => counted),
  )
})

it('an owner is the same with spaces at the ends of the name, and none with an empty one', async () => {
  const owners = ['Ada', ' Ada ', '', '  ', null]
  const reviews = owners.map((ownerName) => ({
    taskDetails: { ownerName, ownerEmail: ownerName === null ? '' : null },
  }))
  const { owner_scorecard } = await readModels([{ reviews }], ['owner_scorecard'])
  expect(new Map(owner_scorecard.map((row) => [row.owner_name, [row.owner_email, row.tasks]]))).toEqual(
    new Map([
      ['Ada', [null, 2]],
      [null, [null, 3]],
    ]),
  )
})

it('a review has no age before it is posted', async () => {
  const cases = [
    ['2026-03-09T23:59:59.999Z', 0],
    ['2026-03-10T00:00:00.000Z', 0],
    ['2026-03-10T00:00:00.001Z', null],
    ['2025-03-10T00:00:00.000Z', 365],
    ['1989-12-31T23:59:59.999Z', null],
  ]
  const reviews = cases.map(([mentionTime]) => ({ mentionTime, taskDetails: { id: 1 } }))
  const { review_tasks_open } = await readModels([{ reviews }], ['review_tasks_open'])
  expect(pickEach(review_tasks_open, ['mention_time', 'age_days'])).toEqual(cases)
})
