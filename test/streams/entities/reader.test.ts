import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it, test } from 'vitest'
import type { CommentsForm, ReviewsRequest } from '../../../connector/api/model/entity'
import type { Api } from '../../../connector/api/routes'
import type { SyncMode } from '../../../connector/cdk/message'
import { toMillis } from '../../../connector/cdk/scalar'
import type { EntityRows } from '../../../connector/streams/entities/answer'
import { commentsStream, transparencyReviewsStream } from '../../../connector/streams/entities/operations'
import { judge, type Shown } from '../../../connector/streams/entities/reader'
import { createSourceEnv, readAll, selectEntities } from '../../support/in-process'

const start = Date.parse('2026-03-01T12:00:00.250Z')
const day = 86_400_000

type Asked = { readonly id: string; readonly from: number; readonly to: number; readonly page: number }
type Row = { readonly id: number; readonly mention: number }
type Answer = { readonly listedId?: string; readonly rows: ReadonlyArray<Row> }

/** A service for operation 1 that is made of a function of what is asked, and of how often that was asked before. */
const createService = (answerOf: (asked: Asked, times: number) => Answer, perPage = 100) => {
  const asked: Asked[] = []
  const counts = new Map<string, number>()
  const retrieveReviews = (request: ReviewsRequest) => {
    const { personId = '', entityId = personId, fromDate, toDate, page = 0 } = request
    const one = { id: entityId, from: toMillis(String(fromDate)), to: toMillis(String(toDate)), page }
    const times = counts.get(JSON.stringify(one)) ?? 0
    counts.set(JSON.stringify(one), times + 1)
    asked.push(one)
    const { listedId = one.id, rows } = answerOf(one, times)
    const size = Math.min(perPage, request.perPage ?? 20)
    const reviews = rows
      .slice(page * size, (page + 1) * size)
      .map(({ id, mention }) => ({ documentId: id, mentionTime: new Date(mention).toISOString() }))
    return TE.right({
      status: { code: 200 },
      servedAt: start,
      data: { entities: [{ id: listedId, reviews }], filter: { perPage: size } },
    })
  }
  return { api: { retrieveReviews } as Pick<Api, 'retrieveReviews'>, asked }
}

const read = (
  { api }: { readonly api: Partial<Api> },
  persons: ReadonlyArray<string>,
  syncMode: SyncMode = 'incremental',
  state = {},
  entities: ReadonlyArray<string> = [],
) =>
  readAll(
    createSourceEnv(api, {
      now: () => start,
      startDate: start - 400 * day,
      entities: selectEntities({ persons, entities }),
      feedback: { thresholds: {}, perPage: 100, days: 365, lookbackDays: 30 },
    }),
    [transparencyReviewsStream],
    state,
    syncMode,
  )

const inWindow = (rows: ReadonlyArray<Row>, { from, to }: Asked): ReadonlyArray<Row> =>
  rows.filter(({ mention }) => mention >= from && mention <= to)
const rowsOf = (count: number, spacing = day): ReadonlyArray<Row> =>
  Array.from({ length: count }, (_, n) => ({ id: n + 1, mention: start - (n + 1) * spacing }))
const idsOf = (rows: ReadonlyArray<Record<string, unknown>> = []): ReadonlyArray<unknown> =>
  rows.map(({ documentId }) => documentId)

test.each<[string, Partial<Shown>, Partial<EntityRows> & { readonly count: number }, ReturnType<typeof judge>]>([
  ['a full page', {}, { count: 100 }, 'cut'],
  ['a full page, though one is told', {}, { count: 100, pages: 1 }, 'cut'],
  ['more rows than ever before', {}, { count: 5 }, 'unknown'],
  ['more rows than ever before, though one page is told', {}, { count: 5, pages: 1 }, 'unknown'],
  ['one page that is told', { longest: 9 }, { count: 5, pages: 1 }, 'complete'],
  ['several pages that are told', { longest: 9 }, { count: 5, pages: 2 }, 'unknown'],
  ['a short page where none was full', { longest: 9 }, { count: 5 }, 'unknown'],
  ['a short page where others were full', { longest: 100 }, { count: 5 }, 'complete'],
  ['as many rows as a page that others followed', { longest: 9, cut: 9 }, { count: 9, pages: 1 }, 'cut'],
  ['a page where short ones were followed by others', { longest: 100, cut: 7 }, { count: 50 }, 'unknown'],
  ['no rows', {}, { count: 0 }, 'complete'],
  ['no rows, though pages are told', {}, { count: 0, pages: 3 }, 'unknown'],
  ['no rows where short pages were followed by others', { longest: 9, cut: 2 }, { count: 0 }, 'unknown'],
])('judges %s', (_, shown, { count, ...rows }, extent) => {
  const known = { longest: 0, cut: Number.POSITIVE_INFINITY, ...shown } as Shown
  expect(judge(known, { ...rows, rows: Array.from({ length: count }, () => ({})) }, 100)).toBe(extent)
})

describe('an answer about another entity', () => {
  const twoPeople = (wrong: number) =>
    createService(({ id }, times) => ({ listedId: id === '2' && times < wrong ? '1' : id, rows: rowsOf(3) }))

  it('is asked for again', async () => {
    const { records, logs } = await read(twoPeople(2), ['1', '2'])
    expect([records.transparency_reviews?.length, logs]).toEqual([6, []])
  })

  it('leaves the entity to the next run, and keeps no other one from being read', async () => {
    const { records, logs, failures, state } = await read(twoPeople(1000), ['2', '1'])
    expect([records.transparency_reviews?.length, failures]).toEqual([3, {}])
    expect(logs).toEqual([
      expect.stringContaining('person 2 cannot be read completely: the answer is about a different'),
    ])
    const again = await read(twoPeople(0), ['2', '1'], 'incremental', state)
    expect(again.records.transparency_reviews).toHaveLength(3)
  })

  it('ends a full refresh INCOMPLETE, since an overwrite would delete the rows of the entity', async () => {
    const { records, failures, state } = await read(twoPeople(1000), ['2', '1'], 'full_refresh')
    expect(records.transparency_reviews).toHaveLength(3)
    expect(failures.transparency_reviews).toMatch(/one entity was not read completely.*would delete.*Run again/)
    const again = await read(twoPeople(0), ['2', '1'], 'full_refresh', state)
    expect([again.records.transparency_reviews?.length, again.failures]).toEqual([3, {}])
  })

  it.each([
    ['an id of the service', (id: string) => `internal-${id}`],
    ['a member that is not asked for', () => '77'],
  ])('is none where it lists the entity under %s', async (_, listedAs) => {
    const { api, asked } = createService(({ id }) => ({ listedId: listedAs(id), rows: rowsOf(3) }))
    const { records } = await read({ api }, ['1', '2'])
    expect(records.transparency_reviews).toHaveLength(6)
    expect(asked.length).toBeLessThan(8)
  })

  it('is none where a roll-up lists a person who is read too', async () => {
    const { api } = createService(() => ({ listedId: '1', rows: rowsOf(3) }))
    const { records, logs } = await read({ api }, ['1'], 'incremental', {}, ['20'])
    expect([records.transparency_reviews?.length, logs]).toEqual([6, []])
  })
})

describe('an answer without rows', () => {
  it('is asked for twice in a first read, since it may be empty for a moment', async () => {
    const { api } = createService((asked, times) => ({ rows: times === 0 ? [] : inWindow(rowsOf(5), asked) }))
    expect(idsOf((await read({ api }, ['1'])).records.transparency_reviews)).toHaveLength(5)
  })

  it('is believed where a later run reads the window again', async () => {
    const { api, asked } = createService((one) => ({ rows: inWindow(rowsOf(5, 60 * day), one) }))
    const first = await read({ api }, ['1'])
    const before = asked.length
    expect((await read({ api }, ['1'], 'incremental', first.state)).records.transparency_reviews).toEqual([])
    expect(asked.length - before).toBe(1)
  })

  it('does not take back what an answer for a longer window had', async () => {
    const rows = rowsOf(150)
    const { api } = createService((one, times) => ({
      rows: times === 0 && one.to - one.from < 300 * day ? [] : inWindow(rows, one),
    }))
    expect(idsOf((await read({ api }, ['1'])).records.transparency_reviews)).toHaveLength(150)
  })
})

describe('many rows', () => {
  it.each([3_000, 20_000])('%i of one entity take at most twice the requests of its pages', async (count) => {
    const rows = rowsOf(count, Math.floor((390 * day) / count))
    const { api, asked } = createService((one) => ({ rows: inWindow(rows, one) }))
    const { records, logs } = await read({ api }, ['1'])
    expect([new Set(idsOf(records.transparency_reviews)).size, logs]).toEqual([count, []])
    expect(asked.length).toBeLessThan((2 * count) / 100)
  })
})

it('a page filtered to nothing hides no later one if the number of pages is given', async () => {
  const comments = rowsOf(5).map(({ id, mention }) => ({ id, mentionTime: new Date(mention).toISOString() }))
  const answer = ({ page = 1 }: CommentsForm) =>
    TE.right({
      status: { code: 200 },
      servedAt: start,
      data: { entities: [{ id: '1', comments: page === 2 ? comments : [], totalPages: 2 }], filter: { perPage: 100 } },
    })
  const api = { retrieveComments: answer, retrieveCommentsByForm: answer } as unknown as Partial<Api>
  const source = createSourceEnv(api, {
    now: () => start,
    startDate: start - 400 * day,
    entities: selectEntities({ persons: ['1'] }),
  })
  const { records, logs } = await readAll(source, [commentsStream])
  expect(records.comments?.length === 5 || /person 1 cannot be read completely/.test(logs.join())).toBe(true)
})
