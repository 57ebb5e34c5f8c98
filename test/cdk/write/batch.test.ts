import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BatchItem, takeBatch } from '../../../connector/cdk/write/batch'

const seed = 20261121

const item = (key: string, bytes = 1): BatchItem => ({ key, bytes, at: 0 })
const size = { count: 3, bytes: 10 }
const none: ReadonlySet<string> = new Set()

describe('takeBatch', () => {
  it.each<[string, ReadonlyArray<BatchItem>, ReadonlySet<string>, boolean, ReadonlyArray<string>]>([
    ['waits until it is full', [item('a'), item('b')], none, false, []],
    ['leaves full by count', [item('a'), item('b'), item('c'), item('d')], none, false, ['a', 'b', 'c']],
    ['leaves full by bytes', [item('a', 6), item('b', 6), item('c')], none, false, ['a']],
    ['takes one that is too long alone', [item('a', 99)], none, false, ['a']],
    ['leaves what it has once it is ripe', [item('a'), item('b')], none, true, ['a', 'b']],
    ['holds equal keys apart', [item('a'), item('a'), item('b')], none, true, ['a', 'b']],
    ['passes over a key under way', [item('a'), item('b')], new Set(['a']), true, ['b']],
  ])('%s', (_, pool, busy, ripe, keys) => {
    expect(takeBatch(pool, size, busy, ripe).batch.map(({ key }) => key)).toEqual(keys)
  })

  it('loses nothing, keeps the order of each key and never shares a batch or a flight between equal keys', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.integer({ min: 1, max: 6 }))),
        fc.subarray(['a', 'b', 'c']),
        fc.boolean(),
        (raw, busy, ripe) => {
          const pool = raw.map(([key, bytes], at) => ({ key, bytes, at }))
          const { batch, rest } = takeBatch(pool, size, new Set(busy), ripe)
          expect([...batch, ...rest].map(({ at }) => at).sort((a, b) => a - b)).toEqual(pool.map(({ at }) => at))
          expect(rest.map(({ at }) => at)).toEqual(rest.map(({ at }) => at).sort((a, b) => a - b))
          expect(new Set(batch.map(({ key }) => key)).size).toBe(batch.length)
          for (const { key, at } of batch) {
            expect(busy).not.toContain(key)
            expect(rest.filter((other) => other.key === key && other.at < at)).toEqual([])
          }
          expect(batch.length).toBeLessThanOrEqual(size.count)
          const bytes = batch.reduce((sum, one) => sum + one.bytes, 0)
          expect(batch.length <= 1 || bytes <= size.bytes).toBe(true)
        },
      ),
      { seed, numRuns: 500 },
    )
  })
})
