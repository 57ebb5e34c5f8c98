import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { toInstant } from '../../../connector/cdk/scalar'
import { withConsistencyCheck } from '../../../connector/streams/feedback/consistency'
import type { FeedbackPage, FeedbackRequest } from '../../../connector/streams/feedback/page'

const day = 86_400_000
const january = { from: Date.parse('2026-01-01'), to: Date.parse('2026-02-01') }
const june = { from: Date.parse('2026-06-01'), to: Date.parse('2026-07-01') }

const requestFor = (id: string, { from, to } = january): FeedbackRequest => ({
  kind: 'location',
  ids: [id],
  from,
  to,
  page: 1,
})
const pageOf = (id: string, window?: FeedbackPage['window'], at = (window ?? january).from + day): FeedbackPage => ({
  entities: [{ id, name: 'x', rows: [{ id: 1, mentionTime: toInstant(at) }] }],
  perPage: 100,
  ...(window === undefined ? {} : { window }),
})

/** Makes the requests one after another; `answers` are given in order, the last one repeatedly. Also counts the fetches. */
const fetchAnswers = async (requests: ReadonlyArray<FeedbackRequest>, ...answers: ReadonlyArray<FeedbackPage>) => {
  let count = 0
  const fetch = withConsistencyCheck((): TE.TaskEither<ApiError, FeedbackPage> => {
    const answer = answers[Math.min(count, answers.length - 1)] as FeedbackPage
    count += 1
    return TE.right(answer)
  })
  const pages = []
  for (const request of requests) pages.push(await fetch(request)())
  return { pages, count }
}

describe('an answer is fetched again', () => {
  it('if it is about another entity that was requested', async () => {
    const { pages, count } = await fetchAnswers(
      [requestFor('1'), requestFor('2')],
      pageOf('1'),
      pageOf('1'),
      pageOf('2'),
    )
    expect([pages[1], count]).toEqual([E.right(pageOf('2')), 3])
  })

  it('if it echoes another window than the requested one', async () => {
    const { pages, count } = await fetchAnswers(
      [requestFor('1'), requestFor('1', june)],
      pageOf('1', january),
      pageOf('1', january),
      pageOf('1', june),
    )
    expect([pages[1], count]).toEqual([E.right(pageOf('1', june)), 3])
  })

  it('if its rows are not of the window that it echoes', async () => {
    const { pages, count } = await fetchAnswers(
      [requestFor('1'), requestFor('1', june)],
      pageOf('1', january),
      pageOf('1', june, january.from),
      pageOf('1', june),
    )
    expect([pages[1], count]).toEqual([E.right(pageOf('1', june)), 3])
  })
})

describe('an answer that stays inconsistent three times', () => {
  it.each<[string, ReadonlyArray<FeedbackRequest>, FeedbackPage, string]>([
    ['it is about another entity', [requestFor('1'), requestFor('2')], pageOf('1'), 'about another'],
    ['it is of another window', [requestFor('1'), requestFor('1', june)], pageOf('1', january), '2026-06-01'],
  ])('is refused if %s and an earlier answer was consistent', async (_, requests, answer, message) => {
    const { pages, count } = await fetchAnswers(requests, answer)
    expect(E.isRight(pages[0] as E.Either<unknown, unknown>)).toBe(true)
    expect(pages[1]).toMatchObject({ left: { _tag: 'Decode', message: expect.stringContaining(message) } })
    expect(count).toBe(4)
  })

  it('is accepted for a roll-up, which may list its members', async () => {
    const { pages, count } = await fetchAnswers([requestFor('1'), { ...requestFor('7'), kind: 'entity' }], pageOf('1'))
    expect([pages[1], count]).toEqual([E.right(pageOf('1')), 4])
  })

  it('is accepted if the service has never echoed the requested window', async () => {
    const { pages, count } = await fetchAnswers(
      [requestFor('1'), requestFor('1', june)],
      pageOf('1', { from: 0, to: january.to }),
    )
    expect(pages.every(E.isRight)).toBe(true)
    expect(count).toBe(2)
  })
})

describe('an answer is accepted at once', () => {
  it.each<[string, FeedbackPage]>([
    ['lists an entity under an id of its own', pageOf('internal-7')],
    ['narrows the window', pageOf('1', { from: january.from + day, to: january.to })],
    ['echoes no window', pageOf('1')],
  ])('if the service %s', async (_, answer) => {
    expect((await fetchAnswers([requestFor('1')], answer)).count).toBe(1)
  })
})
