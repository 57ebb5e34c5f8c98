import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { lakeMetadata } from '../../../connector/lake/metadata'
import { evolveTable, findUndeclaredColumns } from '../../../connector/snapshot/load/evolve'
import { createSpool } from '../../../connector/snapshot/load/insert'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import type { ColumnType } from '../../../connector/snapshot/store/tables'
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
import { column, createTable, listRows, row, useTables } from '../../support/snapshot-tables'

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

/** Two values of each type, as JSON, and as the text that its source would send in place of them. */
const schemaOf: Readonly<Record<ColumnType, object>> = {
  BIGINT: integerSchema,
  DOUBLE: { type: 'number' },
  BOOLEAN: { type: 'boolean' },
  VARCHAR: { type: 'string' },
  DATE: { type: 'string', format: 'date' },
  TIMESTAMPTZ: instantSchema,
  JSON: { type: 'object' },
}
const valuesOf: Readonly<Record<ColumnType, readonly [unknown, unknown]>> = {
  BIGINT: [7, -9007199254740992],
  DOUBLE: [2, 1.5],
  BOOLEAN: [true, false],
  VARCHAR: ['x', '"1"'],
  DATE: ['2026-01-01', '1999-12-31'],
  TIMESTAMPTZ: ['2026-01-01T00:00:00.5Z', '1999-12-31T23:59:59.999999Z'],
  JSON: [{ a: 1 }, 'text'],
}
/** What becomes of the two values in a wider type, as text. A type that is not here stands beside the old one. */
const widened: Partial<Record<`${ColumnType} ${ColumnType}`, readonly [string, string]>> = {
  'BIGINT DOUBLE': ['7.0', '-9007199254740992.0'],
  'BIGINT VARCHAR': ['7', '-9007199254740992'],
  'BIGINT JSON': ['7', '-9007199254740992'],
  'DOUBLE VARCHAR': ['2', '1.5'],
  'DOUBLE JSON': ['2.0', '1.5'],
  'BOOLEAN VARCHAR': ['true', 'false'],
  'BOOLEAN JSON': ['true', 'false'],
  'DATE TIMESTAMPTZ': ['2026-01-01 00:00:00+00', '1999-12-31 00:00:00+00'],
  'DATE VARCHAR': ['2026-01-01', '1999-12-31'],
  'TIMESTAMPTZ VARCHAR': ['2026-01-01T00:00:00.500000Z', '1999-12-31T23:59:59.999999Z'],
  'VARCHAR JSON': ['"x"', '"\\"1\\""'],
  'JSON VARCHAR': ['{"a":1}', 'text'],
}
const allTypes = Object.keys(schemaOf) as ReadonlyArray<ColumnType>
const pairs = allTypes.flatMap((from) => allTypes.map((to) => [from, to] as const))

describe('a type in place of another', () => {
  it.each([false, true])('holds each value, or stands beside it, also in versions: %s', async (history) => {
    const snapshot = await openMemorySnapshot()
    await snapshot.db.run("SET TimeZone = 'UTC'")
    const load = async (which: 0 | 1, texts: ReadonlyArray<object>) => {
      const properties = Object.fromEntries(pairs.map((pair) => [`${pair[0]} ${pair[1]}`, schemaOf[pair[which]]]))
      const info = createStreamInfo('things', { id: integerSchema, at: instantSchema, ...properties }, ['id'], 'at')
      await writeMessages(
        snapshot,
        streamMessages(info, ...texts.map((text, i) => JSON.stringify({ id: i, at: timeAtMinute(which), ...text }))),
        { history },
      )
    }
    const old = [0, 1].map((n) => Object.fromEntries(pairs.map(([from, to]) => [`${from} ${to}`, valuesOf[from][n]])))
    await load(0, [...old, {}])
    await load(1, [])
    const readTable = async (table: string) =>
      new Map(
        (
          await snapshot.db.query(
            `SELECT column_name AS name, data_type AS type FROM duckdb_columns() WHERE table_name = '${table}'`,
          )
        ).map(({ name, type }) => [name, type === 'TIMESTAMP WITH TIME ZONE' ? 'TIMESTAMPTZ' : type]),
      )
    const tables = history ? ['things', '_history_things'] : ['things']
    for (const table of tables) {
      const types = await readTable(table)
      for (const [from, to] of pairs) {
        const name = `${from} ${to}` as const
        const isBeside = from !== to && widened[name] === undefined
        expect(types.get(name), name).toBe(to)
        expect(types.get(`${name}__${from.toLowerCase()}`), name).toBe(isBeside ? from : undefined)
      }
    }
    const rows = await snapshot.db.query(`SELECT _airbyte_raw_id FROM things ORDER BY id`)
    expect(rows.length).toBe(3)
    for (const [from, to] of pairs) {
      const name = `${from} ${to}` as const
      const texts = await snapshot.db.query(`SELECT "${name}"::VARCHAR AS text FROM things ORDER BY id`)
      if (from !== to)
        expect(
          texts.map(({ text }) => text),
          name,
        ).toEqual([...(widened[name] ?? [null, null]), null])
    }
    const before = rows.map((row) => row._airbyte_raw_id)
    await load(1, [{}])
    expect((await verifySnapshot(snapshot)).filter(({ outcome }) => outcome === 'failed')).toEqual([])
    expect(new Set(before).size).toBe(3)
    snapshot.db.close()
  })

  it.each([
    ['9007199254740992', 'DOUBLE'],
    ['-9007199254740992', 'DOUBLE'],
    ['-9007199254740993', 'BIGINT'],
  ])('holds %s or keeps it as an integer, though only a version has it', async (integer, type) => {
    const snapshot = await openMemorySnapshot()
    const load = (value: unknown, record: string) =>
      writeMessages(
        snapshot,
        streamMessages(
          createStreamInfo('things', { id: integerSchema, modifiedTime: instantSchema, value }, ['id'], 'modifiedTime'),
          record,
        ),
        { history: true },
      )
    await load(integerSchema, recordJson(1, integer))
    await load(integerSchema, recordJson(1, '1').replace(timeAtMinute(1), timeAtMinute(2)))
    await load(numberSchema, recordJson(2, '7.5'))
    const { types } = await readRows(snapshot)
    expect(types).toEqual(type === 'DOUBLE' ? { value: 'DOUBLE' } : { value__bigint: 'BIGINT', value: 'DOUBLE' })
    snapshot.db.close()
  })

  it.each<[ColumnType, ReadonlyArray<unknown>, ColumnType, ReadonlyArray<unknown>]>([
    ['VARCHAR', ['7', '+8', '9.00', '1.5', 'x', ' 3'], 'BIGINT', [7, 8, 9, null, null, null]],
    ['DOUBLE', [7, 1e16, 1.5], 'BIGINT', [7, null, null]],
    ['VARCHAR', ['2026-01-01', 'x'], 'DATE', ['2026-01-01', null]],
    ['TIMESTAMPTZ', ['2026-01-01T00:00:00Z'], 'JSON', ['"2026-01-01T00:00:00.000000Z"']],
    ['DATE', ['2026-01-01'], 'JSON', ['"2026-01-01"']],
  ])('takes over the values of a cursor: from %s %j to %s', async (from, values, to, expected) => {
    const snapshot = await openMemorySnapshot()
    await snapshot.db.run("SET TimeZone = 'UTC'")
    const texts = values.map((id, n) => JSON.stringify({ n, id }))
    const info = createStreamInfo('things', { n: integerSchema, id: schemaOf[from] }, ['n'], 'n')
    await writeMessages(snapshot, streamMessages(info, ...texts))
    await writeMessages(
      snapshot,
      streamMessages(createStreamInfo('things', { n: integerSchema, id: schemaOf[to] }, ['n'], 'id')),
    )
    expect((await snapshot.db.query('SELECT id::VARCHAR AS id FROM things ORDER BY n')).map(({ id }) => id)).toEqual(
      expected.map((value) => (value === null ? null : String(value))),
    )
    snapshot.db.close()
  })
})

describe('a column whose type changes', () => {
  const table = (type: ColumnType) => createTable('things', [column('id', 'BIGINT'), column('value', type)])

  it('never takes the name of another one', async () => {
    await useTables([[table('VARCHAR'), [row(1, "'x'")]]], async (db) => {
      let current = table('VARCHAR')
      for (const [type, value] of [
        ['BIGINT', '5'],
        ['DATE', "'2026-01-01'"],
        ['BIGINT', '6'],
        ['DATE', 'NULL'],
      ] as const) {
        current = await evolveTable(db, current, [
          column('id', 'BIGINT'),
          column('value__date_', 'BOOLEAN'),
          column('value', type),
        ])
        await db.run(`UPDATE things SET value = ${value}`)
      }
      const names = ['value__varchar', 'value__bigint', 'value__date', 'value__bigint_', 'value__date_', 'value']
      expect(await listRows(db, 'things', ...names.map((name) => `${name}::VARCHAR`))).toEqual([
        'x 5 2026-01-01 6 null null',
      ])
      expect(current.columns.map(({ name }) => name).toSorted()).toEqual(['id', ...names].toSorted())
    })
  })

  it.each(['VARCHAR', 'JSON'] as const)('holds integers that no double holds, as %s', async (type) => {
    await useTables([[table('BIGINT'), [row(1, '9007199254740993')]]], async (db) => {
      expect(await evolveTable(db, table('BIGINT'), table(type).columns)).toEqual(table(type))
      expect(await listRows(db, 'things', 'value')).toEqual(['9007199254740993'])
    })
  })

  it('of a lake is another column, with the values of the one before', async () => {
    await useTables([[table('BIGINT'), [row(1, 7), row(2, 'NULL')]]], async (db) => {
      await evolveTable(
        { ...db, lake: { ...lakeMetadata(db, '/data'), freeze: async () => undefined } },
        table('BIGINT'),
        table('DOUBLE').columns,
      )
      const names = await listRows(
        db,
        "duckdb_columns() WHERE table_name = 'things'",
        'column_index',
        'column_name',
        'data_type',
      )
      expect(names.filter((name) => !name.includes('_airbyte'))).toEqual(['1 id BIGINT', '6 value DOUBLE'])
      expect(await listRows(db, 'things', 'id', 'value / 2')).toEqual(['1 3.5', '2 null'])
    })
  })
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
        "SELECT DISTINCT data_type AS type FROM duckdb_columns() WHERE column_name LIKE '%deleted_at' AND table_name = 'things'",
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
