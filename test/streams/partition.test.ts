import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toMillis } from '../../connector/cdk/scalar'
import type { Bounds } from '../../connector/reading/list'
import { partitionWindows } from '../../connector/streams/partition'
import { draws } from '../support/draws'

const start = Date.parse('2024-01-15T00:00:00Z')
const now = Date.parse('2024-04-10T00:00:00Z')

/** A service with inclusive or exclusive bounds returns a review with this mention time for a window. */
const serves =
  (time: number, inclusive: boolean) =>
  ({ after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY }: Bounds) =>
    inclusive ? time >= after && time <= before : time > after && time < before

describe('partitionWindows', () => {
  it('gives each process every count-th month, and what has no mention time to the last process', () => {
    expect([0, 1].map((index) => partitionWindows({ index, count: 2 }, start, now, {}))).toEqual([
      [
        { before: toMillis('2024-02-01T00:00:00.000Z') },
        {
          after: toMillis('2024-02-29T23:59:59.999Z'),
          before: toMillis('2024-04-01T00:00:00.000Z'),
        },
      ],
      [
        {
          after: toMillis('2024-01-31T23:59:59.999Z'),
          before: toMillis('2024-03-01T00:00:00.000Z'),
        },
        { after: toMillis('2024-03-31T23:59:59.999Z') },
        { unmentioned: true },
      ],
    ])
  })

  it('stays within the configured mention times, and then no process reads what has none', () => {
    const filters = { mentionTimeAfter: '2024-02-10T00:00:00.000Z', mentionTimeBefore: '2024-02-20T00:00:00.000Z' }
    expect([0, 1].map((index) => partitionWindows({ index, count: 2 }, start, now, filters))).toEqual([
      [],
      [{ after: toMillis(filters.mentionTimeAfter), before: toMillis(filters.mentionTimeBefore) }],
    ])
  })

  it('leaves no time out, also if the processes begin in different months', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 0, max: now }),
        fc.boolean(),
        fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 9, maxLength: 9 }),
        (count, time, inclusive, delays) => {
          const startTimes = delays.map((days) => now + days * 86_400_000)
          const windows = Array.from({ length: count }, (_, index) =>
            partitionWindows({ index, count }, start, startTimes[index] ?? now, {}),
          ).flat()
          expect(windows.filter(({ unmentioned }) => !unmentioned).some(serves(time, inclusive))).toBe(true)
        },
      ),
      draws(100),
    )
  })
})
