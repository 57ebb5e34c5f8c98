import { createHash } from 'node:crypto'
import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { bucketsSql } from '../../connector/audit/statement'
import { openDatabase } from '../../connector/snapshot/store/database'
import {
  addVersion,
  createKeyDigest,
  createSentVersions,
  digestVersions,
  removeVersions,
} from '../../connector/streams/version-digest'
import { draws } from '../support/draws'

/** 60 bits of the MD5, as the SQL of an audit computes them. */
const hashOf = (text: string): bigint => BigInt(`0x${createHash('md5').update(text).digest('hex').slice(0, 15)}`)

/** A version of a review as it is sent: how many rows each stream makes of it. */
type Sent = { readonly id: string; readonly version: number; readonly rows: ReadonlyArray<number> }

const streams = 3
const id = fc.oneof(
  fc.integer({ min: 1, max: 12 }).map(String),
  fc.bigInt({ min: 9_223_372_036_854_775_800n, max: 9_223_372_036_854_775_807n }).map(String),
)
const sent: fc.Arbitrary<Sent> = fc
  .record({ id, version: fc.constantFrom(1_700_000_000_000, 1_700_000_000_001, 1_800_000_000_000) })
  .chain((version) =>
    // A version of a review always has the same rows.
    fc.constant({
      ...version,
      rows: Array.from({ length: streams }, (_, stream) =>
        Number(hashOf(`${version.id}${version.version}${stream}`) % 3n),
      ),
    }),
  )

/** The rows of each stream in a table that keeps every version and reads the newest that has rows. */
const expected = (all: ReadonlyArray<Sent>) =>
  Array.from({ length: streams }, (_, stream) => {
    const newest = new Map<string, Sent>()
    for (const each of all)
      if ((each.rows[stream] ?? 0) > 0 && each.version >= (newest.get(each.id)?.version ?? 0)) newest.set(each.id, each)
    const kept = [...newest.values()]
    return {
      rows: kept.reduce((sum, { rows }) => sum + (rows[stream] ?? 0), 0),
      digest: kept.reduce(
        (sum, each) => sum + hashOf(`${each.id}:${each.version}`) * BigInt(each.rows[stream] ?? 0),
        0n,
      ),
    }
  })

const digestOf = (all: ReadonlyArray<Sent>, limit?: number) => {
  const sentVersions = createSentVersions(streams, limit)
  for (const { id, version, rows } of all)
    for (const [stream, count] of rows.entries()) addVersion(sentVersions, stream, id, version, count)
  return digestVersions(sentVersions)
}

describe('the digests of streams', () => {
  it('are those of the newest version that has rows, in whatever order and however often it was sent', () => {
    fc.assert(
      fc.property(fc.array(sent, { maxLength: 60 }), fc.infiniteStream(fc.nat()), (all, order) => {
        const shuffled = all.map((each) => [each, order.next().value ?? 0] as const).sort(([, a], [, b]) => a - b)
        expect(digestOf(all)).toEqual(expected(all))
        expect(digestOf([...shuffled.map(([each]) => each), ...all])).toEqual(expected(all))
      }),
      draws(100),
    )
  })

  it('are the sums over rows of an audit, over all its buckets', async () => {
    const opened = await openDatabase(':memory:')()
    if (E.isLeft(opened)) throw new Error(opened.left.message)
    const database = opened.right
    const all = Array.from({ length: 50 }, (_, n) => ({ id: String(n), version: 1.7e12 + n, rows: [1, n % 3, n % 2] }))
    for (const [stream, digest] of (digestOf(all) ?? []).entries()) {
      const reviews = all.filter(({ rows }) => rows[stream] !== 0)
      const values = reviews.map(({ id, version, rows }) => `('${id}', ${version}::BIGINT, ${rows[stream]})`)
      const [found] = await database.query(`
        WITH reviews(id, version, row_count) AS (VALUES ${values.join(', ')}),
        ${bucketsSql('duckdb', 7, false)}
        SELECT sum(row_count)::VARCHAR AS rows, sum(row_digest)::VARCHAR AS digest FROM buckets`)
      expect(found).toEqual({ rows: String(digest.rows), digest: String(digest.digest) })
    }
    await database.close()
  })

  it('stay exact while their memory grows', () => {
    const all = Array.from({ length: 5000 }, (_, n) => ({
      id: String(n % 4500),
      version: 1.7e12 + n,
      rows: [1, n % 3, 0],
    }))
    expect(digestOf(all)).toEqual(expected(all))
  })

  it.each([
    ['one by one', 1n],
    ['by a power of two', 2n ** 20n],
    ['by a power of ten', 10n ** 9n],
  ])('need no more work a review where there are many whose ids follow each other %s', (_, step) => {
    const rows = 200_000
    for (const first of [1n, 4_000_000_000_000_000n, 8_000_000_000_000_000_000n]) {
      const sentVersions = createSentVersions(1)
      for (let n = 0n; n < rows; n += 1n) addVersion(sentVersions, 0, String(first + n * step), 1.7e12, 1)
      expect(digestVersions(sentVersions)?.[0]?.rows).toBe(rows)
    }
  })

  it('leave out a deleted review, and keep a version that is later than its deletion', () => {
    const sentVersions = createSentVersions(2)
    for (const stream of [0, 1]) for (const id of ['1', '2']) addVersion(sentVersions, stream, id, 1.7e12, 1)
    addVersion(sentVersions, 0, '2', 1.8e12, 1)
    for (const id of ['1', '2', '3']) removeVersions(sentVersions, 0, id, 1.7e12)
    const [first, second] = digestVersions(sentVersions) ?? []
    expect(first).toEqual({ rows: 1, digest: hashOf('2:1800000000000') })
    expect(second?.rows).toBe(2)
  })

  it('are not given beyond the number of versions that are kept, nor for more rows than can be counted', () => {
    const all = ['1', '2', '3'].map((id) => ({ id, version: 1.7e12, rows: [1, 1, 1] }))
    expect(digestOf([...all, ...all], 3)).toEqual(expected(all))
    expect(digestOf(all, 2)).toBeUndefined()
    expect(digestOf([{ id: '1', version: 1.7e12, rows: [1, 65_536, 0] }])).toBeUndefined()
  })
})

describe('the digest of keys', () => {
  it('is that of the newest version of each key, or of the keys alone', () => {
    const digest = createKeyDigest(2)
    for (const [key, version] of [
      ['a:ü', 5],
      ['b', 7],
      ['a:ü', 4],
      ['a:ü', 6],
    ] as const)
      digest.add(key, version)
    expect(digest.digest(true)).toEqual({ rows: 2, digest: hashOf('a:ü:6') + hashOf('b:7') })
    expect(digest.digest(false)).toEqual({ rows: 2, digest: hashOf('a:ü') + hashOf('b') })
    digest.add('c', 1)
    expect(digest.digest(true)).toBeUndefined()
  })
})
