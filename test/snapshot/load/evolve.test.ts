import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
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

/** The types of the columns whose name begins with `value`, and their values by id. */
const readRows = async ({ db }: Snapshot) => {
  const columns = await db.query(
    `SELECT column_name AS name, data_type AS type FROM duckdb_columns() WHERE table_name = 'things' AND column_name LIKE 'value%' ORDER BY column_index`,
  )
  const names = columns.map(({ name }) => `"${name}"`).join(', ')
  return {
    types: Object.fromEntries(columns.map(({ name, type }) => [name, type])),
    values: (await db.query(`SELECT ${names} FROM things ORDER BY id`)).map((row) => Object.values(row)),
  }
}

describe('a schema that changes', () => {
  const cases: ReadonlyArray<readonly [string, unknown, string, unknown, string, object, ReadonlyArray<unknown>]> = [
    ['widens an integer to a number', integerSchema, '7', numberSchema, '7.5', { value: 'DOUBLE' }, [[7], [7.5]]],
    [
      'keeps integers that no double holds beside the numbers',
      integerSchema,
      '9007199254740993',
      numberSchema,
      '7.5',
      { value__bigint: 'BIGINT', value: 'DOUBLE' },
      [
        [9007199254740993n, null],
        [null, 7.5],
      ],
    ],
    ['widens a number to a text', numberSchema, '1.5', stringSchema, '"x"', { value: 'VARCHAR' }, [['1.5'], ['x']]],
    [
      'widens a time to a text in ISO 8601',
      instantSchema,
      '"2026-01-01T00:00:00.5Z"',
      stringSchema,
      '"x"',
      { value: 'VARCHAR' },
      [['2026-01-01T00:00:00.500000Z'], ['x']],
    ],
    [
      'widens a text to an object',
      stringSchema,
      '"x"',
      { type: 'object' },
      '{"a":1}',
      { value: 'JSON' },
      [['"x"'], ['{"a":1}']],
    ],
    [
      'keeps old texts beside new integers',
      stringSchema,
      '"x"',
      integerSchema,
      '5',
      { value__varchar: 'VARCHAR', value: 'BIGINT' },
      [
        ['x', null],
        [null, 5],
      ],
    ],
  ]
  it.each(cases)('%s', async (_name, before, first, after, second, types, values) => {
    const snapshot = await openMemorySnapshot()
    await loadRecord(snapshot, before, recordJson(1, first))
    await loadRecord(snapshot, after, recordJson(2, second))
    expect(await readRows(snapshot)).toEqual({ types, values })
    expect((await verifySnapshot(snapshot)).filter(({ ok, name }) => !ok && name !== 'states exist')).toEqual([])
    snapshot.db.close()
  })

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
