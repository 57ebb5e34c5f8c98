import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { runOrThrow } from '../../connector/cdk'
import type { Message, StreamInfo } from '../../connector/cdk/stream'
import { diffVersions } from '../../connector/snapshot/diff'
import { forgetPersons } from '../../connector/snapshot/forget'
import { openLoadStates } from '../../connector/snapshot/load/earlier-runs'
import { createSnapshotWriter } from '../../connector/snapshot/load/writer'
import type { Database, Snapshot } from '../../connector/snapshot/store/database'
import { closeSnapshot, openSnapshot, type SnapshotAccess } from '../../connector/snapshot/store/file'
import type { LakeShare } from '../../connector/snapshot/store/lake-access'
import { claimSnapshot } from '../../connector/snapshot/store/metadata'
import { newTempPath } from '../support/files'
import { runProgram } from '../support/program'
import {
  contentJson,
  emittedAt,
  recordsMessage,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  startedMessage,
  streamMessages,
  writeMessages,
} from '../support/snapshot-messages'

// A lake whose catalogue is a DuckDB file, for what depends neither on PostgreSQL nor on object storage.

const env = process.env
const newLake = (): string => `ducklake:${newTempPath('ducklake')}`
const folderOf = (lake: string): string => `${lake.slice('ducklake:'.length)}.files`

const useLake = async <A>(
  lake: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
  options: { readonly version?: number; readonly share?: LakeShare } = {},
): Promise<A> => {
  const snapshot = await runOrThrow(openSnapshot(lake, access, { lake: { env, ...options } }))
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
    await writeMessages(snapshot, messages)
    return readVersion(snapshot.db)
  })
const writeReviews = (lake: string, ...texts: ReadonlyArray<string>): Promise<number> =>
  write(lake, ...streamMessages(reviewsInfo(), ...texts))

const change = (lake: string, sql: string): Promise<void> => useLake(lake, 'change', ({ db }) => db.run(sql))
const ask = (lake: string, sql: string) => useLake(lake, 'read', ({ db }) => db.scalar(sql))
const forget = (lake: string, ...reviews: ReadonlyArray<string>) =>
  forgetPersons(lake, { reviews, visitRecords: [], exports: [] }, emittedAt, { lake: { env } })

const many = Array.from({ length: 50 }, (_, id) => reviewJson(id, 1, `text ${id}`))
const service = (address: string) => ({ address, fingerprint: Buffer.from(address).toString('hex') })

/** Whether the catalogue or a file of the lake holds these bytes. Parquet compresses texts, so only the catalogue tells one for sure. */
const holdsBytes = (lake: string, text: string): boolean => {
  const catalogue = lake.slice('ducklake:'.length)
  return readdirSync(dirname(catalogue))
    .filter((name) => name.startsWith(basename(catalogue)) && !name.endsWith('.files'))
    .some((name) => readFileSync(join(dirname(catalogue), name)).includes(text))
}

it('keeps the bounds of rows that its catalogue holds where there is nobody to forget, and mends those that are too narrow', async () => {
  const lake = newLake()
  await writeReviews(lake, reviewJson(1, 1, 'a text'))
  const find = () =>
    useLake(lake, 'read', async ({ db }) => [
      await db.scalar(`SELECT value FROM _meta WHERE name = 'format'`),
      await db.scalar(`SELECT count(*) FROM _loads WHERE status = 'complete'`),
      await db.scalar(`SELECT count(*) FROM reviews WHERE text >= 'a'`),
    ])
  expect(await forget(lake, '4711')).toMatchObject({ removed: [], lake: { expired: false } })
  expect(await find()).toEqual(['2', 1, 1])
  await change(
    lake,
    `UPDATE __ducklake_metadata_lake.ducklake_table_column_stats AS kept SET min_value = '', max_value = ''
     FROM __ducklake_metadata_lake.ducklake_column AS columns WHERE columns.table_id = kept.table_id AND columns.column_id = kept.column_id
       AND columns.column_type IN ('varchar', 'json') AND kept.min_value IS NOT NULL`,
  )
  expect(await find()).toEqual([undefined, 0, 0])
  await forget(lake, '4711')
  expect(await find()).toEqual(['2', 1, 1])
})

it('forgets what only a table had that was dropped, as by --start-anew', async () => {
  const lake = newLake()
  await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://a.example'), 'refuse')
    await writeMessages(snapshot, streamMessages(reviewsInfo(), ...many))
  })
  const version = await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://b.example'), 'empty')
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(100, 1, 'of b')))
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
  await expect(forgetPersons(lake, request, emittedAt, { lake: { env } })).rejects.toThrow('is a file of a lake')
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
    `DELETE FROM reviews WHERE id = 3; INSERT INTO reviews BY NAME SELECT * REPLACE (77 AS id, uuid() AS _airbyte_raw_id) FROM reviews WHERE id = 4`,
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

it('compares versions between which a table was dropped and made anew, and those before the first table', async () => {
  const lake = newLake()
  const first = await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://a.example'), 'refuse')
    await writeMessages(snapshot, streamMessages(reviewsInfo(), ...many))
    return readVersion(snapshot.db)
  })
  const last = await useLake(lake, 'write', async (snapshot) => {
    await claimSnapshot(snapshot, service('http://b.example'), 'empty')
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1, 'of b'), reviewJson(100, 1)))
    return readVersion(snapshot.db)
  })
  expect(await compare(lake, first, last)).toMatchObject({ a: 50, b: 2, onlyA: 49, onlyB: 1, changed: 1 })
  expect(await compare(lake, 0, first)).toMatchObject({ a: null, b: 50 })
  await expect(useLake(lake, 'read', async () => undefined, { version: 0 })).rejects.toThrow(
    'has no tables at this version',
  )
})

it('starts the shares of its backfill anew with another service', async () => {
  const lake = newLake()
  const share = { index: 0, count: 2 }
  const read = (address: string) =>
    useLake(lake, 'write', async (snapshot) => {
      await claimSnapshot(snapshot, service(address), 'empty')
      const states = await openLoadStates(snapshot, share, 'incremental', emittedAt)
      await writeMessages(snapshot, streamMessages(reviewsInfo(), ...many), { share })
      return states
    })
  expect(await read('http://a.example')).toEqual({})
  expect(await read('http://a.example')).toEqual({ reviews: { cursor: 50 } })
  expect(await read('http://b.example')).toEqual({})
})

it('is not up to date as long as a share is not complete', async () => {
  const lake = newLake()
  const now = Date.now()
  const read = (index: number) =>
    useLake(lake, 'write', async (snapshot) => {
      const share = { index, count: 2 }
      await openLoadStates(snapshot, share, 'incremental', now)
      await writeMessages(snapshot, streamMessages(reviewsInfo(), ...many), { share, now: () => now })
    })
  const status = () => runProgram('feedback', ['status', '--lake', lake], { env: {} })
  await read(1)
  expect(await status()).toMatchObject({ status: 1, stdout: expect.stringContaining('reviews has 1 of 2 shares') })
  // So it is while a share runs: nobody has counted the rows.
  await change(lake, 'UPDATE _streams SET rows = NULL')
  const { stdout } = await runProgram('feedback', ['status', '--lake', lake, '--json'], { env: {} })
  expect(JSON.parse(stdout)).toMatchObject({ streams: [{ rows: 50 }] })
  const verified = await runProgram('feedback', ['verify', '--lake', lake], { env: {} })
  expect(verified.stdout).toMatch(/row counts/)
  expect(verified.stdout).not.toContain('after the last load')
  await read(0)
  expect(await ask(lake, 'SELECT rows FROM _streams')).toBe(50)
  expect(await status()).toMatchObject({ status: 0 })
  // A run that is under way does not keep readers out.
  await change(
    lake,
    `INSERT INTO _loads BY NAME SELECT * REPLACE (load + 10 AS load, 'running' AS status, NULL AS ended) FROM _loads`,
  )
  await change(lake, 'DELETE FROM _shares')
  expect(await status()).toMatchObject({ status: 0 })
})

const share = { index: 1, count: 2 }
const ratedInTexts: StreamInfo = {
  ...reviewsInfo(),
  schema: {
    ...reviewsInfo().schema,
    properties: { ...Object(reviewsInfo().schema.properties), rating: { type: 'string' } },
  },
}
/** Writes reviews and contents as a share, and ends without an end of its streams, as a process that is killed. */
const writeShare = (lake: string, info: StreamInfo, ...messages: ReadonlyArray<Message>): Promise<void> =>
  useShare(lake, async (snapshot) => {
    const writer = await createSnapshotWriter(snapshot, { now: () => emittedAt, share })
    for (const message of [startedMessage(info), startedMessage(reviewContentsInfo()), ...messages])
      await writer.write(message)
    await snapshot.db.waitForWork()
  })
const useShare = (lake: string, body: (snapshot: Snapshot) => Promise<void>): Promise<void> =>
  useLake(
    lake,
    'write',
    async (snapshot) => {
      await openLoadStates(snapshot, share, 'incremental', emittedAt)
      await body(snapshot)
    },
    { share },
  )

it.each<[string, (lake: string, waiting: Message, all: ReadonlyArray<Message>) => Promise<void>, StreamInfo?]>([
  ['has moved nothing', async () => undefined],
  [
    'has read the reviews alone again',
    (lake, waiting, [reviews]) => writeShare(lake, reviewsInfo(), reviews as Message, waiting),
  ],
  [
    'was cut between reviews and their contents',
    (lake, _, [reviews]) =>
      writeShare(
        lake,
        reviewsInfo(),
        reviews as Message,
        ...Array.from({ length: 40 }, (__, id) => recordsMessage('reviews', reviewJson(id, 1, 'x'.repeat(900_000)))),
      ),
  ],
  ['has widened a column of reviews', (lake, waiting) => writeShare(lake, ratedInTexts, waiting), ratedInTexts],
  [
    'was followed by a compaction',
    (lake) =>
      change(
        lake,
        `DELETE FROM reviews WHERE id = 3; DELETE FROM review_contents WHERE "reviewId" = 3; CALL ducklake_flush_inlined_data('lake');
         CALL ducklake_rewrite_data_files('lake', 'reviews', delete_threshold => 0); CALL ducklake_merge_adjacent_files('lake')`,
      ),
  ],
  ['has lost its reviews', (lake) => change(lake, 'DELETE FROM reviews WHERE id % 2 = 0')],
])(
  'has each row of a review once after a share that %s, where another process reads it again',
  async (_, between, later = reviewsInfo()) => {
    const lake = newLake()
    const waiting: Message = { _tag: 'Waiting', stream: 'reviews', until: 0 }
    const ids = Array.from({ length: 40 }, (__, id) => id)
    const all = [
      recordsMessage('reviews', ...ids.map((id) => reviewJson(id, 1))),
      recordsMessage('review_contents', ...ids.map((id) => contentJson(id, 1, 7))),
    ]
    await writeShare(lake, reviewsInfo(), ...all, waiting)
    await between(lake, waiting, all)
    await writeShare(lake, later, ...all, waiting)
    const count = (table: string, key: string) =>
      ask(lake, `SELECT count(*) || ' ' || count(DISTINCT ${key}) FROM ${table}`)
    expect([await count('reviews', 'id'), await count('review_contents', '("reviewId", id)')]).toEqual([
      '40 40',
      '40 40',
    ])
  },
)

it.each<[string, (db: Database) => Promise<void>]>([
  [
    'writes reviews anew',
    (db) =>
      db.transaction(() =>
        db.run(
          'CREATE OR REPLACE TEMP TABLE again AS FROM reviews WHERE id < 5; DELETE FROM reviews WHERE id < 5; INSERT INTO reviews FROM again',
        ),
      ),
  ],
  ['removes reviews', (db) => db.run('DELETE FROM reviews WHERE id < 5')],
])('has each row of a review once where another process %s while this one learns of the lake', async (_, meanwhile) => {
  const lake = newLake()
  const waiting: Message = { _tag: 'Waiting', stream: 'reviews', until: 0 }
  const pages = (...ids: ReadonlyArray<number>): ReadonlyArray<Message> => [
    recordsMessage('reviews', ...ids.map((id) => reviewJson(id, 1))),
    recordsMessage('review_contents', ...ids.map((id) => contentJson(id, 1, 7))),
    waiting,
  ]
  await writeShare(lake, reviewsInfo(), ...pages(1, 2, 3, 4, 5, 6, 7, 8))
  await useShare(lake, async ({ db }) => {
    let isLearning = false
    const run: Database['run'] = async (...statement) => {
      if (!isLearning && statement[0].startsWith('CREATE OR REPLACE TEMP TABLE _known_')) {
        isLearning = true
        await meanwhile(db)
      }
      return db.run(...statement)
    }
    const writer = await createSnapshotWriter({ db: { ...db, run } }, { now: () => emittedAt, share })
    const begun = [startedMessage(reviewsInfo()), startedMessage(reviewContentsInfo())]
    for (const message of [...begun, ...pages(11, 12), ...pages(1, 2, 3, 4)]) await writer.write(message)
    expect(isLearning).toBe(true)
  })
  const count = (table: string, key: string) => ask(lake, `SELECT count(*) = count(DISTINCT ${key}) FROM ${table}`)
  expect([await count('reviews', 'id'), await count('review_contents', '("reviewId", id)')]).toEqual([true, true])
})
