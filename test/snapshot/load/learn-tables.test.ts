import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  countVersionsSql,
  findMetVersions,
  learnTables,
  type ReviewBatch,
} from '../../../connector/snapshot/load/lookups'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { findReviewReference, listStreamTables, type Table } from '../../../connector/snapshot/store/tables'
import {
  contentJson,
  openMemorySnapshot,
  reviewContentsInfo,
  reviewJson,
  reviewsInfo,
  streamMessages,
  writeMessages,
} from '../../support/snapshot-messages'

let snapshot: Snapshot
let tables: ReadonlyArray<Table>
beforeEach(async () => {
  snapshot = await openMemorySnapshot()
  await writeMessages(snapshot, [
    ...streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(2, 2)),
    ...streamMessages(reviewContentsInfo(), contentJson(1, 1, 7)),
  ])
  tables = await listStreamTables(snapshot.db)
  // What DuckLake says of a lake: its version, those that it keeps, and the rows that versions have added.
  await snapshot.db.run(`
    CREATE TABLE version AS SELECT 5 AS id;
    CREATE TABLE kept AS SELECT range AS snapshot_id FROM range(6);
    ALTER TABLE reviews ADD COLUMN snapshot_id BIGINT DEFAULT 5; ALTER TABLE review_contents ADD COLUMN snapshot_id BIGINT DEFAULT 5;
    CREATE TABLE added AS SELECT *, 0 AS version FROM reviews WHERE false;
    CREATE MACRO ducklake_current_snapshot(lake) AS TABLE FROM version;
    CREATE MACRO ducklake_snapshots(lake) AS TABLE FROM kept;
    CREATE MACRO ducklake_table_insertions(lake, folder, name, first, last) AS TABLE
      SELECT * FROM added WHERE version BETWEEN first AND last AND lake = 'lake' AND folder = 'main' AND name = 'reviews'`)
})
afterEach(() => snapshot.db.close())

const reviewsOf = (all: ReadonlyArray<Table>) => all.filter(({ name }) => name === 'reviews')
const learn = (all: ReadonlyArray<Table> = reviewsOf(tables)) => learnTables(snapshot.db, [], all)
/** The ids, up to 9, that are known of a table, each as often as it is known. */
const listKnown = async (all?: ReadonlyArray<Table>): Promise<ReadonlyArray<number>> => {
  const set = (await learn(all)).get('reviews')?.set
  const rows = await snapshot.db.query(`SELECT id FROM range(10) AS ids(id) JOIN ${set} ON key = hash(id) ORDER BY id`)
  return rows.map(({ id }) => Number(id))
}
const add = (version: number, id: number) =>
  snapshot.db.run(
    `UPDATE version SET id = ${version}; INSERT INTO kept VALUES (${version}); INSERT INTO added BY NAME SELECT * REPLACE (${id} AS id, ${version} AS snapshot_id), ${version} AS version FROM reviews LIMIT 1`,
  )

describe('what a share learns of the lake', () => {
  it('is every row at first, and then what the versions have added since', async () => {
    expect(await listKnown()).toEqual([1, 2])
    await snapshot.db.run('DELETE FROM reviews WHERE id = 2')
    expect(await listKnown()).toEqual([1, 2])
    await add(6, 3)
    await add(7, 4)
    expect(await listKnown()).toEqual([1, 2, 3, 4])
    expect(await listKnown()).toEqual([1, 2, 3, 4])
    await add(8, 5)
    expect(await listKnown()).toEqual([1, 2, 3, 4, 5])
  })

  it('is read anew where the next version was expired', async () => {
    await listKnown()
    await add(6, 3)
    await add(7, 4)
    await snapshot.db.run('DELETE FROM kept WHERE snapshot_id = 6; DELETE FROM reviews WHERE id = 2')
    expect(await listKnown()).toEqual([1])
    await add(8, 5)
    expect(await listKnown()).toEqual([1, 5])
  })

  it('is forgotten with the transaction that has learned it', async () => {
    await listKnown()
    await add(6, 3)
    await expect(
      snapshot.db.transaction(async () => {
        expect(await listKnown()).toEqual([1, 2, 3])
        throw new Error('fails')
      }),
    ).rejects.toThrow('fails')
    expect(await listKnown()).toEqual([1, 2, 3])
  })

  it('is learned anew of a key of another type, whose values have other hashes', async () => {
    const reviews = reviewsOf(tables)[0] as Table
    const learnById = (type: 'BIGINT' | 'VARCHAR') => {
      const columns = [...reviews.columns.filter(({ name }) => name !== 'id'), { name: 'id', type }]
      return learnTables(snapshot.db, [{ table: { ...reviews, columns }, key: ['id'] }], [])
    }
    await learnById('BIGINT')
    await snapshot.db.run('CREATE OR REPLACE TABLE reviews AS SELECT * REPLACE (id::VARCHAR AS id) FROM reviews')
    const set = (await learnById('VARCHAR')).get('reviews')?.set
    expect(
      await snapshot.db.scalar(`SELECT count(*) FROM ${set} WHERE key IN (hash(1::VARCHAR), hash(2::VARCHAR))`),
    ).toBe(2)
  })

  it('is kept apart by table, whichever is learned first', async () => {
    const contents = tables.filter(({ name }) => name === 'review_contents')
    await listKnown()
    const first = (await learn(contents)).get('review_contents')?.set
    await snapshot.db.run('UPDATE reviews SET id = 3 WHERE id = 2; INSERT INTO reviews BY NAME SELECT 4 AS id')
    expect(await listKnown()).toEqual([1, 2])
    expect((await learn([...tables].reverse())).get('review_contents')?.set).toBe(first)
    expect(await snapshot.db.scalar(`SELECT count(*) FROM ${first} WHERE key = hash(1)`)).toBe(1)
  })

  it('is by review and time for tables of reviews, by the key for others, and of no table without one', async () => {
    const [reviews, contents] = tables.filter(({ name }) => name !== 'deleted_reviews')
    const other: Table = { ...(reviews as Table), name: 'others', columns: reviews?.columns.slice(0, 2) ?? [] }
    await snapshot.db.run('CREATE TABLE others AS SELECT id, rating, snapshot_id FROM reviews')
    const keyless = { ...other, name: 'keyless' }
    const known = await learnTables(
      snapshot.db,
      [
        { table: other, key: ['id', 'rating'] },
        { table: keyless, key: [] },
        ...tables.map((table) => ({ table, key: ['other'] })),
      ],
      [reviews, contents].flatMap((table) => table ?? []),
    )
    expect([...known].map(([name, { names }]) => [name, names]).sort()).toEqual([
      ['others', ['id', 'rating']],
      ['review_contents', ['reviewId']],
      ['reviews', ['id']],
    ])
    const times = await snapshot.db.query(`SELECT epoch_ms(time) AS time FROM ${known.get('reviews')?.set} ORDER BY 1`)
    expect(times.map(({ time }) => Number(time))).toEqual(
      ['01', '02'].map((minute) => Date.parse(`2026-01-01T00:${minute}:00Z`)),
    )
    expect(await snapshot.db.scalar(`SELECT count(*) FROM ${known.get('others')?.set}`)).toBe(2)
  })
})

describe('the versions of rows that a batch meets', () => {
  /** The condition for the rows with the keys `met`; undefined where their versions are not known. */
  const findScope = async (met: ReadonlyArray<number>, key: ReadonlyArray<string> = ['id'], all = tables) => {
    const [reviews] = reviewsOf(all)
    const known = (await learn(reviewsOf(all))).get('reviews')
    const columns = key.map((column, i) => `${column === 'id' ? 'id' : '7'} AS k${i}`).join(', ')
    await snapshot.db.run(
      `CREATE OR REPLACE TEMP TABLE _met AS SELECT ${columns} FROM range(10) AS ids(id) WHERE id IN (${[...met, -1]})`,
    )
    return reviews && known && findMetVersions(snapshot.db, reviews, key, known)
  }
  const versionsOf = (scope: string | undefined) => scope?.match(/\d+/g)?.map(Number).sort()

  it('are those that added the rows with their keys, whatever else the key has', async () => {
    await findScope([])
    await add(6, 3)
    await add(7, 4)
    await add(8, 3)
    expect(await findScope([])).toBe('t.snapshot_id IS NULL')
    expect(await findScope([9])).toBe('t.snapshot_id IS NULL')
    expect(await findScope([2, 9])).toBe('(t.snapshot_id IN (5) OR t.snapshot_id IS NULL)')
    expect(versionsOf(await findScope([3]))).toEqual([6, 8])
    expect(versionsOf(await findScope([1, 2, 3, 4], ['rating', 'id']))).toEqual([5, 6, 7, 8])
  })

  it('are found by all of a key that has several columns', async () => {
    const [reviews] = reviewsOf(tables)
    const other: Table = { ...(reviews as Table), name: 'others', columns: reviews?.columns.slice(0, 2) ?? [] }
    await snapshot.db.run(`
      CREATE TABLE others AS SELECT id, 7 AS rating, id + 10 AS snapshot_id FROM range(4) AS ids(id);
      CREATE OR REPLACE TEMP TABLE _met AS SELECT id AS k0, rating AS k1 FROM (VALUES (2, 7), (3, 8)) AS keys(id, rating)`)
    const key = ['id', 'rating']
    const known = (await learnTables(snapshot.db, [{ table: other, key }], [])).get('others')
    expect(known && (await findMetVersions(snapshot.db, other, key, known))).toBe(
      '(t.snapshot_id IN (12) OR t.snapshot_id IS NULL)',
    )
  })

  it('are unknown where a column of the table has their name', async () => {
    const hidden = tables.map((table) => ({
      ...table,
      columns: [...table.columns, { name: 'Snapshot_ID', type: 'BIGINT' as const }],
    }))
    expect(await findScope([1])).toBe('(t.snapshot_id IN (5) OR t.snapshot_id IS NULL)')
    expect(await findScope([1], ['id'], hidden)).toBeUndefined()
    // They stay unknown where the column was there as the rows were learned.
    await snapshot.db.run('DROP TABLE temp._known')
    expect(await findScope([1], ['id'], hidden)).toBeUndefined()
    expect(await findScope([1])).toBeUndefined()
  })
})

describe('the versions of reviews beside those of a batch', () => {
  const count = async (...rows: ReadonlyArray<readonly [id: number, minute: number]>): Promise<number> => {
    const values = rows.map(([id, minute]) => `(${id}, TIMESTAMPTZ '2026-01-01T00:0${minute}:00Z')`)
    await snapshot.db.run(
      `CREATE OR REPLACE TEMP TABLE batch AS SELECT * FROM (VALUES ${values.join(', ')}) AS rows(id, "modifiedTime")`,
    )
    const reference = findReviewReference(reviewsOf(tables)[0] as Table)
    const known = await learn()
    return Number(
      await snapshot.db.scalar(
        countVersionsSql([{ ...reference, batch: 'batch' } as ReviewBatch], [...known.values()]),
      ),
    )
  }

  it('are none where a review is new, or known with its time', async () => {
    expect(await count([1, 1], [2, 2], [3, 3])).toBe(0)
  })

  it('are those that are known with another time, and those that the batch has itself', async () => {
    expect(await count([1, 2])).toBe(1)
    expect(await count([1, 2], [2, 3])).toBe(2)
    expect(await count([3, 1], [3, 2])).toBe(1)
  })
})
