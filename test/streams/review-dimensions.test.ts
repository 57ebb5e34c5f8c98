import { describe, expect, it } from 'vitest'
import { createPairFilter } from '../../connector/streams/review-dimensions'

describe('createPairFilter', () => {
  it('accepts each pair once', () => {
    const isNewPair = createPairFilter()
    const pairs = [
      ['a', 'b'],
      ['a', ''],
      ['b', 'a'],
      ['a', 'b'],
      ['ab', ''],
      ['a', ''],
    ] as const
    expect(pairs.map(([first, second]) => isNewPair(first, second))).toEqual([true, true, true, false, true, false])
  })

  it('forgets its pairs after 200,000, and accepts them again', () => {
    const isNewPair = createPairFilter()
    for (let i = 0; i <= 200_000; i++) isNewPair(`${i % 100}`, `${i}`)
    expect(isNewPair('0', '0')).toBe(true)
    expect(isNewPair('0', '0')).toBe(false)
  })
})
