import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { mergeStates } from '../../connector/streams/export-state'

const row = (id: string) => [id, 1, 'x']

describe('mergeStates', () => {
  it('takes the earliest cursor, the largest slack, and all that was sent', () => {
    expect(
      mergeStates([
        { reviews: { modifiedTimeFrom: '2026-01-02T00:00:00.000Z', filters: 'f', recent: [row('1'), row('2')] } },
        {
          reviews: {
            modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
            filters: 'f',
            slack: 5,
            recent: [row('2'), row('3')],
          },
        },
      ]),
    ).toEqual(
      E.right({
        reviews: {
          modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
          filters: 'f',
          slack: 5,
          recent: [row('1'), row('2'), row('3')],
        },
      }),
    )
  })

  it('forgets what was sent where it is too much', () => {
    const many = Array.from({ length: 600 }, (_, i) => row(`a${i}`))
    const more = Array.from({ length: 600 }, (_, i) => row(`b${i}`))
    const at = '2026-01-01T00:00:00.000Z'
    expect(
      mergeStates([{ s: { modifiedTimeFrom: at, recent: many } }, { s: { modifiedTimeFrom: at, recent: more } }]),
    ).toEqual(E.right({ s: { modifiedTimeFrom: at, recent: [] } }))
  })

  it('takes the first state of what is not shared and was read whole by each', () => {
    const reviews = { modifiedTimeFrom: '2026-01-01T00:00:00.000Z', recent: [] }
    const comments = { fromDate: '2026-01-01T00:00:00.000Z', partitions: { 'person:1': { digest: 'a' } } }
    const later = { fromDate: '2026-01-02T00:00:00.000Z', partitions: {} }
    expect(mergeStates([{ reviews }, { reviews, comments }, { reviews, comments: later }])).toEqual(
      E.right({ reviews, comments }),
    )
  })

  it.each([
    ['a stream one process has not read', {}, 'State 2: reviews is missing'],
    ['a scan under way', { reviews: { modifiedTimeFrom: 'x', scan: {} } }, 'is still being read'],
    ['a state of another kind', { reviews: { fromDate: 'x' } }, 'has no modifiedTimeFrom'],
  ])('refuses %s', (_, second, expected) => {
    const merged = mergeStates([{ reviews: { modifiedTimeFrom: '2026-01-01T00:00:00.000Z' } }, second])
    expect(E.isLeft(merged) && merged.left.message).toContain(expected)
  })
})
