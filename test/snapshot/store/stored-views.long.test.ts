import { DuckDBInstance } from '@duckdb/node-api'
import { beforeEach, describe, expect, it } from 'vitest'
import { createNamedViews } from '../../../connector/snapshot/regions'
import { claimSnapshot } from '../../../connector/snapshot/store/claim'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { closeSnapshot } from '../../../connector/snapshot/store/file'
import { readModels } from '../../../connector/snapshot/store/models'
import { createModelViews, reviewViewNames, setReportingTimeZone } from '../../../connector/snapshot/store/views'
import { reviewsStream } from '../../../connector/streams/reviews'
import { newTempPath } from '../../support/files'
import {
  finishedMessage,
  integerSchema,
  openSnapshotFile,
  reviewsInfo,
  startedMessage,
  streamMessages,
  writeMessages,
} from '../../support/snapshot-messages'

const models = [...readModels().keys()]
const names = [...models, ...reviewViewNames, 'regions', 'scales'].sort()

const reviewOf = (id: number, location: object = { id: 1001, name: 'Oak Hill' }) =>
  JSON.stringify({
    id,
    modifiedTime: '2026-01-05T00:00:00.000Z',
    mentionTime: `2026-01-0${1 + (id % 4)}T10:00:00.000Z`,
    rating: 1 + (id % 5),
    reviewScore: id % 5,
    location,
    source: { id: 7, name: 'Survey' },
    taskDetails: { id, status: id % 2 === 0 ? 'completed' : 'pending', ownerName: 'Ada' },
  })
const reviews = { ...reviewsStream, syncMode: 'incremental' as const }

let path = ''
beforeEach(() => {
  path = newTempPath('duckdb')
})

const change = async <A>(body: (snapshot: Snapshot) => Promise<A>): Promise<A> => {
  const snapshot = await openSnapshotFile(path)
  try {
    return await body(snapshot)
  } finally {
    await closeSnapshot(snapshot)
  }
}
const load = (...ids: number[]) =>
  change((snapshot) => writeMessages(snapshot, streamMessages(reviews, ...ids.map((id) => reviewOf(id)))))
const run = (sql: string) => change(({ db }) => db.run(sql))

/** Rows as a program sees them that knows DuckDB and nothing of ours. */
const ask = async (sql: string): Promise<ReadonlyArray<Record<string, unknown>>> => {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' })
  const connection = await instance.connect()
  try {
    return (await (await connection.run(sql)).getRowObjectsJson()) as ReadonlyArray<Record<string, unknown>>
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}
const listViews = async () =>
  (await ask('SELECT view_name AS name FROM duckdb_views() WHERE NOT internal ORDER BY 1')).map(({ name }) => name)
const commentOf = async (view: string) =>
  (await ask(`SELECT comment FROM duckdb_views() WHERE view_name = '${view}'`))[0]?.comment

describe('the views of the file', () => {
  it('are all there for any program that opens it, and say what they are', async () => {
    await load(1, 2, 3)
    expect(await listViews()).toEqual(names)
    expect(await commentOf('region_monthly')).toBe('The reviews of each region and month. Made by feedback-connector.')
    const undescribed = await ask(
      `SELECT view_name FROM duckdb_views()
       WHERE NOT internal AND NOT coalesce(ends_with(comment, 'Made by feedback-connector.'), false)`,
    )
    expect(undescribed).toEqual([])
    expect(await ask('SELECT location_name, reviews, open_liabilities FROM location_scorecard')).toEqual([
      { location_name: 'Oak Hill', reviews: '3', open_liabilities: '0' },
    ])
    expect(await ask('SELECT DISTINCT region FROM region_monthly')).toEqual([{ region: '(unknown)' }])
  })

  it('have the rows that the models of a connection have', async () => {
    await load(1, 2, 3, 4)
    await change(async (snapshot) => {
      const rowsOf = async (view: string) =>
        (await snapshot.db.query(`SELECT to_json(row)::VARCHAR AS text FROM ${view} AS row`))
          .map(({ text }) => text)
          .sort()
      const stored = new Map<string, unknown>()
      for (const name of models) stored.set(name, await rowsOf(name))
      await createModelViews(snapshot.db, { asOf: new Date() })
      for (const name of models) expect([name, stored.get(name)]).toEqual([name, await rowsOf(`temp.${name}`)])
    })
  })

  it('stay as they are until a definition, a table or the time zone changes', async () => {
    const mark = 'Seen. Made by feedback-connector.'
    const isKept = async (body: () => Promise<unknown>): Promise<boolean> => {
      await run(`COMMENT ON VIEW region_monthly IS '${mark}'`)
      await body()
      return (await commentOf('region_monthly')) === mark
    }
    await load(1)
    expect(await isKept(() => load(2, 3))).toBe(true)
    expect(await isKept(() => change((snapshot) => setReportingTimeZone(snapshot, 'Europe/Berlin')))).toBe(false)
    expect(await isKept(() => load(4))).toBe(true)
    const { schema } = reviews
    const wider = {
      ...reviews,
      schema: { ...schema, properties: { ...(schema.properties as object), mood: integerSchema } },
    }
    expect(await isKept(() => change((snapshot) => writeMessages(snapshot, streamMessages(wider, reviewOf(5)))))).toBe(
      false,
    )
    expect(await isKept(() => run("UPDATE _meta SET value = 'of an older version' WHERE name = 'views'"))).toBe(true)
    expect(await isKept(() => load(6))).toBe(false)
    expect(await isKept(() => run('DROP VIEW critical_alerts'))).toBe(true)
    expect(await isKept(() => load(7))).toBe(false)
    expect(await listViews()).toEqual(names)
    expect(await ask('SELECT count(*)::INT AS n FROM review_facts')).toEqual([{ n: 7 }])
  })

  it('are none in a file without reviews, and come with the first ones', async () => {
    await change((snapshot) =>
      writeMessages(snapshot, [startedMessage({ ...reviewsInfo(), name: 'others' }), finishedMessage('others')]),
    )
    expect(await listViews()).toEqual([])
    await load(1)
    expect(await listViews()).toEqual(names)
  })

  it('have the regions that the table _regions gives, also after the next load', async () => {
    await load(1)
    await run("INSERT INTO _regions VALUES (NULL, 'OAK HILL', 'South')")
    await load(2)
    const regions = () => ask('SELECT region, reviews FROM region_monthly')
    expect(await regions()).toEqual([{ region: 'South', reviews: '2' }])
    await run('DROP TABLE _regions; CREATE TABLE _regions AS SELECT 1 AS something')
    await load(3)
    expect(await regions()).toEqual([{ region: '(unknown)', reviews: '3' }])
    expect(await ask('FROM _regions')).toEqual([{ something: 1 }])
  })
})

describe('a table or view of the user', () => {
  const own = `CREATE TABLE regions AS SELECT 'mine' AS what;
    CREATE OR REPLACE VIEW review_facts AS SELECT 'my view' AS what;
    CREATE OR REPLACE VIEW "Owner_Scorecard" AS SELECT 'my scores' AS what`
  const expectOwn = async () => {
    expect(await ask('FROM regions')).toEqual([{ what: 'mine' }])
    expect(await ask('FROM review_facts')).toEqual([{ what: 'my view' }])
    expect(await ask('FROM owner_scorecard')).toEqual([{ what: 'my scores' }])
  }

  it.each([
    ['before the first load', async () => undefined],
    ['after a load', () => load(1).then(() => run('DROP VIEW regions'))],
  ])('made %s keeps its name and its content, and the models read theirs', async (_, prepare) => {
    await prepare()
    await run(own)
    for (const id of [2, 3]) await load(id)
    await expectOwn()
    const renamed = names.map((name) =>
      ['regions', 'review_facts', 'owner_scorecard'].includes(name) ? `${name}_` : name,
    )
    expect(await listViews()).toEqual([...renamed, 'Owner_Scorecard', 'review_facts'].sort())
    expect(await ask('SELECT DISTINCT region FROM review_facts_')).toEqual([{ region: '(unknown)' }])
    expect(await ask('SELECT owner_name FROM owner_scorecard_')).toEqual([{ owner_name: 'Ada' }])
    expect((await ask('FROM critical_alerts')).length).toBeGreaterThan(0)
    await run('DROP TABLE regions; DROP VIEW review_facts; DROP VIEW "Owner_Scorecard"')
    await load(4)
    expect(await listViews()).toEqual(names)
  })

  it('stays where the file is emptied for another service; what is ours goes', async () => {
    await load(1)
    await run("CREATE VIEW mine AS SELECT 1 AS one; CREATE OR REPLACE VIEW review_daily AS SELECT 'mine' AS what")
    await load(2)
    await change(async (snapshot) => {
      await claimSnapshot(snapshot, { address: 'https://a.example.com', fingerprint: '0a.0a' }, 'refuse')
      await claimSnapshot(snapshot, { address: 'https://b.example.com', fingerprint: '0b.0b' }, 'empty')
    })
    expect(await listViews()).toEqual(['mine', 'review_daily'])
    await load(3)
    expect(await listViews()).toEqual([...names, 'mine', 'review_daily_'].sort())
  })
})

it.each(['read', 'change', 'write'] as const)('a file of an older layout is refused, to %s it too', async (access) => {
  await load(1)
  await run("UPDATE _meta SET value = '2' WHERE name = 'format'")
  await expect(openSnapshotFile(path, access)).rejects.toThrow(
    `${path} has an older layout, which this version does not read. Start over: give another path with --db`,
  )
  expect(await listViews()).toEqual(names)
})

describe('a query', () => {
  const north = { location_id: '1001', location_name: null, region: 'North' }
  const query = async (sql: string, regions?: ReadonlyArray<typeof north>) => {
    const snapshot = await openSnapshotFile(path, 'read')
    const warnings: string[] = []
    await createNamedViews(snapshot.db, sql, { regions }, (message) => warnings.push(message))
    const made = await snapshot.db.query(
      "SELECT view_name AS name FROM duckdb_views() WHERE database_name = 'temp' AND NOT internal",
    )
    const rows = await snapshot.db.query(sql)
    await closeSnapshot(snapshot)
    return { warnings, rows, made: made.map(({ name }) => name) }
  }

  it('reads the views of the file, and the regions that it is given instead of those of the file', async () => {
    await load(1)
    const sql = 'SELECT region FROM region_monthly'
    expect(await query(sql)).toEqual({ warnings: [], rows: [{ region: '(unknown)' }], made: [] })
    expect(await query(sql, [north])).toEqual({ warnings: [], rows: [{ region: 'North' }], made: ['regions'] })
  })

  it('names what the regions have and no review', async () => {
    await load(1)
    const given = ['5', '6'].map((location_id) => ({ ...north, location_id }))
    expect((await query('SELECT region FROM review_facts', given)).warnings).toEqual([
      'The regions file names the location 5, which no review has.',
      'The regions file names the location 6, which no review has.',
    ])
    const many = Array.from({ length: 25 }, (_, i) => ({ ...north, location_id: String(i) }))
    expect((await query('SELECT region FROM review_facts', many)).warnings.slice(9)).toEqual([
      'The regions file names the location 9, which no review has.',
      'It names 15 more locations that no review has.',
    ])
    expect((await query('SELECT 1 AS one', many)).warnings).toEqual([])
  })

  it('reads the table of the user where it has the name of a model, and gets the name of the model', async () => {
    await load(1)
    await run("DROP VIEW regions; CREATE TABLE regions AS SELECT 'mine' AS what")
    for (const isLoaded of [false, true]) {
      if (isLoaded) await load(2)
      expect(await query('SELECT what, region FROM regions, review_facts LIMIT 1', [north])).toMatchObject({
        rows: [{ what: 'mine', region: 'North' }],
        warnings: ['The file already has a table or view regions; the model of that name is regions_.'],
      })
      expect((await query('FROM regions_', [north])).rows).toMatchObject([{ region: 'North' }])
    }
  })
})
