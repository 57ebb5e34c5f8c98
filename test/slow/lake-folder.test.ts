import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { runOrThrow } from '../../connector/cdk'
import type { Message } from '../../connector/cdk/message'
import { compactLake, type KeptVersions } from '../../connector/lake/compact'
import { diffVersions } from '../../connector/lake/diff'
import { forgetInLake } from '../../connector/lake/forget'
import { openLake } from '../../connector/lake/open'
import type { LakeShare } from '../../connector/lake/place'
import { endShare, openLakeStates } from '../../connector/lake/shares'
import { claimSnapshot } from '../../connector/snapshot/store/claim'
import type { Database, Snapshot } from '../../connector/snapshot/store/database'
import { closeSnapshot, type SnapshotAccess } from '../../connector/snapshot/store/file'
import { metadataTablesSql, snapshotFormat } from '../../connector/snapshot/store/metadata'
import { verifySnapshot } from '../../connector/snapshot/verify/verify'
import { newTempPath } from '../support/files'
import { writeLakeMessages } from '../support/lake'
import { runProgram, startProgram } from '../support/program'
import {
  contentJson,
  deletedReviewsInfo,
  emittedAt,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  streamMessages,
} from '../support/snapshot-messages'

// A lake whose catalogue is a DuckDB file, for what depends neither on PostgreSQL nor on object storage.

const env = process.env
/** What programs need to find the extensions. */
const toEnv = () => ({ VIRTUAL_ENV: env.VIRTUAL_ENV ?? '' })
const newLake = (): string => `ducklake:${newTempPath('ducklake')}`
const folderOf = (lake: string): string => `${lake.slice('ducklake:'.length)}.files`

const useLake = async <A>(
  lake: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
  options: { readonly version?: number; readonly share?: LakeShare } = {},
): Promise<A> => {
  const snapshot = await runOrThrow(openLake(lake, access, { lake: { env, ...options } }))
  try {
    return await body(snapshot)
  } finally {
    await closeSnapshot(snapshot)
  }
}

const readVersion = async (db: Database): Promise<number> =>
  Number(await db.scalar(`SELECT max(snapshot_id) FROM ducklake_snapshots('lake')`))

/** Writes messages, and returns the version of the lake after them. */
const write = (lake: string, ...messages: ReadonlyArray<Message>): Promise<number> =>
  useLake(lake, 'write', async (snapshot) => {
    await writeLakeMessages(snapshot, messages)
    return readVersion(snapshot.db)
  })
const writeReviews = (lake: string, ...texts: ReadonlyArray<string>): Promise<number> =>
  write(lake, ...streamMessages(reviewsInfo(), ...texts))

const change = (lake: string, sql: string): Promise<void> => useLake(lake, 'change', ({ db }) => db.run(sql))
const ask = (lake: string, sql: string) => useLake(lake, 'read', ({ db }) => db.scalar(sql))
const forget = (lake: string, ...reviews: ReadonlyArray<string>) =>
  forgetInLake(lake, { reviews, visitRecords: [], exports: [] }, emittedAt, { lake: { env } })

const many = Array.from({ length: 50 }, (_, id) => reviewJson(id, 1, `text ${id}`))
const service = (address: string) => ({ address, fingerprint: Buffer.from(address).toString('hex') })

/**
 * The catalogue or a file of the lake contains these bytes. Parquet compresses texts, so only the catalogue gives a
 * sure answer.
 */
const holdsBytes = (lake: string, text: string): boolean => {
  const catalogue = lake.slice('ducklake:'.length)
  return readdirSync(dirname(catalogue))
    .filter((name) => name.startsWith(basename(catalogue)) && !name.endsWith('.files'))
    .some((name) => readFileSync(join(dirname(catalogue), name)).includes(text))
}

it(
  'keeps the bounds of rows that its catalogue holds where there ' +
    'is nobody to forget, and mends those that are too narrow',
  async () => {
    const lake = newLake()
    await writeReviews(lake, reviewJson(1, 1, 'a text'))
    const find = () =>
      useLake(lake, 'read', async ({ db }) => [
        await db.scalar(`SELECT value FROM _meta WHERE name = 'format'`),
        await db.scalar(`SELECT count(*) FROM _loads WHERE status = 'complete'`),
        await db.scalar(`SELECT count(*) FROM reviews WHERE text >= 'a'`),
      ])
    expect(await forget(lake, '4711')).toMatchObject({ removed: [], lake: { expired: false } })
    expect(await find()).toEqual([String(snapshotFormat), 1, 1])
    await change(
      lake,
      `UPDATE __ducklake_metadata_lake.ducklake_table_column_stats AS kept SET min_value = '', max_value = ''
     FROM __ducklake_metadata_lake.ducklake_column AS columns
     WHERE columns.table_id = kept.table_id AND columns.column_id = kept.column_id
       AND columns.column_type IN ('varchar', 'json') AND kept.min_value IS NOT NULL
       AND kept.table_id IN (
         SELECT table_id FROM __ducklake_metadata_lake.ducklake_table WHERE table_name = '_versions_reviews')`,
    )
    expect(await find()).not.toEqual([String(snapshotFormat), 1, 1])
    await forget(lake, '4711')
    expect(await find()).toEqual([String(snapshotFormat), 1, 1])
  },
)

it('forgets what only a table had that was dropped, as by --start-anew', async () => {
  const lake = newLake()
  await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://a.example'), 'refuse')
    await writeLakeMessages(snapshot, streamMessages(reviewsInfo(), ...many))
  })
  const version = await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://b.example'), 'empty')
    await writeLakeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(100, 1, 'of b')))
    return readVersion(snapshot.db)
  })
  expect(await forget(lake, '4711')).toMatchObject({ lake: { expired: false } })
  expect(await forget(lake, '7')).toMatchObject({ removed: [], lake: { expired: true } })
  await expect(useLake(lake, 'read', async () => undefined, { version })).rejects.toThrow('has no such version')
  expect(holdsBytes(lake, 'text 7')).toBe(false)
})

it('forgets in a catalogue whose kind is named', async () => {
  const lake = newLake().replace('ducklake:', 'ducklake:duckdb:')
  await writeReviews(lake, reviewJson(1, 1, 'a word'), reviewJson(2, 1, 'another'))
  expect(await forget(lake, '1')).toMatchObject({ removed: [{ table: 'reviews', rows: 1 }] })
  expect(holdsBytes(lake.replace('duckdb:', ''), 'a word')).toBe(false)
})

it('leaves its own files alone where they are named as exports', async () => {
  const lake = newLake()
  await writeReviews(lake, ...many)
  const request = { reviews: ['1'], visitRecords: [], exports: [folderOf(lake)] }
  await expect(forgetInLake(lake, request, emittedAt, { lake: { env } })).rejects.toThrow('is a file of a lake')
  expect(await ask(lake, 'SELECT count(DISTINCT text) FROM reviews')).toBe(50)
})

const compare = (lake: string, a: number, b: number) =>
  useLake(lake, 'read', async (snapshot) =>
    (await diffVersions(snapshot, [a, b])).find(({ stream }) => stream === 'reviews'),
  )

it('compares versions of which one between was expired', async () => {
  const lake = newLake()
  const first = await writeReviews(lake, ...many)
  await change(
    lake,
    `DELETE FROM _versions_reviews WHERE id = 3;
     INSERT INTO _versions_reviews BY NAME
       SELECT * REPLACE (77 AS id, uuid() AS _airbyte_raw_id) FROM _versions_reviews WHERE id = 4`,
  )
  const last = await writeReviews(lake, reviewJson(60, 2, 'new'))
  const between = Array.from({ length: last - first - 1 }, (_, i) => first + 1 + i)
  const expected = { a: 50, b: 51, onlyA: 1, onlyB: 2, changed: 0 }
  expect(await compare(lake, first, last)).toMatchObject(expected)
  await change(lake, `CALL ducklake_expire_snapshots('lake', versions => [${between}])`)
  expect(await compare(lake, first, last)).toMatchObject(expected)
  expect(await compare(lake, last, first)).toMatchObject({ ...expected, a: 51, b: 50, onlyA: 2, onlyB: 1 })
  await expect(compare(lake, first + 1, last)).rejects.toThrow('has no such version')
})

it('compares versions between which a table was dropped and recreated, and those before the first table', async () => {
  const lake = newLake()
  const first = await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://a.example'), 'refuse')
    await writeLakeMessages(snapshot, streamMessages(reviewsInfo(), ...many))
    return readVersion(snapshot.db)
  })
  const last = await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://b.example'), 'empty')
    await writeLakeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1, 'of b'), reviewJson(100, 1)))
    return readVersion(snapshot.db)
  })
  expect(await compare(lake, first, last)).toMatchObject({ a: 50, b: 2, onlyA: 49, onlyB: 1, changed: 1 })
  expect(await compare(lake, 0, first)).toMatchObject({ a: null, b: 50 })
  await expect(useLake(lake, 'read', async () => undefined, { version: 0 })).rejects.toThrow(
    'has no tables at this version',
  )
})

const none = () => undefined

/** Reads everything as a share, to its end. */
const readShare = (lake: string, index: number, count = 2, now = emittedAt) =>
  useLake(lake, 'write', async (snapshot) => {
    const share = { index, count }
    const states = await openLakeStates(snapshot, share, 'incremental', none, now)
    await writeLakeMessages(snapshot, streamMessages(reviewsInfo(), ...many), { share, now: () => now })
    await endShare(snapshot, share, ([first]) => first, now)
    return states
  })
const openWhole = (lake: string) =>
  useLake(lake, 'write', (snapshot) => openLakeStates(snapshot, undefined, 'incremental', none, emittedAt))

it('starts the shares of its backfill over with another service', async () => {
  const lake = newLake()
  const share = { index: 0, count: 2 }
  const read = (address: string) =>
    useLake(lake, 'write', async (snapshot) => {
      await claimSnapshot(snapshot, service(address), 'empty')
      const states = await openLakeStates(snapshot, share, 'incremental', none, emittedAt)
      await writeLakeMessages(snapshot, streamMessages(reviewsInfo(), ...many), { share })
      return states
    })
  expect(await read('http://a.example')).toEqual({})
  expect(await read('http://a.example')).toEqual({ reviews: { cursor: 50 } })
  expect(await read('http://b.example')).toEqual({})
  expect(await ask(lake, 'SELECT count(*)::INT FROM _versions_reviews')).toBe(50)
})

it('goes on without shares once all of them are complete, and keeps a share out then', async () => {
  const lake = newLake()
  await readShare(lake, 1)
  await expect(openWhole(lake)).rejects.toThrow('not all of them are complete')
  await expect(readShare(lake, 0, 3)).rejects.toThrow('shared by 2 processes, and the config says 3')
  expect(await readShare(lake, 0)).toEqual({})
  expect(await openWhole(lake)).toEqual({ reviews: { cursor: 50 } })
  await expect(readShare(lake, 0)).rejects.toThrow('has been read in full')
  expect(await ask(lake, 'SELECT count(*)::INT FROM reviews')).toBe(50)
  expect(await ask(lake, 'SELECT count(*)::INT FROM _versions_reviews')).toBe(100)
})

it('is not up to date as long as a share is not complete', async () => {
  const lake = newLake()
  const now = Date.now()
  const status = () => runProgram('feedback', ['status', '--lake', lake], { env: {} })
  await readShare(lake, 1, 2, now)
  expect(await status()).toMatchObject({ status: 1, stdout: expect.stringContaining('reviews has 1 of 2 shares') })
  await readShare(lake, 0, 2, now)
  expect(await status()).toMatchObject({ status: 0, stdout: expect.stringMatching(/reviews .* 50$/m) })
})

it('refuses a lake of the layout before, and says what to do', async () => {
  const lake = newLake()
  await useLake(lake, 'write', async () => undefined)
  // As an older version of this package has made it.
  const views = ['_meta', '_streams', '_state', '_loads', '_deletions']
  const logs = ['_meta', '_streams', '_states', '_loads', '_shares']
  const dropSql = [...views.map((name) => `DROP VIEW ${name};`), ...logs.map((name) => `DROP TABLE ${name}_log;`)]
  await change(lake, `${dropSql.join(' ')} ${metadataTablesSql}`)
  for (const access of ['read', 'write'] as const)
    await expect(useLake(lake, access, async () => undefined)).rejects.toThrow(
      /is a lake of an older layout, .* Start over: give an empty catalogue with --lake and an empty folder with/,
    )
})

const failedChecks = (lake: string) =>
  useLake(lake, 'read', async (snapshot) =>
    (await verifySnapshot(snapshot)).filter(({ ok }) => !ok).map(({ name }) => name),
  )

it.each<[string, string, string]>([
  ['a version that was changed', `UPDATE _versions_reviews SET text = 'changed' WHERE id = 7`, 'values are unchanged'],
  [
    'a version that is not shown any more and was changed',
    `UPDATE _versions_reviews SET text = 'x' WHERE text = 'text 1'`,
    'values are unchanged',
  ],
  ['a version that was removed', 'DELETE FROM _versions_reviews WHERE id = 7', 'row counts'],
  ['an older version that was removed', `DELETE FROM _versions_reviews WHERE text = 'text 1'`, 'row counts'],
  [
    'a version that was written twice',
    'INSERT INTO _versions_reviews FROM _versions_reviews WHERE id = 7',
    'row counts',
  ],
  [
    'a version of another generation',
    'UPDATE _versions_reviews SET _airbyte_generation_id = 9 WHERE id = 7',
    'row counts',
  ],
  ['a version of no load', 'UPDATE _versions_reviews SET _load = 5 WHERE id = 7', 'row counts'],
  ['a load that was removed', 'DELETE FROM _loads_log', 'row counts'],
  ['a state that was removed', 'DELETE FROM _states_log', 'states exist'],
  [
    'a state that is ahead',
    `UPDATE _states_log SET state = '{"modifiedTimeFrom":"2030-01-01T00:00:00.000Z"}'`,
    'states are not ahead',
  ],
])('sees %s', async (_, damage, check) => {
  const lake = newLake()
  await writeReviews(lake, ...many)
  await writeReviews(lake, reviewJson(1, 2, 'newer'))
  expect(await failedChecks(lake)).toEqual([])
  await change(lake, damage)
  expect(await failedChecks(lake)).toContain(check)
})

const compact = (lake: string, kept: KeptVersions) => compactLake(lake, kept, { lake: { env } })
const countVersions = (lake: string) => ask(lake, 'SELECT count(*)::INT FROM _versions_reviews')

it.each<[KeptVersions, number, number]>([
  ['all', 104, 103],
  ['newest', 50, 49],
  // Versions that ended years ago according to the service, and some that ended since.
  [{ days: 1 }, 50, 49],
  [{ days: 100_000 }, 104, 103],
])('keeps the requested versions of rows: %j', async (kept, versions, removable) => {
  const lake = newLake()
  await writeReviews(lake, ...many)
  await writeReviews(lake, ...many.slice(0, 3), ...many.map((text) => text.replace('00:01:00', '00:02:00')))
  const deleted = [reviewJson(5, 9)]
  const last = await write(lake, ...streamMessages(deletedReviewsInfo(), ...deleted))
  const shown = () => ask(lake, `SELECT string_agg(t::VARCHAR, '' ORDER BY id) FROM reviews AS t`)
  const before = await shown()
  const { removed_versions, after } = await compact(lake, kept)
  expect(await shown()).toBe(before)
  expect(await countVersions(lake)).toBe(
    versions === 104 && kept !== 'all' ? removable - 3 : versions === 104 ? 103 : removable,
  )
  expect(removed_versions).toBe(103 - Number(await countVersions(lake)))
  expect(after.files).toBeLessThanOrEqual(10)
  expect(await failedChecks(lake)).toEqual([])
  await expect(useLake(lake, 'read', async () => undefined, { version: last })).rejects.toThrow('has no such version')
  // What comes after it lands on it as before.
  await writeReviews(lake, reviewJson(5, 3), reviewJson(6, 3, 'later'))
  expect(await ask(lake, `SELECT string_agg(id || ' ' || text, ',') FROM reviews WHERE id IN (5, 6)`)).toBe('6 later')
})

it('shows the same where its compaction is killed at any moment, and is compacted by the next one', async () => {
  const lake = newLake()
  const texts = Array.from({ length: 5000 }, (_, id) => reviewJson(id, 1, `text ${id}`))
  await writeReviews(lake, ...texts)
  await writeReviews(lake, ...texts.slice(0, 2500).map((text) => text.replace('00:01:00', '00:02:00')))
  const shown = () => ask(lake, 'SELECT count(*) || sum(hash(t))::VARCHAR FROM reviews AS t')
  const before = await shown()
  const compaction = ['compact', '--lake', lake, '--keep', 'newest', '--json']
  for (const delay of [500, 650, 800, 950, 1100, 1300]) {
    const running = startProgram('feedback', compaction, { env: toEnv() })
    await sleep(delay)
    running.kill('SIGKILL')
    await running.ended
    expect(await shown()).toBe(before)
  }
  const { status, stdout } = await runProgram('feedback', compaction, { env: toEnv() })
  expect({ status, ...JSON.parse(stdout) }).toMatchObject({ status: 0, after: { files: expect.any(Number) } })
  expect([await shown(), await countVersions(lake)]).toEqual([before, 5000])
  expect(await failedChecks(lake)).toEqual([])
  expect(await runProgram('feedback', [...compaction, '--keep', '30'], { env: toEnv() })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('--keep must be newest, all or a number of days such as 30d, not 30'),
  })
})

it('keeps what a refresh has not ended with, and shows it once it has', async () => {
  const lake = newLake()
  const refresh = reviewsInfo('full_refresh')
  await writeReviews(lake, ...many)
  const waiting: Message = { _tag: 'Waiting', stream: 'reviews', until: 0 }
  const half = many.slice(0, 25)
  await write(lake, startedMessage(refresh), recordsMessage('reviews', ...half), waiting)
  const count = () => ask(lake, 'SELECT count(*)::INT FROM reviews')
  expect([await count(), await countVersions(lake)]).toEqual([50, 75])
  await compact(lake, 'newest')
  expect([await count(), await countVersions(lake)]).toEqual([50, 75])
  await write(lake, ...streamMessages(refresh, ...half))
  expect(await count()).toBe(25)
  await compact(lake, 'newest')
  expect([await count(), await countVersions(lake)]).toEqual([25, 25])
})

it('refuses a column of another type, also where a run has the lake to itself', async () => {
  const lake = newLake()
  const info = reviewsInfo()
  const properties = { ...Object(info.schema.properties), rating: { type: 'string' } }
  const changed = { ...info, schema: { ...info.schema, properties } }
  await writeReviews(lake, reviewJson(1, 1))
  const messages = streamMessages(changed, reviewJson(2, 1))
  for (const options of [{}, { share: { index: 0, count: 2 } }])
    await expect(useLake(lake, 'write', (snapshot) => writeLakeMessages(snapshot, messages, options))).rejects.toThrow(
      'its attribute rating is VARCHAR now, and DOUBLE in the lake',
    )
  expect(await ask(lake, 'SELECT count(*)::INT FROM reviews_versions')).toBe(1)
  expect(await failedChecks(lake)).toEqual([])
})

it('shows rows of a review only with its newest version, also where the review came first or not at all', async () => {
  const lake = newLake()
  const contents = () => ask(lake, `SELECT string_agg("reviewId" || '.' || id, ' ' ORDER BY ALL) FROM review_contents`)
  const infos = [startedMessage(reviewsInfo()), startedMessage(reviewContentsInfo())]
  await write(lake, ...infos, recordsMessage('review_contents', contentJson(1, 1, 10), contentJson(1, 1, 11)))
  expect(await contents()).toBe('1.10 1.11')
  await write(lake, ...infos, recordsMessage('reviews', reviewJson(1, 2)))
  expect(await contents()).toBe(null)
  // A run of only the contents.
  await write(lake, startedMessage(reviewContentsInfo()), recordsMessage('review_contents', contentJson(1, 3, 12)))
  expect(await contents()).toBe('1.12')
})
