import { existsSync, readFileSync } from 'node:fs'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { Command } from '../../../connector/cdk/command'
import { reportAirbyteFailure } from '../../../connector/cdk/program'
import { reportSingerFailure } from '../../../connector/cdk/singer/command-line'
import {
  destinationCheckCommand,
  destinationDiscoverCommand,
  destinationSpecCommand,
  destinationWriteCommand,
} from '../../../connector/cli/airbyte-destination'
import { targetCommand } from '../../../connector/cli/singer-target'
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
import { freshPath, startProgram, writeTempFile } from '../../support/program'
import { hasProtocol, protocolErrors } from '../../support/protocol'
import { type Outcome, runCommand } from '../../support/run-command'
import { startSmallSandbox as startSandbox } from '../../support/sandbox'

/** A verb of the destination, in this process. */
const run = (verb: Command, args: ReadonlyArray<string>, stdin = ''): Promise<Outcome> =>
  runCommand(verb, args, { stdin, fail: reportAirbyteFailure })

const faulty = (kind: string): SandboxOptions => {
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
const states = (ran: Pick<Outcome, 'stdout'>) => lines(ran).filter(({ type }) => type === 'STATE')
const errors = (ran: Pick<Outcome, 'stdout'>) =>
  lines(ran).flatMap(({ trace }) => (trace?.type === 'ERROR' ? [trace.error] : []))
const sites = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => locationRow(from + n))
const visits = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => visitRow(from + n, { clinic: 'W1' }))

const writing = (given: object, catalog: unknown, stdin: string, ...more: ReadonlyArray<string>): Promise<Outcome> =>
  run(destinationWriteCommand, ['--config', writeTempFile(given), '--catalog', writeTempFile(catalog), ...more], stdin)

/** A sandbox that has the location W1. */
const withClinic = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const sandbox = await startSandbox(options)
  await sandbox.api.syncLocations([{ code: 'W1', active: true }])()
  return sandbox
}

describe('spec and discover', () => {
  it('print what the destination takes', async () => {
    const [specified, discovered] = await Promise.all([
      run(destinationSpecCommand, []),
      run(destinationDiscoverCommand, [
        '--config',
        writeTempFile(config({ url: 'https://x.example', accessToken: 'a' })),
      ]),
    ])
    const [{ spec: said }] = lines(specified)
    expect(said.connectionSpecification).toEqual(JSON.parse(readFileSync('spec/destination.json', 'utf8')))
    expect(said.supported_destination_sync_modes).toEqual(
      expect.arrayContaining(['append', 'append_dedup', 'overwrite']),
    )
    const [{ destination_catalog }] = lines(discovered)
    expect(
      destination_catalog.operations.map(
        ({ object_name, sync_mode, matching_keys }: Record<string, unknown>) =>
          `${object_name} ${sync_mode} ${JSON.stringify(matching_keys)}`,
      ),
    ).toEqual([
      'locations update [["code"],["codeType"]]',
      'locations soft_delete [["code"],["codeType"]]',
      'visit_records append [["visitRecordId"]]',
    ])
    if (hasProtocol) expect(protocolErrors(specified.stdout + discovered.stdout)).toEqual([])
  })
})

describe('check', () => {
  it.each<[string, SandboxOptions, string]>([
    ['a service that takes an empty array', {}, 'SUCCEEDED'],
    ['one that refuses an empty array', faulty('400'), 'SUCCEEDED'],
    ['one that is out of order', faulty('500'), 'SUCCEEDED'],
    ['one that answers no JSON', faulty('html'), 'SUCCEEDED'],
    ['a token that is refused', faulty('401'), 'FAILED'],
    ['a token without permission', { denied: ['syncLocations'] }, 'FAILED'],
  ])('of %s', async (_, options, status) => {
    const sandbox = await startSandbox(options)
    const ran = await run(destinationCheckCommand, ['--config', writeTempFile(config(sandbox))])
    const [{ connectionStatus }, ...more] = lines(ran)
    expect([connectionStatus.status, ran.status, more]).toEqual([status, 0, []])
    expect(connectionStatus.message).toContain(status === 'FAILED' ? 'token' : 'permission not denied')
    expect(sandbox.log().every(({ request }) => request === null || JSON.stringify(request) === '[]')).toBe(true)
    if (hasProtocol) expect(protocolErrors(ran.stdout)).toEqual([])
  })

  it('asks only for what the config is about', async () => {
    const sandbox = await startSandbox({ denied: ['syncLocations'] })
    const [said] = lines(await run(destinationCheckCommand, ['--config', writeTempFile(config(sandbox, { mapping }))]))
    expect(said.connectionStatus).toEqual({
      status: 'SUCCEEDED',
      message: 'visit_records: permission not denied.',
    })
  })

  it('is a trace where nobody answers', async () => {
    const ran = await run(destinationCheckCommand, [
      '--config',
      writeTempFile(config({ url: 'http://127.0.0.1:9', accessToken: 'a' })),
    ])
    expect(ran.status).toBe(1)
    expect(errors(ran)).toMatchObject([{ failure_type: 'transient_error' }])
  })
})

describe('write', () => {
  it('sends streams by their object, whatever the mode, and answers in the protocol', async () => {
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
      ...formatStream(airbyteFormat, 'sites', 'code', sites(1, 4)),
      ...formatStream(airbyteFormat, 'visit_records', 'id', visits(0, 10)),
    ]
    const ran = await writing(config(sandbox, { mapping }), catalog, `not a message\n${formatLines(input)}`)
    expect([ran.status, ran.stderr]).toEqual([0, ''])
    expect(states(ran).map(({ state }) => state.destinationStats)).toEqual([
      { recordCount: 3, rejectedRecordCount: 0 },
      { recordCount: 10, rejectedRecordCount: 0 },
    ])
    expect(ran.stdout).toContain('"recordCount":3.0')
    if (hasProtocol) expect(protocolErrors(ran.stdout)).toEqual([])
    const truth = await sandbox.truth()
    expect(truth.visits).toHaveLength(10)
    expect(truth.locations.map(({ active }) => active)).toEqual([true, true, true, true])
  })

  it('is incomplete without COMPLETE: what its states cover is kept, the status says so', async () => {
    const sandbox = await startSandbox()
    const input = formatStream(airbyteFormat, 'locations', 'code', sites(1, 4)).slice(0, -1)
    const ran = await writing(config(sandbox), configuredCatalogOf({ locations: 'code' }), formatLines(input))
    expect([ran.status, states(ran).length]).toEqual([1, 1])
    expect(errors(ran)).toMatchObject([
      { failure_type: 'transient_error', message: expect.stringContaining('locations') },
    ])
  })

  it('does not end green where a mapping makes every record wrong', async () => {
    const sandbox = await startSandbox()
    const deadLetters = freshPath('jsonl')
    const wrong = { visit_records: { ...mapping.visit_records, email: 'given_name', visitTime: 'family_name' } }
    const given = config(sandbox, { mapping: wrong, dead_letter_path: deadLetters })
    const ran = await writing(
      given,
      configuredCatalogOf({ visit_records: 'id' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', visits(0, 40))),
    )
    expect([ran.status, states(ran)]).toEqual([1, []])
    expect(errors(ran)).toMatchObject([
      { failure_type: 'config_error', message: expect.stringContaining('all 40 records') },
    ])
    expect(readFileSync(deadLetters, 'utf8').split('\n')).toHaveLength(41)
  })

  it('fails at the first rejected record where there is no file for it, and quotes nothing of it', async () => {
    const sandbox = await withClinic()
    const rows = [...visits(0, 3), visitRow(3, { clinic: 'W1', mail: 'nobody@' }), ...visits(4, 9)]
    const given = config(sandbox, { mapping })
    const first = await writing(
      given,
      configuredCatalogOf({ visit_records: 'id' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows)),
    )
    expect([first.status, states(first)]).toEqual([1, []])
    expect(errors(first)).toMatchObject([
      { failure_type: 'config_error', message: expect.stringContaining('record 4') },
    ])
    expect(first.stdout + first.stderr).not.toMatch(/nobody|Byron|Ada/)
  })

  it('sends no visit that is too old', async () => {
    const sandbox = await withClinic()
    const old = new Date(Date.now() - 31 * 86_400_000).toISOString()
    const rows = [...visits(0, 5), visitRow(5, { clinic: 'W1', at: old })]
    const deadLetters = freshPath('jsonl')
    const given = config(sandbox, { mapping, dead_letter_path: deadLetters })
    const ran = await writing(
      given,
      configuredCatalogOf({ visit_records: 'id' }),
      formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows)),
    )
    expect([ran.status, (await sandbox.truth()).visits.length]).toEqual([0, 5])
    expect(readFileSync(deadLetters, 'utf8')).toContain('max_visit_age_days')
  })

  it('refuses what an object does not offer, before anything is sent', async () => {
    const sandbox = await startSandbox()
    const catalog = configuredCatalogOf({ visit_records: 'id' }, { destination_sync_mode: 'soft_delete' })
    const ran = await writing(config(sandbox), catalog, '')
    expect(errors(ran)).toMatchObject([
      { failure_type: 'config_error', message: expect.stringContaining('soft_delete') },
    ])
  })

  it('deactivates what a stream of deletions names', async () => {
    const sandbox = await startSandbox({ locations: 1 })
    await writing(
      config(sandbox),
      configuredCatalogOf({ locations: 'code' }),
      formatLines(formatStream(airbyteFormat, 'locations', 'code', sites(1, 4))),
    )
    const gone = configuredCatalogOf({ locations: 'code' }, { destination_sync_mode: 'soft_delete' })
    const ran = await writing(
      config(sandbox),
      gone,
      formatLines(formatStream(airbyteFormat, 'locations', 'code', sites(2, 3))),
    )
    expect(ran.status).toBe(0)
    expect((await sandbox.truth()).locations.flatMap(({ code, active }) => (active ? [] : [code]))).toEqual(['W2'])
  })

  it('follows a master list by its ledger, shows the plan first, and refuses a list that was cut off', async () => {
    const sandbox = await startSandbox({ locations: 1 })
    const ledger = freshPath('ledger')
    const given = config(sandbox, { reconcile: { ledger_path: ledger } })
    const list = (to: number) => formatLines(formatStream(airbyteFormat, 'locations', 'code', sites(1, to)))
    const catalog = configuredCatalogOf({ locations: 'code' })
    const inactive = async () => (await sandbox.truth()).locations.flatMap(({ code, active }) => (active ? [] : [code]))
    expect((await writing(given, catalog, list(21))).status).toBe(0)

    const asked = sandbox.stats().requests.syncLocations
    const dry = await writing(given, catalog, list(20), '--dry-run')
    expect([dry.status, states(dry), sandbox.stats().requests.syncLocations]).toEqual([0, [], asked])
    expect(dry.stdout).toContain('locations: 0 created, 19 updated, 1 to deactivate.')
    expect(dry.stdout).toContain('locations: deactivate W20')
    expect(await inactive()).toEqual([])

    const cut = await writing(given, catalog, list(11))
    expect(cut.status).toBe(1)
    expect(errors(cut)).toMatchObject([{ message: expect.stringContaining('10 of 20 locations') }])
    expect(await inactive()).toEqual([])

    expect((await writing(given, catalog, list(20))).status).toBe(0)
    expect(await inactive()).toEqual(['W20'])
    expect(readFileSync(ledger, 'utf8')).toContain('{"code":"W20","codeType":null,"active":false}')
  })

  it('sends what an object holds as it came, integers beyond 2^53 too', async () => {
    const sandbox = await startSandbox()
    const row =
      '{"type":"RECORD","record":{"stream":"locations","data":{"code":"W1","additionalAttributes":{"n":9007199254740993}},"emitted_at":1}}'
    const end = formatLines(airbyteFormat.close('locations'))
    expect((await writing(config(sandbox), configuredCatalogOf({ locations: 'code' }), `${row}\n${end}`)).status).toBe(
      0,
    )
    const entry = sandbox.log().find(({ operation }) => operation === 'syncLocations')
    expect((entry as { readonly request?: unknown } | undefined)?.request).toEqual([
      { code: 'W1', active: true, additionalAttributes: { n: 9007199254740993n } },
    ])
  })

  it('ends on SIGTERM with states that hold', async () => {
    const sandbox = await withClinic({ latency: { minMs: 60, maxMs: 60 } })
    const stdin = formatLines(formatStream(airbyteFormat, 'visit_records', 'id', visits(0, 5000), { every: 100 }))
    const given = writeTempFile(config(sandbox, { mapping }))
    const running = startProgram(
      'destination-feedback',
      ['write', '--config', given, '--catalog', writeTempFile(configuredCatalogOf({ visit_records: 'id' }))],
      { stdin },
    )
    running.onOutput(() => running.kill('SIGTERM'))
    const ran = await running.ended
    expect(ran.signal).toBe('SIGTERM')
    const at = states(ran).at(-1)?.state.stream.stream_state.at
    expect(at).toBeGreaterThan(0)
    expect(at).toBeLessThan(5000)
    expect((await sandbox.truth()).visits.length).toBeGreaterThanOrEqual(at)
  })
})

describe('target-feedback', () => {
  it('tells all of a long plan before it ends, and leaves no ledger where nothing was sent', async () => {
    const ledger = freshPath('ledger')
    const given = writeTempFile(
      config({ url: 'http://127.0.0.1:9', accessToken: 'a-token' }, { reconcile: { ledger_path: ledger } }),
    )
    const stdin = formatLines(formatStream(singerFormat, 'locations', 'code', sites(0, 3000)))
    const ran = await startProgram('target-feedback', ['--config', given, '--dry-run'], { stdin }).ended
    expect([ran.status, ran.stdout, existsSync(ledger)]).toEqual([0, '', false])
    expect(ran.stderr.match(/INFO locations: create W\d+$/gm)).toHaveLength(3000)
    expect(ran.stderr).toMatch(/INFO locations: 3000 received, 3000 would be sent, 0 rejected\.\n$/)
  })

  const targeting = (args: ReadonlyArray<string>, stdin = '', env = {}): Promise<Outcome> =>
    runCommand(targetCommand, args, { stdin, env, fail: reportSingerFailure, program: 'target-feedback' })

  it('writes Singer messages and prints the value of each state, nothing else', async () => {
    const sandbox = await startSandbox()
    const stdin = formatLines([
      ...formatStream(singerFormat, 'locations', 'code', sites(1, 3)),
      ...formatStream(singerFormat, 'visit_records', 'id', visits(0, 10)),
    ])
    const ran = await targeting(['--config', writeTempFile(config(sandbox, { mapping }))], stdin)
    expect(ran.status).toBe(0)
    expect(lines(ran)).toEqual([{ bookmarks: { locations: { at: 2 } } }, { bookmarks: { visit_records: { at: 10 } } }])
    expect(ran.stderr).toContain('INFO visit_records: 10 received, 10 accepted, 0 rejected.')
    expect((await sandbox.truth()).visits).toHaveLength(10)
  })

  it('takes its config from variables', async () => {
    const { url, accessToken } = await startSandbox()
    const env = {
      TARGET_FEEDBACK_BASE_URL: url,
      TARGET_FEEDBACK_CREDENTIALS_AUTH_TYPE: 'access_token',
      TARGET_FEEDBACK_CREDENTIALS_ACCESS_TOKEN: accessToken,
    }
    const ran = await targeting(
      ['--config', 'ENV'],
      formatLines(formatStream(singerFormat, 'locations', 'code', sites(1, 3))),
      env,
    )
    expect([ran.status, ran.stdout]).toEqual([0, '{"bookmarks":{"locations":{"at":2}}}\n'])
  })

  it('fails plainly on what is no Singer message', async () => {
    const sandbox = await startSandbox()
    const ran = await targeting(['--config', writeTempFile(config(sandbox))], 'Traceback (most recent call last)\n')
    expect([ran.status, ran.stdout]).toEqual([1, ''])
    expect(ran.stderr).toMatch(/^ERROR Line 1 /)
  })

  it('tells its settings', async () => {
    const ran = await targeting(['--about', '--format', 'json'])
    expect(Object.keys(JSON.parse(ran.stdout).settings.properties)).toContain('dead_letter_path')
  })
})
