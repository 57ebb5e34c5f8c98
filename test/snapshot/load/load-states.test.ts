import { describe, expect, it } from 'vitest'
import {
  activateGeneration,
  declareShareLoads,
  finishRefresh,
  listOpenShares,
  nameShare,
  openLoadStates,
  readReceivedRange,
  saveLoadStatesSql,
  settleShares,
} from '../../../connector/snapshot/load/earlier-runs'
import type { Database } from '../../../connector/snapshot/store/database'
import { forgottenTableSql } from '../../../connector/snapshot/store/forgotten'
import { listRows as list, useTables } from '../../support/snapshot-tables'

/** A database in memory with the metadata tables alone, after these statements, for the time that `body` takes. */
const useMetadata = (sql: string, body: (db: Database) => Promise<void>): Promise<void> =>
  useTables([], async (db) => {
    await db.run(
      `CREATE TABLE _shares (share VARCHAR, stream VARCHAR, load BIGINT, state JSON, saved_at TIMESTAMPTZ); ${sql}`,
    )
    await body(db)
  })

describe('the states of a load are saved', () => {
  const save = async (db: Database, share?: string, forgotten?: string): Promise<void> => {
    const states = ['a', "it's"].map((stream) => ({ stream, state: '{"recent":[[5,"x"],[6,"y"]]}' }))
    await db.run(saveLoadStatesSql({ share, spool: { forgotten } }, states, 7000.5).join(';'))
  }
  const before = `
    INSERT INTO _state SELECT s, '{"old":1}', make_timestamptz(0) FROM (VALUES ('a'), ('b')) AS t(s);
    INSERT INTO _shares (share, stream) VALUES ('0/2', 'a'), ('0/2', 'it''s'), ('0/2', 'c'), ('1/2', 'a');
    ${forgottenTableSql()}; INSERT INTO _forgotten VALUES ('review', '5', make_timestamptz(0))`
  const [whole, cleaned] = ['{"recent":[[5,"x"],[6,"y"]]}', '{"recent":[[6,"y"]]}']
  const columns = ['stream', 'state', 'epoch_ms(saved_at)']

  it.each([
    ['of all', undefined, whole],
    ['of all, and remember nobody who was forgotten', 'a condition', cleaned],
  ])('%s: where those of other streams stay', async (_, forgotten, state) => {
    await useMetadata(before, async (db) => {
      await save(db, undefined, forgotten)
      expect(await list(db, '_state', ...columns)).toEqual([`a ${state} 7000`, 'b {"old":1} 0', `it's ${state} 7000`])
      expect(await list(db, '_shares WHERE state IS NOT NULL', 'stream')).toEqual([])
    })
  })

  it.each([
    ['of a share', undefined, whole],
    ['of a share, and remember nobody who was forgotten', 'a condition', cleaned],
  ])('%s: where those of all, and of the other shares, stay', async (_, forgotten, state) => {
    await useMetadata(before, async (db) => {
      await save(db, '0/2', forgotten)
      expect(await list(db, '_state', ...columns)).toEqual(['a {"old":1} 0', 'b {"old":1} 0'])
      expect(await list(db, '_shares WHERE state IS NOT NULL', 'share', ...columns)).toEqual([
        ...[`0/2 a ${state} 7000`, `0/2 it's ${state} 7000`],
      ])
    })
  })
})

describe('shares of a backfill', () => {
  it('have the last of their loads', async () => {
    await useMetadata(`INSERT INTO _shares VALUES ('0/2', 'b', 3, '{}', NULL)`, async (db) => {
      const share = nameShare({ index: 0, count: 2 })
      await declareShareLoads(db, share, [{ stream: "it's", id: 4 }])
      await declareShareLoads(db, share, [
        { stream: "it's", id: 5 },
        { stream: 'b', id: 6 },
      ])
      await declareShareLoads(db, '1/2', [{ stream: 'b', id: 7 }])
      expect(await list(db, '_shares', 'share', 'stream', 'load')).toEqual(['0/2 b 6', "0/2 it's 5", '1/2 b 7'])
    })
  })

  it('are not read beside those of another number, whichever these are', async () => {
    await useMetadata(
      `INSERT INTO _shares (share, stream) VALUES ('0/2', 'a'), ('0/4', 'a'), ('1/4', 'a')`,
      async (db) => {
        await expect(openLoadStates({ db }, { index: 0, count: 3 }, 'incremental', 0)).rejects.toThrow(
          'shared by 2, 4 processes, and the config says 3',
        )
        expect(await openLoadStates({ db }, { index: 0, count: 4 }, 'incremental', 0)).toEqual({})
      },
    )
  })

  it.each<[string, string, boolean]>([
    ['complete, with a state each', '', true],
    ['complete, of which one has no state', "UPDATE _shares SET state = NULL WHERE share = '1/2'", false],
    ['not all complete', "UPDATE _loads SET status = 'incomplete' WHERE load = 2", false],
    ['beside a load of none that is not complete', "INSERT INTO _loads (load, status) VALUES (3, 'running')", true],
  ])('are settled or not: %s', async (_, sql, isSettled) => {
    const complete = `
      INSERT INTO _shares VALUES ('0/2', 'a', 1, '{"n":0}', NULL), ('1/2', 'a', 2, '{"n":1}', NULL);
      INSERT INTO _loads (load, status) VALUES (1, 'complete'), (2, 'complete');`
    await useMetadata(`${complete} ${sql}`, async (db) => {
      const asked: unknown[] = []
      const merge = (states: unknown) => {
        asked.push(states)
        return { a: { n: 9 } }
      }
      expect(await settleShares({ db }, { index: 1, count: 2 }, merge, 5000.5)).toBe(isSettled)
      expect(asked).toEqual(isSettled ? [[{ a: { n: 0 } }, { a: { n: 1 } }]] : [])
      expect(await list(db, '_state', 'stream', 'state', 'epoch_ms(saved_at)')).toEqual(
        isSettled ? ['a {"n":9} 5000'] : [],
      )
      expect(await list(db, '_shares', 'share')).toEqual(isSettled ? [] : ['0/2', '1/2'])
    })
  })
})

describe('the shares that are not complete', () => {
  it('are told by stream, as far as any is begun', async () => {
    const sql = `
      INSERT INTO _shares (share, stream, load) VALUES
        ('0/3', 'a', 1), ('1/3', 'a', 2), ('2/3', 'a', 9), ('0/3', 'b', 3), ('1/3', 'b', 4), ('2/3', 'b', 5), ('0/3', NULL, NULL);
      INSERT INTO _loads (load, stream, status) VALUES
        (1, 'a', 'complete'), (2, 'a', 'running'), (3, 'b', 'complete'), (4, 'b', 'complete'), (5, 'b', 'complete'), (9, 'b', 'complete')`
    await useMetadata(sql, async (db) =>
      expect([...(await listOpenShares({ db }))]).toEqual([['a', 'has 2 of 3 shares that are not complete']]),
    )
    await useTables([], async (db) => expect([...(await listOpenShares({ db }))]).toEqual([]))
  })

  it('are opened and settled under a name, for what says that there is too little memory', async () => {
    await useMetadata('', async (db) => {
      const names: string[] = []
      const watched: Database = {
        ...db,
        withMemory: (name, ...rest) => {
          names.push(name)
          return db.withMemory(name, ...rest)
        },
      }
      await openLoadStates({ db: watched }, { index: 0, count: 2 }, 'incremental', 0)
      await settleShares({ db: watched }, { index: 0, count: 2 }, () => undefined, 0)
      expect(names).toEqual(['opening the share', 'putting the shares together'])
    })
  })
})

it('a full refresh goes on from the state of each stream that one has begun and that has a state', async () => {
  const sql = `
    INSERT INTO _streams (stream, refreshing) VALUES ('a', true), ('b', true), ('c', false), ('d', NULL);
    INSERT INTO _state VALUES ('a', '{"n":1}', NULL), ('c', '{"n":2}', NULL), ('d', '{"n":3}', NULL)`
  await useMetadata(sql, async (db) => {
    expect(await openLoadStates({ db }, undefined, 'full_refresh', 0)).toStrictEqual({ a: { n: 1 } })
    expect(Object.keys(await openLoadStates({ db }, undefined, 'incremental', 0))).toEqual(['a', 'c', 'd'])
  })
})

describe('the cursors that loads have received', () => {
  const at = (millis: number): string => `make_timestamptz(${millis}::BIGINT * 1000)`
  const sql = `INSERT INTO _loads (stream, started, cursor_from, cursor_to) VALUES
    ('a', ${at(1_000_000)}, '3', '4'), ('a', ${at(1_060_000)}, '5', '9'), ('a', ${at(1_060_001)}, '6', '7'),
    ('a', ${at(3_000_000)}, NULL, NULL), ('b', ${at(3_000_000)}, '1', NULL), ('c', ${at(3_000_000)}, NULL, '1')`

  it.each<[string, number, object | undefined]>([
    ['a', 0, { from: '3', to: '9' }],
    ['a', 1_060_001, { from: '5', to: '9' }],
    ['a', 1_120_000, { from: '5', to: '9' }],
    ['a', 1_120_001, { from: '6', to: '7' }],
    ['a', 2_000_000, undefined],
    ['b', 0, undefined],
    ['c', 0, undefined],
    ['d', 0, undefined],
  ])('of %s, by loads that began a minute before %i or later', async (stream, since, range) => {
    await useMetadata(sql, async (db) => {
      expect(await readReceivedRange({ db })(stream, since)).toEqual(range)
    })
  })
})

describe('a refresh ends', () => {
  const sql = `
    INSERT INTO _streams (stream, generation, refreshing) VALUES ('things', 1, true), ('others', 1, true);
    CREATE TABLE things AS SELECT n AS _airbyte_generation_id FROM range(5) AS r(n)`
  const things = { name: 'things', columns: [], history: false }
  const readStreams = (db: Database) => list(db, '_streams', 'stream', 'generation', 'refreshing')
  const readRows = (db: Database) => list(db, 'things', '_airbyte_generation_id')

  it('with the rows of older generations, in its stream alone', async () => {
    await useMetadata(sql, async (db) => {
      await finishRefresh(db, things, 2, [], 0)
      expect(await readStreams(db)).toEqual(['others 1 true', 'things 1 false'])
      expect(await readRows(db)).toEqual(['2', '3', '4'])
    })
  })

  it('in the generation that it makes the current one', async () => {
    await useMetadata(sql, async (db) => {
      await activateGeneration(db, things, 3, [], 0)
      expect(await readStreams(db)).toEqual(['others 1 true', 'things 3 false'])
      expect(await readRows(db)).toEqual(['3', '4'])
    })
  })
})
