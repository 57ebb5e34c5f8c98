import { describe, expect, it } from 'vitest'
import type { SyncMode } from '../../connector/cdk/message'
import { createExportApi } from '../support/export-api'
import {
  copyState,
  createSourceEnv,
  everyCheckpoint,
  lastCheckpointOnly,
  readAll,
  readMessages,
  streamsWithTombstones,
} from '../support/in-process'

const streams = streamsWithTombstones().filter(({ name }) => name === 'reviews' || name === 'locations')

const instantAt = (minutes: number) => new Date(Date.parse('2026-01-01T00:00:00Z') + minutes * 60_000).toISOString()

const createService = (checkpointInterval = everyCheckpoint) => {
  let clock = Date.parse(instantAt(1000))
  const { data, api } = createExportApi(() => clock)
  const source = createSourceEnv(api, { now: () => clock, pageSize: 40 })
  data.reviews = [1, 2, 3, 4].map((id) => ({ id, modifiedTime: instantAt(id) }))
  return {
    data,
    read: (state?: object, syncMode: SyncMode = 'incremental') =>
      readAll(source, streams, state as Record<string, unknown>, syncMode, checkpointInterval),
    /** A run that is killed after the first checkpoint of each stream, when it has read a page of reviews. */
    readPage: async (state: object, syncMode: SyncMode = 'incremental') => {
      const messages = readMessages(source, streams, {
        state: state as Record<string, unknown>,
        syncMode,
        checkpointInterval,
      })
      const ids: number[] = []
      const states: Record<string, unknown> = {}
      for await (const message of messages) {
        if (message._tag === 'Records' && message.stream === 'reviews')
          ids.push(...message.rows.map(({ json }) => JSON.parse(Buffer.from(json).toString()).id))
        if (message._tag === 'Checkpoint') states[message.stream] = message.state
        if (Object.keys(states).length === streams.length) return { ids, state: copyState(states) }
      }
      throw new Error('no page')
    },
    /** Advances the clock; returns a time one minute before it. */
    advanceClock: (minutes: number) => {
      clock += minutes * 60_000
      return new Date(clock - 60_000).toISOString()
    },
    deleteReview: (id: number, time: string) => {
      data.reviews = data.reviews.filter((row) => row.id !== id)
      data.deleted.push({ id, modifiedTime: time })
    },
  }
}

const tombstonesOf = ({ records }: Awaited<ReturnType<typeof readAll>>) =>
  (records.reviews ?? []).filter(({ _ab_cdc_deleted_at }) => _ab_cdc_deleted_at !== undefined)

describe('tombstones', () => {
  it('are a declared column of reviews, and all streams made of reviews share one reader', () => {
    const [reviews, locations] = streams
    expect(reviews?.schema.properties).toHaveProperty('_ab_cdc_deleted_at')
    expect(locations?.schema.properties).not.toHaveProperty('_ab_cdc_deleted_at')
    expect(reviews?.reader).toBe(locations?.reader)
  })

  it.each([
    ['every checkpoint', everyCheckpoint],
    ['the last checkpoint only', lastCheckpointOnly],
  ])(
    'follow the reviews, one for each review deleted since the last run, with null attributes: %s',
    async (_, checkpointInterval) => {
      const { data, read, advanceClock, deleteReview } = createService(checkpointInterval)
      data.deleted = [{ id: 9, modifiedTime: instantAt(-60) }]
      const first = await read()
      expect(tombstonesOf(first)).toEqual([])
      expect(first.records.reviews).toHaveLength(4)
      const time = advanceClock(60)
      deleteReview(2, time)
      data.reviews.push({ id: 5, modifiedTime: time })
      const second = await read(first.state)
      expect(second.records.reviews?.map(({ id }) => id)).toEqual([5, 2])
      expect(tombstonesOf(second)).toEqual([
        expect.objectContaining({ id: 2, modifiedTime: time, _ab_cdc_deleted_at: time, rating: null, contents: null }),
      ])
      advanceClock(60)
      expect((await read(second.state)).records.reviews).toEqual([])
    },
  )

  it('are not sent for a review that was restored after its deletion', async () => {
    const { data, read, advanceClock, deleteReview } = createService()
    const first = await read()
    deleteReview(3, advanceClock(60))
    data.reviews.push({ id: 3, modifiedTime: advanceClock(5) })
    const second = await read(first.state)
    expect(tombstonesOf(second)).toEqual([])
    expect(second.records.reviews?.map(({ id }) => id)).toEqual([3])
    deleteReview(3, advanceClock(60))
    const third = await read(second.state)
    expect(tombstonesOf(third).map(({ id }) => id)).toEqual([3])
    expect(third.records.reviews).toHaveLength(1)
  })

  it('are not sent for a review that was restored in the millisecond of its deletion: the review wins', async () => {
    const { data, read, advanceClock, deleteReview } = createService()
    const first = await read()
    const time = advanceClock(60)
    deleteReview(3, time)
    data.reviews.push({ id: 3, modifiedTime: time })
    advanceClock(60)
    const second = await read(first.state)
    expect(tombstonesOf(second)).toEqual([])
    expect(second.records.reviews?.map(({ id }) => id)).toEqual([3])
    expect((await read(second.state)).records.reviews).toEqual([])
    // The same, but the deletion is read before the review is there.
    const later = advanceClock(60)
    deleteReview(4, later)
    const third = await read(second.state)
    expect(tombstonesOf(third).map(({ id }) => id)).toEqual([4])
    data.reviews.push({ id: 4, modifiedTime: later })
    const fourth = await read(third.state)
    expect(fourth.records.reviews).toEqual([{ id: 4, modifiedTime: later }])
  })

  it('are not sent for a restored review that a killed run has read', async () => {
    const { data, read, readPage, advanceClock, deleteReview } = createService()
    data.reviews = Array.from({ length: 60 }, (_, n) => ({ id: n + 1, modifiedTime: instantAt(n) }))
    const first = await read()
    deleteReview(3, advanceClock(60))
    const restored = { id: 3, modifiedTime: advanceClock(5) }
    const time = advanceClock(60)
    data.reviews = [restored, ...data.reviews.map(({ id }) => ({ id, modifiedTime: time }))]
    deleteReview(50, advanceClock(5))
    advanceClock(60)
    const page = await readPage(first.state)
    expect(page.ids).toContain(3)
    const resumed = await read(page.state)
    expect(resumed.records.reviews?.map(({ id }) => id)).not.toContain(3)
    expect(tombstonesOf(resumed).map(({ id }) => id)).toEqual([50])
  })

  it('are sent for a restored review that a killed run has read, if it is deleted again', async () => {
    const { data, read, readPage, advanceClock, deleteReview } = createService()
    data.reviews = Array.from({ length: 60 }, (_, n) => ({ id: n + 1, modifiedTime: instantAt(n) }))
    const first = await read()
    deleteReview(3, advanceClock(60))
    const restored = { id: 3, modifiedTime: advanceClock(5) }
    const time = advanceClock(60)
    data.reviews = [restored, ...data.reviews.map(({ id }) => ({ id, modifiedTime: time }))]
    advanceClock(60)
    const page = await readPage(first.state)
    deleteReview(3, advanceClock(60))
    advanceClock(60)
    expect(tombstonesOf(await read(page.state)).map(({ id }) => id)).toEqual([3])
  })

  describe.each(['incremental', 'full_refresh'] as const)(
    'of a first run that was killed, in an %s sync',
    (syncMode) => {
      const createLargeService = () => {
        const service = createService()
        service.data.reviews = Array.from({ length: 120 }, (_, n) => ({ id: n + 1, modifiedTime: instantAt(n) }))
        service.data.deleted = [{ id: 999, modifiedTime: instantAt(-600) }]
        return service
      }

      it('are sent for what was deleted until the run that goes on, however often it is killed', async () => {
        const { data, read, readPage, advanceClock, deleteReview } = createLargeService()
        const first = await readPage({}, syncMode)
        expect(first.ids).toContain(3)
        deleteReview(3, advanceClock(1))
        advanceClock(5)
        const second = await readPage(first.state, syncMode)
        deleteReview(4, advanceClock(1))
        data.reviews.push({ id: 121, modifiedTime: advanceClock(120) })
        const last = await read(second.state, syncMode)
        expect(tombstonesOf(last).map(({ id }) => id)).toEqual([3, 4])
        advanceClock(60)
        deleteReview(5, advanceClock(60))
        expect(tombstonesOf(await read(last.state)).map(({ id }) => id)).toEqual([5])
      })

      it('are not sent for what was restored meanwhile', async () => {
        const { data, read, readPage, advanceClock, deleteReview } = createLargeService()
        const first = await readPage({}, syncMode)
        deleteReview(3, advanceClock(1))
        data.reviews.push({ id: 3, modifiedTime: advanceClock(120) })
        advanceClock(60)
        const last = await read(first.state, syncMode)
        expect(last.records.reviews?.filter(({ id }) => id === 3)).toHaveLength(1)
        expect(tombstonesOf(last)).toEqual([])
      })
    },
  )

  it('read as far back as the reviews where the last run had none', async () => {
    const { read, advanceClock, deleteReview } = createService()
    const first = await read()
    advanceClock(60)
    const { modifiedTimeFrom } = first.state.reviews as { readonly modifiedTimeFrom: string }
    deleteReview(1, new Date(Date.parse(modifiedTimeFrom) - 20 * 60_000).toISOString())
    const reviews = { modifiedTimeFrom, slack: 60 * 60_000 }
    expect(tombstonesOf(await read({ ...first.state, reviews })).map(({ id }) => id)).toEqual([1])
  })

  it('begin at the cursor of the reviews if the last run had none', async () => {
    const { read, advanceClock, deleteReview } = createService()
    const first = await read()
    const { deletions: _, ...reviews } = first.state.reviews as Record<string, unknown>
    deleteReview(1, advanceClock(60))
    expect(tombstonesOf(await read({ ...first.state, reviews })).map(({ id }) => id)).toEqual([1])
  })
})
