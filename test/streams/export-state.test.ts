import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { completeExportState, emptyExportState, mergeStates, rewindStates } from '../../connector/streams/export-state'

const sentRow = (id: string) => [id, 1, 'x']

describe('completeExportState', () => {
  const [startDate, lookback, newest] = [1_000_000, 600_000, 9_000_000]
  it.each<[string, O.Option<number>, O.Option<number>, number]>([
    ['what is certain', O.none, O.some(8_000_000), 8_000_000],
    ['the start date, where nothing is: a single row may be dated in the future', O.none, O.none, startDate],
    ['what was certain before, where nothing new is', O.some(5_000_000), O.none, 5_000_000],
  ])('lets the next run read from a lookback before %s', (_, before, certainTime, expected) => {
    const completion = {
      newestRowTime: O.some(newest),
      certainTime,
      cutoff: newest,
      sentRowsSince: () => ({ rows: [] }),
      hasSameRows: () => true,
    }
    const state = completeExportState({ ...emptyExportState, cursor: before }, { startDate, lookback }, completion)
    expect(state.cursor).toEqual(O.some(newest))
    expect(newest - state.slack).toBe(expected)
  })
})

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
    const comments = { fromDate: '2026-01-01T00:00:00.000Z', entityStates: { 'person:1': { digest: 'a' } } }
    const later = { fromDate: '2026-01-02T00:00:00.000Z', entityStates: {} }
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

describe('rewindStates', () => {
  const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second)
  const rewind = (filters: object, mentionTime: number | undefined) =>
    rewindStates(
      {
        reviews: { modifiedTimeFrom: '2026-01-03T00:00:00.000Z', recent: [] },
        review_tasks: { modifiedTimeFrom: '2026-01-02T00:00:00.000Z', recent: [] },
      },
      {
        stream: 'reviews',
        together: ['reviews', 'review_tasks'],
        versions: [{ modifiedTime: at(0), mentionTime }],
        newer: 1000,
        cutoff: Date.UTC(2026, 0, 3),
      },
      { startDate: 0, lookback: 600_000, pageSize: 10, now: Date.UTC(2026, 0, 4), filters },
    )

  it('reads the seconds in which reviews were written, and nothing that the filters leave out', () => {
    expect(rewind({ mentionTimeBefore: '2026-01-01T00:00:05.500Z' }, at(5))).toMatchObject(
      E.right({
        reviews: {
          modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
          scan: {
            windows: [{ after: Date.UTC(2026, 0, 1, 0, 0, 4), before: Date.UTC(2026, 0, 1, 0, 0, 5, 500) }],
          },
        },
        review_tasks: { modifiedTimeFrom: '2026-01-02T00:00:00.000Z', scan: { newest: Date.UTC(2026, 0, 2) } },
      }),
    )
    expect(rewind({ mentionTimeAfter: '2026-01-01T00:00:04.500Z' }, at(5))).toMatchObject(
      E.right({
        reviews: {
          scan: {
            windows: [{ after: Date.UTC(2026, 0, 1, 0, 0, 4, 500), before: Date.UTC(2026, 0, 1, 0, 0, 6) }],
          },
        },
      }),
    )
  })

  it('moves only the cursor of the stream where it is not known when a review was written', () => {
    const moved = rewind({}, undefined)
    expect(moved).toMatchObject(
      E.right({ reviews: { modifiedTimeFrom: '2026-01-01T00:00:00.000Z' }, review_tasks: { recent: [] } }),
    )
    expect(JSON.stringify(moved)).not.toContain('scan')
  })
})
