import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { type AuditedContent, type AuditedTable, clockZone, type TimeType } from '../../connector/audit/audited-table'
import { type ServiceVersions, useExpected } from '../../connector/audit/comparison'
import { chooseContent, createContentDigest, fieldName } from '../../connector/audit/content'
import { bucketStatement, reviewStatement } from '../../connector/audit/statement'
import { feedOf, printExactJson } from '../../connector/cdk'
import { openDatabase, quoteLiteral } from '../../connector/snapshot/store/database'
import { draws } from '../support/draws'

const nullable = (type: string, more: object = {}) => ({ type: ['null', type], ...more })

/** A stream with an attribute of each kind. */
const stream = {
  primaryKey: ['reviewId', 'position'],
  cursor: O.some('modifiedTime'),
  schema: {
    type: 'object',
    properties: {
      reviewId: { type: 'integer' },
      modifiedTime: { type: 'string', format: 'date-time' },
      _sdc_deleted_at: nullable('string', { format: 'date-time' }),
      position: { type: 'integer' },
      words: nullable('string'),
      count: nullable('integer'),
      amount: nullable('number'),
      flag: nullable('boolean'),
      time: nullable('string', { format: 'date-time' }),
      place: nullable('object', {
        properties: {
          id: nullable('integer'),
          name: nullable('string'),
          inner: nullable('object', { properties: { score: nullable('number') } }),
          tags: nullable('array'),
        },
      }),
      items: nullable('array'),
      free: nullable('object', { additionalProperties: true }),
    },
  },
}

type Place = {
  readonly id: bigint | null
  readonly name: string | null
  readonly inner: { readonly score: number | null } | null
}

type Content = {
  readonly words: string | null
  readonly count: bigint | null
  readonly amount: number | null
  readonly flag: boolean | null
  readonly time: number | null
  readonly place: Place | null
  readonly items: ReadonlyArray<number> | null
}

const words = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    ' ',
    '~',
    ',',
    "it's",
    '"',
    '\\',
    '\\u0041',
    '\n\r\t',
    '\u0000',
    'a\u0000b',
    '😀',
    '👩‍👩‍👧',
    'é',
    'é',
    'null',
    'ß'.repeat(40_000),
  ),
)
const whole = fc.bigInt({ min: -9_223_372_036_854_775_808n, max: 9_223_372_036_854_775_807n })
const numbers = fc.oneof(
  fc.integer({ min: 0, max: 50 }).map((tenths) => tenths / 10),
  fc.double({ min: -5, max: 5 }),
  fc.double({ min: -1e27, max: 1e27 }),
  fc.constantFrom(0, -0, 0.1, 1e-7, -1e-9, 4.35, 0.1234567895, 999_999.999999, 1e6, 1_234_567.5, 1e15, 1e21, -1e21),
)
const orNull = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { freq: 4 })

const contentArbitrary: fc.Arbitrary<Content> = fc.record({
  words: orNull(words),
  count: orNull(whole),
  amount: orNull(numbers),
  flag: orNull(fc.boolean()),
  time: orNull(
    fc.oneof(
      fc.integer({ min: 0, max: Date.UTC(2100, 0) }),
      // Clocks of Berlin show the same at the first two, and skip an hour before the third.
      fc.constantFrom(Date.UTC(2025, 9, 26, 0, 30), Date.UTC(2025, 9, 26, 1, 30), Date.UTC(2025, 2, 30, 1), -1),
    ),
  ),
  place: orNull(
    fc.record({ id: orNull(whole), name: orNull(words), inner: orNull(fc.record({ score: orNull(numbers) })) }),
  ),
  items: orNull(fc.array(fc.integer(), { maxLength: 4 })),
})

/** A number that has become a text on its way. */
const asText = <A>(value: A): A => String(value) as A
const otherText = (text: string | null, way: number): string | null => {
  if (text === null) return ''
  const points = [...text]
  return [null, `${text} `, `${text}\u0000`, points.slice(1).join(''), points.slice(0, -1).join('')][
    way % (points.length === 0 ? 3 : 5)
  ] as string | null
}
const otherWhole = (value: bigint | null): bigint | null => (value === null ? 0n : value > 0n ? value - 1n : value + 1n)
const otherNumber = (value: number | null, way: number): number | null => {
  if (value === null) return 0
  if (way % 2 === 0) return null
  return Math.abs(value) < 1e6 ? (value > 0 ? value - 0.000_01 : value + 0.000_01) : -value
}

/** One attribute that differs, by the name of its field. `way`: one of several differences. */
const damages: Readonly<Record<string, (content: Content, way: number) => Content>> = {
  words: (content, way) => ({ ...content, words: otherText(content.words, way) }),
  count: (content) => ({ ...content, count: otherWhole(content.count) }),
  amount: (content, way) => ({ ...content, amount: otherNumber(content.amount, way) }),
  flag: (content, way) => ({ ...content, flag: content.flag === null ? false : way % 2 === 0 ? null : !content.flag }),
  time: (content, way) => ({ ...content, time: content.time === null ? 0 : way % 2 === 0 ? null : content.time + 1 }),
  'place.id': (content, way) => ({
    ...content,
    place: place(content, ({ id }) => ({ id: way % 3 === 0 && id !== null ? asText(id) : otherWhole(id) })),
  }),
  'place.name': (content, way) => ({
    ...content,
    place: place(content, ({ name }) => ({ name: otherText(name, way) })),
  }),
  'place.inner.score': (content, way) => ({
    ...content,
    place: place(content, ({ inner }) => {
      const score = inner?.score ?? null
      return { inner: { score: way % 3 === 0 && score !== null ? asText(score) : otherNumber(score, way) } }
    }),
  }),
  items: (content, way) => ({
    ...content,
    items: content.items === null ? [] : way % 2 === 0 ? null : [...content.items, 1],
  }),
}

const place = ({ place: given }: Content, change: (place: Place) => Partial<Place>): Place => {
  const whole = given ?? { id: null, name: null, inner: null }
  return { ...whole, ...change(whole) }
}

const toRecord = (reviewId: bigint, position: number, { time, ...content }: Content) => ({
  reviewId,
  modifiedTime: '2026-01-02T03:04:05.678Z',
  position,
  ...content,
  time: time === null ? null : new Date(time).toISOString(),
  free: { any: position },
})

/** The column of a time in each type, from the text of the record. */
const timeSql: Readonly<Record<TimeType, (text: string, zone: string) => string>> = {
  timestamptz: (text) => `(${text})::TIMESTAMPTZ`,
  timestamp: (text, zone) => `(${text})::TIMESTAMPTZ AT TIME ZONE '${zone}'`,
  text: (text) => `(${text})`,
  millis: (text) => `epoch_ms((${text})::TIMESTAMPTZ)`,
}

type Layout = {
  readonly versionType: TimeType
  readonly timeZone: string
  readonly amountType: 'DOUBLE' | 'DECIMAL(38, 9)' | 'VARCHAR'
  readonly objectType: 'JSON' | 'VARCHAR'
}

/** The table as DuckDB's own reading of JSON fills it. */
const tableSql = (
  records: ReadonlyArray<string>,
  { versionType, timeZone, amountType, objectType }: Layout,
): string => `
  CREATE OR REPLACE TABLE reviews AS
  SELECT (j ->> 'reviewId')::BIGINT AS "reviewId",
    ${timeSql[versionType]("j ->> 'modifiedTime'", timeZone)} AS "modifiedTime",
    (j ->> 'position')::INTEGER AS position,
    j ->> 'words' AS words,
    (j ->> 'count')::BIGINT AS count,
    (j ->> 'amount')::${amountType} AS amount,
    (j ->> 'flag')::BOOLEAN AS flag,
    ${timeSql[versionType]("j ->> 'time'", timeZone)} AS time,
    (j -> 'place')::${objectType} AS place,
    (j -> 'items')::${objectType} AS items
  FROM (VALUES ${records.map((text) => `(${quoteLiteral(text)}::JSON)`).join(', ')}) AS given (j)`

const chosen = (...without: ReadonlyArray<string>): AuditedContent => {
  const content = chooseContent(stream, without)
  if (E.isLeft(content)) throw new Error(content.left)
  return content.right
}

const caseArbitrary = fc.record({
  reviews: fc.uniqueArray(
    fc.record({
      id: fc.bigInt({ min: 1n, max: 9_223_372_036_854_775_807n }),
      rows: fc.array(contentArbitrary, { minLength: 1, maxLength: 3 }),
      damage: fc.option(
        fc.record({
          field: fc.constantFrom(...Object.keys(damages)),
          way: fc.nat({ max: 9 }),
          row: fc.nat({ max: 2 }),
        }),
        { freq: 2 },
      ),
    }),
    { selector: ({ id }) => id, minLength: 1, maxLength: 12 },
  ),
  shape: fc.constantFrom<AuditedTable['rows']>('one', 'newest', 'parts'),
  layout: fc.record({
    versionType: fc.constantFrom<TimeType>('timestamptz', 'timestamp', 'text', 'millis'),
    timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns'),
    amountType: fc.constantFrom<Layout['amountType']>('DOUBLE', 'DECIMAL(38, 9)', 'VARCHAR'),
    objectType: fc.constantFrom<Layout['objectType']>('JSON', 'VARCHAR'),
  }),
})

const bucketCount = 16
const everyBucket = Array.from({ length: bucketCount }, (_, bucket) => bucket)

const read = (json: string) => ({ json: Buffer.from(json) })

describe('the content of rows', () => {
  it('is equal on both sides unless a value differs, whose column is named', async () => {
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    const db = opened.right
    await db.run(`SET TimeZone = 'UTC'`)
    let found = 0
    await fc.assert(
      fc.asyncProperty(caseArbitrary, async ({ reviews: drawn, shape, layout }) => {
        const reviews = drawn.map(({ rows, ...review }) => ({
          ...review,
          rows: shape === 'parts' ? rows : rows.slice(0, 1),
        }))
        const content = chosen()
        const table: AuditedTable = {
          dialect: 'duckdb',
          name: 'reviews',
          idColumn: 'reviewId',
          idType: 'number',
          versionColumn: 'modifiedTime',
          versionType: layout.versionType,
          timeZone: layout.timeZone,
          isLowerCase: false,
          deletedColumn: undefined,
          deletionsName: undefined,
          rows: shape,
          content,
        }
        const wanted = new Map<string, string>()
        const loaded = reviews.flatMap(({ id, rows, damage }) =>
          rows.map((row, i) => {
            if (damage === null || i !== damage.row % rows.length) return printExactJson(toRecord(id, i, row))
            wanted.set(String(id), damage.field)
            return printExactJson(toRecord(id, i, damages[damage.field]?.(row, damage.way) ?? row))
          }),
        )
        // A connection that appends may send a row twice.
        await db.run(tableSql([...loaded, ...(shape === 'newest' ? loaded.slice(0, 2) : [])], layout))
        const digest = createContentDigest(content, bucketCount, everyBucket, table)
        const rows = reviews.map(({ id, rows }) => ({
          id: String(id),
          modifiedTime: Date.parse('2026-01-02T03:04:05.678Z'),
          rows: rows.length,
          digest: digest(
            String(id),
            rows.map((row, i) => read(printExactJson(toRecord(id, i, row)))),
          ),
        }))
        const service: ServiceVersions = {
          stream: 'reviews',
          startDate: 0,
          versions: feedOf(E.right({ rows, cutoff: Date.UTC(2027, 0) })),
          changedSince: () => feedOf(),
          deletedSince: () => feedOf(),
        }
        const options = { zone: clockZone(table), bucketCount, spillPath: join(tmpdir(), `audit-${randomUUID()}`) }
        await useExpected(service, { cutoff: undefined }, options, async ({ scope, listBuckets, listReviews }) => {
          const buckets = await db.query(bucketStatement(table, scope, await listBuckets()))
          expect(buckets.every(({ difference }) => difference === 'changed')).toBe(true)
          const named = await db.query(reviewStatement(table, scope, everyBucket, await listReviews(everyBucket)))
          expect(new Map(named.map((row) => [row.id, `${row.difference} ${row.changed_columns}`]))).toEqual(
            new Map([...wanted].map(([id, field]) => [id, `changed ${field}`])),
          )
          expect(buckets.length > 0).toBe(wanted.size > 0)
          found += wanted.size
        })
      }),
      draws(15),
    )
    db.close()
    expect(found).toBeGreaterThan(10)
  })

  it('is every declared scalar, and the length of every list, but the id and the version of the review', () => {
    expect(chosen().fields.map(fieldName)).toEqual([
      'position',
      'words',
      'count',
      'amount',
      'flag',
      'time',
      'place.id',
      'place.name',
      'place.inner.score',
      'items',
    ])
    expect(chosen('place', 'words', 'items').fields.map(fieldName)).toEqual([
      'position',
      'count',
      'amount',
      'flag',
      'time',
    ])
    expect(chosen('place.inner').fields.map(fieldName)).not.toContain('place.inner.score')
    for (const name of ['plac', 'place.', 'free', 'reviewId', ''])
      expect(chooseContent(stream, [name]), name).toEqual(E.left(expect.stringContaining(`not ${name}`)))
  })

  const digest = (json: string): bigint =>
    createContentDigest(chosen(), 1, undefined, undefined)('1', [read(json)]).content

  it.each([
    ['{"amount": 0.1}', '{"amount": 0.10}'],
    ['{"amount": 0.1}', '{"amount": 1e-1}'],
    ['{"amount": 0}', '{"amount": -0.0}'],
    ['{"amount": 1e21}', '{"amount": 1000000000000000000000}'],
    ['{"words": null}', '{}'],
    ['{"place": null}', '{"place": {"id": null}}'],
    ['{"words": "\\ud83d"}', '{"words": "\\ufffd"}'],
    ['{"words": "\\u0041"}', '{"words": "A"}'],
    ['{"time": "2026-01-01T00:00:00.0009Z"}', '{"time": "2026-01-01T00:00:00Z"}'],
  ])('is the same of %s and %s', (one, other) => {
    expect(digest(one)).toBe(digest(other))
  })

  it.each([
    ['{"words": null}', '{"words": ""}'],
    ['{"words": "~"}', '{}'],
    ['{"words": "é"}', '{"words": "e\\u0301"}'],
    ['{"amount": 0.1}', '{"amount": 0.100001}'],
    ['{"amount": 1}', '{"amount": 1000000}'],
    ['{"amount": 1e21}', '{"amount": -1e21}'],
    ['{"count": 9007199254740993}', '{"count": 9007199254740992}'],
    ['{"place": {"id": 9007199254740993}}', '{"place": {"id": 9007199254740992}}'],
    ['{"items": []}', '{"items": null}'],
    ['{"flag": false}', '{"flag": null}'],
  ])('differs between %s and %s', (one, other) => {
    expect(digest(one)).not.toBe(digest(other))
  })
})
