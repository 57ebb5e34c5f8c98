import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, it } from 'vitest'
import type { ApiError } from '../../../connector/api/error'
import { toInstant } from '../../../connector/cdk/scalar'
import type { ExportPage, FetchPage } from '../../../connector/export/fetch-page'
import { decodeResumeToken } from '../../../connector/export/scan/resume-token'
import { type ScanEnv, type ScanItem, type ScanStart, scan, scanScope } from '../../../connector/export/scan/scan'
import { simulateExport, stableTraits } from '../../support/export-simulation'

type Reading = {
  readonly log: ReadonlyArray<string>
  readonly items: ReadonlyArray<ScanItem>
  readonly failure: unknown
}

const origin: ScanStart['origin'] = { startDate: Date.UTC(2025, 0, 1), cursor: O.none, lookback: 600_000 }
const begin: ScanStart = { origin, filters: {}, resumeToken: O.none }
const now = () => Date.UTC(2026, 0, 31)

/** Requests, waits and items of a scan, in order. 50 rows a page, one request at a time. */
const readAll = async (
  fetch: FetchPage,
  env: Partial<ScanEnv> = {},
  start: Partial<ScanStart> = {},
  show = (request: Parameters<FetchPage>[0]): string => `ask ${request.offset}`,
): Promise<Reading> => {
  const log: string[] = []
  const items: ScanItem[] = []
  const feed = scan({
    operation: 'export reviews',
    fetch: (request, turn) => {
      log.push(show(request))
      return fetch(request, turn)
    },
    now,
    wait: (millis) => async () => void log.push(`wait ${millis}`),
    concurrency: 1,
    limit: 50,
    hasMentionTime: true,
    ...env,
  })({ ...begin, ...start })
  for await (const item of feed) {
    if (E.isLeft(item)) return { log, items, failure: item.left.message }
    log.push(`read ${item.right.rows.length}`)
    items.push(item.right)
  }
  return { log, items, failure: undefined }
}

const serve = (rows: number): FetchPage => simulateExport({ ...stableTraits, rows }, 1).reviews
const idsOf = (items: ReadonlyArray<ScanItem>): ReadonlyArray<string> =>
  items.flatMap(({ rows }) => rows.map(({ id }) => id))
const refuse = (error: ApiError): TE.TaskEither<ApiError, ExportPage> => TE.left(error)
const http = (status: number): ApiError => ({ _tag: 'Http', status, message: 'offset' })

describe('the bytes of a page', () => {
  it('last until the next item is asked for, and no longer', async () => {
    const log: string[] = []
    const service = serve(60)
    const feed = scan({
      operation: 'export reviews',
      fetch: (request, turn) =>
        TE.map((page: ExportPage) => ({ ...page, release: () => void log.push(`release ${request.offset}`) }))(
          service(request, turn),
        ),
      now,
      concurrency: 1,
      limit: 50,
      hasMentionTime: true,
    })(begin)
    for await (const item of feed) log.push(`read ${E.isRight(item) && item.right.rows.length}`)
    expect(log).toEqual(['read 50', 'release 0', 'read 10', 'release 40', 'read 0', 'release 50', 'read 0', 'read 0'])
  })

  it('of a page behind one that is too large are free as well', async () => {
    const released: number[] = []
    const service = serve(20)
    const { failure } = await readAll((request, turn) =>
      request.limit > 25
        ? refuse({ _tag: 'TooLarge', bytes: 2, limit: 1 })
        : TE.map((page: ExportPage) => ({ ...page, release: () => void released.push(request.offset) }))(
            service(request, turn),
          ),
    )
    expect(failure).toBeUndefined()
    expect(new Set(released).size).toBe(released.length)
  })
})

describe('an item', () => {
  it('gives one token to all who ask', async () => {
    const { items } = await readAll(serve(60))
    for (const { resumeToken } of items) expect(resumeToken()).toBe(resumeToken())
  })

  it('at the end says up to when the export is complete, and which rows the next run meets again', async () => {
    const service = simulateExport({ ...stableTraits, rows: 60 }, 1)
    const cutoff = Date.UTC(2026, 0, 1, 0, 30)
    const { items } = await readAll(service.reviews, {}, { cutoff })
    const { completion, rows, notes } = items.at(-1) ?? {}
    expect([rows, notes]).toEqual([[], []])
    expect(completion).toMatchObject({ cutoff, newestRowTime: O.some(cutoff), certainTime: O.some(cutoff) })
    expect(completion?.sentRowsSince(cutoff - 120_000).rows.map(([id]) => id)).toEqual(['29', '30', '31'])
    const nothing = await readAll(serve(60), {}, { windows: [] })
    expect(nothing).toMatchObject({ log: ['read 0'], items: [{ completion: { cutoff: 0, newestRowTime: O.none } }] })
  })

  it('has a token that is valid for the windows of its share alone', () => {
    const filters = { sources: [1] }
    const windows = [{ kind: 'part' }] as const
    expect(scanScope({ filters })).toEqual({ sources: [1] })
    expect(scanScope({ filters })).not.toHaveProperty('windows')
    expect(scanScope({ filters, windows })).toEqual({ sources: [1], windows })
  })
})

describe('a scan that goes on from a token', () => {
  it('knows the rows that were read before it', async () => {
    const whole = await readAll(serve(130))
    const token = decodeResumeToken(JSON.parse(JSON.stringify(whole.items[0]?.resumeToken())))
    const rest = await readAll(serve(130), {}, { resumeToken: token })
    expect(rest.log).toEqual(whole.log.slice(2))
    expect(idsOf(rest.items)).toEqual(idsOf(whole.items).slice(50))
  })
})

describe('an end that contradicts what was read', () => {
  it('fails a scan that goes on from a token and has read rows since', async () => {
    const whole = await readAll(serve(600))
    const resumeToken = decodeResumeToken(JSON.parse(JSON.stringify(whole.items[0]?.resumeToken())))
    const service = serve(600)
    let asked = 0
    const { failure } = await readAll(
      (request, turn) => {
        asked += 1
        return asked > 3
          ? TE.map((page: ExportPage) => ({ ...page, rows: [] }))(service(request, turn))
          : service(request, turn)
      },
      {},
      { resumeToken },
    )
    expect(failure).toContain('the list ends before rows that the service has shown')
  })

  it('is asked for again at once where nothing can wait', async () => {
    const service = serve(600)
    let asked = 0
    const feed = scan({
      ...{ operation: 'export reviews', now, concurrency: 1, limit: 50, hasMentionTime: true },
      fetch: (request, turn) => {
        asked += 1
        return asked >= 6 && asked <= 13
          ? TE.map((page: ExportPage) => ({ ...page, rows: [] }))(service(request, turn))
          : service(request, turn)
      },
    })(begin)
    const ids: string[] = []
    for await (const item of feed) ids.push(...(E.isRight(item) ? idsOf([item.right]) : ['failure']))
    expect(new Set(ids).size).toBe(600)
    expect(ids).not.toContain('failure')
  })

  it('drops the pages asked for ahead, which may be as old', async () => {
    const service = serve(600)
    let asked = 0
    let isOut = false
    let waits = 0
    const { failure, items } = await readAll(
      (request, turn) => {
        asked += 1
        isOut ||= asked === 6
        return isOut
          ? TE.map((page: ExportPage) => ({ ...page, rows: [] }))(service(request, turn))
          : service(request, turn)
      },
      {
        concurrency: 4,
        wait: () => async () => {
          isOut = false
          waits += 1
        },
      },
    )
    expect(failure).toBeUndefined()
    expect(new Set(idsOf(items)).size).toBe(600)
    // One wait is enough: the page asked for again is a new one.
    expect(waits).toBe(1)
  })

  it('is not waited for where nothing contradicts', async () => {
    const { log } = await readAll(serve(130))
    expect(log.filter((line) => line.startsWith('wait'))).toEqual([])
  })

  it('leaves nothing to the next run if it stays: no row, no note, no place', async () => {
    const service = serve(600)
    let asked = 0
    const { items, failure } = await readAll((request, turn) => {
      asked += 1
      return asked > 3
        ? TE.map((page: ExportPage) => ({ ...page, rows: [] }))(service(request, turn))
        : service(request, turn)
    })
    expect(failure).toContain('the list ends before rows that the service has shown')
    expect(items.at(-1)).toMatchObject({ rows: [], notes: [] })
    expect(items.at(-1)?.resumeToken()).toMatchObject({ taken: 0, trail: [], pass: { offset: 0 } })
    expect(items.flatMap(({ rows }) => rows).every(({ id }) => id !== undefined)).toBe(true)
  })
})

describe('a page that is too large', () => {
  const tooLarge = refuse({ _tag: 'TooLarge', bytes: 2, limit: 1 })

  it('is asked for with half as many rows, down to one', async () => {
    const service = serve(1)
    const { log, items, failure } = await readAll(
      (request, turn) => (request.limit > 1 ? tooLarge : service(request, turn)),
      { limit: 9 },
      {},
      ({ limit }) => `ask for ${limit}`,
    )
    expect(failure).toBeUndefined()
    expect(log.slice(0, 8)).toEqual(
      [9, 4, 2, 1].flatMap((limit) => [`ask for ${limit}`, `read ${limit === 1 ? 1 : 0}`]),
    )
    expect(items.slice(0, 3)).toMatchObject(
      [4, 2, 1].map((rows) => ({
        rows: [],
        notes: [{ level: 'info', message: `export reviews: a page is too large; asking for ${rows} rows at a time.` }],
      })),
    )
  })

  it('in the middle of a pass makes full pages shorter: none of them is taken for the end', async () => {
    const service = serve(300)
    const { items, failure, log } = await readAll(
      (request, turn) => (request.offset > 0 && request.limit > 25 ? tooLarge : service(request, turn)),
      {},
      {},
      ({ offset, limit }) => `${limit} from ${offset}`,
    )
    expect(failure).toBeUndefined()
    expect(idsOf(items).length).toBe(300)
    expect(log[2]).toBe('50 from 40')
    // A page of 25 rows overlaps the one before by 10, as a full page does.
    const offsets = [40, ...Array.from({ length: 16 }, (_, n) => 55 + 15 * n), 290, 300]
    expect(log.filter((line) => line.startsWith('25'))).toEqual(offsets.map((offset) => `25 from ${offset}`))
    expect(items[2]?.resumeToken()).toMatchObject({ limit: 25, longest: 25 })
  })

  it('of one row fails the scan after one request', async () => {
    const { log, failure } = await readAll(() => tooLarge, { limit: 1 })
    expect(log).toEqual(['ask 0'])
    expect(failure).toContain('max_response_mb')
  })
})

describe('an error', () => {
  const errors: ReadonlyArray<readonly [string, ApiError, string]> = [
    ['the status of an outage', http(503), '503'],
    ['a status that is no error', http(302), '302'],
    ['a network that is down', { _tag: 'Network', code: 'ECONNRESET', message: 'reset' }, 'export reviews'],
    ['an answer that cannot be read', { _tag: 'Decode', path: '$', message: 'cut off' }, 'export reviews'],
    ['a token in an answer with status 200', { _tag: 'Application', code: 'token_expired', message: 'offset' }, 'code'],
  ]
  it.each(errors)('at a further offset ends the scan, and nothing else is asked for: %s', async (_, error, words) => {
    const service = serve(130)
    const { log, failure } = await readAll((request, turn) =>
      request.offset > 0 ? refuse(error) : service(request, turn),
    )
    expect(log).toEqual(['ask 0', 'read 50', 'ask 40'])
    expect(failure).toContain(words)
  })

  it.each([
    ...['request timeout', 'RequestTimeout', 'request_time_out', 'too many requests', 'TooManyRequests'],
    ...[
      'too *** requests',
      'too_***requests',
      'bad gateway',
      'BadGateway',
      'service unavailable',
      'ServiceUnavailable',
    ],
    ...['gateway timeout', 'GatewayTimeout', 'gateway time-out', 'bad - gateway', 'bad.gateway', 'bad:gateway'],
  ])('is an outage by its words, not an end: %s', async (words) => {
    for (const [code, message] of [
      [words, 'offset'],
      ['none', words],
    ] as const) {
      const service = serve(130)
      const { log } = await readAll((request, turn) =>
        request.offset > 0 ? refuse({ _tag: 'Application', code, message }) : service(request, turn),
      )
      expect(log).toEqual(['ask 0', 'read 50', 'ask 40'])
    }
  })

  it.each(['HTTP_503', '429', 'E-504-2', '17 408'])('is an outage by a number in its code: %s', async (code) => {
    const service = serve(130)
    const { log } = await readAll((request, turn) =>
      request.offset > 0 ? refuse({ _tag: 'Application', code, message: 'offset' }) : service(request, turn),
    )
    expect(log).toEqual(['ask 0', 'read 50', 'ask 40'])
  })

  it.each(['out of time', 'too deep', 'E4290', 'gateway', 'unavailable', 'stop'])(
    'is a refusal of the offset if neither its code nor its words are those of an outage: %s',
    async (words) => {
      const service = serve(30)
      const { failure, items } = await readAll((request, turn) =>
        request.offset >= 30
          ? refuse({ _tag: 'Application', code: words.replaceAll(' ', '_'), message: words })
          : service(request, turn),
      )
      expect(failure).toBeUndefined()
      expect(idsOf(items).length).toBe(30)
    },
  )

  it('at offset 0 ends the scan after one request', async () => {
    const { log, failure } = await readAll(() => refuse(http(400)))
    expect(log).toEqual(['ask 0'])
    expect(failure).toContain('400')
  })
})

describe('a list that lost all rows of a stopped run', () => {
  const stop = async () => {
    const { items } = await readAll(serve(130))
    return decodeResumeToken(JSON.parse(JSON.stringify(items[0]?.resumeToken())))
  }

  it('is read from the beginning in the same run', async () => {
    const { log, items, failure } = await readAll(serve(0), {}, { resumeToken: await stop() })
    expect(failure).toBeUndefined()
    expect(log.filter((line) => line.startsWith('wait'))).toHaveLength(5)
    expect(log.slice(-3)).toEqual(['ask 0', 'read 0', 'read 0'])
    expect(items.flatMap(({ notes }) => notes.map(({ message }) => message)).join()).toContain('from the beginning')
    expect(items.at(-1)?.completion?.newestRowTime).toEqual(O.none)
  })

  it('brings the rows that the service shows again by then', async () => {
    const service = serve(130)
    let asked = 0
    const { items, failure } = await readAll(
      (request, turn) => {
        asked += 1
        return (asked > 20 ? service : serve(0))(request, turn)
      },
      {},
      { resumeToken: await stop() },
    )
    expect(failure).toBeUndefined()
    expect([0, 130]).toContain(new Set(idsOf(items)).size)
  })
})

it('short pages in a row are not the end of a list whose newest rows come last', async () => {
  for (const seed of Array.from({ length: 60 }, (_, i) => i + 1)) {
    const traits = {
      order: 'ascending',
      rows: 91,
      rowsPerTime: 12,
      clamp: 7,
      shortPages: true,
      clockSkew: 1_200_000,
    } as const
    const service = simulateExport({ ...stableTraits, ...traits }, seed)
    const { items, failure } = await readAll(service.reviews, { now: service.now })
    expect(failure).toBeUndefined()
    expect([seed, new Set(idsOf(items)).size]).toEqual([seed, 91])
  }
})

it('the end of a list of one row is found where a new row comes in front of it', async () => {
  let isFirst = true
  const newest: FetchPage = (request, turn) => {
    const rows = serve(isFirst ? 1 : 2)
    isFirst = false
    return pipe(
      rows({ ...request, offset: 0 }, turn),
      TE.map((page) => ({
        ...page,
        rows: page.rows
          .map((row) => (row.id === '2' ? { ...row, modifiedTime: now() } : row))
          .reverse()
          .slice(request.offset),
      })),
    )
  }
  const { log, failure } = await readAll(newest, { limit: 10 })
  expect(failure).toBeUndefined()
  expect(log.filter((line) => !line.startsWith('read'))).toEqual(['ask 0', 'ask 1', 'ask 2', 'ask 1', 'ask 0'])
})

describe('a refused offset', () => {
  const showRequest = ({ offset, limit, mentionTimeBefore }: Parameters<FetchPage>[0]): string =>
    `${limit} from ${offset}${mentionTimeBefore === undefined ? '' : ' of a window'}`

  it.each([204, 400, 416])('is an empty page if the service answers one row from the start: %i', async (status) => {
    const service = serve(30)
    const { log, items, failure } = await readAll(
      (request, turn) => (request.offset >= 30 ? refuse(http(status)) : service(request, turn)),
      {},
      {},
      showRequest,
    )
    expect(failure).toBeUndefined()
    expect(log).toEqual(['50 from 0', 'read 30', '50 from 20', 'read 0', '50 from 30', '1 from 0', 'read 0', 'read 0'])
    expect(items.every(({ rows }) => rows.every(({ id }) => id !== undefined))).toBe(true)
  })

  it('is looked at in the same window', async () => {
    const service = serve(30)
    const windows = [{ kind: 'part', mentionTimeBefore: '2026-12-01T00:00:00.000Z' }] as const
    const { log } = await readAll(
      (request, turn) => (request.offset >= 30 ? refuse(http(416)) : service(request, turn)),
      {},
      { windows },
      showRequest,
    )
    expect(log.filter((line) => line.startsWith('ask') || !line.endsWith('of a window'))).toEqual([
      ...['read 30', 'read 0', 'read 0', 'read 0'],
    ])
    expect(log).toContain('1 from 0 of a window')
  })

  it.each([1, 4])(
    'is not asked for a second time, nor is one behind it, of the same window: %i at a time',
    async (concurrency) => {
      const service = serve(400)
      const refused: string[] = []
      const { items, failure } = await readAll(
        (request, turn) => {
          if (request.offset < 200) return service(request, turn)
          refused.push(JSON.stringify(request))
          return refuse(http(400))
        },
        { concurrency },
      )
      expect(failure).toBeUndefined()
      expect(new Set(idsOf(items)).size).toBe(400)
      expect(items.every(({ rows }) => rows.every(({ id }) => id !== undefined))).toBe(true)
      const windows = refused.map((request) => request.replace(/"offset":\d+/, ''))
      expect(windows.length).toBeLessThanOrEqual(new Set(windows).size * concurrency)
    },
  )

  it('of one window says nothing of another', async () => {
    const service = serve(60)
    const [first, second] = [toInstant(Date.UTC(2026, 11, 1)), toInstant(Date.UTC(2026, 11, 2))]
    const asked: string[] = []
    const { failure } = await readAll(
      (request, turn) => {
        const isFirst = request.mentionTimeBefore === first
        asked.push(`${isFirst ? 'first' : 'second'} ${request.offset}`)
        const limit = Math.min(request.limit, 30 - request.offset)
        const offset = request.offset + (isFirst ? 0 : 30)
        return limit <= 0 ? refuse(http(416)) : service({ ...request, offset, limit }, turn)
      },
      { limit: 20 },
      {
        windows: [first, second].map((mentionTimeBefore) => ({ kind: 'exact', mentionTimeBefore })),
      },
    )
    expect(failure).toBeUndefined()
    const behind = (window: string) => asked.filter((line) => line === `${window} 30`).length
    expect([behind('first'), behind('second')]).toEqual([1, 1])
  })

  it.each([1, 4])('is asked for again once the list has grown past it: %i at a time', async (concurrency) => {
    const service = serve(60)
    let [isGrown, refusals] = [false, 0]
    const { items, failure } = await readAll(
      (request, turn) => async () => {
        // As from a service that shows some rows late, and refuses an offset behind the last row.
        const rows = isGrown ? 60 : 30
        if (request.offset < rows)
          return service({ ...request, limit: Math.min(20, request.limit, rows - request.offset) }, turn)()
        isGrown = true
        refusals += 1
        return E.left(http(400))
      },
      { concurrency },
      { windows: [{ kind: 'exact' }] },
    )
    expect(failure).toBeUndefined()
    expect(new Set(idsOf(items)).size).toBe(60)
    expect(refusals).toBe(2)
  })

  it('is the error of the look at the start, if that fails too', async () => {
    const service = serve(30)
    let asked = 0
    const { failure } = await readAll((request, turn) => {
      asked += 1
      return asked < 3 ? service(request, turn) : refuse(http(asked === 3 ? 400 : 401))
    })
    expect(failure).toContain('401')
  })
})
