import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { toInstant } from '../../../connector/api/model/scalar'
import { withConsistencyCheck } from '../../../connector/streams/feedback/consistency'
import type { FeedbackPage, FeedbackRequest } from '../../../connector/streams/feedback/page'

const day = 86_400_000
const january = { from: Date.parse('2026-01-01'), to: Date.parse('2026-02-01') }
const june = { from: Date.parse('2026-06-01'), to: Date.parse('2026-07-01') }

const ask = (id: string, { from, to } = january): FeedbackRequest => ({
  kind: 'location',
  ids: [id],
  from,
  to,
  page: 1,
})
const page = (id: string, window?: FeedbackPage['window'], at = (window ?? january).from + day): FeedbackPage => ({
  entities: [{ id, name: 'x', rows: [{ id: 1, mentionTime: toInstant(at) }] }],
  perPage: 100,
  ...(window === undefined ? {} : { window }),
})

/** Asks for one thing after another; `answers` come in their order, the last again and again. */
const fetchAnswers = async (asked: ReadonlyArray<FeedbackRequest>, ...answers: ReadonlyArray<FeedbackPage>) => {
  let count = 0
  const fetch = withConsistencyCheck((): TE.TaskEither<ApiError, FeedbackPage> => {
    const answer = answers[Math.min(count, answers.length - 1)] as FeedbackPage
    count += 1
    return TE.right(answer)
  })
  const told = []
  for (const one of asked) told.push(await fetch(one)())
  return { told, count }
}

describe('an answer is asked for again', () => {
  it('where it is about another that was asked for', async () => {
    const { told, count } = await fetchAnswers([ask('1'), ask('2')], page('1'), page('1'), page('2'))
    expect([told[1], count]).toEqual([E.right(page('2')), 3])
  })

  it('where it tells another window than ours', async () => {
    const { told, count } = await fetchAnswers(
      [ask('1'), ask('1', june)],
      page('1', january),
      page('1', january),
      page('1', june),
    )
    expect([told[1], count]).toEqual([E.right(page('1', june)), 3])
  })

  it('where it holds rows of another window than it tells', async () => {
    const { told, count } = await fetchAnswers(
      [ask('1'), ask('1', june)],
      page('1', january),
      page('1', june, january.from),
      page('1', june),
    )
    expect([told[1], count]).toEqual([E.right(page('1', june)), 3])
  })
})

describe('three times in vain', () => {
  it.each<[string, ReadonlyArray<FeedbackRequest>, FeedbackPage, string]>([
    ['it is about another', [ask('1'), ask('2')], page('1'), 'about another'],
    ['it is of another time', [ask('1'), ask('1', june)], page('1', january), '2026-06-01'],
  ])('it is refused where %s, though the service showed that it knows better', async (_, asked, answer, says) => {
    const { told, count } = await fetchAnswers(asked, answer)
    expect(E.isRight(told[0] as E.Either<unknown, unknown>)).toBe(true)
    expect(told[1]).toMatchObject({ left: { _tag: 'Decode', message: expect.stringContaining(says) } })
    expect(count).toBe(4)
  })

  it('it is taken as it is where it is of a roll-up, which may list what it is made of', async () => {
    const { told, count } = await fetchAnswers([ask('1'), { ...ask('7'), kind: 'entity' }], page('1'))
    expect([told[1], count]).toEqual([E.right(page('1')), 4])
  })

  it('it is taken as it is where the service never told what was asked', async () => {
    const { told, count } = await fetchAnswers([ask('1'), ask('1', june)], page('1', { from: 0, to: january.to }))
    expect(told.every((one) => E.isRight(one))).toBe(true)
    expect(count).toBe(4)
  })
})

describe('nothing is asked again', () => {
  it.each<[string, FeedbackPage]>([
    ['calls an entity by a name of its own', page('internal-7')],
    ['narrows the window', page('1', { from: january.from + day, to: january.to })],
    ['tells no window', page('1')],
  ])('where the service %s', async (_, answer) => {
    expect((await fetchAnswers([ask('1')], answer)).count).toBe(1)
  })
})
