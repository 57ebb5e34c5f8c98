import { describe, expect, it } from 'vitest'
import { chooseStates, readReceivedRange, saveLoadStatesSql } from '../../../connector/snapshot/load/earlier-runs'
import type { Database } from '../../../connector/snapshot/store/database'
import { forgottenTableSql } from '../../../connector/snapshot/store/forgotten'
import { readSnapshotState } from '../../../connector/snapshot/store/metadata'
import {
  checkpointMessage,
  createStreamInfo,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'
import { listRows as list, useTables } from '../../support/snapshot-tables'

/** A database in memory with only the metadata tables, after these statements, for as long as `body` takes. */
const useMetadata = (sql: string, body: (db: Database) => Promise<void>): Promise<void> =>
  useTables([], async (db) => {
    await db.run(sql)
    await body(db)
  })

const infos = ["it's", 'others'].map((name) =>
  createStreamInfo(name, { id: integerSchema, at: instantSchema }, ['id'], 'at'),
)

describe('the states of a load are saved', () => {
  const save = async (db: Database, forgotten?: string): Promise<void> => {
    const states = ['a', "it's"].map((stream) => ({ stream, state: '{"recent":[[5,"x"],[6,"y"]]}' }))
    await db.run(saveLoadStatesSql({ spool: { forgotten } }, states, 7000.5).join(';'))
  }
  const before = `
    INSERT INTO _state SELECT s, '{"old":1}', make_timestamptz(0) FROM (VALUES ('a'), ('b')) AS t(s);
    ${forgottenTableSql()}; INSERT INTO _forgotten VALUES ('review', '5', make_timestamptz(0))`
  const [whole, cleaned] = ['{"recent":[[5,"x"],[6,"y"]]}', '{"recent":[[6,"y"]]}']
  const columns = ['stream', 'state', 'epoch_ms(saved_at)']

  it.each([
    ['of all', undefined, whole],
    ['of all, and remember nobody who was forgotten', 'a condition', cleaned],
  ])('%s: where those of other streams stay', async (_, forgotten, state) => {
    await useMetadata(before, async (db) => {
      await save(db, forgotten)
      expect(await list(db, '_state', ...columns)).toEqual([`a ${state} 7000`, 'b {"old":1} 0', `it's ${state} 7000`])
    })
  })
})

it('a full refresh goes on from the state of each stream that one has begun and that has a state', async () => {
  const sql = `
    INSERT INTO _streams (stream, refreshing) VALUES ('a', true), ('b', true), ('c', false), ('d', NULL);
    INSERT INTO _state VALUES ('a', '{"n":1}', NULL), ('c', '{"n":2}', NULL), ('d', '{"n":3}', NULL)`
  await useMetadata(sql, async (db) => {
    const states = await readSnapshotState({ db })
    expect(await chooseStates({ db }, states, 'full_refresh')).toStrictEqual({ a: { n: 1 } })
    expect(Object.keys(await chooseStates({ db }, states, 'incremental'))).toEqual(['a', 'c', 'd'])
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

describe('a full refresh', () => {
  it('goes on from the states of a full refresh alone, not from an unfinished scan of another run', async () => {
    const snapshot = await openMemorySnapshot()
    await writeMessages(
      snapshot,
      infos.flatMap((info) => [startedMessage(info), checkpointMessage(info.name, { page: 7 }, 0)]),
    )
    const read = async (syncMode: 'incremental' | 'full_refresh') =>
      chooseStates(snapshot, await readSnapshotState(snapshot), syncMode)
    expect(await read('full_refresh')).toEqual({})
    await snapshot.db.run(`UPDATE _streams SET refreshing = true WHERE stream = 'others'`)
    expect(await read('full_refresh')).toEqual({ others: { page: 7 } })
    expect(await read('incremental')).toEqual({ "it's": { page: 7 }, others: { page: 7 } })
    snapshot.db.close()
  })
})
