import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { findUndeclaredColumns } from '../../../connector/snapshot/load/evolve'
import { createSpool } from '../../../connector/snapshot/load/spool'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import {
  createStreamInfo,
  instantSchema,
  integerSchema,
  openMemorySnapshot,
  streamMessages,
  timeAtMinute,
  writeMessages,
} from '../../support/snapshot-messages'
import { column, createTable, useTables } from '../../support/snapshot-tables'

const numberSchema = { type: ['null', 'number'] }
const stringSchema = { type: ['null', 'string'] }

const loadRecord = async (snapshot: Snapshot, value: unknown, record: string) => {
  const stream = createStreamInfo(
    'things',
    { id: integerSchema, modifiedTime: instantSchema, value },
    ['id'],
    'modifiedTime',
  )
  await writeMessages(snapshot, streamMessages(stream, record))
}
const recordJson = (id: number, value: string) => `{"id":${id},"modifiedTime":"${timeAtMinute(id)}","value":${value}}`

describe('a schema that changes', () => {
  it('keeps an attribute that is not declared', async () => {
    const snapshot = await openMemorySnapshot()
    await loadRecord(
      snapshot,
      stringSchema,
      `{"id":1,"modifiedTime":"${timeAtMinute(1)}","new":{"big":9007199254740993}}`,
    )
    expect(await snapshot.db.query('SELECT id, "new" FROM things')).toEqual([
      { id: 1, new: '{"big":9007199254740993}' },
    ])
    await loadRecord(snapshot, stringSchema, recordJson(2, '"x"'))
    expect(await snapshot.db.query('SELECT id, value FROM things ORDER BY id')).toEqual([
      { id: 1, value: null },
      { id: 2, value: 'x' },
    ])
    snapshot.db.close()
  })

  it('takes records of a stream that declares no attribute', async () => {
    const snapshot = await openMemorySnapshot()
    const stream = { ...createStreamInfo('things', {}, [], ''), cursor: O.none }
    await writeMessages(snapshot, streamMessages(stream, '{}', '{"a":1}'))
    expect(
      await snapshot.db.query(
        'SELECT * EXCLUDE (_airbyte_raw_id, _airbyte_extracted_at, _airbyte_meta, _airbyte_generation_id) FROM things',
      ),
    ).toEqual([{ a: null }, { a: '1' }])
    snapshot.db.close()
  })

  it('adds a column, and keeps one that is no longer declared', async () => {
    const snapshot = await openMemorySnapshot()
    await loadRecord(snapshot, stringSchema, recordJson(1, '"x"'))
    const stream = createStreamInfo(
      'things',
      { id: integerSchema, modifiedTime: instantSchema, extra: numberSchema },
      ['id'],
      'modifiedTime',
    )
    await writeMessages(
      snapshot,
      streamMessages(stream, `{"id":2,"modifiedTime":"${timeAtMinute(2)}","extra":1,"value":"y"}`),
    )
    expect(await snapshot.db.query('SELECT id, value, extra FROM things ORDER BY id')).toEqual([
      { id: 1, value: 'x', extra: null },
      { id: 2, value: 'y', extra: 1 },
    ])
    const results = await verifySnapshot(snapshot)
    expect(results.filter(({ ok }) => !ok)).toEqual([])
    expect(results.find(({ name }) => name === 'undeclared attributes')).toMatchObject({
      examples: ['things: value'],
    })
    snapshot.db.close()
  })
})

it.each<[string, object]>([
  ['a text', stringSchema],
  ['an integer', integerSchema],
  ['an object', { type: 'object' }],
])('a stream is refused where an attribute has another type than its column: %s', async (_, schema) => {
  const snapshot = await openMemorySnapshot()
  await loadRecord(snapshot, numberSchema, recordJson(1, '1.5'))
  await expect(loadRecord(snapshot, schema, recordJson(2, '"x"'))).rejects.toThrow(
    /^Stream things cannot be written: its attribute value is (VARCHAR|BIGINT|JSON) now, and DOUBLE in the file\. /,
  )
  expect(await snapshot.db.query('SELECT id, value FROM things')).toEqual([{ id: 1, value: 1.5 }])
  snapshot.db.close()
})

describe('attributes that are not declared', () => {
  it('are those of the records of each stream', async () => {
    await useTables([], async (db) => {
      const spools = ['{"id":1,"b":1}', '{"id":2,"a":1,"c":2}'].map((text) => {
        const spool = createSpool(':memory:')
        spool.add({ json: Buffer.from(text) }, 1)
        return spool
      })
      const batches = spools.map((spool, i) => ({ table: createTable(`things ${i}`, [column('id', 'BIGINT')]), spool }))
      expect(await findUndeclaredColumns(db, batches)).toEqual([
        [column('b', 'JSON')],
        [column('a', 'JSON'), column('c', 'JSON')],
      ])
      for (const spool of spools) spool.close()
    })
  })

  const load = async (snapshot: Snapshot, properties: object, ...texts: ReadonlyArray<string>) => {
    await writeMessages(
      snapshot,
      streamMessages(createStreamInfo('things', { id: integerSchema, ...properties }, ['id'], 'id'), ...texts),
    )
    return (
      await snapshot.db.query(
        "SELECT column_name AS name FROM duckdb_columns() WHERE table_name = 'things' ORDER BY column_index",
      )
    )
      .map(({ name }) => String(name))
      .filter((name) => !name.startsWith('_airbyte'))
  }

  it('have columns in the order of their names, but for those that a source collects', async () => {
    const snapshot = await openMemorySnapshot()
    expect(await load(snapshot, {}, '{"id":1,"b":1,"a":2}', '{"id":2,"C":1,"c":2}')).toEqual([
      ...['id', 'C', 'a', 'b', expect.stringMatching(/^c__[0-9a-f]{6}$/)],
    ])
    snapshot.db.close()
    const collected = await openMemorySnapshot()
    const unknown = { unknown_attributes: { type: 'object' } }
    expect(await load(collected, unknown, '{"id":1,"a":2}')).toEqual(['id', 'unknown_attributes'])
    expect(await load(collected, unknown, '{"id":2,"a":"_sdc_deleted_at"}')).toEqual(['id', 'unknown_attributes'])
    expect(await load(collected, unknown, '{"id":3,"a":2,"_sdc_deleted_at":"2026-01-01T00:00:00Z"}')).toEqual([
      ...['id', 'unknown_attributes', '_sdc_deleted_at'],
    ])
    expect(await load(collected, unknown, '{"id":4,"a":2,"_ab_cdc_deleted_at":"2026-01-01T00:00:00Z"}')).toEqual([
      ...['id', 'unknown_attributes', '_sdc_deleted_at', '_ab_cdc_deleted_at'],
    ])
    expect(
      await collected.db.query(
        `SELECT DISTINCT data_type AS type FROM duckdb_columns()
         WHERE column_name LIKE '%deleted_at' AND table_name = 'things'`,
      ),
    ).toEqual([{ type: 'TIMESTAMP WITH TIME ZONE' }])
    collected.db.close()
  })
})

it('a stream takes the place of a view of its name, in whatever case', async () => {
  const snapshot = await openMemorySnapshot()
  await snapshot.db.run('CREATE VIEW "THINGS" AS SELECT 1 AS one; CREATE VIEW other AS SELECT 1 AS one')
  await loadRecord(snapshot, stringSchema, recordJson(1, '"x"'))
  expect(await snapshot.db.scalar('SELECT value FROM things')).toBe('x')
  expect(await snapshot.db.scalar("SELECT count(*)::INTEGER FROM duckdb_views() WHERE view_name = 'other'")).toBe(1)
  snapshot.db.close()
})
