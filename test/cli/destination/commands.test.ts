import { existsSync, readFileSync } from 'node:fs'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { Command } from '../../../connector/cdk/program/command'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { reportSingerFailure } from '../../../connector/cdk/singer/command-line'
import {
  destinationCheckCommand,
  destinationDiscoverCommand,
  destinationSpecCommand,
  destinationWriteCommand,
  targetCommand,
} from '../../../connector/cli/feedback-destination'
import { decodeFaultPlan } from '../../../connector/sandbox/faults/plan'
import type { Sandbox, SandboxOptions } from '../../../connector/sandbox/start'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  locationRow,
  mapping,
  singerFormat,
  visitRow,
} from '../../support/destination-input'
import { newTempPath, writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { startProgram } from '../../support/program'
import { hasProtocol, protocolErrors } from '../../support/protocol'
import { type Outcome, runCommand } from '../../support/run-command'
import { startSmallSandbox as startSandbox } from '../../support/sandbox'

/** Runs a command of the destination in this process. */
const run = (verb: Command, args: ReadonlyArray<string>, stdin = ''): Promise<Outcome> =>
  runCommand(verb, args, { stdin, fail: reportAirbyteFailure })

/** A sandbox whose writes all have a fault. */
const alwaysFaulty = (kind: string): SandboxOptions => {
  const faults = decodeFaultPlan([{ kind, operation: ['createVisitRecords', 'syncLocations'], retry_after: 0 }])
  return E.isRight(faults) ? { faults: faults.right } : {}
}
const config = ({ url, accessToken }: Pick<Sandbox, 'url' | 'accessToken'>, more: object = {}) => ({
  base_url: url,
  credentials: { auth_type: 'access_token', access_token: accessToken },
  ...more,
})
const lines = ({ stdout }: Pick<Outcome, 'stdout'>) =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
const states = (outcome: Pick<Outcome, 'stdout'>) => lines(outcome).filter(({ type }) => type === 'STATE')
const errors = (outcome: Pick<Outcome, 'stdout'>) =>
  lines(outcome).flatMap(({ trace }) => (trace?.type === 'ERROR' ? [trace.error] : []))
const locationRows = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => locationRow(from + n))
const visitRows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => visitRow(from + n, { clinic: 'W1' }))

const write = (config: object, catalog: unknown, stdin: string, ...more: ReadonlyArray<string>): Promise<Outcome> =>
  run(destinationWriteCommand, ['--config', writeTempFile(config), '--catalog', writeTempFile(catalog), ...more], stdin)

/** A sandbox that has the location W1. */
const startSandboxWithLocation = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const sandbox = await startSandbox(options)
  await sandbox.api.syncLocations([{ code: 'W1', active: true }])()
  return sandbox
}

describe('spec and discover', () => {
  it('print the schema of the config and the objects with their operations', async () => {
    const [specified, discovered] = await Promise.all([
      run(destinationSpecCommand, []),
      run(destinationDiscoverCommand, [
        '--config',
        writeTempFile(config({ url: 'https://x.example', accessToken: 'a' })),
      ]),
    ])
    const [{ spec }] = lines(specified)
    expect(spec.connectionSpecification).toEqual(JSON.parse(readFileSync('spec/destination.json', 'utf8')))
    expect(spec.supported_destination_sync_modes).toEqual(
      expect.arrayContaining(['append', 'append_dedup', 'overwrite']),
    )
    const [{ destination_catalog }] = lines(discovered)
    expect(
      destination_catalog.operations.map(
        ({ object_name, sync_mode, matching_keys }: Record<string, unknown>) =>
          `${object_name} ${sync_mode} ${JSON.stringify(matching_keys)}`,
      ),
    ).toEqual([
      'locations update [["code"],["code","codeType"]]',
      'locations soft_delete [["code"],["code","codeType"]]',
      'visit_records append []',
    ])
    expect(destination_catalog.operations[0].json_schema.required).toEqual(['code'])
    if (hasProtocol) expect(protocolErrors(specified.stdout + discovered.stdout)).toEqual([])
  })
})

describe('check', () => {
  it.each<[string, SandboxOptions, string]>([
    ['succeeds at a service that takes an empty array', {}, 'SUCCEEDED'],
    ['succeeds at one that refuses an empty array', alwaysFaulty('400'), 'SUCCEEDED'],
    ['succeeds at one that answers 500', alwaysFaulty('500'), 'SUCCEEDED'],
    ['fails for a token that is refused', alwaysFaulty('401'), 'FAILED'],
    ['fails for a token without permission', { denied: ['syncLocations'] }, 'FAILED'],
  ])('%s', async (_, options, status) => {
    const sandbox = await startSandbox(options)
    const outcome = await run(destinationCheckCommand, ['--config', writeTempFile(config(sandbox))])
    const [{ connectionStatus }, ...more] = lines(outcome)
    expect([connectionStatus.status, outcome.status, more]).toEqual([status, 0, []])
    expect(connectionStatus.message).toContain(status === 'FAILED' ? 'token' : 'permission not denied')
    expect(sandbox.log().every(({ request }) => request === null || JSON.stringify(request) === '[]')).toBe(true)
    if (hasProtocol) expect(protocolErrors(outcome.stdout)).toEqual([])
  })

  it.each<[string, string | Buffer]>([
    ['a page', '<!doctype html><title>Sign in</title>'],
    ['a page behind a mark of its encoding', '\uFEFF \n<html>'],
    ['a page in another encoding', Buffer.from('<html>M\u00fcller', 'latin1')],
  ])('answers FAILED where what answers is not the service, but %s', async (_, body) => {
    const { url } = await startServer((_seen, to) => sendJson(to, 200, body, { 'Content-Type': 'text/html' }))
    const outcome = await run(destinationCheckCommand, ['--config', writeTempFile(config({ url, accessToken: 'a' }))])
    expect([outcome.status, lines(outcome).map(({ connectionStatus }) => connectionStatus)]).toEqual([
      0,
      [
        {
          status: 'FAILED',
          message:
            'visit_records: the server at base_url is not the service (it is a page ' +
            'in HTML). Check base_url; a proxy or a login page may be in between.',
        },
      ],
    ])
  })

  it.each(['', 'OK', '[]', '{"received":0}'])('succeeds where an empty array is answered with %j', async (body) => {
    const { url } = await startServer((_, to) => sendJson(to, 200, body))
    const outcome = await run(destinationCheckCommand, ['--config', writeTempFile(config({ url, accessToken: 'a' }))])
    expect(lines(outcome)[0].connectionStatus.status).toBe('SUCCEEDED')
  })

  it('checks only the objects that the config configures', async () => {
    const sandbox = await startSandbox({ denied: ['syncLocations'] })
    const [line] = lines(await run(destinationCheckCommand, ['--config', writeTempFile(config(sandbox, { mapping }))]))
    expect(line.connectionStatus).toEqual({
      status: 'SUCCEEDED',
      message: 'visit_records: permission not denied.',
    })
  })

  const application = {
    auth_type: 'application',
    application_id: 'a',
    application_secret: 's',
    token_url: 'http://127.0.0.1:9/token',
  }

  it.each<[string, object]>([
    ['refuses the connection', { base_url: 'http://127.0.0.1:9' }],
    ['has no address', { base_url: 'https://feedback.invalid' }],
    ['has a token service that refuses the connection', { base_url: 'http://127.0.0.1:9', credentials: application }],
  ])('answers FAILED where the service %s', async (_, more) => {
    const given = config({ url: '', accessToken: 'a' }, { timeouts: { connect_seconds: 1 }, ...more })
    const outcome = await run(destinationCheckCommand, ['--config', writeTempFile(given)])
    const [{ connectionStatus }, ...others] = lines(outcome)
    expect([connectionStatus.status, outcome.status, others]).toEqual(['FAILED', 0, []])
    expect(connectionStatus.message).toMatch(/Check base_url|token_url/)
  })

  it('prints an error trace if the service breaks the connection off', async () => {
    const sandbox = await startSandbox(alwaysFaulty('reset'))
    const outcome = await run(destinationCheckCommand, ['--config', writeTempFile(config(sandbox))])
    expect(outcome.status).toBe(1)
    expect(errors(outcome)).toMatchObject([{ failure_type: 'transient_error' }])
  })
})

describe('write', () => {
  it('sends each stream to its object in any sync mode, and prints states with counts', async () => {
    const sandbox = await startSandbox({ locations: 1 })
    const catalog = {
      streams: [
        {
          stream: { name: 'sites', json_schema: {} },
          sync_mode: 'full_refresh',
          destination_sync_mode: 'overwrite',
          destination_object_name: 'locations',
        },
        {
          stream: { name: 'visit_records', json_schema: {} },
          sync_mode: 'incremental',
          destination_sync_mode: 'append',
          primary_key: [['id']],
        },
      ],
    }
    const input = [
      ...formatStream(airbyteFormat, 'sites', 'code', locationRows(1, 4)),
      ...formatStream(airbyteFormat, 'visit_records', 'id', visitRows(0, 10)),
    ]
    const outcome = await write(config(sandbox, { mapping }), catalog, `not a message\n${formatLines(input)}`)
    expect([outcome.status, outcome.stderr]).toEqual([0, ''])
    expect(states(outcome).map(({ state }) => state.destinationStats)).toEqual([
      { recordCount: 3, rejectedRecordCount: 0 },
      { recordCount: 10, rejectedRecordCount: 0 },
    ])
    expect(outcome.stdout).toContain('"recordCount":3.0')
    if (hasProtocol) expect(protocolErrors(outcome.stdout)).toEqual([])
    const truth = await sandbox.truth()
    expect(truth.visits).toHaveLength(10)
    expect(truth.locations.map(({ active }) => active)).toEqual([true, true, true, true])
  })

  it('sends a stream to the object that the config names, without what the config withholds', async () => {
    const sandbox = await startSandboxWithLocation()
    const settings = config(sandbox, {
      streams: { users: 'visit_records' },
      mapping: { visit_records: { ...mapping.visit_records, npi: null, address: null } },
    })
    const rows = visitRows(0, 2).map((row) => ({ ...row, phone: '1', address: 'x' }))
    const input = formatLines(formatStream(airbyteFormat, 'users', 'id', rows))
    const withheld = await write(settings, configuredCatalogOf({ users: 'id' }), input)
    expect(errors(withheld)).toMatchObject([{ message: expect.stringContaining('npi is missing') }])
    const catalog = configuredCatalogOf({ users: 'id' })
    const written = await write(
      { ...settings, mapping: { visit_records: { ...mapping.visit_records, address: null } } },
      catalog,
      input,
    )
    expect([written.status, states(written).length]).toEqual([0, 1])
    expect(written.stdout).toContain('users: the columns phone have names of attributes and are not sent')
    const { request } =
      sandbox
        .log()
        .filter(({ operation }) => operation === 'createVisitRecords')
        .at(-1) ?? {}
    expect(request).toEqual([expect.objectContaining({ npi: '1234567890' }), expect.anything()])
    expect(JSON.stringify(request)).not.toMatch(/phone|address/)
  })

  it(
    'fails for a stream without COMPLETE where the catalog has ' +
      'ids, keeps the states, and hides no error of the source',
    async () => {
      const sandbox = await startSandbox()
      const input = formatStream(airbyteFormat, 'locations', 'code', locationRows(1, 4)).slice(0, -1)
      const withIds = configuredCatalogOf({ locations: 'code' }, { generation_id: 1, minimum_generation_id: 0 })
      const outcome = await write(config(sandbox), withIds, formatLines(input))
      expect([outcome.status, states(outcome).length, errors(outcome)]).toEqual([1, 1, []])
      expect(outcome.stdout).toContain(
        '{"type":"LOG","log":{"level":"ERROR","message":"locations: the input ended before the stream was complete.',
      )
      const without = await write(config(sandbox), configuredCatalogOf({ locations: 'code' }), formatLines(input))
      expect([without.status, states(without).length, errors(without)]).toEqual([0, 1, []])
    },
  )

  it('changes nothing for a cleared, a skipped or an empty stream, and says so', async () => {
    const sandbox = await startSandbox({ locations: 1 })
    const settings = config(sandbox, {
      reconcile: { ledger_path: newTempPath('ledger') },
      max_deactivations_percent: 100,
    })
    const catalog = (more: object) => configuredCatalogOf({ locations: 'code' }, { ...more })
    const ids = { generation_id: 2, minimum_generation_id: 2, sync_id: 3 }
    const list = formatLines(formatStream(airbyteFormat, 'locations', 'code', locationRows(1, 4)))
    expect((await write(settings, catalog(ids), list)).status).toBe(0)
    const cleared =
      '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"locations"}},"id":1}}'
    const injected = cleared.replace('}}', '},"stream_state":{}}')
    const end = formatLines(airbyteFormat.close('locations'))
    for (const [input, given, said] of [
      [`${cleared}\n${end}`, ids, 'locations: cleared on the platform; nothing changes at the service.'],
      [`${injected}\n${end}`, ids, 'locations: no record came, and an empty list deactivates nothing.'],
      [end, ids, 'locations: no records arrived, so nothing changes at the service.'],
      [`${cleared}\n`, {}, 'locations: cleared on the platform; nothing changes at the service.'],
      ['', {}, 'locations: no records arrived, so nothing changes at the service.'],
    ] as const) {
      const outcome = await write(settings, catalog(given), input)
      expect([outcome.status, errors(outcome), states(outcome).length]).toEqual([
        0,
        [],
        input.includes('STATE') ? 1 : 0,
      ])
      expect(outcome.stdout).toContain(said)
    }
    expect((await sandbox.truth()).locations.every(({ active }) => active)).toBe(true)
  })

  it('fails if a mapping makes every record wrong', async () => {
    const sandbox = await startSandbox()
    const deadLetters = newTempPath('jsonl')
    const wrongMapping = { visit_records: { ...mapping.visit_records, email: 'given_name', visitTime: 'family_name' } }
    const settings = config(sandbox, { mapping: wrongMapping, dead_letter_path: deadLetters })
    const outcome = await write(
      settings,
      configuredCatalogOf({ visit_records: 'id' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', visitRows(0, 40))),
    )
    expect([outcome.status, states(outcome)]).toEqual([1, []])
    expect(errors(outcome)).toMatchObject([
      { failure_type: 'config_error', message: expect.stringContaining('all 40 records') },
    ])
    expect(readFileSync(deadLetters, 'utf8').split('\n')).toHaveLength(41)
  })

  it('fails at the first rejected record without a dead-letter file, and quotes nothing of it', async () => {
    const sandbox = await startSandboxWithLocation()
    const rows = [...visitRows(0, 3), visitRow(3, { clinic: 'W1', mail: 'nobody@' }), ...visitRows(4, 9)]
    const settings = config(sandbox, { mapping })
    const first = await write(
      settings,
      configuredCatalogOf({ visit_records: 'id' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows)),
    )
    expect([first.status, states(first)]).toEqual([1, []])
    expect(errors(first)).toMatchObject([
      { failure_type: 'config_error', message: expect.stringContaining('record 4') },
    ])
    expect(first.stdout + first.stderr).not.toMatch(/nobody|Byron|Ada/)
  })

  it('rejects the same visits in a dry run as in a real one', async () => {
    const sandbox = await startSandboxWithLocation()
    const mails = ['ada@example.org', 'nobody', 'ada at example.org', 'b@example.org', 'c@example.org']
    const rows = mails.map((mail, n) => visitRow(n, { clinic: 'W1', mail }))
    const stdin = formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows))
    const runs = await Promise.all(
      [[], ['--dry-run']].map(async (flags) => {
        const dead_letter_path = newTempPath('jsonl')
        const settings = config(sandbox, { mapping, dead_letter_path, max_rejected_percent: 50 })
        const outcome = await write(settings, configuredCatalogOf({ visit_records: 'id' }), stdin, ...flags)
        return [outcome.status, /visit_records: 5 received, (\d) .*, (\d) rejected/.exec(outcome.stdout)?.slice(1)]
      }),
    )
    expect(runs).toEqual([
      [0, ['3', '2']],
      [0, ['3', '2']],
    ])
  })

  it('says of a refused visit that its location was rejected in the same run', async () => {
    const sandbox = await startSandbox()
    const deadLetters = newTempPath('jsonl')
    const settings = config(sandbox, { mapping, dead_letter_path: deadLetters, max_rejects_percent: 100 })
    const wrongLocation = { code: 'W1', active: 'perhaps' }
    const visits = [visitRow(1, { clinic: 'W1' }), visitRow(2, { clinic: 'W2' }), visitRow(3, { clinic: 'W3' })]
    const input = [
      ...formatStream(airbyteFormat, 'locations', 'code', [wrongLocation, { code: 'W2' }]),
      ...formatStream(airbyteFormat, 'visit_records', 'id', visits),
    ]
    const catalog = configuredCatalogOf({ locations: 'code', visit_records: 'id' })
    expect((await write(settings, catalog, formatLines(input))).status).toBe(0)
    const letters = readFileSync(deadLetters, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(letters.map(({ object, reason }) => `${object}: ${reason}`).sort()).toEqual([
      'locations: active must be true or false',
      'visit_records: the service reports Error',
      'visit_records: the service reports Error; its location was rejected in this run',
    ])
  })

  it('takes a column whose name begins with a byte order mark for what it is', async () => {
    const sandbox = await startSandboxWithLocation()
    const row = ({ id, visitRecordId, ...rest }: Readonly<Record<string, unknown>>) => ({ '\ufeffid': id, ...rest })
    const marked = visitRows(0, 2).map((visit) => row({ ...visit, clinic: 'W1' }))
    const plain = visitRows(0, 2).map((visit) => ({ ...row({ ...visit, clinic: 'W1' }), id: visit.id }))
    const ids: Array<ReadonlyArray<string>> = []
    for (const [rows, key] of [
      [marked, 'id'],
      [marked, '\ufeffid'],
      [plain, 'id'],
    ] as const) {
      const input = formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows))
      expect(
        (await write(config(sandbox, { mapping }), configuredCatalogOf({ visit_records: key }), input)).status,
      ).toBe(0)
      const { request } =
        sandbox
          .log()
          .filter(({ operation }) => operation === 'createVisitRecords')
          .at(-1) ?? {}
      ids.push((request as ReadonlyArray<{ readonly visitRecordId: string }>).map(({ visitRecordId }) => visitRecordId))
    }
    expect(ids[1]).toEqual(ids[0])
    expect(ids[2]).toEqual(ids[0])
    const named = { '\ufeffvisitRecordId': 'visit-of-the-file', ...row({ ...visitRow(7), clinic: 'W1' }) }
    await write(
      config(sandbox, { mapping }),
      configuredCatalogOf({ visit_records: 'visitRecordId' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', [named])),
    )
    expect((await sandbox.truth()).visits.map(({ id }) => id)).toContain('visit-of-the-file')
  })

  it('rejects a visit that is too old', async () => {
    const sandbox = await startSandboxWithLocation()
    const old = new Date(Date.now() - 31 * 86_400_000).toISOString()
    const rows = [...visitRows(0, 5), visitRow(5, { clinic: 'W1', at: old })]
    const deadLetters = newTempPath('jsonl')
    const settings = config(sandbox, { mapping, dead_letter_path: deadLetters })
    const outcome = await write(
      settings,
      configuredCatalogOf({ visit_records: 'id' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows)),
    )
    expect([outcome.status, (await sandbox.truth()).visits.length]).toEqual([0, 5])
    expect(readFileSync(deadLetters, 'utf8')).toContain('max_visit_age_days')
  })

  it('fails before anything is sent for an operation that an object does not have', async () => {
    const sandbox = await startSandbox()
    const catalog = configuredCatalogOf({ visit_records: 'id' }, { destination_sync_mode: 'soft_delete' })
    const outcome = await write(config(sandbox), catalog, '')
    expect(errors(outcome)).toMatchObject([
      { failure_type: 'config_error', message: expect.stringContaining('soft_delete') },
    ])
  })

  it('deactivates the locations of a stream of deletions', async () => {
    const sandbox = await startSandbox({ locations: 1 })
    await write(
      config(sandbox),
      configuredCatalogOf({ locations: 'code' }),
      formatLines(formatStream(airbyteFormat, 'locations', 'code', locationRows(1, 4))),
    )
    const deletions = configuredCatalogOf({ locations: 'code' }, { destination_sync_mode: 'soft_delete' })
    const outcome = await write(
      config(sandbox),
      deletions,
      formatLines(formatStream(airbyteFormat, 'locations', 'code', locationRows(2, 3))),
    )
    expect(outcome.status).toBe(0)
    expect((await sandbox.truth()).locations.flatMap(({ code, active }) => (active ? [] : [code]))).toEqual(['W2'])
  })

  it(
    'deactivates locations that are no longer on a complete list, ' +
      'shows the plan in a dry run, and refuses a list that is cut off',
    async () => {
      const sandbox = await startSandbox({ locations: 1 })
      const ledger = newTempPath('ledger')
      const settings = config(sandbox, { reconcile: { ledger_path: ledger } })
      const list = (to: number) => formatLines(formatStream(airbyteFormat, 'locations', 'code', locationRows(1, to)))
      const catalog = configuredCatalogOf({ locations: 'code' })
      const inactive = async () =>
        (await sandbox.truth()).locations.flatMap(({ code, active }) => (active ? [] : [code]))
      expect((await write(settings, catalog, list(21))).status).toBe(0)

      const requestsBefore = sandbox.stats().requests.syncLocations
      const dry = await write(settings, catalog, list(20), '--dry-run')
      expect([dry.status, states(dry), sandbox.stats().requests.syncLocations]).toEqual([0, [], requestsBefore])
      expect(dry.stdout).toContain('locations: 0 created, 19 updated, 1 to deactivate.')
      expect(dry.stdout).toContain('locations: deactivate W20')
      expect(await inactive()).toEqual([])

      const cut = await write(settings, catalog, list(11))
      expect(cut.status).toBe(1)
      expect(errors(cut)).toMatchObject([{ message: expect.stringContaining('10 of 20 locations') }])
      expect(await inactive()).toEqual([])

      expect((await write(settings, catalog, list(20))).status).toBe(0)
      expect(await inactive()).toEqual(['W20'])
      expect(readFileSync(ledger, 'utf8')).toContain('{"code":"W20","codeType":null,"active":false}')
    },
  )

  it('sends the values of objects unchanged, integers beyond 2^53 too', async () => {
    const sandbox = await startSandbox()
    const row =
      '{"type":"RECORD","record":{"stream":"locations","data":{"code":"W1",' +
      '"additionalAttributes":{"n":9007199254740993}},"emitted_at":1}}'
    const end = formatLines(airbyteFormat.close('locations'))
    expect((await write(config(sandbox), configuredCatalogOf({ locations: 'code' }), `${row}\n${end}`)).status).toBe(0)
    const entry = sandbox.log().find(({ operation }) => operation === 'syncLocations')
    expect((entry as { readonly request?: unknown } | undefined)?.request).toEqual([
      { code: 'W1', active: true, additionalAttributes: { n: 9007199254740993n } },
    ])
  })

  it('ends on SIGTERM with states whose records are written', async () => {
    const sandbox = await startSandboxWithLocation({ latency: { minMs: 60, maxMs: 60 } })
    const stdin = formatLines(formatStream(airbyteFormat, 'visit_records', 'id', visitRows(0, 5000), { every: 100 }))
    const configFile = writeTempFile(config(sandbox, { mapping }))
    const running = startProgram(
      'destination-feedback',
      ['write', '--config', configFile, '--catalog', writeTempFile(configuredCatalogOf({ visit_records: 'id' }))],
      { stdin },
    )
    running.onOutput(() => running.kill('SIGTERM'))
    const outcome = await running.ended
    expect(outcome.signal).toBe('SIGTERM')
    const at = states(outcome).at(-1)?.state.stream.stream_state.at
    expect(at).toBeGreaterThan(0)
    expect(at).toBeLessThan(5000)
    expect((await sandbox.truth()).visits.length).toBeGreaterThanOrEqual(at)
  })
})

describe('target-feedback', () => {
  it('logs all of a long plan before it ends, and creates no ledger if nothing was sent', async () => {
    const ledger = newTempPath('ledger')
    const configFile = writeTempFile(
      config({ url: 'http://127.0.0.1:9', accessToken: 'a-token' }, { reconcile: { ledger_path: ledger } }),
    )
    const stdin = formatLines(formatStream(singerFormat, 'locations', 'code', locationRows(0, 3000)))
    const outcome = await startProgram('target-feedback', ['--config', configFile, '--dry-run'], { stdin }).ended
    expect([outcome.status, outcome.stdout, existsSync(ledger)]).toEqual([0, '', false])
    expect(outcome.stderr.match(/INFO locations: create W\d+$/gm)).toHaveLength(3000)
    expect(outcome.stderr).toMatch(/INFO locations: 3000 received, 3000 would be sent, 0 rejected\.\n$/)
  })

  const runTarget = (args: ReadonlyArray<string>, stdin = '', env = {}): Promise<Outcome> =>
    runCommand(targetCommand, args, { stdin, env, fail: reportSingerFailure, program: 'target-feedback' })

  it('writes Singer messages and prints the value of each state, nothing else', async () => {
    const sandbox = await startSandbox()
    const stdin = formatLines([
      ...formatStream(singerFormat, 'locations', 'code', locationRows(1, 3)),
      ...formatStream(singerFormat, 'visit_records', 'id', visitRows(0, 10)),
    ])
    const outcome = await runTarget(['--config', writeTempFile(config(sandbox, { mapping }))], stdin)
    expect(outcome.status).toBe(0)
    expect(lines(outcome)).toEqual([
      { bookmarks: { locations: { at: 2 } } },
      { bookmarks: { visit_records: { at: 10 } } },
    ])
    expect(outcome.stderr).toContain('INFO visit_records: 10 received, 10 accepted, 0 rejected.')
    expect((await sandbox.truth()).visits).toHaveLength(10)
  })

  it('sends a stream to the object that the config names', async () => {
    const sandbox = await startSandbox()
    const stdin = formatLines(formatStream(singerFormat, 'sites', 'code', locationRows(1, 3)))
    const args = ['--config', writeTempFile(config(sandbox, { streams: { sites: 'locations' } }))]
    expect(await runTarget(args, stdin)).toMatchObject({ status: 0, stdout: '{"bookmarks":{"sites":{"at":2}}}\n' })
  })

  it('takes its config from environment variables', async () => {
    const { url, accessToken } = await startSandbox()
    const env = {
      TARGET_FEEDBACK_BASE_URL: url,
      TARGET_FEEDBACK_CREDENTIALS_AUTH_TYPE: 'access_token',
      TARGET_FEEDBACK_CREDENTIALS_ACCESS_TOKEN: accessToken,
    }
    const outcome = await runTarget(
      ['--config', 'ENV'],
      formatLines(formatStream(singerFormat, 'locations', 'code', locationRows(1, 3))),
      env,
    )
    expect([outcome.status, outcome.stdout]).toEqual([0, '{"bookmarks":{"locations":{"at":2}}}\n'])
  })

  it('fails with the line that is not a Singer message', async () => {
    const sandbox = await startSandbox()
    const outcome = await runTarget(['--config', writeTempFile(config(sandbox))], 'Traceback (most recent call last)\n')
    expect([outcome.status, outcome.stdout]).toEqual([1, ''])
    expect(outcome.stderr).toMatch(/^ERROR Line 1 /)
  })

  it('prints its settings', async () => {
    const outcome = await runTarget(['--about', '--format', 'json'])
    expect(Object.keys(JSON.parse(outcome.stdout).settings.properties)).toContain('dead_letter_path')
  })
})
