import { describe, expect, it } from 'vitest'
import {
  knownDeletionsSql,
  metKeysSql,
  newestVersionsSql,
  reviewSlicesSql,
} from '../../../connector/snapshot/load/lookups'
import {
  applyDeletions,
  archiveSql,
  insertRowsSql,
  keepNewestSql,
  removeOldRows,
  removeOldRowsInSteps,
  removeOldVersionsSql,
  removeTombstonesSql,
  tombstoneDeletionsSql,
} from '../../../connector/snapshot/load/merge'
import type { TypedRows } from '../../../connector/snapshot/load/typed-rows'
import type { Database } from '../../../connector/snapshot/store/database'
import {
  airbyteColumns,
  type Column,
  findReviewReference,
  hasTombstonesSql,
  historyTableName,
  type Table,
} from '../../../connector/snapshot/store/tables'
import {
  at,
  column,
  contentsTable as contents,
  createTable,
  definitionSql,
  deletionsTable as deletions,
  listRows as list,
  mediaTable as media,
  pairsTable as pairs,
  type RowSql,
  rawSql,
  referenceOf,
  reviewsTable as reviews,
  row,
  rowsSql,
  tombstoneColumn,
  tombstonesTable as tombstones,
  useTables,
} from '../../support/snapshot-tables'

const listIds = (db: Database, from: string) => list(db, from, 'id')
const listVersions = (db: Database, name: string) => list(db, historyTableName(name), 'id', 'modifiedTime', '_ended')
const batchSql = (to: Table, rows: ReadonlyArray<RowSql>): string =>
  `CREATE TEMP TABLE batch AS
   SELECT * FROM (VALUES ${rows.map(({ values }) => `(${values.join(', ')})`).join(', ')})
     AS t(${to.columns.map(({ name }) => `"${name}"`).join(', ')})`

describe('old versions', () => {
  it('are kept nowhere without a history', () => {
    expect(archiveSql(reviews, 'reviews AS t', 'true', 'NULL')).toBe('')
  })

  it('are kept once each, with the time at which they ended, and tombstones are not', async () => {
    const kept = { ...tombstones, history: true }
    const rows = [row(1, at(1), 'NULL'), row(2, at(2), at(2)), row(3, at(3), 'NULL'), row(4, at(4), 'NULL')]
    await useTables([[kept, rows]], async (db) => {
      await db.run(`INSERT INTO _history_reviews SELECT *, ${at(7)} FROM reviews WHERE id = 3`)
      await db.run(archiveSql(kept, 'reviews AS t, range(2) AS twice(n)', 't.id <> 4', at(9)))
      expect(await listVersions(db, 'reviews')).toEqual(['1 1 9', '3 3 7'])
      expect(await list(db, '_history_reviews JOIN reviews USING (id, _airbyte_raw_id)', 'id')).toEqual(['1', '3'])
    })
  })
})

describe('keys of several columns', () => {
  it('are met in the batch and in the table, and one with a null is not', async () => {
    await useTables([[pairs, [row(1, 1), row(1, 2), row(5, 1), row(2, 'NULL')]]], async (db) => {
      const batch = [row(1, 1), row(3, 3), row(3, 3), row(3, 4), row(4, 1), row('NULL', 1), row('NULL', 1)]
      await db.run(batchSql(pairs, [...batch, row(2, 'NULL')]))
      await db.run(metKeysSql(pairs, 'batch', ['a', 'b']))
      expect(await list(db, '_met', 'k0', 'k1')).toEqual(['1 1', '3 3'])
    })
  })

  it.each([
    [[], ['1 1', '1 2', '2 1']],
    [
      ['a', 'b'],
      ['1 2', '2 1'],
    ],
  ])('are added, but for those that are met: %j', async (key, added) => {
    await useTables([[pairs, []]], async (db) => {
      await db.run('CREATE TEMP TABLE _met AS SELECT 1 AS k0, 1 AS k1')
      const rows: TypedRows = {
        ...{ sql: 'SELECT * FROM (VALUES (1, 1, 0), (1, 2, 1), (2, 1, 2)) AS t(a, b, _seq)' },
        ...{ names: '"a", "b"', seq: '"_seq"' },
      }
      await db.run(insertRowsSql(pairs, rows, key))
      expect(await list(db, 'pairs', 'a', 'b')).toEqual(added)
    })
  })
})

describe('the newest row of a key stays', () => {
  const merge = async (db: Database, to: Table, batch: ReadonlyArray<RowSql>, cursor: string | undefined) => {
    const names = [...to.columns.map(({ name }) => `"${name}"`), ...airbyteColumns.map(([name]) => name)].join(', ')
    await db.run(
      `CREATE TEMP TABLE batch (${definitionSql(to)}, _seq BIGINT);
         INSERT INTO batch VALUES ${batch
           .map((each, i) => `${rowsSql([{ raw: 100 + i, ...each }])[0]?.slice(0, -1)}, ${i})`)
           .join(', ')}`,
    )
    const rows = { sql: 'SELECT * FROM batch', names, seq: '_seq' }
    const key = to.columns.slice(0, to === pairs ? 2 : 1).map(({ name }) => name)
    await db.run(metKeysSql(to, 'batch', key))
    await db.run(keepNewestSql(to, key, cursor, rows))
  }

  it.each<[string, Column, ReadonlyArray<string>, string]>([
    ['the last without a cursor', column('value', 'BIGINT'), ['3', '1'], '1'],
    ['a greater integer', column('value', 'BIGINT'), ['10', '9'], '10'],
    ['a value, not a null', column('value', 'BIGINT'), ['10', 'NULL'], '10'],
    ['a later text', column('value', 'VARCHAR'), [`'b'`, `'a'`], 'b'],
  ])('%s', async (name, value, values, expected) => {
    const items = createTable('items', [column('id', 'BIGINT'), value])
    const [first = '', second = ''] = values
    const cursor = name.includes('without a cursor') ? undefined : 'value'
    await useTables([[items, [row(1, first), row(2, first)]]], async (db) => {
      await merge(db, items, [row(1, second), row(3, second)], cursor)
      expect(await list(db, 'items WHERE id = 1', 'value')).toEqual([expected])
    })
    if (cursor === undefined) return
    await useTables([[items, []]], async (db) => {
      await merge(db, items, [row(1, first), row(1, second)], cursor)
      expect(await list(db, 'items', 'value')).toEqual([expected])
    })
  })

  it('of a later generation, whatever its cursor', async () => {
    const older = { ...row(1, at(9)), generation: 1 }
    await useTables([[reviews, [older]]], async (db) => {
      await merge(db, reviews, [{ ...row(1, at(2)), generation: 2 }], 'modifiedTime')
      expect(await list(db, 'reviews', 'id', 'modifiedTime')).toEqual(['1 2'])
    })
  })

  it('that is not a tombstone, of two with the same cursor; the history has what it replaced', async () => {
    const kept = { ...tombstones, history: true }
    await useTables([[kept, [row(1, at(2), 'NULL'), row(2, at(2), 'NULL')]]], async (db) => {
      await merge(
        db,
        kept,
        [row(1, at(3), at(3)), row(1, at(3), 'NULL'), row(2, at(3), at(4)), row(2, at(1), 'NULL')],
        'modifiedTime',
      )
      expect(await list(db, 'reviews', 'id', 'modifiedTime', '_ab_cdc_deleted_at')).toEqual(['1 3 null', '2 3 4'])
      expect(await listVersions(db, 'reviews')).toEqual(['1 2 null', '2 1 3', '2 2 3'])
    })
  })

  it.each<[Column, string, string]>([
    [column('seen', 'TIMESTAMPTZ'), at(1440), '1440'],
    [column('seen', 'VARCHAR'), `'1970'`, '1000'],
  ])('and the version before ends with a tombstone: %j', async (seen, time, ended) => {
    const kept = { ...createTable('items', [column('id', 'BIGINT'), seen, tombstoneColumn]), history: true }
    await useTables([[kept, [row(1, 'NULL', 'NULL')]]], async (db) => {
      await merge(db, kept, [row(1, time, at(5))], 'seen')
      expect(await list(db, '_history_items', 'id', '_ended')).toEqual([`1 ${ended}`])
    })
  })
})

describe('deletions', () => {
  it('are known from their stream and from tombstones, the last of each review that a batch names', async () => {
    await useTables([[deletions, [row(1, at(1)), row(1, at(3)), row(2, at(1)), row(4, at(1))]]], async (db) => {
      await db.run(`INSERT INTO _deletions VALUES (2, ${at(5)}), (3, ${at(6)}), (5, ${at(6)})`)
      await db.run('CREATE TEMP TABLE first AS SELECT 1 AS id; CREATE TEMP TABLE second AS FROM range(2, 4) AS r(id)')
      const batches = ['first', 'second'].map((batch) => ({ ...referenceOf(reviews), batch }))
      await db.run(knownDeletionsSql([referenceOf(deletions)], batches))
      expect(await list(db, '_gone', 'id', 'time')).toEqual(['1 3', '2 5', '3 6'])
      await db.run(knownDeletionsSql([], batches))
      expect(await list(db, '_gone', 'id', 'time')).toEqual(['2 5', '3 6'])
    })
  })

  it('remove what is older than they are, except from these tables', async () => {
    const kept = { ...reviews, history: true }
    const rows = [row(1, at(1)), row(1, at(2)), row(1, at(3)), row(2, at(1))]
    const children = rows.map(({ values }) => row(...values, 7))
    const tables = [
      [kept, rows],
      [contents, children],
      [deletions, rows],
    ] as const
    await useTables(tables, async (db) => {
      await db.run(`CREATE TEMP TABLE _gone AS SELECT 1 AS id, ${at(2)} AS time`)
      await applyDeletions(
        db,
        tables.map(([each]) => referenceOf(each)),
        ['deleted_reviews'],
      )
      expect(await list(db, 'reviews', 'id', 'modifiedTime')).toEqual(['1 2', '1 3', '2 1'])
      expect(await listVersions(db, 'reviews')).toEqual(['1 1 2'])
      expect(await list(db, 'review_contents', 'reviewId', 'reviewModifiedTime')).toEqual(['1 2', '1 3', '2 1'])
      expect(await listIds(db, 'deleted_reviews')).toEqual(['1', '1', '1', '2'])
    })
  })

  it('by tombstones count from the earlier of both times, and are remembered', async () => {
    const rows = [
      row(1, at(5), at(3)),
      row(2, at(3), at(5)),
      row(3, 'NULL::TIMESTAMPTZ', at(4)),
      row(4, at(4), 'NULL'),
      row(5, at(4), at(4)),
      row(6, at(2), at(2)),
      row(6, at(4), at(4)),
    ]
    await useTables([[tombstones, []]], async (db) => {
      await db.run(`INSERT INTO _deletions VALUES (2, ${at(1)}), (5, ${at(9)}), (7, ${at(9)})`)
      await db.run(batchSql(tombstones, rows))
      const tombstone = hasTombstonesSql(tombstones, 't') ?? ''
      await db.run(tombstoneDeletionsSql({ ...referenceOf(tombstones), batch: 'batch' }, tombstone))
      expect(await list(db, '_gone', 'id', 'time', 'since')).toEqual(['1 5 3', '2 3 3', '3 4 4', '5 4 4', '6 4 4'])
      expect(await list(db, '_deletions', 'id', 'time')).toEqual(['1 3', '2 3', '3 4', '5 9', '6 4', '7 9'])
    })
  })

  it('take the tombstones with them', async () => {
    await useTables([[tombstones, [row(1, at(1), 'NULL'), row(2, at(1), at(1))]]], async (db) => {
      await db.run(removeTombstonesSql(tombstones, hasTombstonesSql(tombstones, 't') ?? ''))
      expect(await listIds(db, 'reviews')).toEqual(['1'])
    })
  })
})

it('reviews whose rows are stored together share a part, and new ones come last', async () => {
  const tables = [
    [reviews, [row(1, at(9)), row(2, at(1)), row(3, at(5)), row(9, at(1))]],
    [contents, [row(4, at(2), 1), row(1, at(8), 1)]],
  ] as const
  await useTables(tables, async (db) => {
    const values = [
      'SELECT * FROM (VALUES (0, 1), (1, 2), (2, 3), (3, NULL)) AS t(seq, value)',
      'SELECT * FROM (VALUES (0, 4), (1, 5), (2, 6), (3, 2)) AS t(seq, value)',
    ]
    const found = await db.query(
      reviewSlicesSql(
        tables.map(([each]) => referenceOf(each)),
        values,
        3,
      ),
    )
    expect(found.map((each) => Object.values(each).map(Number).join(' ')).toSorted()).toEqual([
      ...['0 0 1', '0 1 0', '0 2 1', '0 3 0'],
      ...['1 0 0', '1 1 2', '1 2 2', '1 3 0'],
    ])
  })
})

it('versions are old where the tables hold a newer one of a review that a batch names', async () => {
  const kept = { ...contents, history: true }
  const tables = [
    [reviews, [row(1, at(3)), row(2, at(1)), row(3, at(9))]],
    [
      kept,
      [row(1, at(1), 7), row(1, at(3), 8), row(2, at(1), 7), row(3, at(1), 7), row(4, at(1), 7), row(4, at(2), 8)],
    ],
  ] as const
  await useTables(tables, async (db) => {
    await db.run('CREATE TEMP TABLE first AS FROM range(1, 3) AS r(id); CREATE TEMP TABLE second AS SELECT 4 AS id')
    const batches = ['first', 'second'].map((batch) => ({ ...referenceOf(reviews), batch }))
    await db.run(
      newestVersionsSql(
        tables.map(([each]) => referenceOf(each)),
        batches,
      ),
    )
    expect(await list(db, '_version', 'id', 'time')).toEqual(['1 3', '4 2'])
    await db.run(removeOldVersionsSql(referenceOf(kept)))
    expect(await list(db, 'review_contents', 'reviewId', 'id')).toEqual(['1 8', '2 7', '3 7', '4 8'])
    expect(await list(db, '_history_review_contents', 'reviewId', 'id', '_ended')).toEqual(['1 7 3', '4 7 2'])
  })
})

describe('rows that a full refresh has not read again', () => {
  const isNew = { generation: 2 }
  const rows = [row(1, at(1)), { ...row(2, at(1)), ...isNew }, row(3, at(1))]
  const children = [
    ...[row(1, at(1), 10), { ...row(1, at(2), 11), ...isNew }, row(2, at(1), 12)],
    ...[row(3, at(1), 13), { ...row(3, at(1), 14), ...isNew }],
  ]
  const kept = { ...reviews, history: true }
  const tables = [
    [kept, rows],
    [contents, children],
    [media, children.map(({ values, ...each }) => ({ ...each, values: values.slice(0, 2) }))],
    [deletions, rows],
    [pairs, [row(1, 1)]],
  ] as const
  const all = tables.map(([each]) => each)
  const references = all.map(findReviewReference).filter((reference) => reference !== undefined)
  const now = 90 * 60_000

  it('go with the rows that refer to them, of the last time too, and no deletion goes', async () => {
    await useTables(tables, async (db) => {
      await removeOldRows(db, kept, 2, references, now + 0.5)
      expect(await listIds(db, 'reviews')).toEqual(['2'])
      expect(await listVersions(db, 'reviews')).toEqual(['1 1 90', '3 1 90'])
      expect(await listIds(db, 'review_contents')).toEqual(['11', '12'])
      expect(await listIds(db, 'deleted_reviews')).toEqual(['1', '2', '3'])
    })
  })

  it.each([contents, deletions])('go alone, where they are of no review: $name', async (to) => {
    await useTables(tables, async (db) => {
      await removeOldRows(db, to, 2, references, now)
      expect(await listIds(db, 'reviews')).toEqual(['1', '2', '3'])
      expect(await listIds(db, to.name)).toEqual(to === contents ? ['11', '14'] : ['2'])
      expect(await list(db, 'review_media', 'count(*)')).toEqual(['5'])
    })
  })

  it('go though the reviews have no time by which others would refer to them', async () => {
    const timeless = createTable('reviews', [column('id', 'BIGINT')])
    await useTables([[timeless, [row(1), { ...row(2), ...isNew }]], ...tables.slice(1)], async (db) => {
      await removeOldRows(db, timeless, 2, references.slice(1), now)
      expect(await listIds(db, 'reviews')).toEqual(['2'])
      expect(await listIds(db, 'review_contents')).toEqual(['10', '11', '12', '13', '14'])
    })
  })

  it('go in part: those that were selected, and what refers to these', async () => {
    await useTables(tables, async (db) => {
      await db.run(`CREATE TEMP TABLE _old AS SELECT ${rawSql(3)} AS raw`)
      await removeOldRows(db, kept, 2, references, now, true)
      expect(await listIds(db, 'reviews')).toEqual(['1', '2'])
      expect(await listVersions(db, 'reviews')).toEqual(['3 1 90'])
      expect(await listIds(db, 'review_contents')).toEqual(['10', '11', '12'])
    })
  })

  it('go in steps, after each of which the counts of all rows are right', async () => {
    await useTables(tables, async (db) => {
      await db.run(all.map(({ name }) => `INSERT INTO _streams (stream) VALUES ('${name}');`).join(''))
      const works: string[] = []
      const transaction: Database['transaction'] = async (body, undo) => {
        works.push('transaction')
        return db.transaction(body, undo)
      }
      const withMemory: Database['withMemory'] = async (name, work) => {
        works.push(name)
        return work()
      }
      await removeOldRowsInSteps({ ...db, withMemory, transaction }, kept, 2, all, now)
      expect(works).toEqual(['removing the old rows of reviews', 'transaction'])
      expect(await listIds(db, 'reviews')).toEqual(['2'])
      expect(await list(db, '_streams', 'stream', 'rows')).toEqual([
        ...['deleted_reviews 3', 'pairs null', 'review_contents 2', 'review_media 2', 'reviews 1'],
      ])
      expect(await list(db, `_meta WHERE contains(name, 'reviews')`, 'value')).toEqual(['2'])
    })
  })
})
