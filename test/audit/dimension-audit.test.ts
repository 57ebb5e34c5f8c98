import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { toAuditedTable } from '../../connector/audit/audited-table'
import {
  deleteDimensionStatement,
  dimensionStatement,
  isDimensionKey,
  readDimensions,
} from '../../connector/audit/dimension-audit'
import { type Failure, feedOf, type Row } from '../../connector/cdk'
import { type Database, openDatabase } from '../../connector/snapshot/store'
import { draws } from '../support/draws'

const from = Date.UTC(2026, 0, 1)

const names = ['Oak Hill', "O'Hara \\ Söhne", '', null] as const

type Mention = { readonly id: number; readonly time: number; readonly name: string | null }
type Damage = 'none' | 'drop' | 'double' | 'rename' | 'rename newer'

let db: Database
beforeAll(async () => {
  const opened = await openDatabase(':memory:')()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  db = opened.right
  await db.run(`SET TimeZone = 'UTC'`)
})
afterAll(() => db.close())

const literal = (text: string | null): string => (text === null ? 'NULL' : `'${text.replaceAll("'", "''")}'`)

const fillTable = async (rows: ReadonlyArray<Mention>): Promise<void> => {
  await db.run('CREATE OR REPLACE TABLE places_table (id BIGINT, name VARCHAR, "reviewModifiedTime" TIMESTAMPTZ)')
  const values = rows.map(({ id, name, time }) => `(${id}, ${literal(name)}, make_timestamptz(${time * 1000}))`)
  if (values.length > 0) await db.run(`INSERT INTO places_table VALUES ${values.join(', ')}`)
}

const toRow = ({ id, name, time }: Mention): Row => ({
  json: Buffer.from(JSON.stringify({ id, name, reviewModifiedTime: new Date(time).toISOString() })),
})

const table = toAuditedTable('locations', 'airbyte', {
  dialect: 'duckdb',
  name: 'places_table',
  hasTombstones: true,
  keepsVersions: false,
})

it('names exactly what the newest reviews name and the table lacks, has twice, or has with another name', async () => {
  let found = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          id: fc.integer({ min: 1, max: 12 }),
          time: fc.integer({ min: 0, max: 30 }).map((minutes) => from + minutes * 60_000),
          name: fc.constantFrom(...names),
        }),
        { minLength: 5, maxLength: 60 },
      ),
      // What the reviews of a load said that have changed since: newer or older than what is known today.
      fc.array(
        fc.record({
          id: fc.integer({ min: 8, max: 16 }),
          time: fc.integer({ min: 31, max: 40 }).map((minutes) => from + minutes * 60_000),
          name: fc.constantFrom(...names),
        }),
        { maxLength: 8 },
      ),
      fc.array(fc.constantFrom<Damage>('none', 'none', 'none', 'drop', 'double', 'rename', 'rename newer'), {
        minLength: 12,
        maxLength: 12,
      }),
      async (mentions, gone, damages) => {
        // A load keeps of each place what the newest review says; of two at one time, either.
        const newest = new Map<number, Mention>()
        for (const mention of [...mentions, ...gone])
          if ((newest.get(mention.id)?.time ?? 0) < mention.time) newest.set(mention.id, mention)
        const wanted = new Map<string, string>()
        const rows = [...newest.values()].flatMap((row): ReadonlyArray<Mention> => {
          const known = mentions.filter(({ id }) => id === row.id)
          const last = Math.max(...known.map(({ time }) => time))
          const damage = damages[row.id - 1] ?? 'none'
          const told = new Set(known.filter(({ time }) => time === last).map(({ name }) => name ?? ''))
          if (known.length === 0) return [row]
          if (damage === 'drop' || damage === 'double')
            wanted.set(String(row.id), damage === 'drop' ? 'missing' : 'doubled')
          if (damage === 'rename' && row.time <= last && told.size === 1) wanted.set(String(row.id), 'changed')
          const renamed = { ...row, name: 'Another' }
          return damage === 'drop'
            ? []
            : damage === 'double'
              ? [row, row]
              : damage === 'rename'
                ? [renamed]
                : damage === 'rename newer'
                  ? [{ ...renamed, time: from + 50 * 60_000 }]
                  : [row]
        })
        await fillTable(rows)
        const pages = [mentions.slice(0, 7), mentions.slice(7)].map((page) => ({ rows: page.map(toRow) }))
        const expected = await readDimensions(
          {
            stream: 'locations',
            rows: feedOf<Failure, (typeof pages)[number] & { readonly cutoff?: number }>(
              ...pages.map((page) => E.right(page)),
              E.right({ rows: [], cutoff: from + 60 * 60_000 }),
            ),
          },
          ['name'],
        )
        const statement = dimensionStatement(table, expected)
        const named = await db.query(statement)
        expect(new Map(named.map(({ id, difference }) => [String(id), difference]))).toEqual(wanted)
        const differences = named.map((row) => ({
          dimension: String(row.dimension),
          difference: String(row.difference),
        }))
        expect(differences.every(({ dimension }) => isDimensionKey(dimension))).toBe(true)
        await db.run(deleteDimensionStatement(table, differences))
        // What was damaged comes again as the newest review of today says it.
        const again = differences.flatMap(({ dimension }) => {
          const { id, version } = expected.dimensions.get(dimension) ?? { id: '', version: 0 }
          return mentions.filter((mention) => String(mention.id) === id && mention.time === version).slice(0, 1)
        })
        expect(again).toHaveLength(wanted.size)
        for (const { id, name, time } of again)
          await db.run(`INSERT INTO places_table VALUES (${id}, ${literal(name)}, make_timestamptz(${time * 1000}))`)
        expect(await db.query(statement)).toEqual([])
        found += wanted.size
      },
    ),
    draws(40),
  )
  expect(found).toBeGreaterThan(30)
})

it.each([
  // Clocks in Berlin show 2:30 at 0:30 and at 1:30 UTC: which of the two a row is of, the table does not say.
  ['Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-25T01:10:00Z', []],
  ['Europe/Berlin', '2026-10-25T01:30:00Z', '2026-10-25T01:40:00Z', []],
  ['Europe/Berlin', '2026-10-24T23:59:00Z', '2026-10-25T01:10:00Z', []],
  ['Europe/Berlin', '2026-10-25T02:00:00Z', '2026-10-25T01:10:00Z', ['7 changed']],
  ['Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-24T12:00:00Z', ['7 changed']],
  ['UTC', '2026-10-25T00:30:00Z', '2026-10-25T01:10:00Z', []],
  ['UTC', '2026-10-25T00:30:00Z', '2026-10-25T00:30:00Z', ['7 changed']],
])(
  'in %s, with a newest review of %s and a row with another name of %s, answers %j',
  async (zone, told, held, wanted) => {
    const naive = toAuditedTable('locations', 'meltano', {
      dialect: 'duckdb',
      name: 'places_table',
      hasTombstones: false,
      keepsVersions: false,
      timeZone: zone,
    })
    await fillTable([{ id: 7, name: 'Elm Court', time: Date.parse(held) }])
    await db.run(
      'ALTER TABLE places_table ALTER "reviewModifiedTime" TYPE ' +
        `TIMESTAMP USING "reviewModifiedTime" AT TIME ZONE '${zone}'`,
    )
    const mention = toRow({ id: 7, name: 'Oak Hill', time: Date.parse(told) })
    const rows = feedOf<Failure, { readonly rows: ReadonlyArray<Row>; readonly cutoff?: number }>(
      E.right({ rows: [mention], cutoff: Date.UTC(2026, 10, 1) }),
    )
    const expected = await readDimensions({ stream: 'locations', rows }, ['name'])
    const named = await db.query(dimensionStatement(naive, expected))
    expect(named.map(({ id, difference }) => `${id} ${difference}`)).toEqual(wanted)
  },
)
