import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { SourceState } from '../../connector/cdk/catalog'
import type { SyncMode } from '../../connector/cdk/message'
import type { SourceEnv } from '../../connector/streams/source-env'
import { streams } from '../../connector/streams/streams'
import { createExportApi } from '../support/export-api'
import { createSourceEnv, readAll } from '../support/in-process'

const [minute, hour] = [60_000, 3_600_000]
const begin = Date.parse('2026-03-01T12:00:00Z')

type Row = { readonly id: number; readonly modifiedTime: string }
const review = (id: number, modified: number): Row => ({ id, modifiedTime: new Date(modified).toISOString() })

/**
 * 50 reviews, one a minute, the last of them ten days ago; `behind`: how many requests for them an outdated replica
 * answers.
 */
const createService = () => {
  let clock = begin
  const { data, api } = createExportApi(() => clock)
  const last = begin - 240 * hour
  data.reviews = Array.from({ length: 50 }, (_, n) => review(n + 1, last - (49 - n) * minute))
  const service = { zone: 0, behind: 0, waits: [] as number[], deletionRequests: 0, onWait: () => {} }
  const source: SourceEnv = createSourceEnv(
    {
      exportReviews: (request) => {
        service.behind -= 1
        if (service.behind >= 0)
          return TE.right({
            body: Buffer.from(JSON.stringify({ reviews: [], filter: request })),
            servedAt: clock,
          })
        const from = new Date(Date.parse(request.modifiedTimeFrom) + service.zone).toISOString()
        const { modifiedTimeFrom } = request
        return TE.map(({ body, servedAt }: { body: Uint8Array; servedAt?: number }) => {
          const answer = JSON.parse(Buffer.from(body).toString())
          const text = JSON.stringify({ ...answer, filter: { ...answer.filter, modifiedTimeFrom } })
          return { body: Buffer.from(text), ...(servedAt === undefined ? {} : { servedAt }) }
        })(api.exportReviews({ ...request, modifiedTimeFrom: from }))
      },
      exportDeletedReviews: (request) => {
        service.deletionRequests += 1
        return api.exportDeletedReviews(request)
      },
    },
    {
      now: () => clock,
      startDate: begin - 10_000 * hour,
      wait: (millis) => async () => {
        service.waits.push(millis)
        service.onWait()
      },
    },
  )
  return Object.assign(service, {
    data,
    source,
    last,
    passHour: () => {
      clock += hour
    },
  })
}

const selected = streams.filter(({ name }) => name === 'reviews')
const read = (source: SourceEnv, state: SourceState = {}, mode: SyncMode = 'incremental') =>
  readAll(source, selected, state, mode)
const idsOf = ({ records }: Awaited<ReturnType<typeof read>>) => (records.reviews ?? []).map(({ id }) => Number(id))
const warnings = ({ messages }: Awaited<ReturnType<typeof read>>) =>
  messages.flatMap((it) => (it._tag === 'Log' && it.level === 'warn' ? [it.message] : []))

describe('a service that reads modifiedTimeFrom in its own time zone', () => {
  it('is named in a warning, then ends the stream, and its rows arrive with a longer lookback', async () => {
    const service = createService()
    const { source, data, last, passHour } = service
    service.zone = 5 * hour
    const first = await read(source)
    expect(idsOf(first)).toHaveLength(50)
    data.reviews.push(review(101, last + hour), review(102, last + 9 * hour))
    passHour()
    const second = await read(source, first.state)
    expect(idsOf(second)).toEqual([102])
    expect(second.failures).toEqual({})
    expect(warnings(second)).toEqual([
      expect.stringMatching(/^reviews: none of the 1\d rows that the last run sent .* time zone.* replica /),
    ])
    expect(service.waits).toEqual([8000])
    const { recentMissing, ...kept } = second.state.reviews as Record<string, unknown>
    expect([recentMissing, kept]).toEqual([true, first.state.reviews])
    passHour()
    const third = await read(source, second.state)
    expect(idsOf(third)).toEqual([102])
    expect(third.failures).toEqual({ reviews: expect.stringMatching(/time zone.*lookback_minutes/) })
    expect(third.state).toEqual(second.state)
    const longer = await read({ ...source, lookback: 24 * hour }, third.state)
    expect(idsOf(longer).sort()).toEqual([101, 102].concat(idsOf(longer).filter((id) => id < 100)).sort())
    expect(longer.failures).toEqual({})
    expect(longer.state.reviews).not.toHaveProperty('recentMissing')
  })

  it('is not looked for by a full refresh, or where the filters are others than those of the state', async () => {
    const service = createService()
    service.zone = 5 * hour
    const first = await read(service.source)
    service.passHour()
    expect(warnings(await read(service.source, first.state, 'full_refresh'))).toEqual([])
    const other = { ...service.source, filters: { ...service.source.filters, sources: [1] } }
    expect(warnings(await read(other, first.state))).toEqual([expect.stringContaining('filters of the config')])
    expect(service.waits).toEqual([])
  })
})

describe('known rows that do not come again', () => {
  it('are asked for once more, and what came before is not sent again', async () => {
    const service = createService()
    const first = await read(service.source)
    service.data.reviews.push(review(101, service.last + hour))
    service.passHour()
    service.behind = 2
    const second = await read(service.source, first.state)
    expect([idsOf(second), warnings(second), second.failures]).toEqual([[101], [], {}])
    expect(service.waits).toContain(8000)
    expect(second.state.reviews).toMatchObject({ modifiedTimeFrom: new Date(service.last + hour).toISOString() })
    service.zone = 5 * hour
    service.data.reviews.push(review(102, service.last + 2 * hour), review(103, service.last + 9 * hour))
    service.onWait = () => {
      service.zone = 0
    }
    const third = await read(service.source, first.state)
    expect([idsOf(third), warnings(third), third.failures]).toEqual([[103, 101, 102], [], {}])
  })

  it('may have been deleted: then nothing is asked for again', async () => {
    const service = createService()
    const first = await read(service.source)
    service.data.deleted = service.data.reviews.map(({ id }) => review(id, begin + minute))
    service.data.reviews = [review(101, begin + minute)]
    service.passHour()
    const second = await read(service.source, first.state)
    expect([idsOf(second), warnings(second), second.failures, service.waits]).toEqual([[101], [], {}, []])
    // The page, and the end after it.
    expect(service.deletionRequests).toBe(2)
    expect(second.state.reviews).toMatchObject({ modifiedTimeFrom: new Date(begin + minute).toISOString() })
  })

  it('may have changed, all of them, and a single one may be gone', async () => {
    const service = createService()
    const first = await read(service.source)
    service.data.reviews = service.data.reviews.map(({ id }) => review(id, begin + id * 1000))
    service.passHour()
    const second = await read(service.source, first.state)
    expect([idsOf(second).length, warnings(second)]).toEqual([50, []])
    service.data.reviews = [review(7, begin + hour)]
    service.passHour()
    const alone = { reviews: { ...(second.state.reviews as object), recent: [['1', begin + 1000, 'x']] } }
    const third = await read(service.source, alone)
    expect([idsOf(third), warnings(third), third.failures]).toEqual([[7], [], {}])
    expect(service.deletionRequests).toBe(0)
  })

  it('count where they are a range, too', async () => {
    const service = createService()
    service.data.reviews = Array.from({ length: 2500 }, (_, n) => review(n + 1, service.last))
    const first = await read(service.source)
    expect(first.state.reviews).not.toHaveProperty('recent')
    service.zone = 5 * hour
    service.passHour()
    const second = await read(service.source, first.state)
    expect(warnings(second)).toEqual([expect.stringContaining('none of the 2500 rows')])
    service.zone = 0
    service.passHour()
    const third = await read(service.source, second.state)
    expect([idsOf(third), warnings(third)]).toEqual([[], []])
    expect(third.state.reviews).toEqual(first.state.reviews)
  })

  it('come with what another stream of the read asks for', async () => {
    const service = createService()
    const both = streams.filter(({ name }) => ['reviews', 'review_tasks'].includes(name))
    const first = await read(service.source)
    service.zone = 5 * hour
    service.data.reviews.push(review(102, service.last + 9 * hour))
    service.passHour()
    const second = await readAll(service.source, both, first.state)
    expect([second.failures, warnings(second), idsOf(second)]).toEqual([{}, [], [102]])
    expect(service.waits).toEqual([])
  })
})
