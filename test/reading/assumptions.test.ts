import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import type { FetchListPage, PageRequest } from '../../connector/reading/list'
import type { ReadStart } from '../../connector/reading/read'
import { decodeResumeToken } from '../../connector/reading/resume-token'
import { readList, runSimulation } from '../support/export-runs'
import { stableTraits } from '../support/export-simulation'
import { random } from '../support/random'
import {
  deletionList,
  disturb,
  listStart,
  type ReadOutcome,
  readAll,
  refuseEnd,
  reviewList,
  serve,
  servedAt,
  type TestPage,
  type TestRow,
  testRow,
  testRows,
} from '../support/read-list'

/** 400 rows, in pages of 50 that begin at 0, 40, ... 360. */
const all = testRows(400)
const places = { first: 0, middle: 200, last: 360 } as const
const hour = 3_600_000

const shuffle = (rows: ReadonlyArray<TestRow>, seed: number): ReadonlyArray<TestRow> => {
  const draw = random(seed)
  return rows
    .map((row) => ({ row, key: draw() }))
    .sort((a, b) => a.key - b.key)
    .map(({ row }) => row)
}
const without = (from: number, count: number): ReadonlyArray<TestRow> =>
  all.filter((_, i) => i < from || i >= from + count)
const keep = (page: TestPage, length: number): TestPage => ({ ...page, rows: page.rows.slice(0, length) })

/** Counts the requests since the read came to this place: 0 with the one that reaches it, -1 before. */
const countFrom = (place: number) => {
  let since = -1
  return ({ offset }: PageRequest): number => {
    if (since >= 0 || offset >= place) since += 1
    return since
  }
}
type Service = (place: number) => FetchListPage<TestRow>
const answers =
  (change: (page: TestPage, request: PageRequest, since: number) => TestPage): Service =>
  (place) => {
    const count = countFrom(place)
    return disturb(
      serve(() => all),
      (page, request) => {
        const since = count(request)
        return since < 0 ? page : change(page, request, since)
      },
    )
  }
const lists =
  (list: (place: number, since: number, request: PageRequest) => ReadonlyArray<TestRow>): Service =>
  (place) => {
    const count = countFrom(place)
    return serve((request) => {
      const since = count(request)
      return since < 0 ? all : list(place, since, request)
    })
  }

/** `ends`: the assumptions that an INCOMPLETE end may name; none: all rows must be read. */
const breaches: ReadonlyArray<readonly [name: string, ends: ReadonlyArray<string>, service: Service]> = [
  ['an answer is empty', [], answers((page, _, since) => (since === 0 ? keep(page, 0) : page))],
  ['answers stay empty', ['A1'], answers((page) => keep(page, 0))],
  ['an answer lacks five old rows', [], lists((place, since) => (since === 0 ? without(place + 10, 5) : all))],
  ['an answer is cut after three rows', [], answers((page, _, since) => (since === 0 ? keep(page, 3) : page))],
  ['an answer is short', [], answers((page, _, since) => (since === 0 ? keep(page, 20) : page))],
  [
    'every third answer is short',
    ['A1', 'A2', 'A3'],
    answers((page, { limit }, since) => keep(page, since % 3 === 0 ? Math.ceil(limit * 0.6) : limit)),
  ],
  ['answers have 20 rows, whatever is asked for', [], answers((page) => keep(page, 20))],
  ['answers have 6 rows, whatever is asked for', ['A2', 'A3'], answers((page) => keep(page, 6))],
  ['the halves of the list change places', [], lists(() => [...all.slice(200), ...all.slice(0, 200)])],
  ['the list is turned round', [], lists(() => [...all].reverse())],
  ['each answer has another order', [], lists((place, since) => shuffle(all, since + place))],
  ['some rows are listed twice, far apart', ['A1', 'A3'], lists(() => [...all, ...all.slice(10, 14)])],
  [
    'its first page comes for this offset and later ones',
    ['A1', 'A3', 'A4'],
    answers((page, { offset, limit }) => (offset < 40 ? page : { ...page, rows: all.slice(0, limit) })),
  ],
  [
    'mention time filters nothing, and each answer has another order',
    ['A3', 'A4'],
    (place) => {
      const count = countFrom(place)
      return (request) => {
        const since = count(request)
        return serve(() => (since < 0 ? all : shuffle(all, since)))({ ...request, bounds: {} })
      }
    },
  ],
]

const origin = { startDate: Date.UTC(2025, 0, 1), cursor: O.none, lookback: 600_000 }
const goOnFrom = ({ items }: ReadOutcome<TestRow>): Partial<ReadStart> => ({
  resumeToken: decodeResumeToken(JSON.parse(JSON.stringify(items.at(-1)?.resumeToken()))),
})
const firstHalf = () => readAll(reviewList(serve(() => all)), {}, {}, (_, items) => items === 5)
/** How each run starts, and how many of the rows an earlier one has stored. */
const runs: ReadonlyArray<readonly [name: string, start: () => Promise<Partial<ReadStart>>, stored: number]> = [
  ['first', async () => ({}), 0],
  ['incremental', async () => ({ origin: { ...origin, cursor: O.some(listStart) }, isExpected: true }), 0],
  ['resumed', async () => goOnFrom(await firstHalf()), 210],
  ['full refresh', async () => ({ isExpected: true }), 0],
]

const missingIn = (rows: ReadonlyArray<TestRow>, ...reads: ReadonlyArray<ReadonlySet<string>>): ReadonlyArray<string> =>
  rows.map(({ id }) => id).filter((id) => !reads.some((read) => read.has(id)))

/** Complete with all rows, or INCOMPLETE with a message that names one of these assumptions. */
const expectHonest = (
  { failure, isComplete, read, items }: ReadOutcome<TestRow>,
  rows: ReadonlyArray<TestRow>,
  ends: ReadonlyArray<string> = ['A1', 'A2', 'A3', 'A4'],
): void => {
  // A list that shows no row at all moves no cursor.
  const hasCursor = O.isSome(items.at(-1)?.completion?.newestRowTime ?? O.none)
  expect(isComplete).toBe(failure === undefined)
  if (failure === undefined) expect(hasCursor ? missingIn(rows, read) : []).toEqual([])
  else {
    expect(ends).toContain(/\((A\d): /.exec(failure.message)?.[1])
    expect(failure.message).toMatch(/^export \w+: .*not certain that everything was read.*cursor.*did not move/)
  }
}

describe.each(runs)('in a %s run', (_, start, stored) => {
  describe.each(Object.entries(places))('at the %s page', (_, place) => {
    test.each(breaches)('%s', async (_, ends, service) => {
      for (const concurrency of [1, 4]) {
        const outcome = await readAll(reviewList(service(place)), { concurrency }, await start())
        expectHonest(outcome, all.slice(stored), ends)
        if (outcome.failure === undefined) continue
        // The next run continues where this one failed, and misses nothing that this one has not sent.
        const next = await readAll(reviewList(serve(() => all)), {}, goOnFrom(outcome))
        expect(next.isComplete).toBe(true)
        expect(missingIn(all.slice(stored), outcome.read, next.read)).toEqual([])
      }
    })
  })
})

describe('no row is lost although', () => {
  /** Rows in another order with each answer: read in windows, or in rounds. */
  const shuffled = (rows = all): FetchListPage<TestRow> => {
    let n = 0
    return serve(() => shuffle(rows, n++))
  }
  /** In turn, each answer and the ones after it may be the wrong one. */
  const eachAnswer = async (
    list: typeof reviewList,
    change: (page: TestPage, since: number) => TestPage,
    rows: ReadonlyArray<TestRow> = all,
    fetch: () => FetchListPage<TestRow> = () => shuffled(rows),
  ): Promise<void> => {
    for (let first = 1; first < 45; first += 1)
      expectHonest(
        await readAll(list(disturb(fetch(), (page, _, n) => (n < first ? page : change(page, n - first))))),
        rows,
      )
  }

  test.each([1, 2, 5, 12])('windows that had rows are empty in %i answers', (count) =>
    eachAnswer(reviewList, (page, since) => (since < count ? keep(page, 0) : page)),
  )
  test.each([1, 2, 5, 12])('rounds end with an empty page in %i answers', (count) =>
    eachAnswer(deletionList, (page, since) => (since < count ? keep(page, 0) : page)),
  )
  test.each([1])('%i answer is cut to four rows', async (count) => {
    for (const list of [reviewList, deletionList])
      await eachAnswer(list, (page, since) => (since < count ? keep(page, 4) : page))
  })
  test.each([5, 8, 12, 13, 16, 17, 30])(
    'a short page is followed by a probe that is cut to %i rows',
    async (length) => {
      for (const place of [0, 40, 200, 320]) {
        const cut = answers((page, _, since) => keep(page, since === 0 ? 20 : since === 1 ? length : 50))
        expectHonest(await readAll(reviewList(cut(place))), all)
      }
    },
  )
  test('replicas give different numbers of rows at most', async () => {
    for (const fetch of [() => shuffled(), () => serve(() => all)])
      for (const list of [reviewList, deletionList])
        expectHonest(await readAll(list(disturb(fetch(), (page, _, n) => keep(page, n % 2 === 0 ? 20 : 50)))), all)
  })
  test('the last page is cut, and as many rows of earlier pages are deleted', async () => {
    for (let count = 1; count <= 12; count += 1) {
      const rest = all.slice(count)
      const cut = lists((_, since) => (since === 0 ? all.slice(0, 400 - count) : rest))
      expectHonest(await readAll(reviewList(cut(360))), rest)
    }
  })
  test('a second holds more rows than a page, and its next reading is empty', () => {
    const rows = testRows(300, (id) => testRow(id, undefined, { mention: listStart - (id < 200 ? 0 : id * hour) }))
    return eachAnswer(reviewList, (page, since) => (since < 2 ? keep(page, 0) : page), rows)
  })
  test('rows at the bounds of windows match both', async () => {
    let n = 0
    const inclusive: FetchListPage<TestRow> = ({ bounds, ...request }) =>
      serve(() => shuffle(all, n++))({
        ...request,
        bounds: bounds.before === undefined ? bounds : { ...bounds, before: bounds.before + 1 },
      })
    const outcome = await readAll(reviewList(inclusive))
    expect(outcome.isComplete).toBe(true)
    expect(missingIn(all, outcome.read)).toEqual([])
  })
  test.each([0, 20])('5,000 rows have one second, in any order, and %i another', async (others) => {
    const crowd = testRows(5000, (id) => testRow(id, listStart, { mention: listStart }))
    const rows = [...crowd, ...testRows(others, (id) => testRow(10_000 + id))]
    const inOrder = serve(() => rows)
    const reads = [reviewList(inOrder), reviewList(shuffled(rows)), deletionList(inOrder), deletionList(shuffled(rows))]
    for (const list of reads) {
      const outcome = await readAll(list, { limit: 1000 })
      expect(outcome.failure).toBeUndefined()
      expect(missingIn(rows, outcome.read)).toEqual([])
      expect(outcome.requests.length).toBeLessThan(250)
    }
  })
  test('the third page is empty for half a second', async () => {
    const fetch = disturb(
      serve(() => all),
      (page, _, n) => (n === 3 ? keep(page, 0) : page),
    )
    const outcome = await readAll(reviewList(fetch))
    expect(missingIn(all, outcome.read)).toEqual([])
    expect(outcome).toMatchObject({ isComplete: true, waits: [500] })
    expect(outcome.requests.length).toBeLessThanOrEqual(14)
    expect(outcome.notes).toEqual([expect.stringContaining('missing; asking again in 500 ms')])
  })
  test('500 rows come though 1,000 are asked for and echoed', async () => {
    const rows = testRows(5000)
    const fetch = disturb(
      serve(() => rows),
      (page) => ({ ...keep(page, 500), limit: 1000 }),
    )
    const outcome = await readAll(reviewList(fetch), { limit: 1000 })
    expect(missingIn(rows, outcome.read)).toEqual([])
    expect(outcome.isComplete).toBe(true)
    expect(outcome.requests.length).toBeLessThan(20)
  })
  test('replicas are 30 s behind, order equal times differently, and refuse offsets behind the end', async () => {
    const traits = { order: 'ascending', ties: 'replicas', lag: 30_000, rowsPerTime: 7, changes: 1 } as const
    for (let seed = 0; seed < 12; seed += 1) {
      const { differences, unfinished } = await runSimulation(
        { ...stableTraits, ...traits, additions: 0.5, deletions: 0.2 },
        {
          ...{ seed, limit: 50, concurrency: 1, runs: 3, crashes: true },
          reader: (list) => readList({ ...list, fetch: refuseEnd(list.fetch) }),
        },
      )
      expect({ differences, unfinished }).toEqual({ differences: [], unfinished: [] })
    }
  })
})

describe('a range that was not asked for', () => {
  const day = 24 * hour
  /** One mention each day. */
  const rows = testRows(300, (id) => testRow(id, undefined, { mention: servedAt - id * day }))
  const narrow = { after: servedAt - 90 * day }
  const withDefault =
    (isHonoured: boolean): FetchListPage<TestRow> =>
    (request) => {
      const bounds = { ...request.bounds, ...(isHonoured && request.bounds.after !== undefined ? {} : narrow) }
      return disturb(
        serve(() => rows),
        (page) => ({ ...page, bounds }),
      )({ ...request, bounds })
    }

  test('is widened, so that everything is read', async () => {
    const outcome = await readAll(reviewList(withDefault(true)))
    expect(missingIn(rows, outcome.read)).toEqual([])
    expect(outcome.isComplete).toBe(true)
  })
  test('ends the stream INCOMPLETE if it cannot be widened', async () => {
    const outcome = await readAll(reviewList(withDefault(false)))
    expect(outcome).toMatchObject({ isComplete: false, ids: [] })
    expect(outcome.failure?.message).toMatch(/mentionTimeAfter 2025-11-02T00:00:00.000Z.*A4.*cursor.*did not move/)
  })
  test('ends deletions INCOMPLETE, which no filter widens', async () => {
    const { failure, ids } = await readAll(deletionList(withDefault(true)))
    expect(ids).toEqual([])
    expect(failure?.message).toMatch(/leaves out rows by its own default.*mentionTimeAfter 2025-11-02/)
  })
  test.each([
    ['since 1970', { after: 0 }],
    ['up to now', { before: servedAt }],
    ['both', { after: 0, before: servedAt }],
  ])('changes nothing if it leaves out nothing: %s', async (_, bounds) => {
    const fetch = serve(() => rows)
    const told = await readAll(reviewList(disturb(fetch, (page) => ({ ...page, bounds }))))
    expect(told.requests).toEqual((await readAll(reviewList(fetch))).requests)
    expect(told).toMatchObject({ isComplete: true, notes: [] })
  })
})

test('a share of a backfill is refused by name where mention time filters nothing', async () => {
  const ignoring: FetchListPage<TestRow> = (request) => serve(() => all)({ ...request, bounds: {} })
  const windows = [{ after: listStart - 90 * hour }]
  const { failure, isComplete } = await readAll(reviewList(ignoring), {}, { windows })
  expect(isComplete).toBe(false)
  expect(failure?.message).toMatch(/does not keep to the filters by mention time.*A4.*remove partition/)
})
