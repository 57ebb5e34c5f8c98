import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { SourceState } from '../../connector/cdk/catalog'
import { commentsStream } from '../../connector/streams/entities/operations'
import type { SourceEnv } from '../../connector/streams/source-env'
import { streams } from '../../connector/streams/streams'
import { createExportApi } from '../support/export-api'
import { defaultTraits, simulateFeedback } from '../support/feedback-simulation'
import {
  copyState,
  createSourceEnv,
  locationsFromReviews,
  type Outcome,
  readAll,
  readMessages,
  selectEntities,
  streamsWithTombstones,
} from '../support/in-process'

const now = Date.parse('2026-03-01T12:00:00Z')
const day = 86_400_000
const instant = (daysAgo: number) => new Date(now - daysAgo * day).toISOString()
const [early, late, future] = [now - 100 * day, now - 50 * day, now + 2 * day]

/** A review a day, of 90 days; the ids say how many days ago. */
const createService = () => {
  const { data, api } = createExportApi(() => now)
  data.reviews = Array.from({ length: 90 }, (_, n) => ({ id: 90 - n, modifiedTime: instant(90 - n) }))
  const sourceFrom = (startDate: number, more: Partial<SourceEnv> = {}) =>
    createSourceEnv(api, { now: () => now, startDate, pageSize: 10, concurrency: 1, ...more })
  return { data, api, sourceFrom }
}

const streamsOf = (...names: string[]) => streams.filter(({ name }) => names.includes(name))
const idsOf = ({ records }: Pick<Outcome, 'records'>, stream = 'reviews') =>
  (records[stream] ?? []).map(({ id }) => Number(id)).sort((a, b) => a - b)
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

describe('a start date that moved back', () => {
  it('is read from, wherever that is stopped and resumed', async () => {
    const { sourceFrom } = createService()
    const selected = streamsOf('reviews')
    const first = await readAll(sourceFrom(late), selected)
    expect(idsOf(first)).toEqual(upTo(50))
    const moved: Array<{ readonly ids: ReadonlyArray<number>; readonly state: SourceState }> = []
    const ids: number[] = []
    for await (const message of readMessages(sourceFrom(early), selected, { state: first.state })) {
      if (message._tag === 'Records')
        ids.push(...message.rows.map(({ json }) => JSON.parse(Buffer.from(json).toString()).id))
      if (message._tag === 'Checkpoint')
        moved.push({ ids: [...ids], state: copyState({ [message.stream]: message.state }) })
    }
    expect(moved.length).toBeGreaterThan(5)
    for (const stopped of moved) {
      const rest = await readAll(sourceFrom(early), selected, stopped.state)
      expect(rest.logs.join()).not.toContain('moved back')
      expect([...new Set([...stopped.ids, ...idsOf(rest)])].sort((a, b) => a - b)).toEqual(upTo(90))
      // A start that moves again while it is read is read from, too.
      expect(idsOf(await readAll(sourceFrom(early - day), selected, stopped.state))).toEqual(upTo(90))
    }
  })

  it('is read from by each stream that was read from a later one, and by no other', async () => {
    const { sourceFrom } = createService()
    const both = streamsOf('reviews', 'review_tasks')
    const reviews = await readAll(sourceFrom(early), streamsOf('reviews'))
    const tasks = await readAll(sourceFrom(late), streamsOf('review_tasks'))
    const next = await readAll(sourceFrom(early), both, { ...reviews.state, ...tasks.state })
    expect(idsOf(next)).toEqual([])
    expect(next.logs.filter((log) => log.includes('moved back'))).toEqual([
      expect.stringMatching(/^review_tasks: start_date moved back/),
    ])
    expect(next.state.review_tasks).toMatchObject({ startDate: new Date(early).toISOString() })
  })

  it('is not read from again by the deletions of tombstones: what was never read need not be deleted', async () => {
    const { data, sourceFrom } = createService()
    const selected = streamsWithTombstones().filter(({ name }) => name === 'reviews')
    data.deleted.push({ id: 1000, modifiedTime: instant(70) })
    const first = await readAll(sourceFrom(late), selected)
    data.reviews = data.reviews.filter(({ id }) => id !== 3)
    data.deleted.push({ id: 3, modifiedTime: instant(0.01) })
    const second = await readAll(sourceFrom(early), selected, first.state)
    const deletedIds = (second.records.reviews ?? []).flatMap((row) => (row._ab_cdc_deleted_at ? [Number(row.id)] : []))
    expect(deletedIds).toEqual([3])
    expect(idsOf(second)).toEqual(upTo(90))
    expect(JSON.stringify(second.state.reviews)).toContain('"deletions"')
  })

  it('is searched for entities, and read from for each of them', async () => {
    const feedback = simulateFeedback(defaultTraits, now)
    const { data, api } = createExportApi(feedback.now)
    const reviewOf = (id: number, age: number) => ({
      id,
      modifiedTime: instant(age),
      location: { id, name: 'a place' },
    })
    data.reviews = [reviewOf(1, 80), reviewOf(2, 10)]
    for (const location of [1, 2])
      for (const age of [60, 5]) feedback.addComment(`location ${location}`, now - age * day)
    const sourceFrom = (startDate: number) =>
      createSourceEnv({ ...api, ...feedback.api }, { now: feedback.now, startDate, entities: locationsFromReviews })
    const placesOf = ({ records }: Outcome) => (records.comments ?? []).map(({ entityId }) => String(entityId)).sort()
    const first = await readAll(sourceFrom(late), [commentsStream])
    expect(placesOf(first)).toEqual(['2'])
    const moved = await readAll(sourceFrom(early), [commentsStream], first.state)
    expect(placesOf(moved)).toEqual(['1', '1', '2', '2'])
    expect(placesOf(await readAll(sourceFrom(early), [commentsStream], moved.state))).toEqual([])
  })

  it('stays remembered where an entity was read from a later one', async () => {
    const feedback = simulateFeedback(defaultTraits, now)
    for (const location of [1, 2])
      for (const age of [60, 5]) feedback.addComment(`location ${location}`, now - age * day)
    const read = (startDate: number, locations: ReadonlyArray<string>, state?: SourceState) =>
      readAll(
        createSourceEnv(feedback.api, { now: feedback.now, startDate, entities: selectEntities({ locations }) }),
        [commentsStream],
        state,
      )
    const first = await read(early, ['1'])
    const second = await read(late, ['1', '2'], first.state)
    expect(second.records.comments).toHaveLength(1)
    const third = await read(early, ['1', '2'], second.state)
    expect(third.logs.join()).toContain('start_date moved back')
    expect(third.records.comments).toHaveLength(4)
  })
})

describe('the future', () => {
  it.each(['reviews', 'deleted_reviews', 'review_tasks'])(
    'is no start of %s, with and without a state',
    async (name) => {
      const { sourceFrom } = createService()
      const first = await readAll(sourceFrom(late), streamsOf(name))
      for (const state of [{}, first.state]) {
        const refused = await readAll(sourceFrom(future), streamsOf(name), state)
        expect(refused.failures[name]).toContain('lies in the future')
        expect(refused.state).toEqual(state)
      }
      const share = { partition: O.some({ index: 1, count: 3 }) }
      const refused = await readAll(sourceFrom(future, share), streamsOf(name))
      expect([refused.failures[name], refused.state]).toEqual([expect.stringContaining('lies in the future'), {}])
    },
  )

  it('is no start of comments, and no cursor of one of their entities', async () => {
    const feedback = simulateFeedback(defaultTraits, now)
    for (const key of ['location 1', 'location 2', 'person 3']) feedback.addComment(key, now - 5 * day)
    const entities = selectEntities({ locations: ['1', '2'], persons: ['3'] })
    const read = (startDate: number, state?: SourceState) =>
      readAll(createSourceEnv(feedback.api, { now: feedback.now, startDate, entities }), [commentsStream], state)
    expect(await read(future)).toMatchObject({
      state: {},
      failures: { comments: expect.stringContaining('lies in the') },
    })
    const first = await read(late)
    expect((await read(now + 3_600_000, first.state)).failures.comments).toContain('lies in the future')
    const refused = await read(future, first.state)
    expect(refused.failures.comments).toContain('lies in the future')
    expect(refused.records.comments).toEqual([])
    expect((await read(late, refused.state)).logs).toEqual([])
    const { comments } = first.state as { readonly comments: { readonly entityStates: Record<string, object> } }
    const entityStates = {
      ...comments.entityStates,
      'location:2': { ...comments.entityStates['location:2'], fromDate: '2030-01-01T00:00:00.000Z' },
    }
    const ahead = await read(late, { comments: { ...comments, entityStates } })
    expect(ahead.failures.comments).toMatch(/The state reaches to 2030-01-01.*--full-refresh, or Refresh or Clear/)
  })

  it('fails the streams whose state lies there, and no other', async () => {
    const { sourceFrom } = createService()
    const state = { reviews: { modifiedTimeFrom: '2030-01-01T00:00:00.000Z' } }
    const mixed = await readAll(sourceFrom(late), streamsOf('reviews', 'review_tasks'), state)
    expect(Object.keys(mixed.failures)).toEqual(['reviews'])
    expect(mixed.state.reviews).toEqual(state.reviews)
    expect(mixed.state.review_tasks).toMatchObject({ modifiedTimeFrom: instant(1) })
    const refreshed = await readAll(sourceFrom(late), streamsOf('reviews'), state, 'full_refresh')
    expect(idsOf(refreshed)).toEqual(upTo(50))
  })

  it('begins behind what the lookback and the slack of a state reach', async () => {
    const { sourceFrom } = createService()
    const lookback = 600_000
    const read = (ahead: number, slack?: number) =>
      readAll(sourceFrom(late, { lookback }), streamsOf('reviews'), {
        reviews: { modifiedTimeFrom: new Date(now + ahead).toISOString(), slack },
      })
    expect((await read(lookback + 300_000)).failures).toEqual({})
    expect((await read(lookback + 300_001)).failures.reviews).toContain('no change before then would ever be read')
    expect((await read(lookback + day, day)).failures).toEqual({})
  })
})
