import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BatchItem, takeBatch } from '../../../connector/cdk/write/batch'

const seed = 20261121

const item = (key: string, bytes = 1): BatchItem => ({ key, bytes, queuedAt: 0 })
const size = { count: 3, bytes: 10 }
const none: ReadonlySet<string> = new Set()

describe('takeBatch', () => {
  it.each<[string, ReadonlyArray<BatchItem>, ReadonlySet<string>, boolean, ReadonlyArray<string>]>([
    ['takes nothing before the batch is full', [item('a'), item('b')], none, false, []],
    ['takes a batch that is full by count', [item('a'), item('b'), item('c'), item('d')], none, false, ['a', 'b', 'c']],
    ['takes a batch that is full by bytes', [item('a', 6), item('b', 6), item('c')], none, false, ['a']],
    ['takes an item alone that is longer than a batch', [item('a', 99)], none, false, ['a']],
    ['takes what there is on a flush', [item('a'), item('b')], none, true, ['a', 'b']],
    ['leaves the second item of a key', [item('a'), item('a'), item('b')], none, true, ['a', 'b']],
    ['leaves the items of a key in flight', [item('a'), item('b')], new Set(['a']), true, ['b']],
  ])('%s', (_, queue, keysInFlight, flush, keys) => {
    expect(takeBatch(queue, size, keysInFlight, flush).batch.map(({ key }) => key)).toEqual(keys)
  })

  it('loses nothing, keeps the order of each key and never has two items of a key in a batch or in flight', () => {
    const counts = { taken: 0, left: 0 }
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.integer({ min: 1, max: 6 }))),
        fc.subarray(['a', 'b', 'c']),
        fc.boolean(),
        (items, keysInFlight, flush) => {
          const queue = items.map(([key, bytes], position) => ({ key, bytes, queuedAt: 0, position }))
          const { batch, rest } = takeBatch(queue, size, new Set(keysInFlight), flush)
          counts.taken += batch.length
          counts.left += rest.length
          const ascending = (a: number, b: number) => a - b
          expect([...batch, ...rest].map(({ position }) => position).sort(ascending)).toEqual(queue.map((_, n) => n))
          expect(rest.map(({ position }) => position)).toEqual(rest.map(({ position }) => position).sort(ascending))
          expect(new Set(batch.map(({ key }) => key)).size).toBe(batch.length)
          for (const { key, position } of batch) {
            expect(keysInFlight).not.toContain(key)
            expect(rest.filter((other) => other.key === key && other.position < position)).toEqual([])
          }
          expect(batch.length).toBeLessThanOrEqual(size.count)
          const bytes = batch.reduce((sum, one) => sum + one.bytes, 0)
          expect(batch.length <= 1 || bytes <= size.bytes).toBe(true)
        },
      ),
      { seed, numRuns: 500 },
    )
    expect(counts.taken).toBeGreaterThan(300)
    expect(counts.left).toBeGreaterThan(300)
  })
})
