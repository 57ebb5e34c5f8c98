import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { type AuditedTable, type IdType, type TimeType, timeTypes } from '../../connector/audit/audited-table'
import { type ServiceVersion, type ServiceVersions, useExpected } from '../../connector/audit/comparison'
import { bucketStatement, reviewStatement } from '../../connector/audit/statement'
import { type Failure, type Feed, feedOf } from '../../connector/cdk'
import { type Database, openDatabase } from '../../connector/snapshot/store'
import { draws } from '../support/draws'

const startDate = Date.UTC(2026, 0, 1)
const bucketCount = 64

/** Columns of each type, as a row of the table is written with them. */
const idSql: Readonly<Record<IdType, (id: string) => string>> = {
  number: (id) => `${id}::DECIMAL(38, 0)`,
  text: (id) => `'${id}'`,
}
const timeSql: Readonly<Record<TimeType, (millis: number) => string>> = {
  timestamptz: (millis) => `make_timestamptz(${millis * 1000})`,
  timestamp: (millis) => `make_timestamp(${millis * 1000})`,
  text: (millis) => `'${new Date(millis).toISOString()}'`,
  millis: (millis) => `${millis}::BIGINT`,
}

type TableRow = { readonly id: string; readonly version: number; readonly isMarked?: boolean }

/** How one review of the table differs from the service. */
type Damage = 'none' | 'drop' | 'double' | 'stale' | 'newer' | 'future' | 'marked' | 'lost row' | 'older row'

const damageArbitrary = fc.constantFrom<Damage>(
  ...Array.from({ length: 8 }, () => 'none' as const),
  ...(['drop', 'double', 'stale', 'newer', 'future', 'marked', 'lost row', 'older row'] as const),
)

/** What the audit must say of a review with this damage. */
const expectedDifference = (damage: Damage, rows: number, shape: AuditedTable['rows']): string | undefined => {
  switch (damage) {
    case 'drop':
    case 'marked':
      return 'missing'
    case 'stale':
    case 'newer':
      return 'stale'
    case 'future':
      return 'newer'
    case 'double':
      return shape === 'newest' ? undefined : 'doubled'
    case 'lost row':
      return rows === 1 ? 'missing' : 'rows missing'
    case 'older row':
      return shape === 'one' ? 'doubled' : undefined
    default:
      return undefined
  }
}

const damagedRows = ({ id, modifiedTime: version, rows }: ServiceVersion, damage: Damage): ReadonlyArray<TableRow> => {
  const kept = Array.from({ length: rows }, () => ({ id, version }))
  switch (damage) {
    case 'drop':
      return []
    case 'double':
      return [...kept, { id, version }]
    case 'stale':
      return kept.map((row) => ({ ...row, version: version - 1 }))
    case 'newer':
      return kept.map((row) => ({ ...row, version: version + 1 }))
    case 'future':
      return kept.map((row) => ({ ...row, version: version + 400 * 86_400_000 }))
    case 'marked':
      return kept.map((row) => ({ ...row, isMarked: true }))
    case 'lost row':
      return kept.slice(1)
    case 'older row':
      return [...kept, { id, version: version - 86_400_000 }]
    default:
      return kept
  }
}

const reviewArbitrary = fc.record({
  id: fc.bigInt({ min: 1n, max: 9_223_372_036_854_775_807n }).map(String),
  age: fc.oneof(
    // Around the hour that clocks in Berlin show twice.
    fc.integer({ min: 67 * 3_600_000, max: 75 * 3_600_000 }),
    fc.integer({ min: 900_000, max: 7_200_000 }),
    fc.integer({ min: 2 * 86_400_000, max: 200 * 86_400_000 }),
    fc.integer({ min: 2, max: 500_000 }),
  ),
  rows: fc.integer({ min: 1, max: 3 }),
  damage: damageArbitrary,
  /** changed: after the cutoff. deleted: the service had it once. */
  fate: fc.constantFrom(
    'there',
    'there',
    'there',
    'changed',
    'late',
    'deleted since',
    'deleted late',
    'deleted before',
  ),
})

const caseArbitrary = fc.record({
  reviews: fc.uniqueArray(reviewArbitrary, { selector: ({ id }) => id, maxLength: 120 }),
  ghosts: fc.array(fc.bigInt({ min: 1n, max: 999n }).map(String), { maxLength: 3 }),
  shape: fc.constantFrom<AuditedTable['rows']>('one', 'newest', 'parts'),
  idType: fc.constantFrom<IdType>('number', 'text'),
  versionType: fc.constantFrom(...timeTypes),
  timeZone: fc.constantFrom('UTC', 'Europe/Berlin'),
  cutoff: fc.constantFrom(Date.UTC(2026, 9, 28), Date.UTC(2026, 9, 25, 1, 15)),
})

const feed = <A>(...items: ReadonlyArray<A>): Feed<Failure, A> =>
  feedOf<Failure, A>(...items.map((item) => E.right(item)))

/** A time of 2026 as clocks of the zone show it, in milliseconds. */
const shownIn = (zone: string, time: number): number => {
  const isSummer = time >= Date.UTC(2026, 2, 29, 1) && time < Date.UTC(2026, 9, 25, 1)
  return zone === 'UTC' ? time : time + (isSummer ? 7_200_000 : 3_600_000)
}

const fillTable = async (
  db: Database,
  rows: ReadonlyArray<TableRow>,
  idType: IdType,
  versionType: TimeType,
  zone: string,
): Promise<void> => {
  await db.run(`SET TimeZone = 'UTC'`)
  const values = rows
    .map(
      ({ id, version, isMarked }) =>
        `(${idSql[idType](id)}, ${timeSql[versionType](shownIn(zone, version))}, ` +
        `${isMarked === true ? 'now()' : 'NULL'})`,
    )
    .join(', ')
  await db.run(`
    CREATE OR REPLACE TABLE reviews AS
    SELECT ${idSql[idType]('1')} AS id, ${timeSql[versionType](startDate)} AS "modifiedTime", now() AS marked
    WHERE false`)
  if (values !== '') await db.run(`INSERT INTO reviews VALUES ${values}`)
}

describe('bucketStatement and reviewStatement', () => {
  it('find exactly the reviews that differ, and say how, whatever the types of the columns', async () => {
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    const db = opened.right
    const lookback = 600_000
    let found = 0
    await fc.assert(
      fc.asyncProperty(caseArbitrary, async ({ reviews, ghosts, shape, idType, versionType, timeZone, cutoff }) => {
        const zone = versionType === 'timestamp' ? timeZone : 'UTC'
        const versions = reviews.map(({ id, age, rows, fate, damage }) => ({
          id,
          modifiedTime: cutoff - (fate === 'late' ? age % lookback : age),
          rows: shape === 'parts' ? rows : 1,
          fate,
          damage,
        }))
        const strangers = [...new Set(ghosts)].filter((id) => !versions.some((version) => version.id === id))
        const table: AuditedTable = {
          dialect: 'duckdb',
          name: 'reviews',
          idColumn: 'id',
          idType,
          versionColumn: 'modifiedTime',
          versionType,
          timeZone,
          isLowerCase: false,
          deletedColumn: 'marked',
          deletionsName: undefined,
          rows: shape,
        }
        await fillTable(
          db,
          [
            ...versions.flatMap((version) => damagedRows(version, version.damage)),
            ...strangers.map((id) => ({ id, version: startDate + 1 })),
          ],
          idType,
          versionType,
          zone,
        )
        const wanted = new Map<string, string>(strangers.map((id) => [id, 'extra']))
        for (const { id, damage, rows, fate, modifiedTime } of versions) {
          // Clock differences have put it after the cutoff, so it is left out.
          if (shownIn(zone, modifiedTime) > shownIn(zone, cutoff)) continue
          const difference =
            fate === 'there'
              ? expectedDifference(damage, rows, shape)
              : fate === 'deleted before' &&
                  !['drop', 'marked', 'future'].includes(damage) &&
                  !(damage === 'lost row' && rows === 1)
                ? 'extra'
                : undefined
          if (difference !== undefined) wanted.set(id, difference)
        }
        const served = versions.flatMap(({ fate, ...version }) =>
          fate === 'there' || fate === 'late'
            ? [version]
            : fate === 'changed'
              ? [{ ...version, modifiedTime: cutoff + 1 }]
              : [],
        )
        const service: ServiceVersions = {
          stream: 'reviews',
          startDate,
          // A scan may give a row twice.
          versions: feed({ rows: [...served, ...served.slice(0, 3)] }, { rows: [], cutoff: cutoff + 60_000 }),
          changedSince: () => feed(),
          deletedSince: (time) =>
            feed(versions.filter(({ fate }) => fate === 'deleted since' || (fate === 'deleted late' && time < cutoff))),
        }
        const spillPath = join(tmpdir(), `audit-${randomUUID()}`)
        const sent = versions.filter(({ fate, modifiedTime }) => fate === 'there' && modifiedTime >= cutoff - lookback)
        const load = {
          cutoff,
          next: { from: cutoff - lookback, sent: [...sent, { id: '1', modifiedTime: startDate }] },
          deletedFrom: cutoff - lookback,
        }
        await useExpected(
          service,
          load,
          { bucketCount, spillPath, zone },
          async ({ scope, listBuckets, listReviews }) => {
            const buckets = await db.query(bucketStatement(table, scope, await listBuckets()))
            expect(buckets.length > 0).toBe(wanted.size > 0)
            if (wanted.size === 0) return
            const numbers = buckets.map(({ bucket }) => Number(bucket))
            const named = await db.query(reviewStatement(table, scope, numbers, await listReviews(numbers)))
            expect(new Map(named.map(({ id, difference }) => [id, difference]))).toEqual(wanted)
            // Each bucket that differs has a review that differs.
            for (const number of numbers) {
              const one = await db.query(reviewStatement(table, scope, [number], await listReviews([number])))
              expect(one.length).toBeGreaterThan(0)
            }
            found += wanted.size
          },
        )
      }),
      draws(15),
    )
    db.close()
    expect(found).toBeGreaterThan(15)
  })
})
