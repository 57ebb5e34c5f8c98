import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { reportSingerFailure } from '../../../connector/cdk/singer/command-line'
import {
  destinationCheckCommand,
  destinationWriteCommand,
  targetCommand,
} from '../../../connector/cli/feedback-destination'
import type { Sandbox, SandboxOptions } from '../../../connector/sandbox/start'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  singerFormat,
} from '../../support/destination-input'
import { newTempPath, writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { runCommand } from '../../support/run-command'
import { startSmallSandbox } from '../../support/sandbox'

type Row = Readonly<Record<string, unknown>>

const locations = { locations: true }
const configOf = (base_url: string, access_token: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token },
  lookups: locations,
  ...more,
})

/** One run of the destination for these records; its log in order. */
const airbyte = async (config: object, rows: ReadonlyArray<Row>, ...more: ReadonlyArray<string>) => {
  const files = [
    '--config',
    writeTempFile(config),
    '--catalog',
    writeTempFile(configuredCatalogOf({ locations: 'code' })),
  ]
  const stdin = formatLines(formatStream(airbyteFormat, 'locations', 'code', rows))
  const { status, stdout } = await runCommand(destinationWriteCommand, [...files, ...more], {
    stdin,
    fail: reportAirbyteFailure,
  })
  const lines: ReadonlyArray<Record<string, { level?: string; message?: string; error?: { message: string } }>> = stdout
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  const log = lines.flatMap(({ log: entry, trace }) =>
    entry === undefined
      ? trace?.error === undefined
        ? []
        : [`ERROR ${trace.error.message}`]
      : [`${entry.level} ${entry.message}`],
  )
  return {
    status,
    log: log.filter((line) => !/: sends |received/.test(line)),
    summary: log.find((line) => /received/.test(line)) ?? '',
  }
}

const singer = async (config: object, rows: ReadonlyArray<Row>, ...more: ReadonlyArray<string>) => {
  const stdin = formatLines(formatStream(singerFormat, 'locations', 'code', rows))
  const { status, stderr } = await runCommand(targetCommand, ['--config', writeTempFile(config), ...more], {
    stdin,
    fail: reportSingerFailure,
  })
  const log = stderr.split('\n').filter((line) => line !== '')
  return {
    status,
    log: log.map((line) => line.replace(/^WARNING/, 'WARN')).filter((line) => !/: sends |received/.test(line)),
    summary: log.find((line) => /received/.test(line)) ?? '',
  }
}

const kinds: ReadonlyArray<readonly [string, SandboxOptions, object]> = [
  ['published', { like: 'published' }, {}],
  [
    'specified',
    { like: 'specification', lookups: { locations: { method: 'GET', path: '/list' } } },
    {
      lookups: {
        locations: {
          path: '/list',
          paging: { page_param: 'page', size_param: 'size', size: 3, total_pages_path: 'totalPages' },
        },
      },
    },
  ],
]
const programs = [
  ['destination-feedback', airbyte],
  ['target-feedback', singer],
] as const
const cases = kinds.flatMap(([kind, options, more]) =>
  programs.map(([name, run]) => [name, kind, run, options, more] as const),
)

const stateOf = async (sandbox: Sandbox) =>
  (await sandbox.truth()).locations.map(({ code, name, active }) => `${code} ${name} ${active}`)

describe.each(cases)('%s against the list of a %s service', (_name, _kind, run, options, more) => {
  const rows = [
    { code: 'LOC-1001', codeType: 'INTERNAL', name: 'Renamed', city: 'Austin' },
    { code: 'LOC-1002', codeType: 'INTERNAL', active: false },
    { code: 'NEW', codeType: 'INTERNAL', name: 'Fresh', labels: ['a'] },
  ]

  it('shows every attribute in a dry run, writes, and reads it back', async () => {
    const sandbox = await startSmallSandbox({ locations: 5, ...options })
    const config = configOf(sandbox.url, sandbox.accessToken, more)
    const [first] = (await sandbox.truth()).locations
    const before = await stateOf(sandbox)
    const planned = await run(config, rows, '--dry-run')
    expect(planned.status).toBe(0)
    expect(planned.log).toEqual([
      'INFO locations: 1 created, 1 updated, 0 unchanged, 1 to deactivate; the service lists 5.',
      'INFO locations: update LOC-1001 (INTERNAL): name ' +
        `${JSON.stringify(first?.name)} -> "Renamed"; city null -> "Austin"`,
      'INFO locations: deactivate LOC-1002 (INTERNAL): active true -> false',
      'INFO locations: create NEW (INTERNAL): name null -> "Fresh"; labels null -> ["a"]',
      expect.stringMatching(/^INFO locations: 3 active locations of the service are not on the list/),
    ])
    expect(planned.summary).toContain('3 received, 3 would be sent, 0 rejected')
    expect(await stateOf(sandbox)).toEqual(before)

    const written = await run(config, rows)
    expect([written.status, written.log.at(-1)]).toEqual([
      0,
      'INFO locations: 3 read back: 3 as sent, 0 different, 0 missing, 0 still active.',
    ])
    const again = await run(config, rows, '--dry-run')
    expect(again.log[0]).toBe(
      'INFO locations: 0 created, 0 updated, 2 unchanged, 0 to deactivate; the service lists 5.',
    )
    // Without a ledger, what is not on the list stays.
    expect((await stateOf(sandbox)).filter((one) => one.endsWith('true'))).toHaveLength(5)
  })

  it('deactivates what is unlisted only if that is configured', async () => {
    const sandbox = await startSmallSandbox({ locations: 5, ...options })
    const config = configOf(sandbox.url, sandbox.accessToken, {
      ...more,
      reconcile: { deactivate_unlisted: true },
      max_deactivations_percent: 80,
    })
    const { status, log } = await run(config, [{ code: 'LOC-1003', codeType: 'INTERNAL' }])
    expect([status, log.at(-1)]).toEqual([
      0,
      'INFO locations: 5 read back: 5 as sent, 0 different, 0 missing, 0 still active.',
    ])
    expect((await stateOf(sandbox)).filter((one) => one.endsWith('true'))).toEqual([
      expect.stringContaining('LOC-1003'),
    ])

    const refused = await startSmallSandbox({ locations: 5, ...options })
    const few = {
      ...config,
      base_url: refused.url,
      credentials: configOf('', refused.accessToken).credentials,
      max_deactivations_percent: 10,
    }
    const { status: failed, log: told } = await run(few, [{ code: 'LOC-1003', codeType: 'INTERNAL' }])
    expect([failed, told.join('\n')]).toEqual([
      1,
      expect.stringContaining('4 of 5 locations are no longer on the list'),
    ])
    expect((await stateOf(refused)).filter((one) => one.endsWith('true'))).toHaveLength(5)
  })

  it('deactivates what the ledger knows and the service still lists, and nothing else', async () => {
    const sandbox = await startSmallSandbox({ locations: 4, ...options })
    const ledger_path = newTempPath('ledger')
    const config = configOf(sandbox.url, sandbox.accessToken, {
      ...more,
      reconcile: { ledger_path },
      max_deactivations_percent: 100,
    })
    expect(
      (
        await run(
          config,
          ['A', 'B', 'C'].map((code) => ({ code })),
        )
      ).status,
    ).toBe(0)
    await sandbox.api.syncLocations([{ code: 'B', active: false }])()
    const { status, log } = await run(config, [{ code: 'C' }])
    expect(status).toBe(0)
    expect(log.filter((line) => line.includes('deactivate'))).toEqual([
      expect.stringContaining('0 created, 0 updated, 1 unchanged, 1 to deactivate; the service lists 6'),
      'INFO locations: deactivate A',
      expect.stringContaining('4 active locations of the service are not on the list'),
    ])
    expect((await stateOf(sandbox)).filter((one) => one.startsWith('LOC') && one.endsWith('true'))).toHaveLength(4)
  })
})

/**
 * A service that keeps what it is sent as `keep` says, and lists it as `list` does; `list` gets the request's number.
 */
const startService = async (
  seed: ReadonlyArray<Row>,
  list: (rows: ReadonlyArray<Row>, query: URLSearchParams, count: number) => readonly [number, unknown],
  keep: (item: Row) => Row | undefined = (item) => item,
) => {
  const held = new Map(seed.map((row) => [String(row.code), row]))
  let listCount = 0
  const server = await startServer(({ method, url, body }, response) => {
    if (method === 'GET') {
      listCount += 1
      const [status, answer] = list([...held.values()], new URL(url, 'http://x').searchParams, listCount)
      return sendJson(response, status, answer)
    }
    const items: ReadonlyArray<Row> = JSON.parse(body)
    for (const item of items) {
      const kept = keep(item)
      if (kept === undefined) continue
      if (item.active === false) held.delete(String(item.code))
      else
        held.set(String(item.code), {
          ...held.get(String(item.code)),
          id: held.size,
          displayName: kept.name ?? null,
          ...kept,
        })
    }
    return sendJson(response, 200, {
      status: 'SUCCESS',
      totalRequests: items.length,
      successfulRequests: items.length,
      failedRequests: 0,
    })
  })
  return { ...server, held, listCount: () => listCount }
}
const whole = (rows: ReadonlyArray<Row>) => [200, { data: rows, totalPages: 1 }] as const
const inPages = (rows: ReadonlyArray<Row>, query: URLSearchParams, told?: number) => {
  const [page, size] = [Number(query.get('page')), 2]
  return [
    200,
    { data: rows.slice((page - 1) * size, page * size), totalPages: told ?? Math.ceil(rows.length / size) },
  ] as const
}
const seed = (count: number): ReadonlyArray<Row> =>
  Array.from({ length: count }, (_, n) => ({ id: n, code: `S${n}`, state: 'OH' }))
const token = 'not-for-anybody'

describe('a service that keeps something else', () => {
  it.each<[string, (item: Row) => Row | undefined, Row, ReadonlyArray<string>]>([
    [
      'a normalised value',
      (item) => ({ ...item, state: item.state === 'TX' ? 'Texas' : item.state }),
      { code: 'S0', state: 'TX' },
      [
        'WARN locations: S0 reads back different: state "TX" was sent, and is kept as "Texas".',
        'WARN locations: 1 read back: 0 as sent, 1 different, 0 missing, 0 still active.',
      ],
    ],
    [
      'the old value',
      ({ state: _, ...item }) => item,
      { code: 'S0', state: 'TX' },
      [
        'WARN locations: S0 reads back different: state "TX" was sent, and is still "OH".',
        'WARN locations: 1 read back: 0 as sent, 1 different, 0 missing, 0 still active.',
      ],
    ],
    [
      'nothing of a new location',
      () => undefined,
      { code: 'N' },
      [
        "WARN locations: N is not on the service's list after it was accepted.",
        'WARN locations: 1 read back: 0 as sent, 0 different, 1 missing, 0 still active.',
      ],
    ],
    [
      'a location that it should deactivate',
      () => undefined,
      { code: 'S0', active: false },
      [
        'WARN locations: S0 is still listed as active after its deactivation.',
        'WARN locations: 1 read back: 0 as sent, 0 different, 0 missing, 1 still active.',
      ],
    ],
  ])('%s, is told and counted, and the run succeeds', async (_, keep, row, expected) => {
    const { url } = await startService(seed(2), whole, keep)
    const { status, log } = await airbyte(configOf(url, token), [row])
    expect([status, log.slice(-2)]).toEqual([0, expected])
  })

  it('is given time to apply what it accepted', async () => {
    const { url } = await startService(seed(1), (rows, _, count) => whole(count === 2 || count === 4 ? seed(1) : rows))
    const { log } = await airbyte(configOf(url, token), [{ code: 'S0', state: 'TX' }])
    expect(log.at(-1)).toBe('INFO locations: 1 read back: 1 as sent, 0 different, 0 missing, 0 still active.')
  })
})

describe('a list that cannot be used', () => {
  const refusals: ReadonlyArray<[string, Parameters<typeof startService>[1], RegExp]> = [
    ['is refused (403)', () => [403, {}], /The token lacks permission/],
    ['does not exist (404)', () => [404, 'no'], /look up locations: No such operation there/],
    ['is refused inside a 200', () => [200, { status: { code: 9, message: 'no' } }], /application error/],
    [
      'is refused in the middle',
      (rows, query) => (query.get('page') === '2' ? [403, {}] : inPages(rows, query)),
      /permission/,
    ],
    [
      'never ends',
      (_, query) => [200, { data: [{ id: query.get('page'), code: `P${query.get('page')}` }], totalPages: 1e9 }],
      /does not end/,
    ],
    ['repeats its first page', () => [200, { data: seed(2), totalPages: 5 }], /page 2 repeats earlier pages/],
    [
      'changes from page to page',
      (_, query, count) =>
        inPages(
          Array.from({ length: 6 }, (__, n) => ({ id: count + n, code: `C${count + n}` })),
          query,
        ),
      /changes faster than it can be read/,
    ],
    ['is a page for people', () => [200, '<html>'], /not JSON/],
  ]
  it.each(refusals)(
    'gives way to the ledger if it %s, and says so',
    async (_, list, reason) => {
      const { url, held } = await startService(seed(5), list)
      const ledger_path = newTempPath('ledger')
      const key = { codeType: null, active: true }
      writeFileSync(
        ledger_path,
        [{ base_url: url }, { code: 'S1', ...key }, { code: 'S2', ...key }]
          .map((line) => `${JSON.stringify(line)}\n`)
          .join(''),
      )
      const more = { reconcile: { ledger_path }, max_deactivations_percent: 50 }
      const { status, log } = await airbyte(configOf(url, token, more), [{ code: 'S1' }])
      expect(status).toBe(0)
      expect(log.filter((line) => line.startsWith('WARN'))).toEqual([
        expect.stringMatching(
          new RegExp(
            "^WARN locations: the service's own list cannot be read, so the plan is made from the ledger " +
              String.raw`and what is written is not verified\. `,
          ),
        ),
      ])
      expect(log.join('\n')).toMatch(reason)
      expect(log).toContain('INFO locations: deactivate S2')
      expect([...held.keys()]).toEqual(['S0', 'S1', 'S3', 'S4'])
    },
    60_000,
  )

  it.each([true, false])(
    'deactivates nothing without a ledger, even what is unlisted: %s',
    async (deactivate_unlisted) => {
      const { url, held } = await startService(seed(3), () => [403, {}])
      const { status, log } = await airbyte(configOf(url, token, { reconcile: { deactivate_unlisted } }), [
        { code: 'N' },
      ])
      expect([status, log.join('\n')]).toEqual([
        0,
        expect.stringContaining('nothing is planned and what is written is not verified'),
      ])
      expect([...held.keys()]).toEqual(['S0', 'S1', 'S2', 'N'])
    },
  )

  it('is reported if it fails only after the run', async () => {
    const { url } = await startService(seed(3), (rows, _, count) => (count > 2 ? [403, {}] : whole(rows)))
    const { status, log } = await airbyte(configOf(url, token), [{ code: 'S1' }])
    expect([status, log.at(-1)]).toEqual([
      0,
      expect.stringMatching(/^WARN .*cannot be read after the run, so what was written is not verified/),
    ])
  })

  it('is complete where the number of pages is a lie, or the order is the other way round', async () => {
    for (const list of [
      (rows: ReadonlyArray<Row>, query: URLSearchParams) => inPages(rows, query, 1),
      (rows: ReadonlyArray<Row>, query: URLSearchParams) => inPages([...rows].reverse(), query, 99),
    ]) {
      const { url, held } = await startService(seed(5), list)
      const more = { reconcile: { deactivate_unlisted: true }, max_deactivations_percent: 100 }
      const { status } = await airbyte(configOf(url, token, more), [{ code: 'S4' }])
      expect([status, [...held.keys()]]).toEqual([0, ['S4']])
    }
  })
})

describe('the config', () => {
  it('needs the list for deactivate_unlisted', async () => {
    const config = {
      ...configOf('http://127.0.0.1:1', token, { reconcile: { deactivate_unlisted: true } }),
      lookups: {},
    }
    const { status, log } = await airbyte(config, [])
    expect([status, log.join()]).toEqual([
      1,
      expect.stringContaining('reconcile.deactivate_unlisted needs lookups.locations'),
    ])
  })

  it('is checked with a page of the list', async () => {
    const check = async (url: string) =>
      (
        await runCommand(destinationCheckCommand, ['--config', writeTempFile(configOf(url, token))], {
          fail: reportAirbyteFailure,
        })
      ).stdout
    const [good, refused] = [await startService(seed(3), whole), await startService(seed(3), () => [403, {}])]
    expect(await check(good.url)).toMatch(/SUCCEEDED.*list of locations: answered, 3 on its first page/)
    expect(good.listCount()).toBe(1)
    expect(await check(refused.url)).toMatch(/SUCCEEDED.*list of locations: not usable, so nothing is verified/)
  })

  it('asks for no list where none is configured, and writes no ledger in a dry run', async () => {
    const { url, listCount } = await startService(seed(3), whole)
    const ledger_path = newTempPath('ledger')
    await airbyte({ ...configOf(url, token), lookups: { locations: false } }, [{ code: 'S1' }])
    expect(listCount()).toBe(0)
    const visits = await runCommand(
      targetCommand,
      ['--config', writeTempFile(configOf(url, token))],
      formatLines(formatStream(singerFormat, 'visit_records', 'id', [])),
    )
    expect([visits.status, visits.stderr, listCount()]).toEqual([0, expect.not.stringContaining('locations'), 0])
    await airbyte(configOf(url, token, { reconcile: { ledger_path } }), [{ code: 'S1' }], '--dry-run')
    expect(existsSync(ledger_path) ? readFileSync(ledger_path, 'utf8') : '').toBe('')
  })
})
