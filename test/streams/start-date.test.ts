import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import { decodeEntityState } from '../../connector/streams/entities/state'
import { decodeExportState, mergeStates, openExportState } from '../../connector/streams/export-state'
import {
  futureStartFailure,
  isAheadOfService,
  isStartMovedBack,
  movedBackNote,
  startAfterRun,
  watchServiceTime,
} from '../../connector/streams/start-date'

const at = (text: string) => Date.parse(text)
const [year24, year25, year26] = [at('2024-01-01T00:00:00Z'), at('2025-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z')]

describe('a start date', () => {
  it.each<[string, O.Option<number>, number, boolean]>([
    ['earlier than that of the state moves back', O.some(year25), year24, true],
    ['a millisecond earlier too', O.some(year25), year25 - 1, true],
    ['equal to it does not', O.some(year25), year25, false],
    ['later than it does not', O.some(year25), year26, false],
    ['of a state that remembers none does not', O.none, year24, false],
  ])('%s', (_, readSince, startDate, expected) => {
    expect(isStartMovedBack(readSince, startDate)).toBe(expected)
  })

  it.each<[string, O.Option<number>, number, number, number]>([
    ['is that of the config after a first read', O.none, year25, Number.NEGATIVE_INFINITY, year25],
    ['stays where it is the same', O.some(year25), year25, year26, year25],
    ['stays the earlier one where the run went on behind the later', O.some(year24), year25, year26, year24],
    ['becomes the later one where the run skipped what lies before it', O.some(year24), year26, year25, year26],
    [
      'becomes the later one where entities were not read yet',
      O.some(year24),
      year25,
      Number.NEGATIVE_INFINITY,
      year25,
    ],
  ])('%s', (_, readSince, startDate, from, expected) => {
    expect(startAfterRun(readSince, startDate, from)).toBe(expected)
  })

  it.each([
    ['a day', 86_400_000, true],
    ['a second', 1_000, true],
    ['less than a second, which a Date header does not show,', 999, false],
    ['nothing', 0, false],
  ])('%s ahead of the service is in the future: %s', (_, ahead, isRefused) => {
    const failure = futureStartFailure(year26 + ahead, year26)
    expect(failure === undefined).toBe(!isRefused)
    if (isRefused) expect(failure).toMatchObject({ _tag: 'Config', scope: 'run' })
  })

  it('of another spelling is the same instant', () => {
    const state = (startDate: string) =>
      decodeExportState('reviews', O.some({ modifiedTimeFrom: '2026-01-01T00:00:00.000Z', startDate }))
    const sinceOf = (startDate: string) => E.map(({ readSince }: { readSince: unknown }) => readSince)(state(startDate))
    expect(sinceOf('2025-01-01T00:00:00.000Z')).toEqual(E.right(O.some(year25)))
    expect(sinceOf('2025-01-01T01:00:00+01:00')).toEqual(E.right(O.some(year25)))
    expect(E.isLeft(state('a year ago'))).toBe(true)
  })
})

it.each([
  [0, false],
  [300_000, false],
  [300_001, true],
])('a read that begins %i ms ahead of the service sees nothing: %s', (ahead, expected) => {
  expect(isAheadOfService(year26 + ahead, year26)).toBe(expected)
})

it('one line names the streams, both starts and the cost', () => {
  expect(movedBackNote(['reviews', 'locations'], year25, year24)).toMatchObject({
    level: 'warn',
    message:
      'reviews, locations: start_date moved back from 2025-01-01T00:00:00.000Z to ' +
      '2024-01-01T00:00:00.000Z, so everything since then is read again. This costs ' +
      'as much as a first sync, and rows that you already have are sent again.',
  })
})

describe('a state', () => {
  const reviews = {
    modifiedTimeFrom: '2026-01-01T00:00:00.000Z',
    startDate: '2025-01-01T00:00:00.000Z',
    filters: 'other filters',
    recent: [['1', 1, 'x']],
  }
  it.each([
    ['begins again from an earlier start', year24, O.none, 0],
    ['goes on with the same', year25, O.some(year26), 1],
    ['goes on with a later one', year26, O.some(year26), 1],
  ])('%s', (_, startDate, cursor, sentRows) => {
    const opened = E.map((state: Parameters<typeof openExportState>[0]) => openExportState(state, startDate))(
      decodeExportState('reviews', O.some(reviews)),
    )
    expect(opened).toMatchObject(E.right({ cursor }))
    expect(E.isRight(opened) && opened.right.sentRows).toHaveLength(sentRows)
  })

  it('of a stream by entity remembers its start too, and one without it counts as read from that of the config', () => {
    const { startDate } = reviews
    const fromDate = '2026-01-01T00:00:00.000Z'
    expect(decodeEntityState('comments', O.some({ fromDate, startDate }))).toMatchObject(
      E.right({ readSince: O.some(year25) }),
    )
    expect(decodeEntityState('comments', O.some({ fromDate }))).toMatchObject(E.right({ readSince: O.none }))
  })

  it('of shares that were read from different starts is not merged', () => {
    const share = (startDate?: string) => ({ reviews: { ...reviews, startDate } })
    const failed = mergeStates([share('2025-01-01T00:00:00.000Z'), share('2024-01-01T00:00:00.000Z')])
    expect(E.isLeft(failed) && failed.left).toMatchObject({
      _tag: 'Config',
      message: expect.stringContaining('reviews were read from different start dates'),
    })
    expect(mergeStates([share('2025-01-01T00:00:00Z'), share('2025-01-01T00:00:00.000Z')])).toMatchObject(
      E.right({ reviews: { startDate: '2025-01-01T00:00:00Z' } }),
    )
    expect(E.isRight(mergeStates([share(), share('2025-01-01T00:00:00.000Z')]))).toBe(true)
  })
})

it('the time of the service is that of its first answer, or of the local clock if it sends none', async () => {
  const answers = [{ servedAt: year25 }, { servedAt: year26 }]
  const told = watchServiceTime(
    () => TE.right<never, { servedAt?: number }>(answers.shift() ?? {}),
    () => year24,
  )
  expect(told.serviceTime()).toBe(undefined)
  await told.fetch()()
  await told.fetch()()
  expect(told.serviceTime()).toBe(year25)
  const untold = watchServiceTime(
    () => TE.right<never, { servedAt?: number }>({}),
    () => year24,
  )
  await untold.fetch()()
  expect(untold.serviceTime()).toBe(year24)
})
