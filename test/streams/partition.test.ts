import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toMillis } from '../../connector/cdk/scalar'
import { partitionWindows } from '../../connector/streams/source-env'
import { draws } from '../support/draws'

const start = Date.parse('2024-01-15T00:00:00Z')
const now = Date.parse('2024-04-10T00:00:00Z')

/** Whether a service with inclusive or exclusive bounds serves a review of this mention time for a window. */
const serves =
  (time: number, inclusive: boolean) => (window: { mentionTimeAfter?: string; mentionTimeBefore?: string }) => {
    const after = window.mentionTimeAfter === undefined ? Number.NEGATIVE_INFINITY : toMillis(window.mentionTimeAfter)
    const before =
      window.mentionTimeBefore === undefined ? Number.POSITIVE_INFINITY : toMillis(window.mentionTimeBefore)
    return inclusive ? time >= after && time <= before : time > after && time < before
  }

describe('partitionWindows', () => {
  it('gives each process every count-th month, open at both ends, and the sweep to the last process', () => {
    expect([0, 1].map((index) => partitionWindows({ index, count: 2 }, start, now, {}))).toEqual([
      [
        { kind: 'part', mentionTimeBefore: '2024-02-01T00:00:00.000Z' },
        {
          kind: 'part',
          mentionTimeAfter: '2024-02-29T23:59:59.999Z',
          mentionTimeBefore: '2024-04-01T00:00:00.000Z',
        },
      ],
      [
        {
          kind: 'part',
          mentionTimeAfter: '2024-01-31T23:59:59.999Z',
          mentionTimeBefore: '2024-03-01T00:00:00.000Z',
        },
        { kind: 'part', mentionTimeAfter: '2024-03-31T23:59:59.999Z' },
        { kind: 'sweep' },
      ],
    ])
  })

  it('stays within the configured mention times, and then needs no sweep', () => {
    const filters = { mentionTimeAfter: '2024-02-10T00:00:00.000Z', mentionTimeBefore: '2024-02-20T00:00:00.000Z' }
    expect([0, 1].map((index) => partitionWindows({ index, count: 2 }, start, now, filters))).toEqual([
      [],
      [{ kind: 'part', ...filters }],
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
          expect(windows.filter(({ kind }) => kind === 'part').some(serves(time, inclusive))).toBe(true)
        },
      ),
      draws(100),
    )
  })
})
