import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createRunSummary } from '../../connector/streams/sync-audit'
import { createExportApi } from '../support/export-api'
import { copyState, createSourceEnv, readAll, readMessages, streamsWithTombstones } from '../support/in-process'

const selected = ['reviews', 'review_engagements', 'sync_audit']
const streams = streamsWithTombstones(true).filter(({ name }) => selected.includes(name))

const sumOf = (...texts: ReadonlyArray<string>): string =>
  String(
    texts.reduce((sum, text) => sum + BigInt(`0x${createHash('md5').update(text).digest('hex').slice(0, 15)}`), 0n),
  )

const start = Date.parse('2026-01-01T00:00:00Z')
const millisAt = (minutes: number) => start + minutes * 60_000
const instantAt = (minutes: number) => new Date(millisAt(minutes)).toISOString()

/** Reviews of the minutes that are their ids, each with as many engagements as the last digit of its id. */
const createService = () => {
  let clock = millisAt(1000)
  const { data, api } = createExportApi(() => clock)
  const review = (id: number, minute = id) => ({
    id,
    modifiedTime: instantAt(minute),
    engagements: Array.from({ length: id % 10 }, () => ({})),
  })
  data.reviews = Array.from({ length: 60 }, (_, n) => review(n + 1))
  const source = () => createSourceEnv(api, { now: () => clock, pageSize: 40, runSummary: createRunSummary() })
  return {
    data,
    review,
    advance: (minutes: number) => {
      clock += minutes * 60_000
    },
    read: (state: object = {}) => readAll(source(), streams, state as Record<string, unknown>),
    /** A run that is stopped after a page. */
    readPage: async () => {
      const states: Record<string, unknown> = {}
      const names = new Set<string>()
      for await (const message of readMessages(source(), streams)) {
        if (message._tag === 'Records') names.add(message.stream)
        if (message._tag === 'Checkpoint') states[message.stream] = message.state
        if ('reviews' in states && 'review_engagements' in states && names.has('reviews')) break
      }
      return { state: copyState(states), names: [...names] }
    },
  }
}

describe('the audit of a run', () => {
  it('is not there unless it is asked for, and is read last', () => {
    expect(streamsWithTombstones(false).some(({ name }) => name === 'sync_audit')).toBe(false)
    expect(streamsWithTombstones(true).at(-1)?.name).toBe('sync_audit')
  })

  it('counts of a review that was sent twice the newest version that has rows, and no deleted review', async () => {
    const { data, review, advance, read, readPage } = createService()
    const { state, names } = await readPage()
    // A stopped run reports nothing.
    expect(names).not.toContain('sync_audit')
    expect(state.reviews).toHaveProperty('scan')
    // What is still to be read of the old scan changes after its cutoff: the scan that follows sends it.
    advance(60)
    data.reviews = data.reviews.map((each) => (each.id === 59 ? { ...review(59, 1030), engagements: [] } : each))
    data.reviews = data.reviews.filter(({ id }) => id !== 1)
    data.deleted = [{ id: 1, modifiedTime: instantAt(1031) }]
    const { records, failures } = await read(state)
    expect(failures).toEqual({})
    const [reviews, engagements] = records.sync_audit ?? []
    const sent = (records.reviews ?? []).filter((row) => (row._ab_cdc_deleted_at ?? null) === null)
    expect(reviews).toMatchObject({
      stream: 'reviews',
      resumed: true,
      certified: true,
      records: records.reviews?.length,
    })
    const newest = new Map(sent.map(({ id, modifiedTime }) => [String(id), String(modifiedTime)]))
    const versions = [...newest].map(([id, time]) => `${id}:${Date.parse(time)}`)
    expect(versions).toContain(`59:${millisAt(1030)}`)
    expect(versions.some((version) => version.startsWith('1:'))).toBe(false)
    expect(reviews).toMatchObject({ rows: versions.length, digest: sumOf(...versions) })
    const parts = (records.review_engagements ?? []).map(
      ({ reviewId, reviewModifiedTime }) => `${reviewId}:${Date.parse(String(reviewModifiedTime))}`,
    )
    expect(engagements).toMatchObject({ rows: parts.length, digest: sumOf(...parts), records: parts.length })
  })

  it('is of each run by itself, empty where nothing was new', async () => {
    const { advance, read } = createService()
    const first = await read()
    expect(first.records.sync_audit?.[0]).toMatchObject({ records: 60, rows: 60, resumed: false })
    advance(10)
    const second = await read(first.state)
    expect(second.records.sync_audit).toMatchObject([
      { stream: 'reviews', records: 0, rows: 0, digest: '0' },
      { stream: 'review_engagements', records: 0, rows: 0, digest: '0' },
    ])
  })
})
