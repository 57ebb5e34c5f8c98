import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { SourceState } from '../../../connector/cdk/catalog'
import type { SyncMode } from '../../../connector/cdk/message'
import { commentsStream, transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import { entityRatingsStream } from '../../../connector/streams/entities/ratings'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { streams } from '../../../connector/streams/streams'
import { createExportApi } from '../../support/export-api'
import { createFeedbackDestination } from '../../support/feedback-destination'
import { defaultTraits, simulateFeedback } from '../../support/feedback-simulation'
import {
  copyState,
  createSourceEnv,
  everyCheckpoint,
  lastCheckpointOnly,
  locationsFromReviews,
  readAll,
  readMessages,
} from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00Z')
const day = 86_400_000
const locationCount = 12
const locationIds = Array.from({ length: locationCount }, (_, n) => n + 1)

const review = (id: number, location: number) => ({
  id,
  modifiedTime: new Date(start - 90 * day + id * 60_000).toISOString(),
  source: { id: location % 2 },
  location: { id: location, name: `Location ${location}` },
})

/**
 * Reviews that name twelve locations, each with a comment: the first only on the first page, the last only on the last.
 */
const createServices = () => {
  const feedback = simulateFeedback(defaultTraits, start)
  const { data, api } = createExportApi(feedback.now)
  data.reviews = Array.from({ length: 240 }, (_, n) => review(n + 1, 1 + Math.floor(n / 20)))
  for (let location = 1; location <= locationCount; location += 1)
    feedback.addComment(`location ${location}`, start - 5 * day)
  const sourceWith = (overrides: Partial<SourceEnv> = {}): SourceEnv =>
    createSourceEnv(
      { ...api, ...feedback.api },
      {
        now: feedback.now,
        startDate: start - 100 * day,
        pageSize: 20,
        concurrency: 1,
        entities: locationsFromReviews,
        ...overrides,
      },
    )
  return { feedback, data, sourceWith }
}

describe.each([commentsStream, transparencyReviewsStream])('a search for the entities of $name', (stream) => {
  it.each([2, 4, 7, 11, 16])('that ends after %i messages is resumed and finds all', async (after) => {
    const { feedback, data, sourceWith } = createServices()
    const expected = createFeedbackDestination()
    await expected.run(stream, sourceWith(), undefined, everyCheckpoint)
    expect(expected.rows.size).toBe(locationCount)
    const requestsOfWholeSearch = data.requests.length

    for (const how of ['kill', 'stop'] as const) {
      const destination = createFeedbackDestination()
      await destination.run(stream, sourceWith(), { after, how }, everyCheckpoint)
      const requestsBefore = data.requests.length
      feedback.advanceClock(3_600_000)
      const { failures } = await destination.run(stream, sourceWith(), undefined, everyCheckpoint)
      expect(failures).toEqual([])
      expect([...destination.rows.keys()].sort()).toEqual([...expected.rows.keys()].sort())
      if (after > 10) expect(data.requests.length - requestsBefore).toBeLessThan(requestsOfWholeSearch)
      feedback.advanceClock(3_600_000)
      expect((await destination.run(stream, sourceWith(), undefined, everyCheckpoint)).records).toBe(0)
    }
  })

  it('loses no entity however often it is killed', async () => {
    const { feedback, sourceWith } = createServices()
    const destination = createFeedbackDestination()
    for (let n = 0; n < 12; n += 1) {
      await destination.run(stream, sourceWith(), { after: 3, how: 'kill' }, everyCheckpoint)
      feedback.advanceClock(60_000)
    }
    expect((await destination.run(stream, sourceWith(), undefined, everyCheckpoint)).failures).toEqual([])
    expect(destination.rows.size).toBe(locationCount)
  })
})

describe('a search that is stopped while its next page is being fetched', () => {
  it.each([2, 3, 4])('misses no entity: page %i', async (page) => {
    const missed: string[] = []
    for (let turns = 0; turns < 60; turns += 5) {
      const { feedback, data, sourceWith } = createServices()
      // Each location is named by one review only.
      data.reviews = data.reviews.slice(0, 60).map(({ id }) => review(id, id))
      for (let location = locationCount + 1; location <= 60; location += 1)
        feedback.addComment(`location ${location}`, start - 5 * day)
      const stop = new AbortController()
      const { api } = sourceWith()
      const stopping: typeof api.exportReviews = (request) => {
        const answer = api.exportReviews(request)
        if (data.requests.length === page)
          void (async () => {
            for (let turn = 0; turn < turns; turn += 1) await undefined
            stop.abort()
          })()
        return answer
      }
      let state: SourceState = {}
      const source = sourceWith({ api: { ...api, exportReviews: stopping } })
      const options = { checkpointInterval: lastCheckpointOnly, stop: stop.signal }
      for await (const message of readMessages(source, [commentsStream], options))
        if (message._tag === 'Checkpoint') state = copyState({ [message.stream]: message.state })
      const { records } = await readAll(sourceWith(), [commentsStream], state)
      const found = new Set(records.comments?.map(({ entityId }) => Number(entityId)))
      for (let id = 1; id <= 60; id += 1) if (!found.has(id)) missed.push(`location ${id} after ${turns} turns`)
    }
    expect(missed).toEqual([])
  })
})

describe('entities found in the reviews', () => {
  const ratedIds = ({ records }: { readonly records: Readonly<Record<string, ReadonlyArray<object>>> }) =>
    records.entity_ratings?.map((row) => Number('entityId' in row ? row.entityId : 0)).sort((a, b) => a - b)

  it('are still read when the config no longer names them', async () => {
    const { feedback, sourceWith } = createServices()
    const entities = { ...locationsFromReviews, locations: ['3'] }
    const first = await readAll(sourceWith({ entities }), [entityRatingsStream])
    expect(ratedIds(first)).toEqual(locationIds)
    feedback.advanceClock(day)
    expect(ratedIds(await readAll(sourceWith(), [entityRatingsStream], first.state))).toEqual(locationIds)
  })

  it('are searched for again when the filters of the export let other reviews through', async () => {
    const { feedback, data, sourceWith } = createServices()
    const narrow = { additionalFields: [], sources: [1] }
    const allReviews = data.reviews
    data.reviews = allReviews.filter(({ id }) => Math.floor((id - 1) / 20) % 2 === 0)
    const first = await readAll(sourceWith({ filters: narrow }), [entityRatingsStream])
    expect(ratedIds(first)).toEqual(locationIds.filter((id) => id % 2 === 1))
    data.reviews = allReviews
    feedback.advanceClock(day)
    const wide = sourceWith({ filters: { additionalFields: [] } })
    expect(ratedIds(await readAll(wide, [entityRatingsStream], first.state))).toEqual(locationIds)
  })

  it('are all read again after a killed run of entity_ratings', async () => {
    const { sourceWith } = createServices()
    const destination = createFeedbackDestination()
    await destination.run(entityRatingsStream, sourceWith(), { after: 9, how: 'kill' }, everyCheckpoint)
    const { records, failures } = await readAll(sourceWith(), [entityRatingsStream], destination.state())
    expect(failures).toEqual({})
    expect(ratedIds({ records })).toEqual(locationIds)
  })
})

describe('feedback_filters', () => {
  const feedback = { thresholds: {}, perPage: 100, days: 365, lookbackDays: 30 }
  const read = (source: SourceEnv, state = {}, syncMode: SyncMode = 'incremental') =>
    readAll(
      source,
      streams.filter(({ name }) => ['comments', 'transparency_reviews', 'entity_ratings'].includes(name)),
      state,
      syncMode,
    )
  const filtersChanged = /^(comments|transparency_reviews): feedback_filters have changed since the last run/

  it.each<[string, Partial<SourceEnv['feedback']>, number]>([
    ['a threshold', { thresholds: { minThreshold: 3 } }, 2],
    ['additional fields', { additionalFields: ['brand'] }, 2],
    ['the page size alone', { perPage: 50 }, 0],
  ])('that changed in %s give a warning in the next run only', async (_, changes, warningCount) => {
    const { feedback: service, sourceWith } = createServices()
    const changed = { feedback: { ...feedback, ...changes } }
    const first = await read(sourceWith({ feedback }))
    expect(first.logs).toEqual([])
    service.advanceClock(day)
    const second = await read(sourceWith(changed), first.state)
    expect(second.logs.filter((line) => filtersChanged.test(line))).toHaveLength(warningCount)
    service.advanceClock(day)
    expect((await read(sourceWith(changed), second.state)).logs).toEqual([])
    expect((await read(sourceWith(changed), first.state, 'full_refresh')).logs).toEqual([])
  })
})

describe.each([commentsStream, transparencyReviewsStream, entityRatingsStream])('a state of $name', (stream) => {
  it('does not change after its checkpoint', async () => {
    const { sourceWith } = createServices()
    const source = sourceWith({ feedback: { ...sourceWith().feedback, perPage: 1 } })
    const request = {
      stream: stream.name,
      syncMode: 'incremental' as const,
      state: O.none,
      attributes: O.none,
      project: stream.projector(),
    }
    const checkpoints: Array<{ readonly text: string; readonly state: () => unknown }> = []
    for await (const event of stream.reader.read(source)([request])) {
      if (E.isLeft(event)) throw new Error(event.left.message)
      if (event.right._tag === 'Checkpoint')
        checkpoints.push({ text: JSON.stringify(event.right.state()), state: event.right.state })
    }
    expect(checkpoints.length).toBeGreaterThan(3)
    const laterStates = checkpoints.map(({ state }) => state() as { readonly entityStates?: Record<string, object> })
    const entityStates = laterStates.map((state) => JSON.stringify(state.entityStates))
    expect(entityStates).toEqual(checkpoints.map(({ text }) => JSON.stringify(JSON.parse(text).entityStates)))
    expect(new Set(entityStates).size).toBeGreaterThan(1)
  })
})
