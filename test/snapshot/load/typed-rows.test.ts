import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createSpool, splitSpool } from '../../../connector/snapshot/load/spool'
import { typeColumnsSql, typeRows, typeValuesSql } from '../../../connector/snapshot/load/typed-rows'
import { quoteIdentifier } from '../../../connector/snapshot/store/database'
import { type Column, type ColumnType, fingerprintSql } from '../../../connector/snapshot/store/tables'
import { draws } from '../../support/draws'
import { openMemorySnapshot } from '../../support/snapshot-messages'
import { listOpenSpools } from '../../support/snapshot-tables'

const folder = mkdtempSync(join(tmpdir(), 'spool-'))
afterAll(() => rmSync(folder, { recursive: true }))

const row = (json: string | Buffer, changes?: ReadonlyArray<object>) => ({
  json: Buffer.from(json as string),
  ...(changes === undefined ? {} : { changes: changes as never }),
})

it('gives DuckDB each record with its place, its time and its changes, whatever its text holds', async () => {
  const { db } = await openMemorySnapshot()
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          value: fc.oneof(
            fc.jsonValue(),
            fc.tuple(fc.string({ unit: 'binary' }), fc.nat(3000)).map(([text, times]) => `é${text}`.repeat(times)),
          ),
          at: fc.nat(),
          field: fc.option(fc.string({ unit: 'binary' }), { nil: undefined }),
        }),
        { maxLength: 20 },
      ),
      async (records) => {
        const spool = createSpool(join(folder, 'db'))
        const texts = records.map(({ value }) => JSON.stringify({ value }))
        records.forEach(({ at, field }, i) => {
          spool.add(row(texts[i] ?? '', field === undefined ? undefined : [{ field }]), at)
        })
        const sql = `
          SELECT _seq AS seq, _at AS "at", _changes AS changes, _json AS json FROM ${spool.toSql()} ORDER BY _seq`
        expect(await db.query(sql)).toEqual(
          records.map(({ at, field }, seq) => ({
            seq,
            at,
            changes: field === undefined ? null : JSON.stringify({ field }),
            json: texts[seq],
          })),
        )
        expect([...spool.records()].map(({ json }) => json)).toEqual(texts)
        expect(spool.count()).toBe(records.length)
        spool.close()
      },
    ),
    draws(40),
  )
  db.close()
})

it('keeps no file with a name', () => {
  const spool = createSpool(join(folder, 'db'))
  for (let i = 0; i < 3; i += 1) spool.add(row(`{"text":"${'x'.repeat(100_000)}"}`), 1)
  spool.toSql()
  expect(readdirSync(folder)).toEqual([])
  spool.close()
})

it.each([
  ['a carriage return between tokens', '{"a":\r1}', '{"a": 1}'],
  ['half of a surrogate pair', '{"a":"\\ud800"}', '{"a":"\\ufffd"}'],
  ['half of one in capitals', '{"a":"\\uD800\\n"}', '{"a":"\\ufffd\\n"}'],
  ['a surrogate pair', '{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'],
  ['half of one before a whole one', '"\\ud83d\\ud83d\\ude00"', '"\\ufffd\\ud83d\\ude00"'],
  ['the second half of one behind another escape', '"\\u0089\\udc00"', '"\\u0089\\ufffd"'],
  ['the first half of one before another escape', '"\\udbff\\u00ff"', '"\\ufffd\\u00ff"'],
  ['half of one behind a backslash that looks like one', '"\\\\ud800\\ud800"', '"\\\\ud800\\ufffd"'],
  ['the second half of one behind a pair in capitals', '"\\uDBFF\\uDFFF\\uDFFF"', '"\\uDBFF\\uDFFF\\ufffd"'],
  ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), '"\ufffd"'],
  ['nothing at all', '', ' '],
])('%s', async (_, text, expected) => {
  const { db } = await openMemorySnapshot()
  const spool = createSpool(join(folder, 'db'))
  spool.add({ json: Buffer.from(text as string) }, 1)
  expect(await db.scalar(`SELECT _json FROM ${spool.toSql()}`)).toBe(expected)
  spool.close()
  db.close()
})

it('detects a record that may be a tombstone', () => {
  const spool = createSpool(join(folder, 'db'))
  spool.add(row('{"id":1}'), 1)
  expect(spool.mentionsTombstones()).toBe(false)
  spool.add(row('{"_sdc_deleted_at":1}'), 1)
  expect(spool.mentionsTombstones()).toBe(true)
  spool.close()
})

it.each([
  ['a file', join(folder, 'own.duckdb'), join(folder, 'own.duckdb.')],
  ['memory', ':memory:', join(tmpdir(), 'feedback.')],
  ['a lake', 'ducklake:own.ducklake', join(tmpdir(), 'feedback.')],
])('of %s is open until it is closed, and only once something is in it', (_, path, place) => {
  const before = listOpenSpools(place).length
  const spool = createSpool(path)
  spool.close()
  expect(listOpenSpools(place).length).toBe(before)
  spool.add(row('{}'), 1)
  spool.toSql()
  expect(listOpenSpools(place).length).toBe(before + 1)
  spool.close()
  spool.close()
  expect(listOpenSpools(place).length).toBe(before)
})

it.each([10_000, 100_000])('holds no more than a buffer in memory, of records of %i bytes', (length) => {
  const path = join(folder, `large-${length}.duckdb`)
  const spool = createSpool(path)
  try {
    for (let i = 0; i < 1_000_000 / length; i += 1) spool.add(row(`{"text":"${'x'.repeat(length)}"}`), 1)
    const [file] = listOpenSpools(path)
    expect(statSync(`/proc/self/fd/${file?.number}`).size).toBeGreaterThan(1_000_000 - 131_072)
  } finally {
    spool.close()
  }
})

it.each([[[300_000]], [[10, 300_000, 20]], [[1_000_000, 300_000]], [[20, 256_000, 256_001, 20]]])(
  'gives DuckDB records of %j bytes',
  async (lengths) => {
    const { db } = await openMemorySnapshot()
    const spool = createSpool(':memory:')
    for (const length of lengths) spool.add(row(JSON.stringify('x'.repeat(length - 2))), 1)
    const rows = await db.query(`SELECT strlen(_json)::INTEGER AS length FROM ${spool.toSql()} ORDER BY _seq`)
    expect(rows.map(({ length }) => length)).toEqual(lengths)
    spool.close()
    db.close()
  },
)

it('keeps each change of a record, also in parts', async () => {
  const { db } = await openMemorySnapshot()
  const changes = [{ field: 'é' }, { field: 'b,}' }, { field: 'c' }]
  const spool = createSpool(':memory:')
  spool.add(row('{"id":1}', changes), 5)
  spool.add(row('{"id":2}'), 6)
  spool.add(row('{"id":3}', changes.slice(1)), 7)
  const read = async (sql: string) =>
    (
      await db.query(
        `SELECT _at AS "at", '[' || coalesce(_changes, '') || ']' AS changes, _json AS json FROM ${sql} ORDER BY _seq`,
      )
    ).map(({ at, changes: text, json }) => [at, JSON.parse(String(text)), json])
  const all = [
    [5, changes, '{"id":1}'],
    [6, [], '{"id":2}'],
    [7, changes.slice(1), '{"id":3}'],
  ]
  expect(await read(spool.toSql())).toEqual(all)
  const parts = splitSpool(spool, ':memory:', Uint8Array.from([1, 0, 1]), 2)
  expect(await read(parts[0]?.toSql() ?? '')).toEqual([all[1]])
  expect(await read(parts[1]?.toSql() ?? '')).toEqual([all[0], all[2]])
  for (const one of [spool, ...parts]) one.close()
  db.close()
})

it('gives apart the records of someone forgotten, its parts too', async () => {
  const { db } = await openMemorySnapshot()
  const spool = createSpool(':memory:', "_json LIKE '%gone%'")
  for (const text of ['{"a":"here"}', '{"a":"gone"}']) spool.add(row(text), 1)
  const read = async (sql: string) => (await db.query(`SELECT _json AS json FROM ${sql}`)).map(({ json }) => json)
  const [part] = splitSpool(spool, ':memory:', Uint8Array.from([0, 0]), 1)
  for (const one of [spool, part]) {
    expect(await read(one?.toSql() ?? '')).toEqual(['{"a":"here"}'])
    expect(await read(one?.toSql('kept') ?? '')).toEqual(['{"a":"here"}'])
    expect(await read(one?.toSql('forgotten') ?? '')).toEqual(['{"a":"gone"}'])
    one?.close()
  }
  db.close()
})

it('takes an attribute by whatever name', async () => {
  const { db } = await openMemorySnapshot()
  const spool = createSpool(':memory:')
  spool.add(row('{"a/b~c":"x","~1":"y"}'), 1)
  const columns: ReadonlyArray<Column> = [
    { name: 'one', type: 'VARCHAR', attribute: 'a/b~c' },
    { name: 'two', type: 'VARCHAR', attribute: '~1' },
  ]
  expect(await db.query(typeColumnsSql(columns, spool.toSql()))).toEqual([{ one: 'x', two: 'y' }])
  spool.close()
  db.close()
})

describe('a value', () => {
  const nulled = { field: 'value', change: 'NULLED', reason: 'DESTINATION_TYPECAST_ERROR' }

  it.each<[ColumnType, Readonly<Record<string, unknown>>, ReadonlyArray<string>]>([
    [
      'BIGINT',
      { '5': 5, '"7"': 7, '5.0': 5, '1e3': 1000, '1E3': 1000 },
      ['1.5', '1e-7', '1E-7', '9223372036854775808', '"x"', '[1]'],
    ],
    ['DOUBLE', { '1.5': 1.5, '"7"': 7 }, ['1e400', '-1e400', '"Infinity"', '"NaN"', '"x"']],
    ['BOOLEAN', { true: true, '"false"': false }, ['"x"', '[]']],
    ['DATE', { '"2026-01-01"': new Date('2026-01-01') }, ['"x"', '{}']],
    ['VARCHAR', { '"x"': 'x', '1.5': '1.5', '[1e400]': '[1e400]' }, []],
    ['JSON', { '"x"': '"x"', '1e400': '1e400', '{"a":[1.5]}': '{"a":[1.5]}' }, []],
  ])('that a column of %s does not hold is null, and the record says so', async (type, held, others) => {
    const { db } = await openMemorySnapshot()
    const spool = createSpool(':memory:')
    const texts = [...Object.keys(held), ...others]
    for (const text of ['null', ...texts]) spool.add(row(`{"value":${text}}`), 1)
    const typed = typeRows({ name: 'any', columns: [{ name: 'value', type }], history: false }, 3, spool.toSql())
    const found = await db.query(`SELECT value, _airbyte_meta AS meta FROM (${typed.sql}) ORDER BY ${typed.seq}`)
    expect(found.map(({ value }) => value)).toEqual([null, ...Object.values(held), ...others.map(() => null)])
    expect(found.map(({ meta }) => JSON.parse(String(meta)).changes)).toEqual([
      ...[null, ...Object.keys(held)].map(() => []),
      ...others.map(() => [nulled]),
    ])
    spool.close()
    db.close()
  })

  it('goes into the column of its attribute, and a record of none is a row too', async () => {
    const { db } = await openMemorySnapshot()
    const spool = createSpool(':memory:')
    spool.add(row('{"a":1,"a__varchar":"x"}'), 1)
    for (const [columns, found] of [
      [[{ name: 'a', type: 'BIGINT' } as const], [{ a: 1 }]],
      [[], [{}]],
    ] as const) {
      const { sql, seq } = typeRows({ name: 'any', columns, history: false }, 3, spool.toSql())
      expect(await db.query(`SELECT * EXCLUDE (${seq}) FROM (${sql})`)).toEqual(
        found.map((values) => ({
          ...values,
          _airbyte_raw_id: expect.anything(),
          _airbyte_extracted_at: new Date(1),
          _airbyte_meta: '{"changes":[]}',
          _airbyte_generation_id: 3,
        })),
      )
    }
    spool.close()
    db.close()
  })

  it('can be taken alone, with its place or of typed rows', async () => {
    const { db } = await openMemorySnapshot()
    const spool = createSpool(':memory:')
    for (const text of ['{"a":1,"b":"x"}', '{"a":"none"}']) spool.add(row(text), 1)
    const columns: ReadonlyArray<Column> = [
      { name: 'a', type: 'BIGINT' },
      { name: 'b c', type: 'VARCHAR', attribute: 'b' },
    ]
    const [a, b] = columns
    if (a === undefined || b === undefined) throw new Error('no columns')
    const read = (sql: string) => db.query(`FROM (${sql}) ORDER BY ALL`)
    expect(await read(typeValuesSql(a, spool.toSql()))).toEqual([
      { seq: 0, value: 1 },
      { seq: 1, value: null },
    ])
    expect(await read(typeValuesSql(b, spool.toSql()))).toEqual([
      { seq: 0, value: 'x' },
      { seq: 1, value: null },
    ])
    for (const [some, rows] of [
      [
        columns,
        [
          { a: 1, 'b c': 'x' },
          { a: null, 'b c': null },
        ],
      ],
      [[b], [{ 'b c': 'x' }, { 'b c': null }]],
      // The rows are counted, also where none of their values is wanted.
      [[], [{ _row: 1 }, { _row: 1 }]],
    ] as const) {
      expect(await read(typeColumnsSql(some, spool.toSql()))).toEqual(rows)
    }
    spool.close()
    db.close()
  })
})

const goodValues: Readonly<Record<ColumnType, (i: number) => unknown>> = {
  BIGINT: (i) => i,
  DOUBLE: (i) => i + 0.5,
  BOOLEAN: (i) => i % 2 === 0,
  VARCHAR: (i) => `v${i}`,
  DATE: () => '2026-01-01',
  TIMESTAMPTZ: () => '2026-01-01T00:00:00Z',
  JSON: (i) => ({ i, list: [1.5, null] }),
}
const columnTypes = Object.keys(goodValues) as ReadonlyArray<ColumnType>

it('types the records of a wide table as those of narrow ones', async () => {
  const { db } = await openMemorySnapshot()
  const columns = Array.from({ length: 270 }, (_, i): Column => {
    const type = columnTypes[i % columnTypes.length] ?? 'JSON'
    return i % 9 === 8 ? { name: `other ${i}`, type, attribute: `c/${i}~` } : { name: `c${i}`, type }
  })
  const attributes = columns.map(({ name, attribute }) => attribute ?? name)
  const toJson = (value: (type: ColumnType, i: number) => unknown) =>
    JSON.stringify(Object.fromEntries(columns.map(({ type }, i) => [attributes[i], value(type, i)])))
  const spool = createSpool(':memory:')
  const sourceChanges = [{ field: 'c1', change: 'TRUNCATED', reason: 'SOURCE_RECORD_SIZE_LIMITATION' }]
  spool.add(
    row(
      toJson((type, i) => goodValues[type](i)),
      sourceChanges,
    ),
    1000,
  )
  spool.add(row('{}'), 2000)
  spool.add(row(toJson((type, i) => (i % 5 === 0 ? 'neither' : i % 3 === 0 ? goodValues[type](i) : undefined))), 3000)
  spool.add(row(toJson(() => 1.5)), 4000)
  spool.add(row(toJson((type, i) => (i >= 250 ? goodValues[type](i) : null))), 5000)

  await db.run("SET memory_limit = '1GB'")
  const read = async (some: ReadonlyArray<Column>) => {
    const typed = typeRows({ name: 'any', columns: some, history: false }, 3, spool.toSql())
    return db.query(`SELECT ${typed.names}, ${typed.seq} AS seq FROM (${typed.sql}) ORDER BY seq`)
  }
  const wide = await read(columns)

  const [whole] = wide
  columns.forEach(({ name, type }, i) => {
    if (type === 'BIGINT' || type === 'VARCHAR' || type === 'DOUBLE') expect(whole?.[name]).toBe(goodValues[type](i))
  })
  const metaOf = (one: Record<string, unknown> | undefined): ReadonlyArray<unknown> =>
    JSON.parse(String(one?._airbyte_meta)).changes
  const narrow: Array<Awaited<ReturnType<typeof read>>> = []
  for (let from = 0; from < columns.length; from += 90) narrow.push(await read(columns.slice(from, from + 90)))
  wide.forEach((one, n) => {
    const { _airbyte_raw_id: _, _airbyte_meta: __, ...values } = one
    for (const some of narrow) {
      const { _airbyte_raw_id: ___, _airbyte_meta: ____, ...expected } = some[n] ?? {}
      expect(values).toMatchObject(expected)
    }
    expect(metaOf(one)).toEqual([
      ...(n === 0 ? sourceChanges : []),
      ...narrow.flatMap((some) => metaOf(some[n]).slice(n === 0 ? 1 : 0)),
    ])
  })
  expect(metaOf(wide[3]).length).toBeGreaterThan(100)
  expect(wide.map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4])
  const typed = typeRows({ name: 'any', columns, history: false }, 3, spool.toSql())
  expect(
    await db.scalar(
      `SELECT count(*)::INTEGER FROM (${typed.sql})
       WHERE ${quoteIdentifier('_airbyte_raw_id')} = ${fingerprintSql(columns)}`,
    ),
  ).toBe(5)
  spool.close()
  db.close()
})
