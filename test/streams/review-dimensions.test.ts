import { describe, expect, it } from 'vitest'
import { createPairFilter } from '../../connector/streams/review-dimensions'

describe('distinctPairs', () => {
  it('lets each pair pass once', () => {
    const unseen = createPairFilter()
    const pairs = [
      ['a', 'b'],
      ['a', ''],
      ['b', 'a'],
      ['a', 'b'],
      ['ab', ''],
      ['a', ''],
    ] as const
    expect(pairs.map(([first, second]) => unseen(first, second))).toEqual([true, true, true, false, true, false])
  })

  it('forgets those of long ago', () => {
    const unseen = createPairFilter()
    for (let i = 0; i <= 200_000; i++) unseen(`${i % 100}`, `${i}`)
    expect(unseen('0', '0')).toBe(true)
    expect(unseen('0', '0')).toBe(false)
  })
})
