import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Api } from '../../../connector/api/api'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { createEntityIndex } from '../../../connector/streams/entity-index'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { streams } from '../../../connector/streams/streams'
import { exportApi } from '../../support/export-api'
import { defaultTraits, simulateFeedback } from '../../support/feedback-simulation'
import { readAll, sourceOf } from '../../support/in-process'

const named = (...names: string[]) => streams.filter(({ name }) => names.includes(name))
const hour = 3_600_000

describe('feedback under entities', () => {
  let sandbox: Sandbox
  let clock = Date.now()
  beforeAll(async () => {
    sandbox = await startSandbox({ reviews: 700, locations: 6, providers: 9, now: () => clock, until: clock - hour })
  })
  afterAll(() => sandbox.close())

  const source = (more: Partial<SourceEnv> = {}, api: Partial<Api> = sandbox.api) =>
    sourceOf(api, {
      now: () => clock,
      pageSize: 200,
      entityIndex: createEntityIndex(),
      entities: { persons: [], locations: [], entities: [], fromReviews: { locations: true, providers: 'none' } },
      feedback: { thresholds: {}, perPage: 40, days: 3650, lookbackDays: 30 },
      ...more,
    })
  const ids = (rows: ReadonlyArray<Record<string, unknown>> = [], key = 'id') =>
    rows.map((row) => `${row.entityType} ${row.entityId} ${row[key]}`).sort()

  /** What the service lists of a location, by plain pages, which nothing moves here. */
  const listed = async (locationId: string) => {
    const all: string[] = []
    for (let page = 1; ; page += 1) {
      const answer = await sandbox.api.retrieveComments({
        locationId,
        page,
        perPage: 100,
        days: 5000,
        fromDate: '2009-12-31T00:00:00.000Z',
        toDate: new Date(clock).toISOString(),
      })()
      if (answer._tag === 'Left') throw new Error(JSON.stringify(answer.left))
      const comments = answer.right.data.entities[0]?.comments ?? []
      all.push(...comments.map(({ id }) => `location ${locationId} ${id}`))
      if (comments.length === 0) return all
    }
  }

  /** The same of operation 1, whose pages begin at 0. */
  const reviewed = async (locationId: string) => {
    const all: string[] = []
    for (let page = 0; ; page += 1) {
      const answer = await sandbox.api.retrieveReviews({
        locationId,
        page,
        perPage: 100,
        fromDate: '2009-12-31T00:00:00.000Z',
        toDate: new Date(clock).toISOString(),
      })()
      if (answer._tag === 'Left') throw new Error(JSON.stringify(answer.left))
      const reviews = answer.right.data.entities[0]?.reviews ?? []
      all.push(...reviews.map(({ documentId }) => `location ${locationId} ${documentId}`))
      if (reviews.length === 0) return all
    }
  }

  it('reads the comments of every location seen in the reviews, and nothing twice', async () => {
    const { records, failures, state } = await readAll(source(), named('reviews', 'comments'))
    expect(failures).toEqual({})
    const locations = [...new Set(records.comments?.map(({ entityId }) => String(entityId)))]
    expect(locations).toHaveLength(6)
    const truth = (await Promise.all(locations.map(listed))).flat().sort()
    expect(ids(records.comments)).toEqual(truth)
    expect(truth.length).toBeGreaterThan(300)
    const again = await readAll(source(), named('reviews', 'comments'), state)
    expect(again.records.comments).toEqual([])
  })

  it('keeps the entities it has seen, and finds them by itself where reviews are not read', async () => {
    const first = await readAll(source(), named('comments'))
    expect(first.failures).toEqual({})
    expect(first.records.comments?.length).toBeGreaterThan(300)
    const second = await readAll(
      source({
        entities: { persons: [], locations: [], entities: [], fromReviews: { locations: true, providers: 'none' } },
      }),
      named('comments'),
      first.state,
    )
    expect(second.records.comments).toEqual([])
    expect(Object.keys((second.state.comments as { partitions: object }).partitions)).toHaveLength(6)
  })

  it('reads the transparency reviews of every location', async () => {
    const { records, failures } = await readAll(source(), named('reviews', 'transparency_reviews'))
    expect(failures).toEqual({})
    const locations = [...new Set(records.transparency_reviews?.map(({ entityId }) => String(entityId)))]
    expect(locations).toHaveLength(6)
    const truth = (await Promise.all(locations.map(reviewed))).flat().sort()
    expect(ids(records.transparency_reviews, 'documentId')).toEqual(truth)
  })

  it('sends a window again where a response came late, and not otherwise', async () => {
    const selected = named('comments')
    const first = await readAll(
      source({ feedback: { thresholds: {}, perPage: 100, days: 3650, lookbackDays: 4000 } }),
      selected,
    )
    clock += hour
    await sandbox.churn({ change: 60 })
    clock += hour
    const second = await readAll(
      source({ feedback: { thresholds: {}, perPage: 100, days: 3650, lookbackDays: 4000 } }),
      selected,
      first.state,
    )
    expect(second.failures).toEqual({})
    expect(second.records.comments?.length).toBeGreaterThan(0)
    const held = new Map(
      [...(first.records.comments ?? []), ...(second.records.comments ?? [])].map((row) => [
        `${row.entityId} ${row.id}`,
        row,
      ]),
    )
    const whole = await readAll(
      source({ feedback: { thresholds: {}, perPage: 100, days: 3650, lookbackDays: 30 } }),
      selected,
    )
    for (const row of whole.records.comments ?? []) expect(held.get(`${row.entityId} ${row.id}`)).toEqual(row)
  })

  it('sums up each entity, the seal as JSON text', async () => {
    const { records, failures } = await readAll(source(), named('entity_ratings'))
    expect(failures).toEqual({})
    expect(records.entity_ratings).toHaveLength(6)
    for (const row of records.entity_ratings ?? []) {
      expect(row).toMatchObject({ entityType: 'location', overallRating: { value: expect.any(Number) } })
      expect(['string', 'object']).toContain(typeof row.VendorSealOfIntegrity)
      expect(row).not.toHaveProperty('comments')
    }
  })

  it('warns, and completes, where nobody is named', async () => {
    const entities = {
      persons: [],
      locations: [],
      entities: [],
      fromReviews: { locations: false, providers: 'none' } as const,
    }
    const { messages, logs } = await readAll(source({ entities }), named('comments'))
    expect(logs).toEqual([expect.stringContaining('entities')])
    expect(messages.map(({ _tag }) => _tag)).toEqual(['Started', 'Log', 'Checkpoint', 'Finished'])
  })
})

describe('entities found in the reviews', () => {
  const start = Date.parse('2026-03-01T12:00:00Z')
  const day = 24 * hour
  const review = (id: number, modified: number, location: number) => ({
    id,
    modifiedTime: new Date(modified).toISOString(),
    location: { id: location, name: `Location ${location}` },
  })

  /** A service of reviews that name locations 1 and 2, of which both are commented. */
  const world = () => {
    const feedback = simulateFeedback(defaultTraits, start)
    const { held, api } = exportApi(feedback.now)
    held.reviews = [review(1, start - 20 * day, 1), review(2, start - 10 * day, 2)]
    for (const location of [1, 2, 3]) feedback.add(`location ${location}`, start - 5 * day)
    const source = (providers: 'none' | 'id' = 'none') =>
      sourceOf(
        { ...api, ...feedback.api },
        {
          now: feedback.now,
          startDate: start - 100 * day,
          entityIndex: createEntityIndex(),
          entities: { persons: [], locations: [], entities: [], fromReviews: { locations: true, providers } },
        },
      )
    return { feedback, held, source }
  }
  const places = ({ records }: { readonly records: Readonly<Record<string, ReadonlyArray<object>>> }) =>
    records.comments?.map((row) => ('entityId' in row ? row.entityId : undefined)).sort()

  it('are all found where comments join a connection that has long read reviews', async () => {
    const { feedback, source } = world()
    const before = await readAll(source(), named('reviews'))
    feedback.pass(day)
    expect(places(await readAll(source(), named('reviews', 'comments'), before.state))).toEqual(['1', '2'])
  })

  it('cost no request of the export where a stream of the run reads it', async () => {
    const { feedback, held, source } = world()
    const first = await readAll(source(), named('reviews', 'comments', 'entity_ratings'))
    const together = held.requests.length
    await readAll(source(), named('reviews'))
    expect(held.requests.length - together).toBe(together)
    feedback.pass(day)
    held.reviews = [...held.reviews, review(3, feedback.now() - hour, 3)]
    const asked = held.requests.length
    const second = await readAll(source(), named('reviews', 'comments', 'entity_ratings'), first.state)
    expect(places(second)).toEqual(['3'])
    expect(second.records.entity_ratings).toHaveLength(3)
    expect(held.requests.length - asked).toBeLessThanOrEqual(together)
  })

  it('are searched for again when other ones are wanted', async () => {
    const { feedback, held, source } = world()
    const first = await readAll(source(), named('comments'))
    feedback.exist('person 7')
    feedback.add('person 7', start - day)
    held.reviews = held.reviews.map((one) => ({ ...one, provider: { id: 7 } }))
    feedback.pass(day)
    expect(places(await readAll(source('id'), named('comments'), first.state))).toEqual(['7'])
  })
})
