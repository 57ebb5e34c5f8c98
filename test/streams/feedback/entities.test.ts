import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { SourceState } from '../../../connector/cdk/catalog'
import { readStreams } from '../../../connector/cdk/read'
import { createEntityIndex } from '../../../connector/streams/entity-index'
import { commentsStream } from '../../../connector/streams/feedback/comments'
import { entityRatingsStream } from '../../../connector/streams/feedback/entity-ratings'
import { transparencyReviewsStream } from '../../../connector/streams/feedback/transparency-reviews'
import type { SourceEnv } from '../../../connector/streams/source-env'
import { streams } from '../../../connector/streams/streams'
import { exportApi } from '../../support/export-api'
import { createFeedbackDestination } from '../../support/feedback-destination'
import { defaultTraits, simulateFeedback } from '../../support/feedback-simulation'
import { readAll, sourceOf } from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00Z')
const day = 86_400_000
const places = 12

const review = (id: number, location: number) => ({
  id,
  modifiedTime: new Date(start - 90 * day + id * 60_000).toISOString(),
  source: { id: location % 2 },
  location: { id: location, name: `Location ${location}` },
})

/** Reviews that name twelve locations, each commented: the first in the first page only, the last in the last. */
const createServices = () => {
  const feedback = simulateFeedback(defaultTraits, start)
  const { held, api } = exportApi(feedback.now)
  held.reviews = Array.from({ length: 240 }, (_, n) => review(n + 1, 1 + Math.floor(n / 20)))
  for (let location = 1; location <= places; location += 1) feedback.add(`location ${location}`, start - 5 * day)
  const source = (more: Partial<SourceEnv> = {}): SourceEnv =>
    sourceOf(
      { ...api, ...feedback.api },
      {
        now: feedback.now,
        startDate: start - 100 * day,
        pageSize: 20,
        concurrency: 1,
        entityIndex: createEntityIndex(),
        entities: { persons: [], locations: [], entities: [], fromReviews: { locations: true, providers: 'none' } },
        ...more,
      },
    )
  return { feedback, held, source }
}

const every = { records: 0, millis: 0 }

describe.each([commentsStream, transparencyReviewsStream])('a search for the entities of $name', (stream) => {
  it.each([2, 4, 7, 11, 16])('that is cut short after %i messages goes on there and finds all', async (after) => {
    const { feedback, held, source } = createServices()
    const target = createFeedbackDestination()
    await target.run(stream, source(), undefined, every)
    expect(target.rows.size).toBe(places)
    const whole = held.requests.length

    for (const how of ['kill', 'stop'] as const) {
      const cut = createFeedbackDestination()
      await cut.run(stream, source(), { after, how }, every)
      const before = held.requests.length
      feedback.pass(3_600_000)
      const { failures } = await cut.run(stream, source(), undefined, every)
      expect(failures).toEqual([])
      expect([...cut.rows.keys()].sort()).toEqual([...target.rows.keys()].sort())
      if (after > 10) expect(held.requests.length - before).toBeLessThan(whole)
      feedback.pass(3_600_000)
      expect((await cut.run(stream, source(), undefined, every)).records).toBe(0)
    }
  })

  it('loses none of them however often it is cut short', async () => {
    const { feedback, source } = createServices()
    const target = createFeedbackDestination()
    for (let n = 0; n < 12; n += 1) {
      await target.run(stream, source(), { after: 3, how: 'kill' }, every)
      feedback.pass(60_000)
    }
    expect((await target.run(stream, source(), undefined, every)).failures).toEqual([])
    expect(target.rows.size).toBe(places)
  })
})

describe('a search that is stopped while its next page is on its way', () => {
  it.each([2, 3, 4])('misses nobody: page %i', async (page) => {
    const missed: string[] = []
    for (let turns = 0; turns < 60; turns += 5) {
      const { feedback, held, source } = createServices()
      // Each is named by one review alone.
      held.reviews = held.reviews.slice(0, 60).map(({ id }) => review(id, id))
      for (let location = places + 1; location <= 60; location += 1)
        feedback.add(`location ${location}`, start - 5 * day)
      const stop = new AbortController()
      const { api } = source()
      const stopping: typeof api.exportReviews = (request) => {
        const answer = api.exportReviews(request)
        if (held.requests.length === page)
          void (async () => {
            for (let turn = 0; turn < turns; turn += 1) await undefined
            stop.abort()
          })()
        return answer
      }
      let state: SourceState = {}
      for await (const message of readStreams({
        streams: [commentsStream],
        env: source({ api: { ...api, exportReviews: stopping } }),
        catalog: [{ name: commentsStream.name, syncMode: 'incremental', attributes: O.none }],
        state,
        now: feedback.now,
        checkpointInterval: { records: 1e9, millis: 1e9 },
        stop: stop.signal,
        onWait: () => () => undefined,
      }))
        if (message._tag === 'Checkpoint') state = JSON.parse(JSON.stringify({ [message.stream]: message.state }))
      const { records } = await readAll(source(), [commentsStream], state)
      const known = new Set(records.comments?.map(({ entityId }) => Number(entityId)))
      for (let id = 1; id <= 60; id += 1) if (!known.has(id)) missed.push(`location ${id} after ${turns} turns`)
    }
    expect(missed).toEqual([])
  })
})

describe('entities found in the reviews', () => {
  const found = ({ records }: { readonly records: Readonly<Record<string, ReadonlyArray<object>>> }) =>
    records.entity_ratings?.map((row) => Number('entityId' in row ? row.entityId : 0)).sort((a, b) => a - b)
  const all = Array.from({ length: places }, (_, n) => n + 1)

  it('stay when the config no longer names them', async () => {
    const { feedback, source } = createServices()
    const named = { ...source().entities, locations: ['3'] }
    const first = await readAll(source({ entities: named }), [entityRatingsStream])
    expect(found(first)).toEqual(all)
    feedback.pass(day)
    expect(found(await readAll(source(), [entityRatingsStream], first.state))).toEqual(all)
  })

  it('are searched for again when the filters of the export let other reviews through', async () => {
    const { feedback, held, source } = createServices()
    const narrow = { additionalFields: [], sources: [1] }
    const everything = held.reviews
    held.reviews = everything.filter(({ id }) => Math.floor((id - 1) / 20) % 2 === 0)
    const first = await readAll(source({ filters: narrow }), [entityRatingsStream])
    expect(found(first)).toEqual(all.filter((id) => id % 2 === 1))
    held.reviews = everything
    feedback.pass(day)
    expect(
      found(await readAll(source({ filters: { additionalFields: [] } }), [entityRatingsStream], first.state)),
    ).toEqual(all)
  })

  it('a killed run of entity_ratings reads them all again', async () => {
    const { source } = createServices()
    const cut = createFeedbackDestination()
    await cut.run(entityRatingsStream, source(), { after: 9, how: 'kill' }, every)
    const { records, failures } = await readAll(source(), [entityRatingsStream], cut.state())
    expect(failures).toEqual({})
    expect(found({ records })).toEqual(all)
  })
})

describe('feedback_filters', () => {
  const feedback = { thresholds: {}, perPage: 100, days: 365, lookbackDays: 30 }
  const read = (source: SourceEnv, state = {}, mode: 'incremental' | 'full_refresh' = 'incremental') =>
    readAll(
      source,
      streams.filter(({ name }) => ['comments', 'transparency_reviews', 'entity_ratings'].includes(name)),
      state,
      mode,
    )
  const changed = /^(comments|transparency_reviews): feedback_filters have changed since the last run/

  it.each<[string, Partial<SourceEnv['feedback']>, number]>([
    ['a threshold', { thresholds: { minThreshold: 3 } }, 2],
    ['additional fields', { additionalFields: ['brand'] }, 2],
    ['the page size alone', { perPage: 50 }, 0],
  ])('that changed in %s are warned of once', async (_, more, warnings) => {
    const { feedback: service, source } = createServices()
    const first = await read(source({ feedback }))
    expect(first.logs).toEqual([])
    service.pass(day)
    const second = await read(source({ feedback: { ...feedback, ...more } }), first.state)
    expect(second.logs.filter((line) => changed.test(line))).toHaveLength(warnings)
    service.pass(day)
    expect((await read(source({ feedback: { ...feedback, ...more } }), second.state)).logs).toEqual([])
    expect((await read(source({ feedback: { ...feedback, ...more } }), first.state, 'full_refresh')).logs).toEqual([])
  })
})

describe.each([commentsStream, transparencyReviewsStream, entityRatingsStream])('a state of $name', (stream) => {
  it('never tells what was read after it', async () => {
    const { source } = createServices()
    const demand = {
      stream: stream.name,
      syncMode: 'incremental' as const,
      state: O.none,
      attributes: O.none,
      project: stream.projector(),
    }
    const states: Array<{ readonly at: string; readonly later: () => unknown }> = []
    for await (const reading of stream.reader.read(source({ feedback: { ...source().feedback, perPage: 1 } }))([
      demand,
    ])) {
      if (E.isLeft(reading)) throw new Error(reading.left.message)
      if (reading.right._tag === 'Checkpoint')
        states.push({ at: JSON.stringify(reading.right.state()), later: reading.right.state })
    }
    expect(states.length).toBeGreaterThan(3)
    const partitions = states.map(({ later }) => later() as { readonly partitions?: Record<string, object> })
    const own = partitions.map((state) => JSON.stringify(state.partitions))
    expect(own).toEqual(states.map(({ at }) => JSON.stringify(JSON.parse(at).partitions)))
    expect(new Set(own).size).toBeGreaterThan(1)
  })
})
