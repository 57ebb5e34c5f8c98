import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { readStreams } from '../../connector/cdk/read'
import { applyStreamSettings } from '../../connector/streams/streams'
import { exportApi } from '../support/export-api'
import { readAll, sourceOf } from '../support/in-process'

const privacy = { drop: [], hash: [], hashKey: undefined }
const all = applyStreamSettings({
  privacy,
  fromReviews: { locations: false, providers: 'none' },
  tombstones: O.some('_ab_cdc_deleted_at'),
  lookups: {},
})
const streams = E.isRight(all) ? all.right.filter(({ name }) => name === 'reviews' || name === 'locations') : []

const minute = (n: number) => new Date(Date.parse('2026-01-01T00:00:00Z') + n * 60_000).toISOString()

const everyState = { records: 1, millis: 0 }
const lastStateOnly = { records: 1e9, millis: 1e9 }

const service = (cadence = everyState) => {
  let clock = Date.parse(minute(1000))
  const { held, api } = exportApi(() => clock)
  const source = sourceOf(api, { now: () => clock, pageSize: 40 })
  held.reviews = [1, 2, 3, 4].map((id) => ({ id, modifiedTime: minute(id) }))
  return {
    held,
    read: (state?: object) => readAll(source, streams, state as Record<string, unknown>, 'incremental', cadence),
    /** A run that is killed once it has read a page of reviews and said its state. */
    readPage: async (state: object) => {
      const messages = readStreams({
        streams,
        env: source,
        catalog: streams.map(({ name }) => ({ name, syncMode: 'incremental', attributes: O.none })),
        state: state as Record<string, unknown>,
        now: source.now,
        checkpointInterval: cadence,
        stop: new AbortController().signal,
        onWait: () => () => undefined,
      })
      const ids: number[] = []
      const states: Record<string, unknown> = {}
      for await (const message of messages) {
        if (message._tag === 'Records' && message.stream === 'reviews')
          ids.push(...message.rows.map(({ json }) => JSON.parse(Buffer.from(json).toString()).id))
        if (message._tag === 'Checkpoint') states[message.stream] = JSON.parse(JSON.stringify(message.state))
        if (Object.keys(states).length === streams.length) return { ids, state: states }
      }
      throw new Error('no page')
    },
    /** Later; answers the minute it then is. */
    wait: (minutes: number) => {
      clock += minutes * 60_000
      return new Date(clock - 60_000).toISOString()
    },
    remove: (id: number, at: string) => {
      held.reviews = held.reviews.filter((row) => row.id !== id)
      held.deleted.push({ id, modifiedTime: at })
    },
  }
}

const tombstones = ({ records }: Awaited<ReturnType<typeof readAll>>) =>
  (records.reviews ?? []).filter(({ _ab_cdc_deleted_at }) => _ab_cdc_deleted_at !== undefined)

describe('tombstones', () => {
  it('are declared in discover and share the one reader', () => {
    const [reviews, locations] = streams
    expect(reviews?.schema.properties).toHaveProperty('_ab_cdc_deleted_at')
    expect(locations?.schema.properties).not.toHaveProperty('_ab_cdc_deleted_at')
    expect(reviews?.reader).toBe(locations?.reader)
  })

  it.each([
    ['every state is sent', everyState],
    ['the last state alone is sent', lastStateOnly],
  ])(
    'leave for what was deleted since the last run, after the reviews, once, the rest null: %s',
    async (_, cadence) => {
      const { held, read, wait, remove } = service(cadence)
      held.deleted = [{ id: 9, modifiedTime: minute(-60) }]
      const first = await read()
      expect(tombstones(first)).toEqual([])
      expect(first.records.reviews).toHaveLength(4)
      const at = wait(60)
      remove(2, at)
      held.reviews.push({ id: 5, modifiedTime: at })
      const second = await read(first.state)
      expect(second.records.reviews?.map(({ id }) => id)).toEqual([5, 2])
      expect(tombstones(second)).toEqual([
        expect.objectContaining({ id: 2, modifiedTime: at, _ab_cdc_deleted_at: at, rating: null, contents: null }),
      ])
      wait(60)
      expect((await read(second.state)).records.reviews).toEqual([])
    },
  )

  it('do not leave for a review that was restored after its deletion', async () => {
    const { held, read, wait, remove } = service()
    const first = await read()
    remove(3, wait(60))
    held.reviews.push({ id: 3, modifiedTime: wait(5) })
    const second = await read(first.state)
    expect(tombstones(second)).toEqual([])
    expect(second.records.reviews?.map(({ id }) => id)).toEqual([3])
    remove(3, wait(60))
    const third = await read(second.state)
    expect(tombstones(third).map(({ id }) => id)).toEqual([3])
    expect(third.records.reviews).toHaveLength(1)
  })

  it('do not leave for a review that was restored, and read before the run was cut short', async () => {
    const { held, read, readPage, wait, remove } = service()
    held.reviews = Array.from({ length: 60 }, (_, n) => ({ id: n + 1, modifiedTime: minute(n) }))
    const first = await read()
    remove(3, wait(60))
    const restored = { id: 3, modifiedTime: wait(5) }
    const at = wait(60)
    held.reviews = [restored, ...held.reviews.map(({ id }) => ({ id, modifiedTime: at }))]
    remove(50, wait(5))
    wait(60)
    const page = await readPage(first.state)
    expect(page.ids).toContain(3)
    const resumed = await read(page.state)
    expect(resumed.records.reviews?.map(({ id }) => id)).not.toContain(3)
    expect(tombstones(resumed).map(({ id }) => id)).toEqual([50])
  })

  it('leave for a review that was restored, read before the run was cut short, and deleted again', async () => {
    const { held, read, readPage, wait, remove } = service()
    held.reviews = Array.from({ length: 60 }, (_, n) => ({ id: n + 1, modifiedTime: minute(n) }))
    const first = await read()
    remove(3, wait(60))
    const restored = { id: 3, modifiedTime: wait(5) }
    const at = wait(60)
    held.reviews = [restored, ...held.reviews.map(({ id }) => ({ id, modifiedTime: at }))]
    wait(60)
    const page = await readPage(first.state)
    remove(3, wait(60))
    wait(60)
    expect(tombstones(await read(page.state)).map(({ id }) => id)).toEqual([3])
  })

  it('begin at the cursor of the reviews where they were not wanted before', async () => {
    const { read, wait, remove } = service()
    const first = await read()
    const { deletions: _, ...reviews } = first.state.reviews as Record<string, unknown>
    remove(1, wait(60))
    expect(tombstones(await read({ ...first.state, reviews })).map(({ id }) => id)).toEqual([1])
  })
})
