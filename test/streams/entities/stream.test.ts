import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../../connector/sandbox/start'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { streams } from '../../../connector/streams/streams'
import { createExportApi } from '../../support/export-api'
import { defaultTraits, simulateFeedback } from '../../support/feedback-simulation'
import { createSourceEnv, locationsFromReviews, readAll, selectEntities } from '../../support/in-process'
import { startTestSandbox } from '../../support/sandbox'

const selectStreams = (...names: string[]) => streams.filter(({ name }) => names.includes(name))
const hour = 3_600_000

describe('streams by entity', () => {
  let sandbox: Sandbox
  let clock = Date.now()
  beforeAll(async () => {
    sandbox = await startTestSandbox({
      reviews: 700,
      locations: 6,
      providers: 9,
      now: () => clock,
      until: clock - hour,
    })
  })
  afterAll(() => sandbox.close())

  const sourceWith = (overrides: Partial<SourceEnv> = {}) =>
    createSourceEnv(sandbox.api, {
      now: () => clock,
      pageSize: 200,
      entities: locationsFromReviews,
      feedback: { thresholds: {}, perPage: 40, days: 3650, lookbackDays: 30 },
      ...overrides,
    })
  const rowKeys = (rows: ReadonlyArray<Record<string, unknown>> = [], key = 'id') =>
    rows.map((row) => `${row.entityType} ${row.entityId} ${row[key]}`).sort()

  /** The keys of a location's comments, read page by page: nothing changes here meanwhile. */
  const listComments = async (locationId: string) => {
    const keys: string[] = []
    for (let page = 1; ; page += 1) {
      const answer = await sandbox.api.retrieveComments({
        locationId,
        page,
        perPage: 100,
        days: 5000,
        minRatingCount: -1,
      })()
      if (answer._tag === 'Left') throw new Error(JSON.stringify(answer.left))
      const comments = answer.right.data.entities[0]?.comments ?? []
      keys.push(...comments.map(({ id }) => `location ${locationId} ${id}`))
      if (comments.length === 0) return keys
    }
  }

  /** The same for the reviews of operation 1, by scrollKey, which all our services have. */
  const listReviews = async (locationId: string, scrolled: object = {}): Promise<ReadonlyArray<string>> => {
    const request = { locationId, perPage: 100, days: 5000, minRatingCount: -1, ...scrolled }
    const answer = await sandbox.api.retrieveReviews(request)()
    if (answer._tag === 'Left') throw new Error(JSON.stringify(answer.left))
    const { entities, filter } = answer.right.data
    const keys = (entities[0]?.reviews ?? []).map(({ documentId }) => `location ${locationId} ${documentId}`)
    const scrollKey = filter?.scrollKey ?? undefined
    return scrollKey === undefined ? keys : [...keys, ...(await listReviews(locationId, { scrollKey }))]
  }

  it('reads the comments of every location that reviews name, and none again in the next run', async () => {
    const { records, failures, state } = await readAll(sourceWith(), selectStreams('reviews', 'comments'))
    expect(failures).toEqual({})
    const locations = [...new Set(records.comments?.map(({ entityId }) => String(entityId)))]
    expect(locations).toHaveLength(6)
    const truth = (await Promise.all(locations.map(listComments))).flat().sort()
    expect(rowKeys(records.comments)).toEqual(truth)
    expect(truth.length).toBeGreaterThan(300)
    const again = await readAll(sourceWith(), selectStreams('reviews', 'comments'), state)
    expect(again.records.comments).toEqual([])
  })

  it('searches the reviews itself if no stream reads them, and keeps the locations in its state', async () => {
    const first = await readAll(sourceWith(), selectStreams('comments'))
    expect(first.failures).toEqual({})
    expect(first.records.comments?.length).toBeGreaterThan(300)
    const second = await readAll(sourceWith(), selectStreams('comments'), first.state)
    expect(second.records.comments).toEqual([])
    expect(Object.keys((second.state.comments as { entityStates: object }).entityStates)).toHaveLength(6)
  })

  it('reads the transparency reviews of every location', async () => {
    const { records, failures } = await readAll(sourceWith(), selectStreams('reviews', 'transparency_reviews'))
    expect(failures).toEqual({})
    const locations = [...new Set(records.transparency_reviews?.map(({ entityId }) => String(entityId)))]
    expect(locations).toHaveLength(6)
    const truth = (await Promise.all(locations.map((location) => listReviews(location)))).flat().sort()
    expect(truth.length).toBeGreaterThan(0)
    expect(rowKeys(records.transparency_reviews, 'documentId')).toEqual(truth)
  })

  it('sends the windows again in which late responses came', async () => {
    const selected = selectStreams('comments')
    const feedback = { thresholds: {}, perPage: 100, days: 3650, lookbackDays: 4000 }
    const first = await readAll(sourceWith({ feedback }), selected)
    clock += hour
    await sandbox.churn({ change: 60 })
    clock += hour
    const second = await readAll(sourceWith({ feedback }), selected, first.state)
    expect(second.failures).toEqual({})
    expect(second.records.comments?.length).toBeGreaterThan(0)
    const destination = new Map(
      [...(first.records.comments ?? []), ...(second.records.comments ?? [])].map((row) => [
        `${row.entityId} ${row.id}`,
        row,
      ]),
    )
    const whole = await readAll(sourceWith({ feedback: { ...feedback, lookbackDays: 30 } }), selected)
    expect(whole.records.comments?.length).toBeGreaterThan(0)
    for (const row of whole.records.comments ?? []) expect(destination.get(`${row.entityId} ${row.id}`)).toEqual(row)
  })

  it('has a summary of each entity, with the seal as JSON text', async () => {
    const { records, failures } = await readAll(sourceWith(), selectStreams('entity_ratings'))
    expect(failures).toEqual({})
    expect(records.entity_ratings).toHaveLength(6)
    for (const row of records.entity_ratings ?? []) {
      expect(row).toMatchObject({ entityType: 'location', overallRating: { value: expect.any(Number) } })
      expect(['string', 'object']).toContain(typeof row.VendorSealOfIntegrity)
      expect(row).not.toHaveProperty('comments')
    }
  })

  it('completes with a warning if the config names no entities', async () => {
    const { messages, logs } = await readAll(sourceWith({ entities: selectEntities() }), selectStreams('comments'))
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

  /** A service whose reviews name locations 1 and 2; these and location 3 have a comment each. */
  const createServices = () => {
    const feedback = simulateFeedback(defaultTraits, start)
    const { data, api } = createExportApi(feedback.now)
    data.reviews = [review(1, start - 20 * day, 1), review(2, start - 10 * day, 2)]
    for (const location of [1, 2, 3]) feedback.addComment(`location ${location}`, start - 5 * day)
    const sourceWith = (providers: 'none' | 'id' = 'none') =>
      createSourceEnv(
        { ...api, ...feedback.api },
        {
          now: feedback.now,
          startDate: start - 100 * day,
          entities: selectEntities({ fromReviews: { locations: true, providers } }),
        },
      )
    return { feedback, data, sourceWith }
  }
  const commentedIds = ({ records }: { readonly records: Readonly<Record<string, ReadonlyArray<object>>> }) =>
    records.comments?.map((row) => ('entityId' in row ? row.entityId : undefined)).sort()

  it('are all found if comments are added to a connection that already reads reviews', async () => {
    const { feedback, sourceWith } = createServices()
    const before = await readAll(sourceWith(), selectStreams('reviews'))
    feedback.advanceClock(day)
    expect(commentedIds(await readAll(sourceWith(), selectStreams('reviews', 'comments'), before.state))).toEqual([
      '1',
      '2',
    ])
  })

  it('need no request of the export if a stream of the run reads it', async () => {
    const { feedback, data, sourceWith } = createServices()
    const first = await readAll(sourceWith(), selectStreams('reviews', 'comments', 'entity_ratings'))
    const requestsOfFirstRun = data.requests.length
    await readAll(sourceWith(), selectStreams('reviews'))
    expect(data.requests.length - requestsOfFirstRun).toBe(requestsOfFirstRun)
    feedback.advanceClock(day)
    data.reviews = [...data.reviews, review(3, feedback.now() - hour, 3)]
    const requestsBefore = data.requests.length
    const second = await readAll(sourceWith(), selectStreams('reviews', 'comments', 'entity_ratings'), first.state)
    expect(commentedIds(second)).toEqual(['3'])
    expect(second.records.entity_ratings).toHaveLength(3)
    expect(data.requests.length - requestsBefore).toBeLessThanOrEqual(requestsOfFirstRun)
  })

  it('are searched for again when the config selects others', async () => {
    const { feedback, data, sourceWith } = createServices()
    const first = await readAll(sourceWith(), selectStreams('comments'))
    feedback.addEntity('person 7')
    feedback.addComment('person 7', start - day)
    data.reviews = data.reviews.map((row) => ({ ...row, provider: { id: 7 } }))
    feedback.advanceClock(day)
    expect(commentedIds(await readAll(sourceWith('id'), selectStreams('comments'), first.state))).toEqual(['7'])
  })
})
