import { describe, expect, it } from 'vitest'
import { transientFailure } from '../../../connector/cdk/failure'
import { CommandError } from '../../../connector/cdk/program/error'
import { type Change, explainCommitFailure } from '../../../connector/snapshot/load/changes'
import { commitWithinMemory } from '../../../connector/snapshot/load/slices'
import { createSpool } from '../../../connector/snapshot/load/spool'
import type { Load } from '../../../connector/snapshot/load/stream-load'
import type { Database } from '../../../connector/snapshot/store/database'
import { findReviewReference, type Table } from '../../../connector/snapshot/store/tables'
import { contentJson, reviewJson } from '../../support/snapshot-messages'
import {
  at,
  column,
  contentsTable as contents,
  createTable,
  deletionsTable as deletions,
  listRows as list,
  pairsTable as pairs,
  reviewsTable as reviews,
  row,
  tombstoneColumn,
  useTables,
} from '../../support/snapshot-tables'

/** What a load of `to` has received: these records, and the total number in the run. `id`: that of its load. */
const newChange = (id: number, to: Table, texts: ReadonlyArray<string>, more: Partial<Change> = {}): Change => {
  const spool = createSpool(':memory:')
  for (const text of texts) spool.add({ json: Buffer.from(text) }, 60_000_000)
  const reference = findReviewReference(to)
  const key = reference === undefined ? [] : [...new Set([reference.id, 'id'])]
  const target = { key, cursor: reference?.time, generation: 0, minimumGeneration: 0, resetsState: false }
  const load: Load = {
    ...{
      id,
      stream: to.name,
      share: undefined,
      derivation: undefined,
      made: 0,
      schema: '{}',
      table: to,
      target,
      activatesGeneration: false,
    },
    ...{ cursor: to.columns.find(({ name }) => name === reference?.time), startedAt: 0, endedAt: undefined },
    ...{
      status: 'running',
      records: texts.length,
      sourceRecords: undefined,
      spool,
      state: undefined,
      hasChanges: true,
    },
  }
  return {
    ...{ load, spool, target, activatesGeneration: false, status: 'running', records: texts.length },
    ...{ sourceRecords: undefined, state: undefined },
    ...more,
  }
}
/** Commits the changes, whose loads have the numbers of their places. */
const commit = async (db: Database, changes: ReadonlyArray<Change>, tables: ReadonlyArray<Table>): Promise<void> => {
  for (const { load } of changes)
    await db.run(`INSERT INTO _streams (stream, refreshing) VALUES ('${load.stream}', true);
      INSERT INTO _loads (load, stream, started, status)
      VALUES (${load.id}, '${load.stream}', make_timestamptz(0), 'running')`)
  await commitWithinMemory(db, 'a commit', { changes, shared: [] }, tables, 5000)
}

describe('a commit', () => {
  it('saves what it has received: its rows, their number, their cursors and its state', async () => {
    await useTables(
      [
        [reviews, []],
        [contents, []],
        [pairs, []],
      ],
      async (db) => {
        const changes = [
          newChange(1, reviews, [reviewJson(1, 5), reviewJson(2, 3)], { state: '{"n":1}', sourceRecords: 7 }),
          newChange(2, contents, [contentJson(1, 6, 1)], { status: 'complete' }),
          newChange(3, pairs, ['{"a":1,"b":2}', '{"a":1,"b":2}'], { records: 9 }),
        ]
        await commit(db, changes, [reviews, contents, pairs])
        expect(await list(db, '_loads', 'load', 'records', 'source_records', 'status', 'rows')).toEqual([
          ...['1 2 7 running 2', '2 1 null complete 1', '3 9 null running 2'],
        ])
        expect(await list(db, '_loads', 'load', 'cursor_from[12:16]', 'cursor_to[12:16]')).toEqual([
          ...['1 00:03 00:05', '2 00:06 00:06', '3 null null'],
        ])
        expect(await list(db, '_streams', 'stream', 'rows')).toEqual(['pairs 2', 'review_contents 1', 'reviews 2'])
        expect(await list(db, '_state', 'stream', 'state', 'epoch_ms(saved_at)')).toEqual(['reviews {"n":1} 5000'])
        expect(
          await list(db, `duckdb_tables() WHERE temporary AND table_name LIKE '\\_batch%' ESCAPE '\\'`, '*'),
        ).toEqual([])
      },
    )
  })

  describe('of what deletes reviews', () => {
    const marked = { ...reviews, columns: [...reviews.columns, tombstoneColumn] }
    const at2026 = (minute: number) => `TIMESTAMPTZ '2026-01-01 00:00:00Z' + INTERVAL ${minute} MINUTE`
    /** Reviews 1 and 2 with a content each, and a deletion of review 2 that came before its version. */
    const onReviews = (body: (db: Database, tables: ReadonlyArray<Table>) => Promise<void>, to = marked) =>
      useTables(
        [
          [to, [1, 2].map((id) => row(id, at2026(5), 'NULL'))],
          [contents, [1, 2].map((id) => row(id, at2026(5), id))],
          [deletions, [row(2, at2026(2))]],
        ],
        (db) => body(db, [to, contents, deletions]),
      )
    const readIds = async (db: Database) =>
      Promise.all(
        ['reviews', 'review_contents', 'deleted_reviews', '_deletions'].map(async (table) =>
          (await list(db, table, 'id')).join(' '),
        ),
      )

    it('removes reviews with what refers to them, and older versions that come later', async () => {
      await onReviews(async (db, tables) => {
        await commit(db, [newChange(1, deletions, [reviewJson(1, 9)])], tables)
        expect(await readIds(db)).toEqual(['2', '2', '1 2', ''])
        await db.run('DELETE FROM _streams; DELETE FROM _loads')
        await commit(db, [newChange(1, marked, [reviewJson(1, 8), reviewJson(2, 6)])], tables)
        expect(await readIds(db)).toEqual(['2', '', '1 2', ''])
        await db.run('DELETE FROM _streams; DELETE FROM _loads')
        await commit(db, [newChange(1, marked, [reviewJson(1, 10)])], tables)
        expect(await readIds(db)).toEqual(['1 2', '', '1 2', ''])
      })
    })

    it('takes a mark for a deletion where reviews have a key, and remembers it', async () => {
      const mark = reviewJson(1, 9).replace('}', ',"_ab_cdc_deleted_at":"2026-01-01T00:09:00Z"}')
      await onReviews(async (db, tables) => {
        await commit(db, [newChange(1, marked, [mark])], tables)
        expect(await readIds(db)).toEqual(['2', '2', '2', '1'])
      })
      await onReviews(async (db, tables) => {
        const change = newChange(1, marked, [mark])
        await commit(db, [{ ...change, target: { ...change.target, key: [] } }], tables)
        expect(await readIds(db)).toEqual(['1 1 2', '2', '2', ''])
      })
    })

    it('keeps the version that it removes with all columns, also those that the same commit brings', async () => {
      await onReviews(
        async (db, tables) => {
          const brought = newChange(1, tables[0] ?? marked, [reviewJson(1, 6).replace('}', ',"new":7}')])
          await commit(db, [brought, newChange(2, deletions, [reviewJson(1, 9)])], tables)
          expect(await list(db, '_history_reviews', 'id', 'minute(modifiedTime)', 'new')).toEqual([
            ...['1 5 null', '1 6 7'],
          ])
        },
        { ...marked, history: true },
      )
    })
  })

  it('of rows that refer to no review leaves those that do', async () => {
    await useTables(
      [
        [reviews, [row(1, at(9))]],
        [contents, [row(1, at(5), 7)]],
        [pairs, []],
      ],
      async (db) => {
        await commit(db, [newChange(1, pairs, ['{"a":1}'])], [reviews, contents, pairs])
        expect([...(await list(db, 'review_contents', 'id')), ...(await list(db, 'pairs', 'a'))]).toEqual(['7', '1'])
      },
    )
  })

  it('that activates a generation removes the rows of those before', async () => {
    const items = createTable('items', [column('id', 'BIGINT')])
    await useTables([[items, [1, 2, 3].map((id) => ({ ...row(id), generation: id }))]], async (db) => {
      const change = newChange(1, items, [], { activatesGeneration: true })
      await commit(db, [{ ...change, target: { ...change.target, generation: 2 } }], [items])
      expect(await list(db, 'items', 'id')).toEqual(['2', '3'])
    })
  })

  it('counts the older versions of its rows', async () => {
    const [kept, others] = [
      { ...reviews, history: true },
      { ...contents, history: true },
    ]
    await useTables(
      [
        [kept, []],
        [others, []],
        [pairs, []],
      ],
      async (db) => {
        const changes = [
          newChange(1, kept, [reviewJson(1, 5), reviewJson(1, 6), reviewJson(1, 7)]),
          newChange(2, pairs, ['{"a":1}']),
        ]
        await commit(db, changes, [kept, others, pairs])
        expect(await list(db, "_meta WHERE name LIKE 'history %'", 'name', 'value')).toEqual([
          ...['history rows of review_contents 0', 'history rows of reviews 2'],
        ])
      },
    )
  })

  it('leaves the versions of a review that are all appended, and removes the children of the older ones', async () => {
    await useTables(
      [
        [reviews, [row(1, 'NULL')]],
        [contents, []],
      ],
      async (db) => {
        const appended = newChange(1, reviews, [reviewJson(1, 1), reviewJson(1, 5)])
        const target = { ...appended.target, key: [] }
        await commit(
          db,
          [
            { ...appended, target, load: Object.assign(appended.load, { target }) },
            newChange(2, contents, [contentJson(1, 1, 7), contentJson(1, 5, 8)]),
          ],
          [reviews, contents],
        )
        expect(await list(db, 'reviews', 'id', 'minute(modifiedTime)')).toEqual(['1 1', '1 5', '1 null'])
        expect(await list(db, 'review_contents', 'id')).toEqual(['8'])
      },
    )
  })

  it('takes a mark of deletion for one of a review only where it is in the stream of reviews', async () => {
    const marked = { ...contents, columns: [...contents.columns, tombstoneColumn] }
    await useTables(
      [
        [reviews, []],
        [marked, []],
      ],
      async (db) => {
        const mark = contentJson(1, 5, 7).replace('}', ',"_ab_cdc_deleted_at":"2026-01-01T00:09:00Z"}')
        await commit(db, [newChange(1, reviews, [reviewJson(1, 5)]), newChange(2, marked, [mark])], [reviews, marked])
        expect(await list(db, 'reviews', 'id')).toEqual(['1'])
        expect(await list(db, 'review_contents', 'id')).toEqual(['7'])
        expect(await list(db, '_deletions', 'id')).toEqual([])
      },
    )
  })

  it('ends the refresh of a stream that is complete, and of no other', async () => {
    const items = createTable('items', [column('id', 'BIGINT')])
    for (const [status, minimumGeneration, expected] of [
      ['complete', 2, ['false', '2 3']],
      ['running', 2, ['true', '1 2 3']],
      ['incomplete', 2, ['true', '1 2 3']],
      ['complete', 0, ['true', '1 2 3']],
    ] as const)
      await useTables([[items, [1, 2, 3].map((id) => ({ ...row(id), generation: id }))]], async (db) => {
        const change = newChange(1, items, [], { status })
        await commit(db, [{ ...change, target: { ...change.target, minimumGeneration } }], [items])
        expect([...(await list(db, '_streams', 'refreshing')), (await list(db, 'items', 'id')).join(' ')]).toEqual(
          expected,
        )
      })
  })
})

describe('a commit that rejects', () => {
  it('leaves the tables of its loads as they were', async () => {
    await useTables([[pairs, []]], async (db) => {
      const change = newChange(1, pairs, ['{"a":1,"new":2}'])
      const rejecting: Database = {
        ...db,
        transaction: (body, undo) =>
          db.transaction(async () => {
            await body()
            throw new Error('stopped here')
          }, undo),
      }
      await expect(commit(rejecting, [change], [pairs])).rejects.toThrow('stopped here')
      expect(change.load.table).toEqual(pairs)
      await commitWithinMemory(db, 'a commit', { changes: [change], shared: [] }, [pairs], 5000)
      expect(change.load.table.columns).toEqual([...pairs.columns, column('new', 'JSON')])
      expect(await list(db, 'pairs', 'a', 'new')).toEqual(['1 2'])
    })
  })

  it('is explained by the record that is not JSON, if there is one and nothing else was the reason', () => {
    const refused = new Error('Malformed JSON')
    const good = newChange(1, pairs, ['{}', '{"a":[1]}'])
    const bad = newChange(2, reviews, ['{"id":1}', '{"id":secret}', '{}'], { records: 9 })
    expect(explainCommitFailure({ changes: [good], shared: [] }, refused)).toBe(refused)
    const told = new CommandError(transientFailure('no memory'))
    expect(explainCommitFailure({ changes: [bad], shared: [] }, told)).toBe(told)
    const explained = explainCommitFailure({ changes: [good, bad], shared: [] }, refused)
    expect(explained).toBeInstanceOf(CommandError)
    expect(String(explained)).toMatch(/Record 8 of the stream reviews is not JSON: it breaks at line 1, column 7\.$/)
  })
})

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

describe('a commit in parts', () => {
  const contentsById = createTable('review_contents', contents.columns.toReversed())
  const tables = [reviews, contentsById, pairs]
  const records = (json: (id: number, minute: number) => string, ...minutes: ReadonlyArray<number>) =>
    minutes.flatMap((minute) => upTo(800).map((id) => json(id, minute)))
  /** 800 reviews in two versions each, every other one with a child in its newer version; and rows without a review. */
  const newChanges = () => {
    const first = newChange(1, reviews, records(reviewJson, 5, 6), {
      state: '{"n":1}',
      status: 'complete',
      records: 1700,
    })
    return [
      { ...first, target: { ...first.target, generation: 1 } },
      newChange(2, pairs, ['{"a":1,"b":2}', '{"a":1,"b":2}'], { state: '{"n":2}' }),
      newChange(
        3,
        contentsById,
        records((id) => contentJson(id, id % 2 === 0 ? 5 : 6, 1000 - id), 5),
        { state: '{"n":3}' },
      ),
    ]
  }
  const count = async (db: Database, table: string) => Number(await db.scalar(`SELECT count(*) FROM ${table}`))
  const readProgress = async (db: Database) => [
    ...(await Promise.all(['reviews', 'review_contents', 'pairs', '_state'].map((table) => count(db, table)))),
    ...(await list(db, '_loads', 'load', 'status', 'records')),
  ]

  it('has those records in the file that its loads then count, and no state before all of them', async () => {
    await useTables(
      tables.map((to) => [to, to === reviews ? [row(9000, at(1))] : []] as const),
      async (db) => {
        const progress: unknown[] = []
        let isCut = false
        const cut: Database = {
          ...db,
          // As if the whole had needed too much memory.
          withMemory: (_, work, parts) => {
            if (isCut || parts === undefined) return work()
            isCut = true
            return parts()
          },
          release: async () => {
            progress.push(await readProgress(db))
            return true
          },
        }
        await commit(cut, newChanges(), tables)
        const partial = upTo(7).map((n) => [
          ...[1 + 100 * n, 50 * n, 0, 0],
          ...[`1 running ${100 + 200 * n}`, '2 running null', `3 running ${100 * n}`],
        ])
        expect(progress).toEqual([...partial, [801, 400, 2, 3, '1 complete 1700', '2 running 2', '3 running 800']])
        expect(await list(db, 'reviews WHERE id <= 800', 'DISTINCT minute(modifiedTime)')).toEqual(['6'])
        expect(await list(db, "duckdb_tables() WHERE temporary AND table_name IN ('_value', '_part')", '*')).toEqual([])
      },
    )
  })
})
