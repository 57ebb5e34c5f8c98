import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { mergeStates } from '../../connector/streams/export-state'

const sentRow = (id: string) => [id, 1, 'x']

describe('mergeStates', () => {
  it('takes the earliest cursor, the largest slack, and all sent rows', () => {
    expect(
      mergeStates([
        {
          reviews: { modifiedTimeFrom: '2026-01-02T00:00:00.000Z', filters: 'f', recent: [sentRow('1'), sentRow('2')] },
        },
        {
          reviews: {
            modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
            filters: 'f',
            slack: 5,
            recent: [sentRow('2'), sentRow('3')],
          },
        },
      ]),
    ).toEqual(
      E.right({
        reviews: {
          modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
          filters: 'f',
          slack: 5,
          recent: [sentRow('1'), sentRow('2'), sentRow('3')],
        },
      }),
    )
  })

  it('keeps no sent rows if there are more than 1,000', () => {
    const many = Array.from({ length: 600 }, (_, i) => sentRow(`a${i}`))
    const more = Array.from({ length: 600 }, (_, i) => sentRow(`b${i}`))
    const at = '2026-01-01T00:00:00.000Z'
    expect(
      mergeStates([{ s: { modifiedTimeFrom: at, recent: many } }, { s: { modifiedTimeFrom: at, recent: more } }]),
    ).toEqual(E.right({ s: { modifiedTimeFrom: at, recent: [] } }))
  })

  it('takes the first state of a stream that cannot be shared', () => {
    const reviews = { modifiedTimeFrom: '2026-01-01T00:00:00.000Z', recent: [] }
    const comments = { fromDate: '2026-01-01T00:00:00.000Z', partitions: { 'person:1': { digest: 'a' } } }
    const later = { fromDate: '2026-01-02T00:00:00.000Z', partitions: {} }
    expect(mergeStates([{ reviews }, { reviews, comments }, { reviews, comments: later }])).toEqual(
      E.right({ reviews, comments }),
    )
  })

  it.each([
    ['a stream that one process has not read', {}, 'State 2: reviews is missing'],
    ['a state with an unfinished scan', { reviews: { modifiedTimeFrom: 'x', scan: {} } }, 'is still being read'],
    ['a state of another kind of stream', { reviews: { fromDate: 'x' } }, 'has no modifiedTimeFrom'],
  ])('refuses %s', (_, second, expected) => {
    const merged = mergeStates([{ reviews: { modifiedTimeFrom: '2026-01-01T00:00:00.000Z' } }, second])
    expect(E.isLeft(merged) && merged.left.message).toContain(expected)
  })
})
