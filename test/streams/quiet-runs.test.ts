import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message } from '../../connector/cdk/message'
import { streams } from '../../connector/streams/streams'
import { createExportApi } from '../support/export-api'
import {
  copyState,
  createSourceEnv,
  everyCheckpoint,
  readAll,
  readMessages,
  streamsWithTombstones,
} from '../support/in-process'

const [second, minute, hour] = [1000, 60_000, 3_600_000]
const begin = Date.parse('2026-03-01T12:00:00Z')

/** 3,000 reviews, all changed by one bulk change a minute before the first run, with an hour between two runs. */
const createService = () => {
  let clock = begin
  const { data, api } = createExportApi(() => clock)
  const review = (id: number, modified: number, text = 'fine') => ({
    id,
    modifiedTime: new Date(modified).toISOString(),
    taskDetails: { status: text },
    text,
  })
  data.reviews = Array.from({ length: 3000 }, (_, n) => review(n + 1, begin - minute + Math.floor(n / 100)))
  const source = createSourceEnv(api, {
    now: () => clock,
    startDate: begin - 1000 * hour,
    wait: () => async () => undefined,
  })
  return {
    data,
    api,
    source,
    passHour: () => {
      clock += hour
      data.requests.length = 0
    },
    now: () => clock,
    review,
    put: (id: number, modified: number, text?: string) => {
      data.reviews = [...data.reviews.filter((row) => row.id !== id), review(id, modified, text)]
    },
  }
}

const select = (...names: ReadonlyArray<string>) => streams.filter(({ name }) => names.includes(name))
const idsOf = (records: ReadonlyArray<Record<string, unknown>> = []) =>
  records.map(({ id, reviewId = id }) => Number(reviewId)).sort((a, b) => a - b)
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1)

describe('after a bulk change of more reviews than a state lists', () => {
  it('runs send nothing, each with a small state and no more requests than the first one', async () => {
    const { source, passHour, data } = createService()
    let { records, state } = await readAll(source, select('reviews'))
    expect(idsOf(records.reviews)).toEqual(upTo(3000))
    const requests = data.requests.length
    for (const run of [2, 3, 4]) {
      passHour()
      const next = await readAll(source, select('reviews'), state)
      state = next.state
      expect([run, next.failures, next.records.reviews]).toEqual([run, {}, []])
      expect(JSON.stringify(state).length).toBeLessThan(60_000)
      expect(data.requests.length).toBeLessThanOrEqual(requests)
    }
  })

  it('a review that changes arrives', async () => {
    const { source, passHour, put, now } = createService()
    let { state } = await readAll(source, select('reviews'))
    const run = async () => {
      passHour()
      const next = await readAll(source, select('reviews'), state)
      expect(next.failures).toEqual({})
      state = next.state
      return next.records.reviews ?? []
    }
    put(17, now() + minute)
    expect(idsOf(await run())).toContain(17)
    expect(await run()).toEqual([])
  })

  it.each([
    ['changed its text and not its time', (s: ReturnType<typeof createService>) => s.put(17, begin - minute, 'other')],
    ['came late with an old time', (s: ReturnType<typeof createService>) => s.put(5000, begin - minute + 3)],
  ])('a review that %s is sent with those of its range, once', async (_, change) => {
    const service = createService()
    const first = await readAll(service.source, select('reviews'))
    service.passHour()
    change(service)
    const second = await readAll(service.source, select('reviews'), first.state)
    const ids = idsOf(second.records.reviews)
    expect(ids.some((id) => id === 17 || id === 5000)).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
    const [changed] = service.data.reviews.slice(-1)
    expect(second.records.reviews).toContainEqual(expect.objectContaining({ id: changed?.id }))
    service.passHour()
    const third = await readAll(service.source, select('reviews'), second.state)
    expect(third.records.reviews).toEqual([])
  })

  it('a review that goes makes its range leave once more, and then nothing', async () => {
    const service = createService()
    const first = await readAll(service.source, select('reviews'))
    service.passHour()
    service.data.reviews = service.data.reviews.filter(({ id }) => id !== 1)
    const second = await readAll(service.source, select('reviews'), first.state)
    expect(idsOf(second.records.reviews)).toEqual(upTo(2000).slice(1))
    service.passHour()
    expect((await readAll(service.source, select('reviews'), second.state)).records.reviews).toEqual([])
  })

  it('each of several streams of a read gets what it lacks', async () => {
    const service = createService()
    const both = select('reviews', 'review_tasks')
    const first = await readAll(service.source, both)
    service.passHour()
    service.put(17, begin - minute, 'other')
    const reviews = await readAll(service.source, select('reviews'), first.state)
    service.passHour()
    const second = await readAll(service.source, both, reviews.state)
    expect(second.records.reviews).toEqual([])
    expect(second.records.review_tasks).toContainEqual(expect.objectContaining({ reviewId: 17, status: 'other' }))
    expect(second.records.review_tasks).toHaveLength(2000)
    service.passHour()
    const third = await readAll(service.source, [...both, ...select('locations')], second.state)
    expect([third.records.reviews, third.records.review_tasks]).toEqual([[], []])
  })

  it('only the stream whose second scan fails ends so', async () => {
    const service = createService()
    const both = select('reviews', 'review_tasks')
    const first = await readAll(service.source, both)
    service.passHour()
    service.put(17, begin - minute, 'other')
    const reviews = await readAll(service.source, select('reviews'), first.state)
    service.passHour()
    await readAll(service.source, select('reviews'), reviews.state)
    const ofOneScan = service.data.requests.length
    let requests = 0
    const { exportReviews } = service.api
    const failing = {
      ...service.source,
      api: {
        ...service.source.api,
        exportReviews: (request: Parameters<typeof exportReviews>[0]) => {
          requests += 1
          return requests > ofOneScan
            ? TE.left({ _tag: 'Http' as const, status: 500, message: 'no', retryAfter: undefined })
            : exportReviews(request)
        },
      },
    } as unknown as typeof service.source
    const second = await readAll(failing, both, reviews.state)
    expect(Object.keys(second.failures)).toEqual(['review_tasks'])
    service.passHour()
    const third = await readAll(service.source, both, second.state)
    expect(third.records.reviews).toEqual([])
    expect(third.records.review_tasks).toContainEqual(expect.objectContaining({ reviewId: 17, status: 'other' }))
  })

  it('a run that is killed anywhere loses nothing, and in the end nothing is sent', async () => {
    const service = createService()
    const source = { ...service.source, pageSize: 250, concurrency: 1 }
    const first = await readAll(source, select('reviews'))
    service.passHour()
    service.put(17, begin - minute, 'other')
    service.put(5000, begin + minute)
    const stops: Array<{ readonly state: SourceState; readonly texts: ReadonlyMap<string, string> }> = []
    const texts = new Map<string, string>()
    const note = (table: Map<string, string>, message: Message) => {
      if (message._tag !== 'Records') return
      for (const { json } of message.rows) {
        const { id, taskDetails } = JSON.parse(Buffer.from(json).toString())
        table.set(String(id), taskDetails.status)
      }
    }
    for await (const message of readMessages(source, select('reviews'), {
      state: first.state,
      checkpointInterval: everyCheckpoint,
    })) {
      note(texts, message)
      if (message._tag === 'Checkpoint')
        stops.push({ state: copyState({ reviews: message.state }), texts: new Map(texts) })
    }
    expect(stops.length).toBeGreaterThan(12)
    expect(texts.get('17')).toBe('other')
    for (const stop of stops) {
      const table = new Map(stop.texts)
      for await (const message of readMessages(source, select('reviews'), { state: stop.state })) {
        expect(message).not.toMatchObject({ _tag: 'Failed' })
        note(table, message)
        if (message._tag === 'Checkpoint') Object.assign(stop.state, { reviews: copyState({ it: message.state }).it })
      }
      expect([table.get('17'), table.get('5000')]).toEqual(['other', 'fine'])
      const again = await readAll(source, select('reviews'), stop.state)
      const later = await readAll(source, select('reviews'), again.state)
      expect(later.records.reviews).toEqual([])
    }
  })

  it('deletions are held back as tombstones, too', async () => {
    const service = createService()
    const selected = streamsWithTombstones().filter(({ name }) => name === 'reviews')
    const first = await readAll(service.source, selected)
    service.data.deleted = service.data.reviews.slice(0, 2500).map(({ id }) => ({
      id,
      modifiedTime: new Date(service.now() + minute + (id % 50) * second).toISOString(),
    }))
    service.data.reviews = service.data.reviews.slice(2500)
    let { state } = first
    const counts: number[] = []
    for (let run = 0; run < 4; run += 1) {
      service.passHour()
      const next = await readAll(service.source, selected, state)
      expect(next.failures).toEqual({})
      state = next.state
      counts.push((next.records.reviews ?? []).filter((row) => row._ab_cdc_deleted_at).length)
    }
    expect(counts).toEqual([2500, 0, 0, 0])
  })
})
