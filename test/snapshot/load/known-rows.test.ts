import { describe, expect, it } from 'vitest'
import {
  isChildTable,
  type KnownRows,
  learnTables,
  rememberRows,
  wholeReviewsMessage,
} from '../../../connector/snapshot/load/known-rows'
import {
  countStraysSql,
  countVersionsSql,
  findMetVersions,
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

const changesTable = 'changes'

let snapshot: Snapshot
let tables: ReadonlyArray<Table>
const openLake = async (): Promise<void> => {
  snapshot = await openMemorySnapshot()
  await writeMessages(snapshot, [
    ...streamMessages(reviewsInfo(), reviewJson(1, 1), reviewJson(2, 2)),
    ...streamMessages(reviewContentsInfo(), contentJson(1, 1, 7)),
  ])
  tables = await listStreamTables(snapshot.db)
  // What DuckLake says of a lake: what its versions have changed, which it keeps, the ids of its tables, and the rows that versions have added.
  await snapshot.db.run(`
    CREATE TABLE ${changesTable} (snapshot_id BIGINT, changes_made VARCHAR, commit_message VARCHAR, author VARCHAR);
    CREATE MACRO ducklake_snapshots(lake) AS TABLE
      SELECT snapshot_id, 1 AS schema_version, commit_message, author, changes_made::JSON AS changes
      FROM ${changesTable};
    INSERT INTO ${changesTable} SELECT range, '{"tables_inserted_into":["7","8"]}', '', 'feedback-connector' FROM range(6);
    CREATE MACRO ducklake_current_snapshot(lake) AS TABLE SELECT max(snapshot_id) AS id FROM ${changesTable};
    CREATE MACRO ducklake_table_info(lake) AS TABLE SELECT * FROM (VALUES (7, 'reviews'), (8, 'review_contents')) AS t(table_id, table_name);
    ALTER TABLE reviews ADD COLUMN snapshot_id BIGINT DEFAULT 5; ALTER TABLE review_contents ADD COLUMN snapshot_id BIGINT DEFAULT 5;
    CREATE TABLE added AS SELECT *, 0 AS version FROM reviews WHERE false;
    CREATE TABLE committed (id BIGINT);
    CREATE MACRO ducklake_last_committed_snapshot(lake) AS TABLE SELECT max(id) AS id FROM committed;
    CREATE MACRO ducklake_table_insertions(lake, folder, name, first, last) AS TABLE
      SELECT * FROM added WHERE version BETWEEN first AND last AND lake = 'lake' AND folder = 'main' AND name = 'reviews'`)
}
/** A test in a lake of its own; mutation runs it again and again. */
const inLake =
  <A extends ReadonlyArray<unknown>>(body: (...args: A) => Promise<void>) =>
  async (...args: A): Promise<void> => {
    await openLake()
    try {
      await body(...args)
    } finally {
      snapshot.db.close()
    }
  }

const reviewsOf = (all: ReadonlyArray<Table>) => all.filter(({ name }) => name === 'reviews')
const learn = (all: ReadonlyArray<Table> = reviewsOf(tables)) => learnTables(snapshot.db, [], all, true)
/** The ids, up to 9, whose keys are in a set, each as often as it is there. */
const listIdsIn = async (set: string | undefined): Promise<ReadonlyArray<number>> => {
  const rows = await snapshot.db.query(`SELECT id FROM range(10) AS ids(id) JOIN ${set} ON key = hash(id) ORDER BY id`)
  return rows.map(({ id }) => Number(id))
}
/** Those that are known of reviews. */
const listKnown = async (all?: ReadonlyArray<Table>): Promise<ReadonlyArray<number>> =>
  listIdsIn((await learn(all)).get('reviews')?.sets[0])
/** A version, and what it has changed. */
const addVersion = (version: number, changes = '', message = '', author = 'feedback-connector') => {
  const kinds: Record<string, string[]> = {}
  for (const [kind = '', id = ''] of changes.split(',').map((change) => change.split(':')))
    if (kind !== '') kinds[kind] = [...(kinds[kind] ?? []), id]
  return snapshot.db.run(
    `INSERT INTO ${changesTable} VALUES (${version}, '${JSON.stringify(kinds)}', '${message}', '${author}')`,
  )
}
/** A version that has added a review. */
const add = async (version: number, id: number, changes = 'tables_inserted_into:7') => {
  await addVersion(version, changes)
  await snapshot.db.run(
    `INSERT INTO added BY NAME SELECT * REPLACE (${id} AS id, ${version} AS snapshot_id), ${version} AS version FROM reviews LIMIT 1`,
  )
}

describe('what a share learns of the lake', () => {
  it(
    'is every row at first, and then what the versions have added since',
    inLake(async () => {
      expect(await listKnown()).toEqual([1, 2])
      await snapshot.db.run('DELETE FROM reviews WHERE id = 2')
      expect(await listKnown()).toEqual([1, 2])
      await add(6, 3)
      await add(7, 4)
      expect(await listKnown()).toEqual([1, 2, 3, 4])
      expect(await listKnown()).toEqual([1, 2, 3, 4])
      await add(8, 5)
      expect(await listKnown()).toEqual([1, 2, 3, 4, 5])
      await snapshot.db.run(`INSERT INTO ${changesTable} VALUES (9, NULL, NULL, NULL)`)
      expect(await listKnown()).toEqual([1, 2, 3, 4, 5])
      expect(await snapshot.db.scalar('SELECT count(*) FROM temp._ids')).toBe(2)
    }),
  )

  it.each([
    ['what was added since for the one that was learned first', false, [1, 2, 3, 4]],
    ['every row of all where a version since the first one was expired', true, [1]],
  ])(
    'is of tables that were learned at different versions %s',
    inLake(async (_, isExpired, expected) => {
      await listKnown()
      await snapshot.db.run('DELETE FROM reviews WHERE id = 2')
      await add(6, 3)
      await add(7, 4)
      await snapshot.db.run('CREATE TABLE others AS SELECT id, snapshot_id FROM reviews')
      const others = [{ table: { ...(tables[0] as Table), name: 'others' }, key: ['id'] }]
      await learnTables(snapshot.db, others, [], true)
      if (isExpired) await snapshot.db.run(`DELETE FROM ${changesTable} WHERE snapshot_id = 6`)
      const known = await learnTables(snapshot.db, others, reviewsOf(tables), true)
      expect(await listIdsIn(known.get('reviews')?.sets[0])).toEqual(expected)
    }),
  )

  it(
    'is what was added to the table that has the name now',
    inLake(async () => {
      await snapshot.db.run(`
        CREATE OR REPLACE MACRO ducklake_snapshots(lake) AS TABLE
          SELECT snapshot_id, snapshot_id // 8 AS schema_version, commit_message, author, changes_made::JSON AS changes FROM ${changesTable}`)
      expect(await listKnown()).toEqual([1, 2])
      await snapshot.db.run(`
        CREATE OR REPLACE MACRO ducklake_table_info(lake) AS TABLE SELECT * FROM (VALUES (9, 'reviews')) AS t(table_id, table_name)`)
      await addVersion(6)
      await addVersion(7)
      await add(8, 3, 'tables_inserted_into:9')
      expect(await listKnown()).toEqual([1, 2, 3])
    }),
  )

  it(
    'is read anew where the next version was expired',
    inLake(async () => {
      await listKnown()
      await add(6, 3)
      await add(7, 4)
      await snapshot.db.run(`DELETE FROM ${changesTable} WHERE snapshot_id = 6; DELETE FROM reviews WHERE id = 2`)
      expect(await listKnown()).toEqual([1])
      await add(8, 5)
      expect(await listKnown()).toEqual([1, 5])
    }),
  )

  it(
    'is forgotten with the transaction that has learned it',
    inLake(async () => {
      await listKnown()
      await add(6, 3)
      await expect(
        snapshot.db.transaction(async () => {
          expect(await listKnown()).toEqual([1, 2, 3])
          throw new Error('fails')
        }),
      ).rejects.toThrow('fails')
      expect(await listKnown()).toEqual([1, 2, 3])
    }),
  )

  it(
    'is learned anew of a key of another type, whose values have other hashes',
    inLake(async () => {
      const reviews = reviewsOf(tables)[0] as Table
      const learnById = (type: 'BIGINT' | 'VARCHAR') => {
        const columns = [...reviews.columns.filter(({ name }) => name !== 'id'), { name: 'id', type }]
        return learnTables(snapshot.db, [{ table: { ...reviews, columns }, key: ['id'] }], [], true)
      }
      await learnById('BIGINT')
      await snapshot.db.run('CREATE OR REPLACE TABLE reviews AS SELECT * REPLACE (id::VARCHAR AS id) FROM reviews')
      const set = (await learnById('VARCHAR')).get('reviews')?.sets[0]
      expect(
        await snapshot.db.scalar(`SELECT count(*) FROM ${set} WHERE key IN (hash(1::VARCHAR), hash(2::VARCHAR))`),
      ).toBe(2)
    }),
  )

  it(
    'is kept apart by table, whichever is learned first',
    inLake(async () => {
      const [reviews = [], contents = []] = ['reviews', 'review_contents'].map((wanted) =>
        tables.filter(({ name }) => name === wanted),
      )
      await listKnown()
      const first = (await learn([...contents, ...reviews])).get('review_contents')?.sets.at(-1)
      await snapshot.db.run('UPDATE reviews SET id = 3 WHERE id = 2; INSERT INTO reviews BY NAME SELECT 4 AS id')
      expect(await listKnown()).toEqual([1, 2])
      expect((await learn([...reviews, ...contents])).get('review_contents')?.sets.at(-1)).toBe(first)
      expect(await snapshot.db.scalar(`SELECT count(*) FROM ${first} WHERE key = hash(1)`)).toBe(1)
    }),
  )

  it(
    'is by review and time for tables of reviews, by the key for others, and of no table without one',
    inLake(async () => {
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
        true,
      )
      expect([...known].map(([name, { names }]) => [name, names]).sort()).toEqual([
        ['others', ['id', 'rating']],
        ['review_contents', ['reviewId']],
        ['reviews', ['id']],
      ])
      const times = await snapshot.db.query(
        `SELECT epoch_ms(time) AS time FROM ${known.get('reviews')?.sets[0]} ORDER BY 1`,
      )
      expect(times.map(({ time }) => Number(time))).toEqual(
        ['01', '02'].map((minute) => Date.parse(`2026-01-01T00:${minute}:00Z`)),
      )
      expect(await snapshot.db.scalar(`SELECT count(*) FROM ${known.get('others')?.sets[0]}`)).toBe(2)
      expect(await learnTables(snapshot.db, [{ table: keyless, key: [] }], [], true)).toEqual(new Map())
    }),
  )
})

describe('the rows that belong to reviews', () => {
  it('are those of other tables than reviews and deletions', () => {
    const isChild = (name: string) => isChildTable({ name, columns: [], history: false })
    expect(['review_contents', 'reviews', 'deleted_reviews'].map(isChild)).toEqual([true, false, false])
  })

  it('came with their review where the message of the version says so, which lakes keep', () =>
    expect(wholeReviewsMessage).toBe('Adds reviews, each with all rows that belong to it.'))
})

describe('what a share learns of rows that belong to reviews', () => {
  const reviewsAndContents = () => tables.filter(({ name }) => name !== 'deleted_reviews')
  const learnContents = async (): Promise<KnownRows> => {
    const known = (await learn(reviewsAndContents())).get('review_contents')
    if (known === undefined) throw new Error('nothing is known of contents')
    return known
  }
  const listIds = async (sets: ReadonlyArray<string>): Promise<ReadonlyArray<number>> => {
    const rows = await snapshot.db.query(
      `SELECT id FROM range(100) AS ids(id) JOIN (${sets.map((set) => `FROM ${set}`).join(' UNION ALL ')}) ON key = hash(id) ORDER BY id`,
    )
    return rows.map(({ id }) => Number(id))
  }
  /** The reviews whose contents are known by themselves. */
  const listOwn = async () => listIds((await learnContents()).sets.slice(1))
  /** A version that has added a content of a review. */
  const addContent = async (version: number, id: number, message?: string, changes = 'tables_inserted_into:8') => {
    await addVersion(version, changes, message)
    await snapshot.db.run(
      `INSERT INTO review_contents BY NAME SELECT * REPLACE (${id} AS "reviewId", ${version} AS snapshot_id) FROM review_contents LIMIT 1`,
    )
  }

  it(
    'is their review where they came with it, and themselves where they may have come alone',
    inLake(async () => {
      expect(await listOwn()).toEqual([1])
      await addContent(6, 10, wholeReviewsMessage)
      await addContent(7, 11)
      await addContent(8, 12, 'Adds reviews.')
      expect(await listOwn()).toEqual([1, 11, 12])
      await addContent(9, 13, wholeReviewsMessage)
      expect(await listOwn()).toEqual([1, 11, 12])
      expect(await listIds((await learnContents()).sets)).toEqual([1, 1, 2, 11, 12])
    }),
  )

  it(
    'is the same for a process that begins, where the lake keeps all versions',
    inLake(async () => {
      await addContent(6, 10, wholeReviewsMessage)
      await addContent(7, 11)
      expect(await listOwn()).toEqual([1, 11])
      await snapshot.db.run(`DROP TABLE temp._known; DELETE FROM ${changesTable} WHERE snapshot_id = 3`)
      expect(await listOwn()).toEqual([1, 10, 11])
    }),
  )

  it.each([
    ['tables_deleted_from:8,inlined_delete:8,tables_created:x,tables_altered:8,views_dropped:3', []],
    ['tables_inserted_into:6,inlined_insert:7', []],
    ['inlined_insert:7,inlined_insert:8', [10]],
    ['a_change_of_a_later_version:1', [10]],
    ['later_tables_created:1', [10]],
    ['tables_created_later:1', [10]],
  ])(
    'are read of a version that says it has %s as it should be: %j',
    inLake(async (changes, expected) => {
      await listOwn()
      await addContent(6, 10, '', changes)
      expect((await listOwn()).filter((id) => id === 10)).toEqual(expected)
    }),
  )

  it.each([0, 1])(
    'are those of version %i too for a process that begins',
    inLake(async (version) => {
      await snapshot.db.run(`UPDATE review_contents SET snapshot_id = ${version}`)
      expect(await listOwn()).toEqual([1])
    }),
  )

  it(
    'are all read again where a version between was expired',
    inLake(async () => {
      await listOwn()
      await addContent(6, 10, wholeReviewsMessage)
      await addContent(7, 11, wholeReviewsMessage)
      await snapshot.db.run(`DELETE FROM ${changesTable} WHERE snapshot_id = 6`)
      expect(await listOwn()).toEqual([1, 10, 11])
    }),
  )

  it(
    'are those too that the open transaction has written anew, of all versions',
    inLake(async () => {
      await addContent(6, 10)
      await snapshot.db.run('UPDATE review_contents SET snapshot_id = NULL')
      expect(await listOwn()).toEqual([1, 10])
    }),
  )

  it(
    'is by themselves alone where the lake has no reviews, or a column hides the versions',
    inLake(async () => {
      const contents = tables.filter(({ name }) => name === 'review_contents')
      expect((await learn(contents)).get('review_contents')?.sets).toHaveLength(1)
      const hidden = tables.map((table) => ({
        ...table,
        columns: [...table.columns, { name: 'snapshot_id', type: 'BIGINT' as const }],
      }))
      const hiddenContents = hidden.filter(({ name }) => name === 'review_contents')
      for (const all of [hidden, [...reviewsOf(hidden), ...contents], [...reviewsOf(tables), ...hiddenContents]])
        expect((await learn(all)).get('review_contents')?.sets).toHaveLength(1)
    }),
  )

  it(
    'has their versions in the scope of a merge, those of their review',
    inLake(async () => {
      await learnContents()
      await add(6, 10, 'tables_inserted_into:7,tables_inserted_into:8')
      await snapshot.db.run(
        `UPDATE ${changesTable} SET commit_message = '${wholeReviewsMessage}' WHERE snapshot_id = 6`,
      )
      const known = await learnContents()
      const contents = tables.find(({ name }) => name === 'review_contents') as Table
      await snapshot.db.run('CREATE OR REPLACE TEMP TABLE _met AS SELECT 10 AS k0, 7 AS k1')
      expect(await findMetVersions(snapshot.db, contents, ['reviewId', 'id'], known)).toBe(
        '(t.snapshot_id IN (6) OR t.snapshot_id IS NULL)',
      )
    }),
  )
})

describe('what a process that begins learns of rows whose review has moved or gone since they came with it', () => {
  const contents = () => tables.find(({ name }) => name === 'review_contents') as Table
  const learnBoth = async (): Promise<KnownRows> =>
    (await learn(tables.filter(({ name }) => name !== 'deleted_reviews'))).get('review_contents') as KnownRows
  /** A review with a content, of one version that says so. */
  const addWhole = async (version: number, id: number) => {
    await addVersion(version, 'tables_inserted_into:7,tables_inserted_into:8', wholeReviewsMessage)
    await snapshot.db.run(`
      INSERT INTO reviews BY NAME SELECT * REPLACE (${id} AS id, ${version} AS snapshot_id) FROM reviews LIMIT 1;
      INSERT INTO review_contents BY NAME SELECT * REPLACE (${id} AS "reviewId", 7 AS id, ${version} AS snapshot_id) FROM review_contents LIMIT 1`)
  }
  const listOwn = async () => {
    const own = (await learnBoth()).sets[1]
    const rows = await snapshot.db.query(
      `SELECT id FROM range(100) AS ids(id) JOIN ${own} ON key = hash(id) ORDER BY id`,
    )
    return rows.map(({ id }) => Number(id))
  }
  const findScope = async (...ids: ReadonlyArray<number>) => {
    await snapshot.db.run(
      `CREATE OR REPLACE TEMP TABLE _met AS SELECT unnest([${ids.join(', ')}]::BIGINT[]) AS k0, 7::BIGINT AS k1`,
    )
    const scope = await findMetVersions(snapshot.db, contents(), ['reviewId', 'id'], await learnBoth())
    return scope?.match(/\d+/g)?.map(Number).sort()
  }
  const move = (id: number, version: number) =>
    snapshot.db.run(`UPDATE reviews SET snapshot_id = ${version} WHERE id = ${id}`)

  it(
    'is where they are, which is asked of their table',
    inLake(async () => {
      await addWhole(6, 10)
      await addWhole(7, 11)
      await addVersion(8, 'tables_inserted_into:7,tables_deleted_from:7')
      await move(10, 8)
      expect(await findScope(10)).toEqual([6])
      expect(await findScope(10, 11)).toEqual([6, 7])
      expect(await findScope(11)).toEqual([7])
      await addVersion(9, 'inlined_insert:7,inlined_delete:7')
      await snapshot.db.run('DROP TABLE temp._known')
      await move(11, 9)
      expect(await findScope(11)).toEqual([7])
      await addVersion(10, 'a_change_of_a_later_version:7')
      await snapshot.db.run('DROP TABLE temp._known')
      await move(11, 10)
      expect(await findScope(11)).toEqual([7])
    }),
  )

  it(
    'is not asked for where a process has known them before',
    inLake(async () => {
      await learnBoth()
      await addWhole(6, 10)
      await snapshot.db.run(`INSERT INTO added BY NAME SELECT *, 6 AS version FROM reviews WHERE id = 10`)
      await learnBoth()
      await addVersion(7, 'tables_inserted_into:7,tables_deleted_from:7')
      await move(10, 7)
      await snapshot.db.run(`INSERT INTO added BY NAME SELECT *, 7 AS version FROM reviews WHERE id = 10`)
      expect(await findScope(10)).toEqual([6, 7])
    }),
  )

  it.each<[string, ReadonlyArray<number>, string?]>([
    ['tables_deleted_from:7', [1]],
    ['tables_deleted_from:7', [1, 10], 'another program'],
    ['inlined_delete:7', [1, 10], 'another program'],
    ['tables_deleted_from:8', [1], 'another program'],
    ['tables_inserted_into:7', [1], 'another program'],
    ['rewrite_delete:7', [1, 10], 'another program'],
    ['tables_dropped:6', [1, 10]],
    ['tables_altered:8', [1, 10]],
    ['tables_altered:7', [1]],
  ])(
    'is that they are there after %s: %j %s',
    inLake(async (changes, expected, author) => {
      await addWhole(6, 10)
      await addVersion(7, changes, '', author)
      await addWhole(8, 11)
      expect(await listOwn()).toEqual(expected)
    }),
  )
})

it(
  'is of one version where no transaction is open, however the lake changes meanwhile',
  inLake(async () => {
    const statements: string[] = []
    const { db } = snapshot
    const noted = (sql: string): string => {
      statements.push(sql)
      return sql.replaceAll(/ AT \(VERSION => \d+\)/g, '')
    }
    const lake = { ...db, run: (sql: string) => db.run(noted(sql)), query: (sql: string) => db.query(noted(sql)) }
    const find = async (isWithin: boolean) => {
      statements.length = 0
      await db.run('DROP TABLE IF EXISTS temp._known')
      const known = tables.filter(({ name }) => name !== 'deleted_reviews')
      await learnTables(lake, [], known, isWithin)
      return statements.join(';').match(/FROM "\w+" AS t( AT \(VERSION => \d+\))?/g)
    }
    expect(await find(true)).toEqual(['FROM "review_contents" AS t', 'FROM "reviews" AS t'])
    expect(await find(false)).toEqual([
      'FROM "review_contents" AS t AT (VERSION => 5)',
      'FROM "reviews" AS t AT (VERSION => 5)',
    ])
  }),
)

it(
  'is learned anew where a version since has dropped a table',
  inLake(async () => {
    await listKnown()
    await add(6, 3)
    await addVersion(7, 'tables_created:r,tables_dropped:9')
    await snapshot.db.run('INSERT INTO reviews BY NAME SELECT 8 AS id')
    expect(await listKnown()).toEqual([1, 2, 8])
  }),
)

describe('what a share remembers of its own commit', () => {
  const batchOf = (...ids: ReadonlyArray<number>) =>
    snapshot.db.run(
      `CREATE OR REPLACE TEMP TABLE batch AS SELECT id, TIMESTAMPTZ '2026-01-01T00:09:00Z' AS "modifiedTime" FROM range(10) AS ids(id) WHERE id IN (${ids.join(', ')})`,
    )
  const remember = async (version: number | undefined, batch?: string) => {
    const known = (await learn()).get('reviews') as KnownRows
    if (version !== undefined) await snapshot.db.run(`INSERT INTO committed VALUES (${version})`)
    await rememberRows(snapshot.db, [{ known, batch }])
  }

  it(
    'are its rows, which it need not read from the lake',
    inLake(async () => {
      await batchOf(3, 4)
      await remember(6, 'batch')
      await addVersion(6, 'tables_inserted_into:7')
      // The lake would give another row of that version.
      await add(7, 5)
      await snapshot.db.run(
        'INSERT INTO added BY NAME SELECT * REPLACE (9 AS id, 6 AS snapshot_id), 6 AS version FROM reviews LIMIT 1',
      )
      expect(await listKnown()).toEqual([1, 2, 3, 4, 5])
      const rows = await snapshot.db.query(
        `SELECT version, epoch_ms(time) AS time FROM temp._known_0 WHERE key = hash(3)`,
      )
      expect(rows.map(({ version, time }) => [Number(version), Number(time)])).toEqual([
        [6, Date.parse('2026-01-01T00:09:00Z')],
      ])
    }),
  )

  it(
    'is that a table has nothing new where the commit had no rows for it',
    inLake(async () => {
      await remember(6)
      await addVersion(6, 'tables_inserted_into:7')
      await snapshot.db.run(
        'INSERT INTO added BY NAME SELECT * REPLACE (9 AS id, 6 AS snapshot_id), 6 AS version FROM reviews LIMIT 1',
      )
      expect(await listKnown()).toEqual([1, 2])
    }),
  )

  it.each([undefined, 5, 7])(
    'is nothing where the lake does not say that its version is the next one: %j',
    inLake(async (version) => {
      await batchOf(3, 4)
      await remember(version, 'batch')
      expect(await listKnown()).toEqual([1, 2])
      await add(6, 3)
      expect(await listKnown()).toEqual([1, 2, 3])
    }),
  )
})

describe('rows of a commit that come without their review', () => {
  const count = async (
    reviews: ReadonlyArray<readonly [id: number, minute: number]> | undefined,
    contents: ReadonlyArray<readonly [id: number | null, minute: number]>,
    marked: ReadonlyArray<number> = [],
    /** How many tables have these contents. */
    contentTables = 1,
  ): Promise<number> => {
    const batch = (name: string, rows: ReadonlyArray<readonly [number | null, number]>, names: string) =>
      snapshot.db.run(
        `CREATE OR REPLACE TEMP TABLE ${name} AS SELECT *, NULL::VARCHAR AS _ab_cdc_deleted_at FROM (VALUES ${[[-1, 1], ...rows].map(([id, minute]) => `(${id}, TIMESTAMPTZ '2026-01-01T00:0${minute}:00Z')`).join(', ')}) AS t(${names}) WHERE t.${names.split(',')[0]} IS DISTINCT FROM -1`,
      )
    await batch('own', reviews ?? [], '"id", "modifiedTime"')
    await batch('contents', contents, '"reviewId", "reviewModifiedTime"')
    await snapshot.db.run(`UPDATE own SET _ab_cdc_deleted_at = 'then' WHERE id IN (${[-1, ...marked].join(', ')})`)
    const withMark = (table: Table): Table => ({
      ...table,
      columns: [...table.columns, { name: '_ab_cdc_deleted_at', type: 'VARCHAR' }],
    })
    const batches = tables.flatMap((table): ReadonlyArray<ReviewBatch> => {
      const reference = findReviewReference(marked.length > 0 ? withMark(table) : table)
      if (reference === undefined || (table.name === 'reviews' && reviews === undefined)) return []
      if (table.name === 'reviews') return [{ ...reference, batch: 'own' }]
      return Array.from({ length: contentTables }, () => ({ ...reference, batch: 'contents' }))
    })
    return Number(
      await snapshot.db.scalar(countStraysSql(batches.filter(({ table }) => table.name !== 'deleted_reviews'))),
    )
  }

  it(
    'are none where each is of a version of a review that the commit brings',
    inLake(async () => {
      expect(
        await count(
          [
            [1, 1],
            [2, 2],
          ],
          [
            [1, 1],
            [1, 1],
            [2, 2],
          ],
        ),
      ).toBe(0)
      expect(await count([[1, 1]], [])).toBe(0)
      expect(await snapshot.db.scalar(countStraysSql([]))).toBe(0)
    }),
  )

  it(
    'are those of another review, of another version, of none and of a tombstone',
    inLake(async () => {
      expect(
        await count(
          [[1, 1]],
          [
            [1, 1],
            [2, 1],
          ],
        ),
      ).toBe(1)
      expect(await count([[1, 1]], [[1, 2]])).toBe(1)
      expect(await count([[1, 1]], [[null, 1]])).toBe(1)
      expect(await count([[1, 1]], [[2, 1]], [], 2)).toBe(2)
      expect(await count(undefined, [[1, 1]])).toBe(1)
      expect(
        await count(
          [
            [1, 1],
            [2, 1],
          ],
          [
            [1, 1],
            [2, 1],
          ],
          [2],
        ),
      ).toBe(1)
    }),
  )
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

  it(
    'are those that added the rows with their keys, whatever else the key has',
    inLake(async () => {
      await findScope([])
      await add(6, 3)
      await add(7, 4)
      await add(8, 3)
      expect(await findScope([])).toBe('t.snapshot_id IS NULL')
      expect(await findScope([9])).toBe('t.snapshot_id IS NULL')
      expect(await findScope([2, 9])).toBe('(t.snapshot_id IN (5) OR t.snapshot_id IS NULL)')
      expect(versionsOf(await findScope([3]))).toEqual([6, 8])
      expect(versionsOf(await findScope([1, 2, 3, 4], ['rating', 'id']))).toEqual([5, 6, 7, 8])
    }),
  )

  it(
    'are found by all of a key that has several columns',
    inLake(async () => {
      const [reviews] = reviewsOf(tables)
      const other: Table = { ...(reviews as Table), name: 'others', columns: reviews?.columns.slice(0, 2) ?? [] }
      await snapshot.db.run(`
      CREATE TABLE others AS SELECT id, 7 AS rating, id + 10 AS snapshot_id FROM range(4) AS ids(id);
      CREATE OR REPLACE TEMP TABLE _met AS SELECT id AS k0, rating AS k1 FROM (VALUES (2, 7), (3, 8)) AS keys(id, rating)`)
      const key = ['id', 'rating']
      const known = (await learnTables(snapshot.db, [{ table: other, key }], [], true)).get('others')
      expect(known && (await findMetVersions(snapshot.db, other, key, known))).toBe(
        '(t.snapshot_id IN (12) OR t.snapshot_id IS NULL)',
      )
    }),
  )

  it(
    'are unknown where a column of the table has their name',
    inLake(async () => {
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
    }),
  )
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

  it(
    'are none where a review is new, or known with its time',
    inLake(async () => {
      expect(await count([1, 1], [2, 2], [3, 3])).toBe(0)
    }),
  )

  it(
    'are those that are known with another time, and those that the batch has itself',
    inLake(async () => {
      expect(await count([1, 2])).toBe(1)
      expect(await count([1, 2], [2, 3])).toBe(2)
      expect(await count([3, 1], [3, 2])).toBe(1)
    }),
  )
})
