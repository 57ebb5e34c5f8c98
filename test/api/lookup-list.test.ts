import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../connector/api/error'
import {
  type LookupListRequest,
  type LookupPaging,
  type LookupRecord,
  maxLookupPages,
  readLookupList,
} from '../../connector/api/lookup-list'
import { draws } from '../support/draws'

const paging: LookupPaging = { pageParam: 'page', firstPage: 1, sizeParam: 'size', size: 3, totalPagesPath: 'total' }
const rows = (from: number, to: number): ReadonlyArray<LookupRecord> =>
  Array.from({ length: to - from + 1 }, (_, n) => ({ id: from + n }))

/** What a service answers to the request of this number, from 1, for a page of this number. */
type Answer = (page: number, size: number, request: number) => unknown

const httpError = (status: number): ApiError => ({ _tag: 'Http', status, message: `the service answered ${status}` })
const isHttpError = (value: unknown): value is ApiError =>
  typeof value === 'object' && value !== null && '_tag' in value

const read = async (answer: Answer, more: Partial<LookupListRequest> = {}) => {
  const pages: number[] = []
  const result = await readLookupList({
    setting: 'lookups.locations',
    recordsPath: 'data',
    paging,
    identify: ({ id }) => (id === undefined ? undefined : String(id)),
    fetch: (query) => async () => {
      const page = Number(query.page)
      pages.push(page)
      const value = answer(page, Number(query.size ?? 3), pages.length)
      return isHttpError(value) ? E.left(value) : E.right(value)
    },
    ...more,
  })()
  const list = E.isRight(result) ? result.right : undefined
  const left = E.isLeft(result) ? result.left : undefined
  return {
    pages,
    ids: list?.records.map(({ id }) => id),
    notes: list?.notes.join(' ') ?? '',
    doubt: list?.doubt ?? '',
    error: left === undefined ? '' : left._tag === 'Answer' ? left.failure.message : JSON.stringify(left.error),
    failure: left?._tag === 'Answer' ? left.failure._tag : left?._tag,
  }
}

const pageOf = (all: ReadonlyArray<LookupRecord>, page: number, size: number) =>
  all.slice((page - 1) * size, page * size)
/** A service as it should be. */
const serve =
  (all: ReadonlyArray<LookupRecord>, told?: number): Answer =>
  (page, size) => ({ data: pageOf(all, page, size), total: told ?? Math.ceil(all.length / size) })
const withoutTotal =
  (all: ReadonlyArray<LookupRecord>): Answer =>
  (page, size) => ({ data: pageOf(all, page, size) })
const idsOf = (all: ReadonlyArray<LookupRecord>) => all.map(({ id }) => id)

describe('a list in pages', () => {
  it.each<[string, Answer, number, ReadonlyArray<number>]>([
    ['of two pages, which end at the total', serve(rows(1, 5)), 5, [1, 2, 1, 2]],
    ['of full pages: one more shows that the total is right', serve(rows(1, 6)), 6, [1, 2, 3, 1, 2, 3]],
    ['of one page that is short', serve(rows(1, 2)), 2, [1, 2]],
    ['of one page that is full', serve(rows(1, 3)), 3, [1, 2]],
    ['without a total', withoutTotal(rows(1, 5)), 5, [1, 2, 1, 2]],
    ['without a total, of full pages', withoutTotal(rows(1, 6)), 6, [1, 2, 3, 1, 2, 3]],
    ['that is empty', serve([]), 0, [1]],
  ])('%s, is read completely, twice where it has several pages', async (_, answer, count, expected) => {
    const { ids, pages, notes, doubt } = await read(answer)
    expect([ids, pages, notes, doubt]).toEqual([idsOf(rows(1, count)), expected, '', ''])
  })

  it.each<[string, Answer, number, RegExp]>([
    ['tells one page and has three', serve(rows(1, 7), 1), 7, /has more pages than it reports \(1\)/],
    [
      'tells one page and allows only two records in each',
      (page) => ({ data: pageOf(rows(1, 5), page, 2), total: 1 }),
      5,
      /more pages/,
    ],
    ['tells a hundred pages and has two', serve(rows(1, 5), 100), 5, /reports 100 pages, but page 3 is empty/],
    ['tells no number of pages', serve(rows(1, 5), Number.NaN), 5, /^$/],
    ['tells its pages as text', (page, size) => ({ data: pageOf(rows(1, 5), page, size), total: '2' }), 5, /^$/],
    ['allows shorter pages than asked for', (page) => ({ data: pageOf(rows(1, 5), page, 2) }), 5, /^$/],
    [
      'gives the last page again and again',
      (page, size) => ({ data: pageOf(rows(1, 6), Math.min(page, 2), size) }),
      6,
      /^$/,
    ],
    ['ignores both parameters', () => ({ data: rows(1, 8) }), 8, /^$/],
    ['ignores both parameters and tells pages', () => ({ data: rows(1, 8), total: 3 }), 8, /^$/],
    ['refuses the page behind a short one', (page) => (page > 1 ? httpError(404) : { data: rows(1, 2) }), 2, /^$/],
    ['sorts the other way round', serve([...rows(1, 7)].reverse()), 7, /^$/],
  ])('is complete where the service %s', async (_, answer, count, notes) => {
    const result = await read(answer)
    expect([...(result.ids ?? [])].sort()).toEqual(idsOf(rows(1, count)))
    expect(result.notes).toMatch(notes)
    expect([result.doubt, result.error]).toEqual(['', ''])
  })

  it.each<[string, Answer, RegExp, string]>([
    [
      'never ends',
      (page, size) => ({ data: rows(page * size, page * size + size - 1) }),
      /does not end after 1000 pages/,
      'Config',
    ],
    [
      'repeats the first page though it tells more',
      () => ({ data: rows(1, 3), total: 4 }),
      /page 2 repeats earlier pages/,
      'Config',
    ],
    [
      'refuses a page in the middle',
      (page, size) => (page === 2 ? httpError(403) : serve(rows(1, 9))(page, size, 0)),
      /403/,
      'Request',
    ],
    [
      'fails in the middle',
      (page, size) => (page === 3 ? httpError(404) : serve(rows(1, 9))(page, size, 0)),
      /404/,
      'Request',
    ],
    [
      'has its list elsewhere',
      () => ({ items: [{ id: 1 }] }),
      /records_path: there is no list of objects at data. The answer has one at items/,
      'Config',
    ],
  ])('is an error where the service %s', async (_, answer, error, failure) => {
    const result = await read(answer)
    expect(result.error).toMatch(error)
    expect([result.failure, result.ids]).toEqual([failure, undefined])
    expect(result.pages.length).toBeLessThanOrEqual(maxLookupPages)
  })

  it.each<[string, Answer, RegExp]>([
    ['repeats a full first page', () => ({ data: rows(1, 3) }), /second page repeats the first/],
    [
      'refuses the page behind a full one',
      (page) => (page > 1 ? httpError(400) : { data: rows(1, 3) }),
      /refuses page 2, which is treated as the end/,
    ],
  ])('is given with a doubt where the service %s', async (_, answer, doubt) => {
    const result = await read(answer)
    expect(result.ids).toEqual([1, 2, 3])
    expect(result.doubt).toMatch(doubt)
  })

  it('has the parameters that paging names, from its first page on, beside those of every request', async () => {
    const queries: unknown[] = []
    await readLookupList({
      setting: 's',
      recordsPath: '',
      paging: { pageParam: 'p', firstPage: 0, size: 2 },
      query: { sortBy: 'id' },
      identify: () => undefined,
      fetch: (query) => async () => {
        queries.push(query)
        return E.right(queries.length === 1 ? [{ id: 1 }, { id: 2 }] : [{ id: 3 }])
      },
    })()
    expect(queries.slice(0, 2)).toEqual([
      { sortBy: 'id', p: 0 },
      { sortBy: 'id', p: 1 },
    ])
  })

  it('keeps two records of one page that differ, and the newer of two pages', async () => {
    const twice = await read(() => ({
      data: [
        { id: 1, a: 1 },
        { id: 1, a: 2 },
      ],
    }))
    expect(twice.ids).toEqual([1, 1])
    const moved = await read((page) => ({
      data: page === 1 ? [{ id: 1 }, { id: 2 }, { id: 3, v: 1 }] : page === 2 ? [{ id: 3, v: 2 }, { id: 4 }] : [],
    }))
    expect(moved.ids).toEqual([1, 2, 3, 4])
  })
})

describe('a list that changes while it is read', () => {
  it('is read again where a removed record shifts another onto a page that was read', async () => {
    let all = rows(1, 9)
    const { ids, notes, pages } = await read((page, size, request) => {
      const answer = { data: pageOf(all, page, size) }
      if (request === 1) all = all.filter(({ id }) => id !== 2)
      return answer
    })
    expect(ids).toEqual([1, 3, 4, 5, 6, 7, 8, 9])
    expect(notes).toMatch(/the list changed while it was read, so it was read 3 times/)
    expect(pages).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3])
  })

  it('is no list where every reading lacks records of the one before', async () => {
    let first = 1
    const result = await read((page, size) => {
      first += 1
      return { data: pageOf(rows(first, first + 20), page, size) }
    })
    expect(result.failure).toBe('Transient')
    expect(result.error).toMatch(/changes faster than it can be read/)
  })

  it('never lacks a record that is there all the time, in any order of changes', async () => {
    const change = fc.record({ remove: fc.nat(30), add: fc.boolean() })
    const order = fc.constantFrom('ascending', 'descending')
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 20 }),
        fc.array(fc.option(change), { maxLength: 12 }),
        order,
        fc.boolean(),
        async (count, changes, sorting, isTold) => {
          let all = rows(1, count)
          let next = 1000
          const removed = new Set<unknown>()
          const { ids, failure } = await read((page, size, request) => {
            const sorted = sorting === 'ascending' ? all : [...all].reverse()
            const answer = isTold ? serve(sorted)(page, size, request) : withoutTotal(sorted)(page, size, request)
            const step = changes[request - 1]
            if (step !== null && step !== undefined) {
              const gone = all[step.remove]
              if (gone !== undefined) removed.add(gone.id)
              all = [...all.filter((row) => row !== gone), ...(step.add ? [{ id: next++ }] : [])]
            }
            return answer
          })
          if (ids === undefined) {
            expect(failure).toBe('Transient')
            return
          }
          const there = idsOf(rows(1, count)).filter((id) => !removed.has(id))
          expect(ids).toEqual(expect.arrayContaining(there))
        },
      ),
      draws(1000),
    )
  })
})
