import { describe, expect, it } from 'vitest'
import { createAirbyteSourceCommands } from '../../connector/cdk/airbyte/source-commands'
import { getOrThrow } from '../../connector/cdk/program/error'
import { createTapCommand } from '../../connector/cdk/singer/tap-command'
import { feedbackSource } from '../../connector/cli/feedback-source'
import { sourceFormat } from '../../connector/config/source'
import { createSource } from '../../connector/runtime/source'
import { syncSnapshot } from '../../connector/runtime/sync'
import { openSnapshot } from '../../connector/snapshot/store/file'
import { createFakeClock } from '../support/clock'
import { createTestIo, toInput } from '../support/command-io'
import { newTempPath, writeTempFile } from '../support/files'
import { sendJson, startServer } from '../support/listen'
import { runCommand } from '../support/run-command'

const reviews = Array.from({ length: 25 }, (_, n) => ({
  id: n + 1,
  modifiedTime: new Date(Date.UTC(2024, 5, 1) + n * 60_000).toISOString(),
  source: { id: 7, name: 'Survey' },
  location: { id: 1034, name: 'North' },
  contents: [{ id: n + 1 }],
}))

/** Each list of the service by the end of its path: its rows, and how it answers. */
const lists: Readonly<
  Record<string, { readonly rows: ReadonlyArray<object>; readonly wrap: (rows: ReadonlyArray<object>) => object }>
> = {
  '/v1/reviews': { rows: reviews, wrap: (rows) => ({ reviews: rows }) },
  '/v1/deleted-reviews': {
    rows: [{ id: 90, modifiedTime: '2024-05-01T00:00:00.000Z' }],
    wrap: (rows) => ({ reviews: rows }),
  },
  '/comments': {
    rows: [{ id: '1034', name: 'North', totalRatingCount: 3 }],
    wrap: (entities) => ({
      status: { code: 200, message: 'success' },
      data: { client: 'small', entities, filter: {} },
    }),
  },
  '/locations': { rows: [{ id: 3, code: 'A', codeType: 'STORE' }], wrap: (data) => ({ data }) },
  '/list/sources': { rows: [{ id: 7, name: 'Survey' }], wrap: (data) => ({ data }) },
  '/list/categories': { rows: [{ name: 'Staff' }], wrap: (data) => ({ data }) },
}

/** The streams whose list is read from a path. */
const listOf = {
  reviews: '/v1/reviews',
  deleted_reviews: '/v1/deleted-reviews',
  entity_ratings: '/comments',
  managed_locations: '/locations',
  sources: '/list/sources',
  categories: '/list/categories',
} as const
const listed = Object.entries(listOf)

/**
 * A service in simulated time. `blank`: the lists that are empty, by path, and until when, in milliseconds since the
 * start of the run; `refused`: they are refused from then on. `deleted`: no review is left, and all but `alive` are
 * among the deletions. `gone`: every list is empty.
 */
const startService = async (more: object = {}) => {
  const world = { blank: {} as Record<string, number>, refused: false, deleted: false, alive: 0, gone: false }
  let clock = createFakeClock()
  const { url, seen } = await startServer(({ url: path, body }, response) => {
    const { pathname } = new URL(path, 'http://x')
    const [end = '', list] = Object.entries(lists).find(([suffix]) => pathname.endsWith(suffix)) ?? []
    if (list === undefined) return sendJson(response, 404)
    const isBlank = clock.clock.ticks() < (world.blank[end] ?? 0)
    if (world.refused && world.blank[end] !== undefined && !isBlank) return sendJson(response, 403)
    const isExport = end.startsWith('/v1/')
    const { modifiedTimeFrom = '', offset = 0, limit = 1000 } = isExport ? JSON.parse(body) : {}
    const deletions = reviews
      .filter(({ id }) => id !== world.alive)
      .map(({ id }) => ({ id, modifiedTime: '2024-07-01T00:00:00.000Z' }))
    const isGone = world.gone || (world.deleted && end === '/v1/reviews')
    const all = isGone ? [] : world.deleted && end === '/v1/deleted-reviews' ? deletions : list.rows
    const rows = all.filter((row) => !isExport || (row as { modifiedTime: string }).modifiedTime > modifiedTimeFrom)
    const page = isBlank ? [] : isExport ? rows.slice(offset, offset + limit) : rows
    sendJson(response, 200, { ...list.wrap(page), ...(isExport ? { filter: JSON.parse(body) } : {}) })
  })
  const given = {
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2024-01-01T00:00:00Z',
    entities: { location_ids: ['1034'] },
    lookups: {
      sources: { path: '/list/sources', records_path: 'data', primary_key: 'id' },
      categories: { path: '/list/categories', records_path: 'data', primary_key: 'name' },
      locations: { path: '/locations', records_path: 'data' },
    },
    ...more,
  }
  const connect = (config: object) => {
    clock = createFakeClock()
    return getOrThrow(
      createSource(getOrThrow(sourceFormat.decode(config)).config, { clock: () => clock.clock, proxyVariables: {} }),
    )
  }
  const program = { ...feedbackSource, connect: async () => connect(given) }
  return {
    world,
    seen,
    waited: () => clock.clock.ticks(),
    given,
    connect,
    program,
  }
}

type Service = Awaited<ReturnType<typeof startService>>

const linesOf = (stdout: string) =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const catalogOf = (names: ReadonlyArray<string>, more: object = {}) =>
  writeTempFile({
    streams: names.map((name) => ({
      stream: { name, json_schema: {} },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'overwrite',
      ...more,
    })),
  })

/** One run of source-feedback. */
const read = async (
  service: Service,
  names: ReadonlyArray<string>,
  { state = [] as unknown, catalog = {}, config = {} } = {},
) => {
  const files = ['--config', writeTempFile({ ...service.given, ...config }), '--catalog', catalogOf(names, catalog)]
  const { read: command } = createAirbyteSourceCommands({
    ...service.program,
    connect: async () => service.connect({ ...service.given, ...config }),
  })
  const { status, stdout } = await runCommand(command, [...files, '--state', writeTempFile(state)])
  const said = linesOf(stdout)
  return {
    status,
    records: said.filter(({ type }) => type === 'RECORD').length,
    states: said.flatMap((line) => (line.type === 'STATE' ? [line] : [])),
    ends: said.flatMap(({ trace }) => trace?.stream_status?.status ?? []).filter((end) => /COMPLETE/.test(end)),
    errors: said.flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error])),
    warnings: said.flatMap(({ log }) => (log?.level === 'WARN' ? [log.message] : [])),
  }
}

describe('source-feedback, a full refresh', () => {
  it.each(listed)('of %s waits for a list that is empty for 3 s, and reads all of it', async (name, path) => {
    const service = await startService()
    const whole = await read(service, [name])
    const requests = service.seen.length
    expect([whole.ends, whole.records, service.waited()]).toEqual([['COMPLETE'], lists[path]?.rows.length, 0])
    service.world.blank = { [path]: 3_000 }
    const { ends, records, warnings } = await read(service, [name])
    expect([ends, records, warnings]).toEqual([['COMPLETE'], whole.records, []])
    expect(service.waited()).toBe(3_500)
    service.world.blank = {}
    const before = service.seen.length
    await read(service, [name])
    expect(service.seen.length - before).toBe(requests)
  })

  it.each(listed)('of %s takes a list as empty after 15 s where nothing is known, with a warning', async (name) => {
    const service = await startService()
    service.world.gone = true
    const first = await read(service, [name])
    expect([first.status, first.ends, first.records]).toEqual([0, ['COMPLETE'], 0])
    expect(first.warnings).toContainEqual(expect.stringContaining(`It counts as empty: no rows of ${name}.`))
    expect(service.waited()).toBe(15_000)
    const again = await read(service, [name], { state: first.states })
    expect([again.ends, again.states.length]).toEqual([['COMPLETE'], 1])
  })

  it.each(listed)('of %s ends INCOMPLETE where its state knows rows, unless the config accepts it', async (name) => {
    const service = await startService()
    const { states } = await read(service, [name])
    service.world.gone = true
    const refused = await read(service, [name], { state: states })
    expect([refused.status, refused.ends]).toEqual([1, ['INCOMPLETE']])
    expect(refused.states.filter(({ state }) => state.stream.stream_state.hasRows !== true)).toEqual([])
    expect(refused.errors).toMatchObject([
      { failure_type: 'transient_error', message: expect.stringMatching(/They are kept.*accept_empty_lists to true/) },
    ])
    expect(service.waited()).toBe(15_000)
    const accepted = await read(service, [name], { state: states, config: { accept_empty_lists: true } })
    expect([accepted.status, accepted.ends, accepted.states.length]).toEqual([0, ['COMPLETE'], 1])
    const after = await read(service, [name], { state: accepted.states })
    expect([after.status, after.ends]).toEqual([0, ['COMPLETE']])
  })

  it('reads the streams that are made of reviews with their list, which may give one of them no row', async () => {
    const service = await startService()
    const names = ['reviews', 'locations', 'review_contents', 'review_tasks']
    service.world.blank = { '/v1/reviews': 3_000 }
    const { ends, records, states } = await read(service, names)
    expect([ends, records]).toEqual([names.map(() => 'COMPLETE'), 25 + 1 + 25])
    expect(service.waited()).toBe(3_500)
    service.world.blank = {}
    const again = await read(service, ['review_tasks'], { state: states })
    expect([again.ends, again.records, service.waited()]).toEqual([['COMPLETE'], 0, 0])
    service.world.gone = true
    expect((await read(service, names, { state: states })).ends).toEqual(names.map(() => 'INCOMPLETE'))
  })

  it('asks for the ratings of entities from reviews again where the reviews were empty', async () => {
    const service = await startService()
    const config = { entities: { from_reviews: { locations: true } } }
    service.world.gone = true
    const none = await read(service, ['reviews', 'entity_ratings'], { config })
    expect([none.ends, service.waited()]).toEqual([['COMPLETE', 'COMPLETE'], 30_000])
    expect(none.warnings).toContainEqual(expect.stringContaining('the config names no entities'))
    service.world.gone = false
    service.world.blank = { '/v1/reviews': 3_000 }
    const { ends, records } = await read(service, ['entity_ratings'], { config })
    expect([ends, records, service.waited()]).toEqual([['COMPLETE'], 1, 3_500])
  })

  it('waits with tombstones too', async () => {
    const service = await startService({ deletes: 'tombstones' })
    service.world.blank = { '/v1/reviews': 3_000 }
    const { ends, records, states } = await read(service, ['reviews'])
    expect([ends, records, service.waited()]).toEqual([['COMPLETE'], 25, 3_500])
    service.world.gone = true
    const refused = await read(service, ['reviews'], { state: states })
    expect([refused.ends, refused.states]).toEqual([['INCOMPLETE'], []])
  })

  it('fails with the reason where the service refuses a list when it is asked again', async () => {
    const service = await startService()
    service.world.blank = { '/v1/reviews': 1 }
    service.world.refused = true
    const { ends, errors } = await read(service, ['deleted_reviews', 'reviews'])
    expect(ends).toEqual(['COMPLETE', 'INCOMPLETE'])
    expect(errors).toMatchObject([{ failure_type: 'config_error', message: expect.stringMatching(/permission/) }])
    expect(service.waited()).toBe(500)
  })

  it('of a share of a backfill may be empty', async () => {
    const service = await startService({ partition: { index: 1, count: 2 } })
    service.world.gone = true
    const { ends, warnings } = await read(service, ['reviews'])
    expect([ends, warnings, service.waited()]).toEqual([['COMPLETE'], [], 0])
  })
})

describe('source-feedback with snapshot_path', () => {
  it('knows the rows of the file', async () => {
    const snapshot_path = newTempPath('duckdb')
    const service = await startService({ snapshot_path })
    expect((await read(service, ['reviews', 'locations'])).ends).toEqual(['COMPLETE', 'COMPLETE'])
    service.world.gone = true
    const { ends, errors } = await read(service, ['reviews', 'locations'])
    expect(ends).toEqual(['INCOMPLETE', 'INCOMPLETE'])
    expect(errors[0].message).toMatch(/although an earlier run has read rows/)
    const db = getOrThrow(await openSnapshot(snapshot_path, 'read')()).db
    expect(await db.scalar('SELECT count(*) FROM reviews')).toBe(25)
    db.close()
  })
})

describe('source-feedback, an incremental read', () => {
  const incremental = { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' }

  it('is not asked again: it replaces nothing, and the next after a first one begins at the start date', async () => {
    const service = await startService()
    service.world.gone = true
    const first = await read(service, ['reviews'], { catalog: incremental })
    expect([first.ends, service.waited()]).toEqual([['COMPLETE'], 0])
    service.world.gone = false
    const second = await read(service, ['reviews'], { catalog: incremental, state: first.states })
    expect(second.records).toBe(25)
    const third = await read(service, ['reviews'], { catalog: incremental, state: second.states })
    expect([third.ends, third.records, service.waited()]).toEqual([['COMPLETE'], 0, 0])
  })

  it('is asked again where the platform refreshes the stream, which removes what is not read', async () => {
    const service = await startService()
    service.world.blank = { '/v1/reviews': 3_000 }
    const catalog = { ...incremental, generation_id: 4, minimum_generation_id: 4, sync_id: 9 }
    const { ends, records } = await read(service, ['reviews'], { catalog })
    expect([ends, records, service.waited()]).toEqual([['COMPLETE'], 25, 3_500])
  })
})

describe('tap-feedback with activate_version', () => {
  /** One run of the tap. */
  const tap = async (service: Service, names: ReadonlyArray<string>, state: object = {}, config: object = {}) => {
    const given = { ...service.given, activate_version: true, ...config }
    const catalog = {
      streams: names.map((name) => ({
        tap_stream_id: name,
        stream: name,
        schema: {},
        metadata: [{ breadcrumb: [], metadata: { selected: true, 'replication-method': 'FULL_TABLE' } }],
      })),
    }
    const command = createTapCommand({ ...service.program, connect: async () => service.connect(given) })
    const files = [given, catalog, state].map((content) => writeTempFile(content))
    const { status, stdout, stderr } = await runCommand(command, [
      ...['--config', files[0] ?? '', '--catalog', files[1] ?? '', '--state', files[2] ?? ''],
    ])
    const said = linesOf(stdout)
    return {
      status,
      stderr,
      records: said.filter(({ type }) => type === 'RECORD').length,
      activated: said.flatMap((line) => (line.type === 'ACTIVATE_VERSION' ? [line.stream] : [])),
      state: said.at(-1).value,
    }
  }

  it.each(listed)('removes nothing of %s for an empty answer', async (name, path) => {
    const service = await startService()
    const first = await tap(service, [name])
    expect([first.status, first.activated]).toEqual([0, [name]])
    service.world.blank = { [path]: 3_000 }
    const second = await tap(service, [name], first.state)
    expect([second.records, second.activated]).toEqual([first.records, [name]])
    service.world.gone = true
    const third = await tap(service, [name], second.state)
    expect([third.status, third.activated]).toEqual([1, []])
    expect(third.state.bookmarks[name]).toMatchObject(
      second.state.bookmarks[name].hasRows ? { hasRows: true } : second.state.bookmarks[name],
    )
    expect(third.stderr).toContain('accept_empty_lists')
    const fourth = await tap(service, [name], third.state)
    expect([fourth.status, fourth.activated]).toEqual([1, []])
    service.world.gone = false
    const fifth = await tap(service, [name], fourth.state)
    expect([fifth.status, fifth.records, fifth.activated]).toEqual([0, first.records, [name]])
    service.world.gone = true
    const last = await tap(service, [name], fifth.state, { accept_empty_lists: true })
    expect([last.status, last.activated]).toEqual([0, [name]])
  })
})

describe('feedback sync --full-refresh', () => {
  /** One sync into a file; the number of its rows by stream. */
  const sync = async (
    service: Service,
    path: string,
    names: ReadonlyArray<string>,
    syncMode: 'full_refresh' | 'incremental' = 'full_refresh',
    config: object = {},
  ) => {
    const configured = service.connect({ ...service.given, ...config })
    const warnings: string[] = []
    const io = createTestIo(toInput(''), async () => undefined, { printWarning: (line) => warnings.push(line) })
    const streams = configured.streams.filter(({ name }) => names.includes(name))
    const result = await syncSnapshot(io, configured, { path, streams, syncMode })
    await configured.close()
    const { db } = getOrThrow(await openSnapshot(path, 'read')())
    const rows: Record<string, number> = {}
    for (const name of names) rows[name] = Number(await db.scalar(`SELECT count(*) FROM "${name}"`))
    db.close()
    return { outcome: result.outcome, rows, warnings: warnings.join('\n') }
  }

  it.each(listed)('keeps the rows of %s', async (name, path) => {
    const service = await startService()
    const db = newTempPath('duckdb')
    const { rows } = await sync(service, db, [name], 'incremental')
    expect(rows[name]).toBe(lists[path]?.rows.length)
    service.world.blank = { [path]: 3_000 }
    expect(await sync(service, db, [name])).toEqual({ outcome: 'complete', rows, warnings: '' })
    service.world.gone = true
    const refused = await sync(service, db, [name])
    expect(refused).toMatchObject({ outcome: 'failed', rows })
    expect(refused.warnings).toMatch(/accept_empty_lists/)
    expect(await sync(service, db, [name])).toMatchObject({ outcome: 'failed', rows })
    service.world.gone = false
    service.world.blank = {}
    expect(await sync(service, db, [name])).toMatchObject({ outcome: 'complete', rows })
    service.world.gone = true
    const accepted = await sync(service, db, [name], 'full_refresh', { accept_empty_lists: true })
    expect(accepted).toMatchObject({ outcome: 'complete', rows: { [name]: 0 } })
    expect(await sync(service, db, [name])).toMatchObject({ outcome: 'complete', rows: { [name]: 0 } })
  })

  const madeOfReviews = ['deleted_reviews', 'reviews', 'locations', 'review_contents']

  it('takes the list as empty where all reviews are among the deletions of this run', async () => {
    const service = await startService()
    const db = newTempPath('duckdb')
    await sync(service, db, madeOfReviews, 'incremental')
    service.world.deleted = true
    const { outcome, rows, warnings } = await sync(service, db, madeOfReviews)
    expect([outcome, rows]).toEqual(['complete', { deleted_reviews: 25, reviews: 0, locations: 0, review_contents: 0 }])
    expect(warnings).toMatch(/counts as empty/)
  })

  it('keeps all rows where one review is not among the deletions', async () => {
    const service = await startService()
    const db = newTempPath('duckdb')
    await sync(service, db, madeOfReviews, 'incremental')
    service.world.deleted = true
    service.world.alive = 25
    const { outcome, rows } = await sync(service, db, madeOfReviews)
    expect([outcome, rows]).toEqual(['failed', { deleted_reviews: 24, reviews: 1, locations: 1, review_contents: 1 }])
  })
})
