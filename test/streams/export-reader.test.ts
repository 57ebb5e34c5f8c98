import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../connector/sandbox/start'
import { reviewsStream } from '../../connector/streams/reviews'
import { streams } from '../../connector/streams/streams'
import { createSourceEnv, readAll } from '../support/in-process'
import { startTestSandbox } from '../support/sandbox'

const selectStreams = (...names: string[]) => streams.filter(({ name }) => names.includes(name))
const reviewStreams = streams.filter(({ reader }) => reader === reviewsStream.reader)

describe('the export of reviews', () => {
  let sandbox: Sandbox
  let clock = Date.now()
  beforeAll(async () => {
    sandbox = await startTestSandbox({ reviews: 400, now: () => clock, until: clock - 60_000 })
  })
  afterAll(() => sandbox.close())

  const read = (selected: typeof streams, state = {}) =>
    readAll(createSourceEnv(countRequests(sandbox), { pageSize: 100, now: () => clock }), selected, state)
  let requests = 0
  const countRequests = ({ api }: Sandbox) => ({
    ...api,
    exportReviews: (request: Parameters<typeof api.exportReviews>[0]) => {
      requests += 1
      return api.exportReviews(request)
    },
  })

  it('is read once for all streams that are made of it', async () => {
    requests = 0
    await read(selectStreams('reviews'))
    const requestsOfReviews = requests
    requests = 0
    const { records } = await read(reviewStreams)
    expect(reviewStreams).toEqual(streams.filter(({ derivation }) => derivation !== undefined))
    expect(requests).toBe(requestsOfReviews)
    for (const { name } of reviewStreams) expect(records[name]?.length, name).toBeGreaterThan(0)
  })

  it('gives each stream the records after its own cursor', async () => {
    const first = await read(selectStreams('reviews'))
    clock += 3_600_000
    await sandbox.churn({ change: 20 })
    clock += 3_600_000
    const { records } = await read(selectStreams('reviews', 'review_contents'), first.state)
    expect(records.reviews).toHaveLength(20)
    expect(records.review_contents?.length).toBeGreaterThan(300)
  })

  it('has no records in a second run if nothing has changed', async () => {
    const first = await read(streams)
    const second = await read(streams, first.state)
    expect(Object.values(second.records).flat()).toEqual([])
    expect(second.failures).toEqual({})
  })

  it('gives locations once, and every content and sentiment of the reviews', async () => {
    const { records } = await read(reviewStreams)
    const reviews = records.reviews as ReadonlyArray<{
      readonly id: unknown
      readonly location?: { readonly id?: unknown }
      readonly contents?: ReadonlyArray<{ readonly id?: unknown; readonly sentiments?: ReadonlyArray<unknown> }>
    }>
    const locationIds = new Set(
      reviews.flatMap(({ location }) => (location?.id === undefined ? [] : [String(location.id)])),
    )
    expect(records.locations?.map(({ id }) => String(id)).sort()).toEqual([...locationIds].sort())
    const contents = reviews.flatMap(({ id, contents = [] }) => contents.map((content) => `${id} ${content.id}`))
    expect(contents.length).toBeGreaterThan(0)
    expect(records.review_contents?.map(({ reviewId, id }) => `${reviewId} ${id}`)).toEqual(contents)
    const sentiments = reviews.flatMap(({ contents = [] }) => contents.flatMap((content) => content.sentiments ?? []))
    expect(sentiments.length).toBeGreaterThan(0)
    expect(records.review_sentiments).toHaveLength(sentiments.length)
  })
})
