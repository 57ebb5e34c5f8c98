import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { streams } from '../../connector/streams/streams'
import { readAll, sourceOf } from '../support/in-process'

const named = (...names: string[]) => streams.filter(({ name }) => names.includes(name))
const parts = streams.filter(({ reader, name }) => name !== 'deleted_reviews' && reader === named('reviews')[0]?.reader)

describe('the reviews export', () => {
  let sandbox: Sandbox
  let clock = Date.now()
  beforeAll(async () => {
    sandbox = await startSandbox({ reviews: 400, now: () => clock, until: clock - 60_000 })
  })
  afterAll(() => sandbox.close())

  const read = (selected: typeof streams, state = {}) =>
    readAll(sourceOf(counting(sandbox), { pageSize: 100, now: () => clock }), selected, state)
  let requests = 0
  const counting = ({ api }: Sandbox) => ({
    ...api,
    exportReviews: (request: Parameters<typeof api.exportReviews>[0]) => {
      requests += 1
      return api.exportReviews(request)
    },
  })

  it('is read once for all the streams that are made of it', async () => {
    requests = 0
    await read(named('reviews'))
    const alone = requests
    requests = 0
    const { records } = await read(parts)
    expect(parts.length).toBe(10)
    expect(requests).toBe(alone)
    for (const { name } of parts) expect(records[name]?.length, name).toBeGreaterThan(0)
  })

  it('gives each stream what lies after its own cursor', async () => {
    const first = await read(named('reviews'))
    clock += 3_600_000
    await sandbox.churn({ change: 20 })
    clock += 3_600_000
    const { records } = await read(named('reviews', 'review_contents'), first.state)
    expect(records.reviews).toHaveLength(20)
    expect(records.review_contents?.length).toBeGreaterThan(300)
  })

  it('sends nothing on a quiet second run, whatever is selected', async () => {
    const first = await read(streams)
    const second = await read(streams, first.state)
    expect(Object.values(second.records).flat()).toEqual([])
    expect(second.failures).toEqual({})
  })

  it('sends things once, and agrees with the truth in every part', async () => {
    const { records } = await read(parts)
    const reviews = records.reviews as ReadonlyArray<{
      readonly id: unknown
      readonly location?: { readonly id?: unknown }
      readonly contents?: ReadonlyArray<{ readonly id?: unknown; readonly sentiments?: ReadonlyArray<unknown> }>
    }>
    const distinct = new Set(
      reviews.flatMap(({ location }) => (location?.id === undefined ? [] : [String(location.id)])),
    )
    expect(records.locations?.map(({ id }) => String(id)).sort()).toEqual([...distinct].sort())
    const contents = reviews.flatMap(({ id, contents = [] }) => contents.map((content) => `${id} ${content.id}`))
    expect(records.review_contents?.map(({ reviewId, id }) => `${reviewId} ${id}`)).toEqual(contents)
    const sentiments = reviews.flatMap(({ contents = [] }) => contents.flatMap((content) => content.sentiments ?? []))
    expect(records.review_sentiments).toHaveLength(sentiments.length)
  })
})
