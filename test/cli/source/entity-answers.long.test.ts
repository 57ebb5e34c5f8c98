import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { streams } from '../../../connector/streams/streams'
import { messages, warehouse } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'

const hour = 3_600_000
const start = Date.parse('2024-06-01T00:00:00Z')
const keys = Object.fromEntries(streams.map(({ name, primaryKey }) => [name, primaryKey]))

type Row = { readonly id: number; readonly mentionTime: string }
const rowsFrom = (first: number, count: number): ReadonlyArray<Row> =>
  Array.from({ length: count }, (_, n) => ({ id: first + n, mentionTime: new Date(start + n * hour).toISOString() }))
const idsFrom = (first: number, count: number): ReadonlyArray<number> => rowsFrom(first, count).map(({ id }) => id)

type Block = {
  readonly id: string
  readonly rows: ReadonlyArray<Row>
  readonly pages?: number
  readonly summary?: object
}
/** A request as the service takes it; `page` from 0. */
type Asked = {
  readonly kind: string
  readonly ids: ReadonlyArray<string>
  readonly page: number
  readonly scrollKey: string | undefined
  /** The rows of the page, of `size` rows where that is given. */
  readonly pageOf: (rows: ReadonlyArray<Row>, size?: number) => ReadonlyArray<Row>
}
type Answer = ReadonlyArray<Block> | { readonly refusal: readonly [status: number, code: number | string] }

const parametersOf = (method: string, url: string, body: string): URLSearchParams =>
  method === 'GET'
    ? new URL(url, 'http://small').searchParams
    : url.endsWith('/v2/reviews')
      ? new URLSearchParams(
          Object.entries(JSON.parse(body)).map(([key, value]): [string, string] => [key, String(value)]),
        )
      : new URLSearchParams(body)

/** Operations 1 to 3 with what `answer` makes of a request, and runs of `stream` against them. */
const startRuns = async (
  stream: string,
  entities: unknown,
  answer: (asked: Asked) => Answer,
  {
    usesDates = true,
    givesKeys = false,
    config: more = {},
    onEnd,
  }: {
    readonly usesDates?: boolean
    /** Each page but the last has a scrollKey, which leads to the next one. */
    readonly givesKeys?: boolean
    readonly config?: object
    readonly onEnd?: (close: () => void) => void
  } = {},
) => {
  const firstPage = stream === 'comments' ? 1 : 0
  const reply = ({ method, url, body }: { method: string; url: string; body: string }, response: ServerResponse) => {
    const parameters = parametersOf(method, url, body)
    const [kind = ''] = ['person', 'location', 'entity'].filter((one) => parameters.has(`${one}Id`))
    const scrollKey = parameters.get('scrollKey') ?? undefined
    const perPage = Number(parameters.get('perPage'))
    const page = Number(scrollKey?.slice(1) ?? Number(parameters.get('page')) - firstPage)
    const [from, to] = ['fromDate', 'toDate'].map((name) => Date.parse(parameters.get(name) ?? ''))
    const isInside = ({ mentionTime }: Row): boolean =>
      !usesDates ||
      Number.isNaN(from) ||
      (Date.parse(mentionTime) >= Number(from) && Date.parse(mentionTime) <= Number(to))
    let hasMore = false
    const pageOf = (rows: ReadonlyArray<Row>, size = perPage) => {
      const inside = rows.filter(isInside)
      hasMore ||= inside.length > (page + 1) * size
      return inside.slice(page * size, (page + 1) * size)
    }
    const answered = answer({ kind, ids: parameters.getAll(`${kind}Id`), page, scrollKey, pageOf })
    if ('refusal' in answered) {
      const [status, code] = answered.refusal
      return sendJson(response, status, { status: { code, message: 'page out of range' }, data: null })
    }
    sendJson(response, 200, {
      status: { code: 200, message: 'success' },
      data: {
        client: 'small',
        entities: answered.map(({ id, rows, pages, summary = {} }) => ({
          id,
          name: `The ${id}`,
          ...summary,
          ...(pages === undefined ? {} : { totalPages: pages }),
          ...(stream === 'comments'
            ? { comments: rows }
            : { reviews: rows.map(({ id: documentId, ...row }) => ({ documentId, ...row })) }),
        })),
        filter: {
          perPage,
          ...(usesDates && givesKeys ? { fromDate: parameters.get('fromDate'), toDate: parameters.get('toDate') } : {}),
          ...(givesKeys && hasMore ? { scrollKey: `k${page + 1}` } : {}),
        },
      },
    })
  }
  const { url, seen } = await startServer(reply, onEnd)
  const config = writeTempFile({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2024-01-01T00:00:00Z',
    entities,
    ...more,
  })
  const catalog = writeTempFile({ streams: [{ stream: { name: stream, json_schema: {} }, sync_mode: 'incremental' }] })
  const destination = warehouse()
  return {
    seen,
    run: async () => {
      const args = ['--config', config, '--catalog', catalog, '--state', writeTempFile(destination.state())]
      const { status, stdout } = await runCommand(sourceReadCommand, args)
      destination.load(stdout, keys)
      const said = messages(stdout)
      return {
        status,
        records: said.flatMap(({ record }) => (record === undefined ? [] : [record.data])),
        sent: said
          .flatMap(({ record }) => (record === undefined ? [] : [Number(record.data.id ?? record.data.documentId)]))
          .sort((a, b) => a - b),
        warnings: said.flatMap(({ log }) => (log?.level === 'WARN' ? [log.message] : [])),
        errors: said.flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error.message])),
      }
    },
  }
}

const refusals: Readonly<Record<string, readonly [status: number, code: number | string]>> = {
  'an application error in a 200': [200, 1201],
  'a 400': [400, 400],
  'a 404': [404, 404],
  'a 410': [410, 410],
  'a 416': [416, 416],
}

const held: Readonly<Record<string, ReadonlyArray<Row>>> = {
  '9': [],
  '10': rowsFrom(1000, 7),
  '11': rowsFrom(2000, 7),
  '12': rowsFrom(3000, 5),
}
const heldIds = [...idsFrom(1000, 7), ...idsFrom(2000, 7), ...idsFrom(3000, 5)]

describe.each(Object.entries(refusals))('a service that answers a page after the last one with %s', (_, refusal) => {
  it.concurrent.for([
    ['comments', 'by windows'],
    ['transparency_reviews', 'by windows'],
    ['comments', 'from page to page'],
    ['transparency_reviews', 'from page to page'],
  ] as const)('is read to its end: %s %s', async ([stream, way], { onTestFinished, expect }) => {
    const usesDates = way === 'by windows'
    const { run } = await startRuns(
      stream,
      { location_ids: ['9', '10', '11', '12'] },
      ({ ids, page, pageOf }) => {
        const blocks = ids.map((id) => ({ id, rows: pageOf(held[id] ?? []) }))
        return page > 0 && blocks.every(({ rows }) => rows.length === 0) ? { refusal } : blocks
      },
      {
        usesDates,
        config: usesDates ? {} : { start_date: '2024-06-01T03:00:00Z', feedback_filters: { per_page: 5 } },
        onEnd: onTestFinished,
      },
    )
    const { status, sent, warnings } = await run()
    expect(warnings).toEqual([])
    expect([status, sent]).toEqual([0, heldIds.filter((id) => usesDates || id % 1000 >= 3)])
    expect((await run()).sent).toEqual([])
  })
})

describe('a refused page', () => {
  it('of several entities is not the end of those that have more rows than the others', async () => {
    const many = { '10': rowsFrom(1000, 3), '11': rowsFrom(2000, 47) } as Readonly<Record<string, ReadonlyArray<Row>>>
    // The service serves 20 rows of an entity and tells nothing of it, and refuses a page that one of the entities
    // lacks.
    const { run } = await startRuns('comments', { location_ids: ['10', '11'] }, ({ ids, page, pageOf }) => {
      const blocks = ids.map((id) => ({ id, rows: pageOf(many[id] ?? [], 20) }))
      return page > 0 && blocks.some(({ rows }) => rows.length === 0) ? { refusal: [404, 404] } : blocks
    })
    const { sent } = await run()
    expect(sent).toEqual([...idsFrom(1000, 3), ...idsFrom(2000, 47)])
  })

  it('is an error if the service says that the page exists', async () => {
    const { run } = await startRuns('comments', { location_ids: ['10', '9'] }, ({ ids, page, pageOf }) =>
      page > 0 ? { refusal: [404, 404] } : ids.map((id) => ({ id, rows: pageOf(held[id] ?? []), pages: 2 })),
    )
    const { sent, warnings } = await run()
    expect(sent).toEqual([])
    expect(warnings).toEqual([
      expect.stringMatching(/refuses location 10 \(404\)/),
      expect.stringMatching(/location 9/),
    ])
  })

  it.each([
    ['an outage', [200, 503]],
    ['an internal error', [200, 'INTERNAL_ERROR_500']],
    ['a refused token', [200, 401]],
    ['a lack of permission', [403, 403]],
  ] as const)('is an error where it is %s', async (_, refusal) => {
    const { run } = await startRuns('comments', { location_ids: ['10'] }, ({ ids, page, pageOf }) =>
      page > 0 ? { refusal } : ids.map((id) => ({ id, rows: pageOf(held[id] ?? []) })),
    )
    const { sent, errors, warnings } = await run()
    expect(sent).toEqual([])
    expect([...errors, ...warnings].length).toBeGreaterThan(0)
  })

  it('is an error where the first page is refused by then', async () => {
    let isClosed = false
    const { run } = await startRuns('comments', { location_ids: ['10'] }, ({ ids, page, pageOf }) => {
      isClosed ||= page > 0
      return isClosed ? { refusal: [404, 404] } : ids.map((id) => ({ id, rows: pageOf(held[id] ?? []) }))
    })
    const { sent, errors, warnings } = await run()
    expect(sent).toEqual([])
    expect([...errors, ...warnings]).toHaveLength(1)
  })
})

describe('an entity that the service does not list', () => {
  it.each(['comments', 'transparency_reviews'])('is read from where it was, once it is listed: %s', async (stream) => {
    let listed = ['10']
    const rows: Readonly<Record<string, ReadonlyArray<Row>>> = { '10': rowsFrom(1000, 5), '11': rowsFrom(2000, 4) }
    const { run } = await startRuns(stream, { location_ids: ['10', '11'] }, ({ ids, pageOf }) =>
      ids.filter((id) => listed.includes(id)).map((id) => ({ id, rows: pageOf(rows[id] ?? []) })),
    )
    expect((await run()).sent).toEqual(idsFrom(1000, 5))
    expect((await run()).sent).toEqual([])
    listed = ['11']
    expect((await run()).sent).toEqual(idsFrom(2000, 4))
    listed = ['10', '11']
    expect((await run()).sent).toEqual([])
  })

  it('is read from where it was, also where each entity is read from page to page', async () => {
    let listed = ['10']
    const rows: Readonly<Record<string, ReadonlyArray<Row>>> = { '10': rowsFrom(1000, 12), '11': rowsFrom(2000, 4) }
    const { run } = await startRuns(
      'comments',
      { location_ids: ['10', '11'] },
      ({ ids, pageOf }) => ids.filter((id) => listed.includes(id)).map((id) => ({ id, rows: pageOf(rows[id] ?? []) })),
      { usesDates: false, config: { start_date: '2024-06-01T02:00:00Z', feedback_filters: { per_page: 5 } } },
    )
    expect((await run()).sent).toEqual(idsFrom(1002, 10))
    listed = ['10', '11']
    expect((await run()).sent).toEqual(idsFrom(2002, 2))
    expect((await run()).sent).toEqual([])
  })
})

describe('a row that becomes visible after a run has read beyond its time', () => {
  it.each(['comments', 'transparency_reviews'])(
    'is read by the next run without a lookback too: %s',
    async (stream) => {
      const rows = [...rowsFrom(1000, 3)]
      const { run } = await startRuns(
        stream,
        { location_ids: ['10'] },
        ({ ids, pageOf }) => ids.map((id) => ({ id, rows: pageOf(rows) })),
        { config: { feedback_lookback_days: 0 } },
      )
      expect((await run()).sent).toEqual(idsFrom(1000, 3))
      for (const [n, late] of [60_000, 20 * 60_000, 14 * hour].entries()) {
        rows.push({ id: 2000 + n, mentionTime: new Date(Date.now() - late).toISOString() })
        expect((await run()).sent).toContain(2000 + n)
        expect((await run()).sent).toEqual([])
      }
    },
  )
})

describe('an answer about one entity in several blocks', () => {
  const blocksOf =
    (given: ReadonlyArray<Block>) =>
    ({ pageOf }: Asked) =>
      given.map(({ rows, ...block }) => ({ ...block, rows: pageOf(rows) }))
  const member = (id: string, first: number, count: number): Block => ({ id, rows: rowsFrom(first, count) })

  it.each<[string, object, ReadonlyArray<Block>, ReadonlyArray<number>]>([
    [
      'a roll-up without rows of its own, and its members',
      { entity_ids: ['R'] },
      [member('R', 1, 0), member('m1', 100, 3), member('m2', 200, 4)],
      [...idsFrom(100, 3), ...idsFrom(200, 4)],
    ],
    [
      'a roll-up with all rows, and its members with the same',
      { entity_ids: ['R'] },
      [{ id: 'R', rows: [...rowsFrom(100, 3), ...rowsFrom(200, 4)] }, member('m1', 100, 3), member('m2', 200, 4)],
      [...idsFrom(100, 3), ...idsFrom(200, 4)],
    ],
    [
      'two blocks of one id',
      { entity_ids: ['R'] },
      [member('R', 100, 3), member('R', 200, 4)],
      [...idsFrom(100, 3), ...idsFrom(200, 4)],
    ],
    [
      'a location, and a part of it under an id of its own',
      { location_ids: ['R'] },
      [member('R', 100, 3), member('part', 200, 4)],
      [...idsFrom(100, 3), ...idsFrom(200, 4)],
    ],
  ])('has all rows of them, each once: %s', async (_, entities, given, ids) => {
    for (const stream of ['comments', 'transparency_reviews'])
      for (const config of [{}, { feedback_filters: { per_page: 2 } }]) {
        const { run } = await startRuns(stream, entities, blocksOf(given), { config })
        const { status, sent, warnings } = await run()
        expect([stream, status, sent, warnings]).toEqual([stream, 0, ids, []])
        expect((await run()).sent).toEqual([])
      }
  })

  it('has no rows of another location that is requested itself', async () => {
    const { run } = await startRuns('transparency_reviews', { location_ids: ['a', 'b'] }, ({ pageOf }) => [
      { id: 'a', rows: pageOf(rowsFrom(100, 3)) },
      { id: 'b', rows: pageOf(rowsFrom(200, 4)) },
    ])
    expect((await run()).sent).toEqual([...idsFrom(100, 3), ...idsFrom(200, 4)])
  })

  it('has all rows of them where many entities are requested', async () => {
    const { run } = await startRuns('comments', { location_ids: ['a', 'b'] }, ({ ids, pageOf }) =>
      ids.flatMap((id) => [
        { id, rows: pageOf(rowsFrom(id === 'a' ? 100 : 200, 3)) },
        { id, rows: pageOf(rowsFrom(id === 'a' ? 300 : 400, 4)) },
      ]),
    )
    const all = [...idsFrom(100, 3), ...idsFrom(200, 3), ...idsFrom(300, 4), ...idsFrom(400, 4)]
    expect((await run()).sent).toEqual(all)
    expect((await run()).sent).toEqual([])
  })
})

describe('the ratings of entities that an answer lists in several blocks', () => {
  const ratings = (...values: ReadonlyArray<number>): object => ({
    ratings: values.map((value) => ({ name: `Question ${value}`, value })),
  })
  const block = (id: string, summary: object): Block => ({ id, rows: [], summary })
  const read = async (entities: object, answer: (asked: Asked) => Answer) => {
    const { run } = await startRuns('entity_ratings', entities, answer)
    const { status, records, warnings } = await run()
    expect(status).toBe(0)
    const rows = records.map(({ entityType, entityId, entityName, totalRatingCount, ratings }) => [
      `${entityType} ${entityId}`,
      entityName,
      totalRatingCount ?? null,
      (ratings as ReadonlyArray<{ readonly value: number }> | null)?.map(({ value }) => value) ?? null,
    ])
    return { rows: rows.sort(), warnings }
  }

  it('are one row where the blocks have one id', async () => {
    const { rows, warnings } = await read({ entity_ids: ['R'] }, () => [
      block('R', { totalRatingCount: 3, ...ratings(1, 2) }),
      block('R', ratings(2, 4)),
    ])
    expect(rows).toEqual([['entity R', 'The R', 3, [1, 2, 4]]])
    expect(warnings).toEqual([])
  })

  it('are one row of each where many are requested', async () => {
    const { rows } = await read({ location_ids: ['a', 'b'] }, ({ ids }) =>
      ids.flatMap((id) => [block(id, ratings(1)), block(id, { totalRatingCount: 2, ...ratings(5) })]),
    )
    expect(rows).toEqual([
      ['location a', 'The a', 2, [1, 5]],
      ['location b', 'The b', 2, [1, 5]],
    ])
  })

  it('come with a warning where the blocks of one id contradict each other', async () => {
    const { rows, warnings } = await read({ entity_ids: ['R'] }, () => [
      block('R', { totalRatingCount: 3 }),
      block('R', { totalRatingCount: 4 }),
    ])
    expect(rows).toEqual([['entity R', 'The R', 3, null]])
    expect(warnings).toEqual([expect.stringMatching(/entity R .*totalRatingCount/)])
  })

  it('are rows of their own for members of a roll-up, but for those that are requested themselves', async () => {
    const members = [block('m1', ratings(1)), block('m2', ratings(2))]
    const whole = [block('R', { totalRatingCount: 9, ...ratings(3) }), ...members]
    const all = [
      ['entity R', 'The R', 9, [3]],
      ['entity m1', 'The m1', null, [1]],
      ['entity m2', 'The m2', null, [2]],
    ]
    expect((await read({ entity_ids: ['R'] }, () => whole)).rows).toEqual(all)
    expect((await read({ entity_ids: ['R'] }, () => members)).rows).toEqual(all.slice(1))
    const answer = ({ ids }: Asked): Answer =>
      ids.flatMap((id) => (id === 'm1' ? [block('m1', ratings(7))] : id === 'R' ? whole : [block('S', {}), ...members]))
    expect((await read({ entity_ids: ['R', 'S', 'm1'] }, answer)).rows).toEqual([
      ['entity R', 'The R', 9, [3]],
      ['entity S', 'The S', null, null],
      ['entity m1', 'The m1', null, [7]],
      ['entity m2', 'The m2', null, [2]],
    ])
  })
})

describe.each([
  ['by windows', true],
  ['from page to page', false],
])('a scrollKey that is refused, of a service that is read %s,', (_, usesDates) => {
  /** The service refuses the first `times` keys. */
  const read = async (refusal: readonly [status: number, code: number | string], times: number) => {
    let count = 0
    const { run, seen } = await startRuns(
      'transparency_reviews',
      { location_ids: ['10', '11'] },
      ({ ids, pageOf, scrollKey }) => {
        if (scrollKey !== undefined) count += 1
        if (scrollKey !== undefined && count <= times) return { refusal }
        return ids.map((id) => ({ id, rows: pageOf(rowsFrom(id === '10' ? 1000 : 2000, 47), 12) }))
      },
      { usesDates, givesKeys: true, config: { feedback_filters: { per_page: 20 } } },
    )
    return { ...(await run()), run, seen }
  }
  const all = [...idsFrom(1000, 47), ...idsFrom(2000, 47)]

  it.each([
    ['an application error in a 200', [200, 1201]],
    ['a 400', [400, 400]],
    ['a 404', [404, 404]],
    ['a 410', [410, 410]],
  ] as const)('has the list begun again: %s', async (_, refusal) => {
    for (const times of [1, 2]) {
      const { status, sent, warnings, errors } = await read(refusal, times)
      expect([times, status, sent, warnings, errors]).toEqual([times, 0, all, [], []])
    }
  })

  it('again and again is asked for by page, or leaves the entity to the next run', async () => {
    const { status, sent, warnings, errors, seen, run } = await read([400, 400], 8)
    expect([status, errors]).toEqual([0, []])
    if (usesDates) expect([sent, warnings]).toEqual([all, []])
    else {
      expect(warnings).toContainEqual(expect.stringMatching(/location 10 cannot be read completely: .*scrollKey/))
      expect(sent).toEqual(expect.arrayContaining([...idsFrom(2000, 47)]))
    }
    expect(seen.length).toBeLessThan(usesDates ? 200 : 40)
    const next = await run()
    expect([next.status, next.errors]).toEqual([0, []])
    expect(new Set([...sent, ...next.sent])).toEqual(new Set(all))
  })
})
