import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sourceReadCommand as readVerb } from '../../../connector/cli/feedback-source'
import type { Sandbox } from '../../../connector/sandbox/start'
import { streams } from '../../../connector/streams/streams'
import { type Fields, parseExact, printExact, warehouse } from '../../support/destination'
import { expectedOfReviews } from '../../support/expected-rows'
import { writeTempFile } from '../../support/files'
import { runCommand } from '../../support/run-command'
import { startTestSandbox } from '../../support/sandbox'

const hour = 3_600_000
const keys = Object.fromEntries(streams.map(({ name, primaryKey }) => [name, primaryKey]))
/** What reviews name: its rows may also be of a version of a review that is gone. */
const dimensions = streams.flatMap(({ name, derivation }) =>
  derivation?._tag === 'dimension' || derivation?._tag === 'names' ? [name] : [],
)

/** Sorts the rows and their attributes, so that only their content counts. */
const sorted = (rows: ReadonlyArray<Fields>): ReadonlyArray<string> =>
  rows.map((row) => printExact(Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))))).sort()

const catalog = (sync_mode: 'incremental' | 'full_refresh') =>
  writeTempFile({ streams: streams.map(({ name }) => ({ stream: { name, json_schema: {} }, sync_mode })) })

type Entity = readonly [kind: 'person' | 'location' | 'entity', id: string]

describe.each(['named in the config', 'found in the reviews'])('every stream, with entities %s', (how) => {
  let clock = Date.now()
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await startTestSandbox({
      reviews: 70,
      years: 1,
      locations: 2,
      providers: 2,
      until: clock - hour,
      now: () => clock,
    })
  })
  afterAll(() => sandbox.close())

  const distinct = (values: ReadonlyArray<unknown>): ReadonlyArray<string> => [
    ...new Set(values.flatMap((value) => (value === undefined ? [] : [String(value)]))),
  ]

  const entitiesOf = async (): Promise<ReadonlyArray<Entity>> => {
    const { locations = [], providers = [] } = expectedOfReviews(await sandbox.truth())
    const persons = distinct(providers.map(how === 'named in the config' ? ({ id }) => id : ({ npi }) => npi))
    return [
      ...persons.map((id): Entity => ['person', id]),
      ...distinct(locations.map(({ id }) => id)).map((id): Entity => ['location', id]),
      ['entity', '10'],
    ]
  }

  const configFor = async () => {
    const ids = async (kind: string) => (await entitiesOf()).flatMap(([one, id]) => (one === kind ? [id] : []))
    const entities =
      how === 'named in the config'
        ? { person_ids: await ids('person'), location_ids: await ids('location') }
        : { from_reviews: { locations: true, providers: 'npi' } }
    return writeTempFile({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      start_date: '2010-01-01T00:00:00Z',
      page_size: 40,
      entities: { entity_ids: ['10'], ...entities },
      feedback_filters: { per_page: how === 'named in the config' ? 30 : 100, days: 3650 },
      feedback_lookback_days: 400,
    })
  }

  type Answer = { readonly entity: Fields; readonly scrollKey: unknown }

  /** What the service answers of an entity, asked as plainly as can be. */
  const ask = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const headers = { 'Access-Token': sandbox.accessToken, 'Content-Type': 'application/json' }
    const text = await (await fetch(sandbox.url + path, { ...init, headers })).text()
    const { data } = parseExact(text) as {
      readonly data: { readonly entities: ReadonlyArray<Fields>; readonly filter: Fields }
    }
    return { entity: data.entities[0] ?? {}, scrollKey: data.filter.scrollKey }
  }

  const filtersOf = ([kind, id]: Entity) => ({ [`${kind}Id`]: id, days: 3650, minRatingCount: -1, perPage: 100 })
  const ofEntity = ([entityType, entityId]: Entity, { name: entityName }: Fields, rows: unknown) =>
    ((rows ?? []) as ReadonlyArray<Fields>).map((row) => ({ entityType, entityId, entityName, ...row }))

  const commentsOf = async (entity: Entity, page = 1): Promise<ReadonlyArray<Fields>> => {
    const filters = Object.entries({ ...filtersOf(entity), page })
    const query = new URLSearchParams(filters.map(([name, value]): [string, string] => [name, String(value)]))
    const { entity: found } = await ask(`/api/bsr/comments?${query}`)
    const rows = ofEntity(entity, found, found.comments)
    return rows.length === 0 ? rows : [...rows, ...(await commentsOf(entity, page + 1))]
  }

  /** By scrollKey, the only way that both kinds of the service have. */
  const reviewsOf = async (entity: Entity, scrolled: object = {}): Promise<ReadonlyArray<Fields>> => {
    const body = JSON.stringify({ ...filtersOf(entity), ...scrolled })
    const { entity: found, scrollKey } = await ask('/api/external/bsr/v2/reviews', { method: 'POST', body })
    const rows = ofEntity(entity, found, found.reviews)
    return scrollKey === null ? rows : [...rows, ...(await reviewsOf(entity, { scrollKey }))]
  }

  const ratingOf = async ([kind, id]: Entity): Promise<Fields> => {
    const query = `${kind}Id=${id}&days=3650&minRatingCount=-1&showComments=false`
    const { entity } = await ask(`/api/bsr/comments?${query}`)
    const { id: _, name, comments: __, totalPages: ___, ...summary } = entity
    const { VendorSealOfIntegrity: seal } = summary
    return {
      entityType: kind,
      entityId: id,
      entityName: name,
      ...summary,
      VendorSealOfIntegrity: seal === null ? null : JSON.stringify(seal),
    }
  }

  const held = warehouse()
  const read = async (to = held, mode: 'incremental' | 'full_refresh' = 'incremental') => {
    const config = await configFor()
    const { status, stdout, stderr } = await runCommand(readVerb, [
      ...['--config', config, '--catalog', catalog(mode), '--state', writeTempFile(to.state())],
    ])
    expect(status, stderr).toBe(0)
    return to.load(stdout, keys)
  }

  const agree = async (warehouse = held) => {
    const truth = await sandbox.truth()
    const expected = expectedOfReviews(truth)
    const version = new Map(truth.reviews.map(({ id, modifiedTime }) => [id, modifiedTime]))
    const isCurrent = (row: Fields) =>
      version.get(String(row.reviewId ?? row.id)) === (row.reviewModifiedTime ?? row.modifiedTime)
    for (const [stream, rows] of Object.entries(expected)) {
      const there = warehouse.rows(stream)
      if (dimensions.includes(stream)) {
        const bare = there.map(({ reviewModifiedTime: _, ...thing }) => thing)
        // Of the wordings of a question, a table has one.
        const [kept, listed] = stream === 'questions' ? [rows, bare] : [bare, rows]
        expect(sorted(kept), stream).toEqual(expect.arrayContaining([...sorted(listed)]))
        expect(bare.map(({ id }) => id)).toEqual(expect.arrayContaining(rows.map(({ id }) => id)))
      } else expect(sorted(there.filter(isCurrent)), stream).toEqual(sorted(rows))
    }
    const gone = new Map(truth.deleted.map(({ id, modifiedTime }) => [id, modifiedTime]))
    const deleted = warehouse.rows('deleted_reviews')
    for (const { id, modifiedTime } of deleted) expect(gone.get(String(id))).toBe(modifiedTime)

    const entities = await entitiesOf()
    const isThere = (review: unknown) => version.has(String(review))
    const comments = (await Promise.all(entities.map((entity) => commentsOf(entity)))).flat()
    const said = warehouse.rows('comments').filter(({ id }) => isThere(BigInt(String(id)) / 10n))
    expect(comments.length).toBeGreaterThan(60)
    expect(sorted(said)).toEqual(sorted(comments))
    const reviews = (await Promise.all(entities.map((entity) => reviewsOf(entity)))).flat()
    const shown = warehouse.rows('transparency_reviews').filter(({ documentId }) => isThere(documentId))
    expect(sorted(shown)).toEqual(sorted(reviews))
    const ratings = await Promise.all(entities.map(ratingOf))
    expect(sorted(warehouse.rows('entity_ratings'))).toEqual(sorted(ratings))
  }

  it('equals the data of the service after the first run, after each change, and after a full refresh', async () => {
    const first = await read()
    expect(Object.keys(first).sort()).toEqual(streams.map(({ name }) => name).sort())
    const already = held.rows('deleted_reviews').length
    await agree()

    clock += hour
    await sandbox.churn({ change: 30, delete: 12, add: 9 })
    clock += hour
    await read()
    expect(held.rows('deleted_reviews')).toHaveLength(already + 12)
    await sandbox.churn({ change: 5, delete: 3, restore: 4 })
    clock += hour
    await read()
    await agree()

    clock += hour
    expect(Object.keys(await read())).toEqual(['entity_ratings'])

    const anew = warehouse()
    await read(anew, 'full_refresh')
    await agree(anew)
  })
})
