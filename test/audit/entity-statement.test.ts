import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AuditedTable, clockZone, toAuditedTable } from '../../connector/audit/audited-table'
import { useExpectedFeedback } from '../../connector/audit/entity-comparison'
import {
  auditWindows,
  deleteFeedbackStatement,
  feedbackBucketStatement,
  feedbackRowStatement,
  isFeedbackBucket,
} from '../../connector/audit/entity-statement'
import { type Failure, feedOf } from '../../connector/cdk'
import { type Database, openDatabase } from '../../connector/snapshot/store'
import { draws } from '../support/draws'

const from = Date.UTC(2025, 10, 1)
const day = 86_400_000

/** Ids as configs have them, and some that no SQL literal may contain. */
const entities = ['location:1034', 'location:7', "person:o'x\\", 'person:Ärztin 7', 'entity:7'] as const
/** Not read by the service, so not compared. */
const strange = 'location:99'

type Damage = 'none' | 'drop' | 'double' | 'moved' | 'next month' | 'timeless' | 'renamed' | 'future'

const rowArbitrary = fc.record({
  entity: fc.constantFrom(...entities, strange),
  id: fc.bigInt({ min: 1n, max: 40n }).map(String),
  /** Days since `from`; the cutoffs are between 100 and 200 days later. */
  age: fc.integer({ min: 0, max: 220 * 24 }).map((hours) => hours / 24),
  damage: fc.constantFrom<Damage>(
    ...Array.from({ length: 9 }, () => 'none' as const),
    ...(['drop', 'double', 'moved', 'next month', 'timeless', 'renamed', 'future'] as const),
  ),
})

type DrawnRow = {
  readonly entity: string
  readonly id: string
  readonly time: number
  readonly damage: Damage
}
type TableRow = { readonly entity: string | null; readonly id: string | null; readonly time: number | null }

const toTableRows = ({ entity, id, time, damage }: DrawnRow): ReadonlyArray<TableRow> => {
  const row = { entity, id, time }
  switch (damage) {
    case 'drop':
      return []
    case 'double':
      return [row, row]
    case 'moved':
      return [{ ...row, time: time + 1 }]
    case 'next month':
      return [{ ...row, time: Math.max(from, time - 31 * day) }]
    case 'timeless':
      return [{ ...row, time: null }]
    case 'renamed':
      return [{ ...row, id: String(1000 + Number(id)) }]
    case 'future':
      return [{ ...row, time: time + 2000 * day }]
    default:
      return [row]
  }
}

/** What the audit must say of the row, and of one that the damage has made. */
const expectedDifferences = (row: DrawnRow, cutoff: number, isAppended: boolean): ReadonlyArray<[string, string]> => {
  const { entity, id, time, damage } = row
  const key = `${entity.replaceAll(/[^\w.:@-]/g, '_')} ${id}`
  const [after] = toTableRows(row)
  switch (damage) {
    case 'drop':
      return [[key, 'missing']]
    case 'double':
      return isAppended ? [] : [[key, 'doubled']]
    case 'moved':
    case 'next month':
      return after?.time === time ? [] : [[key, (after?.time ?? 0) > cutoff ? 'newer' : 'stale']]
    case 'timeless':
      return [[key, 'stale']]
    case 'renamed':
      return [
        [key, 'missing'],
        [`${entity.replaceAll(/[^\w.:@-]/g, '_')} ${1000 + Number(id)}`, 'extra'],
      ]
    case 'future':
      return [[key, 'newer']]
    default:
      return []
  }
}

let db: Database
beforeAll(async () => {
  const opened = await openDatabase(':memory:')()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  db = opened.right
  await db.run(`SET TimeZone = 'Asia/Kolkata'`)
})
afterAll(() => db.close())

const literal = (text: string | null): string => (text === null ? 'NULL' : `'${text.replaceAll("'", "''")}'`)

const fillTable = async (rows: ReadonlyArray<TableRow>): Promise<void> => {
  await db.run(`
    CREATE OR REPLACE TABLE feedback_table (
      "entityType" VARCHAR, "entityId" VARCHAR, id BIGINT, "mentionTime" TIMESTAMPTZ
    )`)
  const values = rows.map(({ entity, id, time }) => {
    const [kind, name] = entity === null ? [null, '5'] : [entity.split(':')[0] ?? '', entity.split(':')[1] ?? '']
    return (
      `(${literal(kind)}, ${literal(name)}, ${id ?? 'NULL'}, ` +
      `${time === null ? 'NULL' : `make_timestamptz(${Math.round(time) * 1000})`})`
    )
  })
  if (values.length > 0) await db.run(`INSERT INTO feedback_table VALUES ${values.join(', ')}`)
}

it('finds exactly the rows that differ, and their deletion leaves what the service must send again', async () => {
  let found = 0
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(rowArbitrary, { selector: ({ entity, id }) => `${entity} ${id}`, minLength: 5, maxLength: 60 }),
      fc.array(fc.integer({ min: 100, max: 200 }), { minLength: entities.length, maxLength: entities.length }),
      fc.constantFrom(...auditWindows),
      fc.boolean(),
      fc.boolean(),
      async (drawn, ages, window, isAppended, hasNobody) => {
        const cutoffs = new Map(entities.map((entity, i) => [entity as string, from + (ages[i] ?? 0) * day]))
        const rows: ReadonlyArray<DrawnRow> = drawn.map(({ age, ...row }) => ({
          ...row,
          time: Math.round(from + age * day),
        }))
        const isCompared = ({ entity, time }: DrawnRow): boolean =>
          time <= (cutoffs.get(entity) ?? Number.NEGATIVE_INFINITY)
        const nobody: ReadonlyArray<TableRow> = hasNobody ? [{ entity: null, id: '5', time: from }] : []
        // Rows after the cutoff were loaded later, whatever they look like.
        await fillTable([
          ...rows.flatMap((row) => (isCompared(row) ? toTableRows(row) : toTableRows({ ...row, damage: 'double' }))),
          ...nobody,
        ])
        const wanted = new Map<string, string>([
          ...rows
            .filter(isCompared)
            .flatMap((row) => expectedDifferences(row, cutoffs.get(row.entity) ?? 0, isAppended)),
          ...(hasNobody ? [['none 5', 'extra'] as const] : []),
        ])
        const table: AuditedTable = toAuditedTable('comments', 'airbyte', {
          dialect: 'duckdb',
          name: 'feedback_table',
          hasTombstones: true,
          keepsVersions: isAppended,
        })
        const service = {
          stream: 'comments',
          from,
          rows: feedOf<Failure, ReadonlyArray<DrawnRow>>(E.right(rows), E.right(rows.slice(0, 2))),
          cutoffs: () =>
            new Map<string, E.Either<string, number>>([
              ...[...cutoffs].map(([entity, cutoff]) => [entity, E.right(cutoff)] as const),
              [strange, E.left('it is refused')],
            ]),
        }
        const spillPath = join(tmpdir(), `audit-${randomUUID()}`)
        await useExpectedFeedback(service, { window, spillPath }, async (expected) => {
          const { scope, listGroups, listRows, findOldest } = expected
          const statement = feedbackBucketStatement(table, scope, await listGroups())
          expect(statement).toContain('location:99 (it is refused)')
          const buckets = (await db.query(statement)).map(({ bucket }) => String(bucket))
          expect(buckets.length > 0).toBe(wanted.size > 0)
          expect(buckets.filter((bucket) => !isFeedbackBucket(bucket))).toEqual([])
          if (wanted.size === 0) return
          const named = (await db.query(feedbackRowStatement(table, scope, buckets, await listRows(buckets)))).map(
            ({ entity, id, difference }) => ({
              entity: String(entity),
              id: String(id),
              difference: String(difference),
            }),
          )
          expect(new Map(named.map(({ entity, id, difference }) => [`${entity} ${id}`, difference]))).toEqual(wanted)
          for (const bucket of buckets)
            expect(
              (await db.query(feedbackRowStatement(table, scope, [bucket], await listRows([bucket])))).length,
            ).toBeGreaterThan(0)
          const oldest = await findOldest(named)
          const damaged = rows.filter(
            (row) => isCompared(row) && expectedDifferences(row, cutoffs.get(row.entity) ?? 0, isAppended).length > 0,
          )
          for (const { entity, time } of damaged) expect(oldest.get(entity)).toBeLessThanOrEqual(time)
          // What is deleted comes again: afterwards nothing but missing rows is left.
          await db.run(deleteFeedbackStatement(table, scope, named))
          for (const { entity, id, time } of damaged) {
            const [type = '', entityId = ''] = entity.split(':').map(literal)
            await db.run(`
              DELETE FROM feedback_table WHERE "entityType" = ${type} AND "entityId" = ${entityId} AND id = ${id};
              INSERT INTO feedback_table VALUES (${type}, ${entityId}, ${id}, make_timestamptz(${time * 1000}))`)
          }
          expect(await db.query(statement)).toEqual([])
          found += wanted.size
        })
      },
    ),
    draws(25),
  )
  expect(found).toBeGreaterThan(30)
})

const at = (time: string): number => Date.parse(`2026-${time}:00Z`)
const quarter = 900_000

describe('times without zone in a night in which clocks go back', () => {
  // In Berlin they show the hour before and after 1:00 UTC alike, on Lord Howe Island the half hour before and after
  // 15:00 UTC.
  const berlin = ['Europe/Berlin', '10-24T20:00', '10-25T05:00'] as const
  const lordHowe = ['Australia/Lord_Howe', '04-04T12:00', '04-04T18:00'] as const
  it.each([
    [...berlin, '10-01T00:00', '10-28T00:00', '10-24T20:00', '10-25T05:00'],
    [...berlin, '10-01T00:00', '10-24T23:45', '10-24T20:00', '10-24T23:45'],
    // A cutoff that clocks show twice is moved back by two hours, a start_date forward.
    [...berlin, '10-01T00:00', '10-25T00:00', '10-24T20:00', '10-24T22:00'],
    [...berlin, '10-01T00:00', '10-25T00:30', '10-24T20:00', '10-24T22:30'],
    [...berlin, '10-01T00:00', '10-25T01:00', '10-24T20:00', '10-24T23:00'],
    [...berlin, '10-01T00:00', '10-25T01:45', '10-24T20:00', '10-24T23:45'],
    [...berlin, '10-01T00:00', '10-25T02:00', '10-24T20:00', '10-25T02:00'],
    [...berlin, '10-25T00:30', '10-28T00:00', '10-25T02:30', '10-25T05:00'],
    [...berlin, '10-25T01:15', '10-28T00:00', '10-25T03:15', '10-25T05:00'],
    [...berlin, '10-25T02:00', '10-28T00:00', '10-25T02:00', '10-25T05:00'],
    [...lordHowe, '04-01T00:00', '04-06T00:00', '04-04T12:00', '04-04T18:00'],
    [...lordHowe, '04-01T00:00', '04-04T14:15', '04-04T12:00', '04-04T14:15'],
    [...lordHowe, '04-01T00:00', '04-04T14:45', '04-04T12:00', '04-04T13:45'],
    [...lordHowe, '04-01T00:00', '04-04T15:15', '04-04T12:00', '04-04T14:15'],
    [...lordHowe, '04-04T14:30', '04-06T00:00', '04-04T15:30', '04-04T18:00'],
    ['UTC', ...berlin.slice(1), '10-25T00:30', '10-25T01:45', '10-25T00:30', '10-25T01:45'],
  ] as const)(
    'raise no alarm in %s: rows from %s to %s, audited from %s to %s, compared from %s to %s',
    async (zone, ...times) => {
      const [oldest, newest, startDate, cutoff, first, last] = times.map(at) as [
        number,
        number,
        number,
        number,
        ...number[],
      ]
      const rows = Array.from({ length: (newest - oldest) / quarter + 1 }, (_, i) => ({
        entity: 'location:7',
        id: String(i + 1),
        time: oldest + i * quarter,
      }))
      await fillTable(rows)
      await db.run(
        `ALTER TABLE feedback_table ALTER "mentionTime" TYPE TIMESTAMP USING "mentionTime" AT TIME ZONE '${zone}'`,
      )
      const table = toAuditedTable('comments', 'meltano', {
        dialect: 'duckdb',
        name: 'feedback_table',
        hasTombstones: false,
        keepsVersions: false,
        timeZone: zone,
      })
      const service = {
        stream: 'comments',
        from: startDate,
        rows: feedOf<Failure, typeof rows>(E.right(rows)),
        cutoffs: () => new Map([['location:7', E.right(cutoff)]]),
      }
      const how = {
        window: 'month',
        spillPath: join(tmpdir(), `audit-${randomUUID()}`),
        zone: clockZone(table),
      } as const
      await useExpectedFeedback(service, how, async ({ scope, listGroups, listRows }) => {
        const statement = feedbackBucketStatement(table, scope, await listGroups())
        expect(await db.query(statement)).toEqual([])
        // With nothing in the table, what is compared is missing.
        await db.run('DELETE FROM feedback_table')
        const buckets = (await db.query(statement)).map(({ bucket }) => String(bucket))
        const named = await db.query(feedbackRowStatement(table, scope, buckets, await listRows(buckets)))
        expect(named.map(({ id, difference }) => `${id} ${difference}`).sort()).toEqual(
          rows
            .filter(({ time }) => time >= (first ?? 0) && time <= (last ?? 0))
            .map(({ id }) => `${id} missing`)
            .sort(),
        )
      })
    },
  )
})
