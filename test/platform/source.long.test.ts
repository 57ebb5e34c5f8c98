import { describe, expect, it } from 'vitest'
import { decodeFaultPlan } from '../../connector/sandbox/faults/plan'
import { airbyteFormat } from '../support/destination-input'
import { programPath } from '../support/program'
import type { Connector } from './container'
import type { ConfiguredStream, Json } from './model/connection'
import { checkAnswer } from './model/outcome'
import type { AttemptStart } from './platform'
import { failingDestination, scriptedSource, slowDestination } from './scripted'
import { asFullRefresh, type discoverStreams, runCommand, startSourceWorld } from './source-world'

/** `npm test` runs a core; PLATFORM=all runs every scenario. */
const isAll = process.env.PLATFORM === 'all'
const sync = { kind: 'sync' } as const

const faults = (...plan: ReadonlyArray<object>) => {
  const decoded = decodeFaultPlan(plan)
  if (decoded._tag === 'Left') throw new Error(decoded.left)
  return { faults: decoded.right }
}
/**
 * The service is down from the third page of reviews on, for the given number of requests. Each answer asks to wait
 * longer than the config allows.
 */
const outage = (times: number) => ({
  service: faults({ kind: '503', operation: 'exportReviews', from: 3, times, retry_after: 60 }),
  config: { timeouts: { max_wait_seconds: 1 }, rate_limit: { max_concurrency: 1 } },
})
const onlyReviews = (streams: Awaited<ReturnType<typeof discoverStreams>>) =>
  streams.filter(({ stream }) => stream.name === 'reviews')

/** What a good job shows besides what it read. */
const good = { status: 'COMPLETED', attempts: [{ mismatches: [], warnings: [], junk: { source: [] }, unselected: [] }] }

/** Starts the source, and notes what each attempt was given. */
const noting = (source: Connector) => {
  const starts: AttemptStart[] = []
  const start = (given: AttemptStart): Connector => {
    starts.push(given)
    return source
  }
  return { start, starts, hadState: () => starts.map(({ states }) => Object.keys(states).length > 0) }
}

describe.each(['custom', 'refreshes'] as const)('the source, %s definition', (definition) => {
  it('S1, S8 a first sync, changes, and nothing new: equal to the service', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition)
    const first = await world.connection.run(sync, world.source)
    expect(first).toMatchObject(good)
    expect(await world.lost()).toEqual([])
    const [attempt] = first.attempts
    expect(attempt?.complete).toEqual(world.streams.map(({ stream }) => stream.name).sort())
    await world.change()
    const second = await world.connection.run(sync, world.source)
    expect(second).toMatchObject(good)
    expect(await world.lost()).toEqual([])
    expect(second.attempts[0]?.emitted).toBeLessThan(attempt?.emitted ?? 0)
    const before = world.received('reviews').length
    expect(await world.connection.run(sync, world.source)).toMatchObject(good)
    expect(world.received('reviews')).toHaveLength(before)
  })

  it.runIf(isAll)('S2 full refresh, twice', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, { adapt: (streams) => streams.map(asFullRefresh) })
    const runs = [await world.connection.run(sync, world.source), await world.connection.run(sync, world.source)]
    expect(runs).toMatchObject([good, good])
    expect(runs[1]?.attempts[0]?.emitted).toBe(runs[0]?.attempts[0]?.emitted)
    expect(await world.lost()).toEqual([])
  })

  it('S3 the service is down midway: the next attempt goes on from the kept states', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, { ...outage(2), adapt: onlyReviews })
    const { start, hadState } = noting(world.source)
    const job = await world.connection.run(sync, start, { maxAttempts: 5 })
    expect([job.status, job.attempts[0]?.failures[0]]).toMatchObject([
      'COMPLETED',
      { origin: 'source', type: 'transient_error' },
    ])
    expect(hadState().slice(0, 2)).toEqual([false, true])
    expect(await world.lost()).toEqual([])
  })

  it.runIf(isAll)(
    'S4 the destination fails: the source ends, and the next attempt reads the rest',
    {
      timeout: 120_000,
    },
    async () => {
      const world = await startSourceWorld(definition, { destination: failingDestination(30) })
      const job = await world.connection.run(sync, world.source)
      expect([job.status, job.attempts[0]?.destinationStatus, job.attempts.length]).toEqual(['COMPLETED', 1, 2])
      expect(await world.lost()).toEqual([])
    },
  )

  it.runIf(isAll).each(['cancelled', 'orchestrator gone'] as const)(
    'S5, S6 %s after the first state, then run again',
    { timeout: 120_000 },
    async (interruption) => {
      const world = await startSourceWorld(definition)
      const job = await world.connection.run(sync, world.source, { interruption, maxAttempts: 1 })
      expect(job.status).toBe(interruption === 'cancelled' ? 'CANCELLED' : 'FAILED')
      expect(await world.connection.run(sync, world.source)).toMatchObject(good)
      expect(await world.lost()).toEqual([])
    },
  )

  it.runIf(isAll)('S7 a slow destination', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, { destination: slowDestination(2) })
    expect(await world.connection.run(sync, world.source)).toMatchObject(good)
    expect(await world.lost()).toEqual([])
  })

  it.runIf(isAll)('S9 a Clear job, then a sync reads everything again', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, { adapt: onlyReviews })
    const first = await world.connection.run(sync, world.source)
    const cleared = await world.connection.run({ kind: 'clear', streams: ['reviews'] }, world.source)
    expect([cleared.status, world.connection.kept().states]).toEqual(['COMPLETED', {}])
    const again = await world.connection.run(sync, world.source)
    expect(again.attempts[0]?.emitted).toBe(first.attempts[0]?.emitted)
  })

  it.runIf(isAll)(
    'S10 a stream that the source does not have: the others are read, and the sync fails',
    {
      timeout: 120_000,
    },
    async () => {
      const unknown: ConfiguredStream = {
        stream: { name: 'dreams', json_schema: {} },
        sync_mode: 'full_refresh',
        destination_sync_mode: 'append',
      }
      const world = await startSourceWorld(definition, { adapt: (streams) => [...onlyReviews(streams), unknown] })
      const job = await world.connection.run(sync, world.source, { maxAttempts: 1 })
      expect(job).toMatchObject({
        status: 'FAILED',
        attempts: [{ sourceStatus: 1, complete: ['reviews'] }],
      })
      expect(job.attempts[0]?.failures[0]).toMatchObject({ origin: 'source', type: 'config_error' })
      expect(job.attempts[0]?.statuses).toContain('dreams INCOMPLETE')
      expect(await world.lost()).toEqual([])
    },
  )

  it('S11 deselected columns do not leave the source', { timeout: 120_000 }, async () => {
    const withoutText = ({ properties, ...schema }: Json): Json => {
      const { contents: _, comments: __, ...rest } = properties as Json
      return { ...schema, properties: rest }
    }
    const world = await startSourceWorld(definition, {
      adapt: (streams) =>
        onlyReviews(streams).map((one) => ({
          ...one,
          stream: { ...one.stream, json_schema: withoutText(one.stream.json_schema) },
        })),
    })
    expect(await world.connection.run(sync, world.source)).toMatchObject(good)
    expect(world.received('reviews').length).toBeGreaterThan(0)
    expect(world.received('reviews').filter(({ contents }) => contents !== undefined)).toEqual([])
  })

  it.runIf(isAll)('S12 a rate limit is reported while the source waits', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, {
      service: faults({ kind: '429', operation: 'exportReviews', requests: [3], retry_after: 1 }),
      adapt: onlyReviews,
    })
    const job = await world.connection.run(sync, world.source)
    expect(job).toMatchObject(good)
    expect(job.attempts[0]?.statuses).toContain('reviews RUNNING RATE_LIMITED')
    expect(await world.lost()).toEqual([])
  })

  it('S13 a wrong token: no second attempt, and people read why', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, { adapt: onlyReviews })
    const wrong = {
      ...world.source,
      config: { ...world.source.config, credentials: { auth_type: 'access_token', access_token: 'wrong' } },
    }
    const job = await world.connection.run(sync, wrong)
    expect(job).toMatchObject({
      status: 'FAILED',
      attempts: [{ failures: [{ origin: 'source', type: 'config_error' }, {}] }],
    })
    expect(job.reason).toMatch(/token/)
  })

  it.runIf(isAll)('S15 a full refresh starts over with each attempt', { timeout: 120_000 }, async () => {
    const world = await startSourceWorld(definition, {
      ...outage(1),
      adapt: (streams) => onlyReviews(streams).map(asFullRefresh),
    })
    const { start, hadState } = noting(world.source)
    const job = await world.connection.run(sync, start)
    expect([job.status, hadState()]).toEqual(['COMPLETED', [false, false]])
    expect(job.attempts[1]?.emitted).toBe((await world.sandbox.truth()).reviews.length)
  })
})

it.runIf(isAll)(
  'S14 a refresh of an incremental stream goes on where an attempt stopped',
  {
    timeout: 120_000,
  },
  async () => {
    const world = await startSourceWorld('refreshes', { ...outage(1), adapt: onlyReviews })
    await world.connection.run(sync, scriptedSource([airbyteFormat.state('reviews', 1)]))
    expect(Object.keys(world.connection.kept().states)).toEqual(['reviews'])
    const { start, hadState } = noting(world.source)
    const job = await world.connection.run({ kind: 'merge', streams: ['reviews'] }, start)
    expect([job.status, hadState()]).toEqual(['COMPLETED', [false, true]])
    expect(await world.lost()).toEqual([])
  },
)

describe.each(['source-feedback', 'destination-feedback'] as const)('S16, D31 %s', (program) => {
  const connectorOf = (base_url: string, access_token = 'x'): Connector => ({
    entrypoint: programPath(program),
    config: {
      ...{ base_url, start_date: '2020-01-01T00:00:00Z', timeouts: { connect_seconds: 1 } },
      credentials: { auth_type: 'access_token', access_token },
    },
  })

  it('answers spec, discover and check with one message each', { timeout: 60_000 }, async () => {
    const { sandbox } = await startSourceWorld('custom')
    const connector = connectorOf(sandbox.url, sandbox.accessToken)
    const [spec, discovered, checked] = await Promise.all([
      runCommand('spec', connector),
      runCommand('discover', connector),
      runCommand('check', connector),
    ])
    expect([spec.status, discovered.status, checked.status]).toEqual([0, 0, 0])
    expect(spec.lines).toMatchObject([{ type: 'SPEC' }])
    expect(discovered.lines).toMatchObject([
      { type: program === 'source-feedback' ? 'CATALOG' : 'DESTINATION_CATALOG' },
    ])
    expect(checkAnswer(checked.lines, checked.status)).toBe('SUCCEEDED')
  })

  it('answers a check with FAILED where the service is down or the token is wrong', { timeout: 60_000 }, async () => {
    const { sandbox } = await startSourceWorld('custom')
    for (const connector of [connectorOf('http://127.0.0.1:9'), connectorOf(sandbox.url, 'wrong')]) {
      const { lines, status } = await runCommand('check', connector)
      expect(checkAnswer(lines, status)).toBe('FAILED')
    }
  })
})
