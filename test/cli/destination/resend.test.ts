import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { reportSingerFailure } from '../../../connector/cdk/singer/command-line'
import { destinationWriteCommand, targetCommand } from '../../../connector/cli/feedback-destination'
import type { Sandbox, SandboxOptions } from '../../../connector/sandbox/start'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  type MessageFormat,
  mapping,
  singerFormat,
  visitRow,
} from '../../support/destination-input'
import { newTempPath, writeTempFile } from '../../support/files'
import { type ProgramName, startProgram } from '../../support/program'
import { type Outcome, runCommand } from '../../support/run-command'
import { startSmallSandbox } from '../../support/sandbox'

type Row = Readonly<Record<string, unknown>>
type Config = Readonly<Record<string, unknown>>

const startSandbox = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const sandbox = await startSmallSandbox({ locations: 1, ...options })
  await sandbox.api.syncLocations([{ code: 'W1', active: true }])()
  return sandbox
}
const configOf = ({ url, accessToken }: Sandbox, more: Config = {}): Config => ({
  base_url: url,
  credentials: { auth_type: 'access_token', access_token: accessToken },
  mapping,
  max_rejects_percent: 100,
  ...more,
})
/** A mapping that takes the address from another column. */
const corrected = { mapping: { visit_records: { ...mapping.visit_records, email: 'contact' } } }

const visitIds = async (sandbox: Sandbox) => (await sandbox.truth()).visits.map(({ id }) => id).sort()
const readLetters = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

type Streams = Readonly<Record<string, ReadonlyArray<Row>>>

/** Both programs: how each is fed with streams, and how it is asked to send letters again. */
type Case = {
  readonly program: ProgramName
  readonly run: (args: ReadonlyArray<string>, stdin?: string) => Promise<Outcome>
  readonly write: (config: Config, streams: Streams, more?: Row) => Promise<Outcome>
  readonly resendArgs: (config: Config, file: string) => ReadonlyArray<string>
}
const keyOf = (stream: string): string => (stream === 'locations' ? 'code' : 'id')
const linesOf = (format: MessageFormat, streams: Streams): string =>
  formatLines(Object.entries(streams).flatMap(([name, rows]) => formatStream(format, name, keyOf(name), rows)))
const runAirbyte: Case['run'] = (args, stdin = '') =>
  runCommand(destinationWriteCommand, args, { stdin, fail: reportAirbyteFailure })
const airbyte: Case = {
  program: 'destination-feedback',
  run: runAirbyte,
  write: (config, streams, more = {}) => {
    const names = Object.keys(streams)
    const catalog = configuredCatalogOf(Object.fromEntries(names.map((name) => [name, keyOf(name)])), more)
    const args = ['--config', writeTempFile(config), '--catalog', writeTempFile(catalog)]
    return runAirbyte(args, linesOf(airbyteFormat, streams))
  },
  resendArgs: (config, file) => ['--config', writeTempFile(config), '--resend', file],
}
const runSinger: Case['run'] = (args, stdin = '') =>
  runCommand(targetCommand, args, { stdin, fail: reportSingerFailure, program: 'target-feedback' })
const singer: Case = {
  program: 'target-feedback',
  run: runSinger,
  write: (config, streams) => runSinger(['--config', writeTempFile(config)], linesOf(singerFormat, streams)),
  resendArgs: (config, file) => ['--config', writeTempFile(config), '--resend', file],
}
const resend = ({ run, resendArgs }: Case, config: Config, file: string, ...more: ReadonlyArray<string>) =>
  run([...resendArgs(config, file), ...more])
const said = ({ stdout, stderr }: Outcome): string => stdout + stderr

/** Visits whose address is in the other column; that of the last one is wrong there too. */
const lostRows: ReadonlyArray<Row> = [1, 2, 3, 4].map((id) =>
  visitRow(id, { clinic: 'W1', mail: null, contact: id === 4 ? 'nobody' : `ada${id}@example.com` }),
)
const goodRows: ReadonlyArray<Row> = [5, 6].map((id) => visitRow(id, { clinic: 'W1', contact: `ada${id}@example.com` }))

describe.each([airbyte, singer])('$program --resend', (program) => {
  it('sends what the corrected config can, under the ids that the source would give, and keeps the rest', async () => {
    const [sandbox, other] = [await startSandbox(), await startSandbox()]
    const file = newTempPath('jsonl')
    const settings = configOf(sandbox, { dead_letter_path: file })
    const first = await program.write(settings, { visit_records: [...lostRows, ...goodRows] })
    expect([first.status, readLetters(file).length, await visitIds(sandbox)]).toMatchObject([0, 4, { length: 2 }])
    const advice = `See ${resolve(file)}, and send them again with --resend.`
    expect(said(first)).toContain(`visit_records: 4 rejected: email is missing (4). ${advice}`)

    const second = await resend(program, { ...settings, ...corrected }, file)
    expect([second.status, said(second)]).toEqual([0, expect.not.stringMatching(/"STATE"|bookmarks/)])
    expect(said(second)).toContain('visit_records: 4 received, 3 accepted, 1 rejected.')
    expect(said(second)).toContain(`visit_records: 1 rejected: email must be an e-mail address (1). ${advice}`)
    expect(readLetters(file)).toMatchObject([{ stream: 'visit_records', record: { id: 4 } }])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await program.write(configOf(other, { ...corrected, dead_letter_path: newTempPath('jsonl') }), {
      visit_records: [...lostRows, ...goodRows],
    })
    expect(await visitIds(sandbox)).toEqual(await visitIds(other))

    const third = await resend(program, { ...settings, ...corrected }, file)
    expect([third.status, said(third)]).toEqual([1, expect.stringContaining('all records were rejected again')])
    expect(readLetters(file)).toMatchObject([{ record: { id: 4 } }])
    expect(await visitIds(sandbox)).toEqual(await visitIds(other))
  })

  it('leaves an empty file after the last letter, for which there is nothing to do', async () => {
    const sandbox = await startSandbox()
    const file = newTempPath('jsonl')
    const settings = configOf(sandbox, { dead_letter_path: file })
    await program.write(settings, { visit_records: [...lostRows.slice(0, 3), ...goodRows] })
    expect((await resend(program, { ...settings, ...corrected }, file)).status).toBe(0)
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['', 0o600])
    const again = await resend(program, settings, file)
    expect([again.status, said(again)]).toEqual([0, expect.stringContaining('there is nothing to send')])
    expect((await visitIds(sandbox)).length).toBe(5)
  })

  it.each<[string, Partial<SandboxOptions>, string]>([
    ['is down', {}, 'base_url'],
    ['refuses the token', { denied: ['createVisitRecords'] }, 'permission'],
  ])('leaves the file as it is where the service %s', async (_, options, problem) => {
    const sandbox = await startSandbox()
    const file = newTempPath('jsonl')
    await program.write(configOf(sandbox, { dead_letter_path: file }), { visit_records: [...lostRows, ...goodRows] })
    const before = readFileSync(file, 'utf8')
    const broken = await startSandbox(options)
    if (options.denied === undefined) await broken.close()
    const more = { ...corrected, timeouts: { max_wait_seconds: 1 } }
    const failed = await resend(program, configOf(broken, more), file)
    expect([failed.status, said(failed)]).toEqual([1, expect.stringContaining(problem)])
    expect(said(failed)).toContain('is left as it was')
    expect([readFileSync(file, 'utf8'), existsSync(`${file}.resend`)]).toEqual([before, false])
  })

  it('sends nothing and leaves the file in a dry run', async () => {
    const sandbox = await startSandbox()
    const file = newTempPath('jsonl')
    const settings = configOf(sandbox, { dead_letter_path: file })
    await program.write(settings, { visit_records: [...lostRows, ...goodRows] })
    const before = readFileSync(file, 'utf8')
    const dry = await resend(program, { ...settings, ...corrected }, file, '--dry-run')
    expect([dry.status, said(dry)]).toEqual([0, expect.stringContaining('4 received, 3 would be sent, 1 rejected.')])
    expect([readFileSync(file, 'utf8'), (await visitIds(sandbox)).length]).toEqual([before, 2])
  })

  it('that is killed leaves every letter; sent again, each visit is there once', async () => {
    const sandbox = await startSandbox({ latency: { minMs: 30, maxMs: 30 } })
    const file = newTempPath('jsonl')
    const rows = Array.from({ length: 400 }, (_, id) =>
      visitRow(id, { clinic: 'W1', mail: null, contact: id % 50 === 7 ? null : `ada${id}@example.com` }),
    )
    const settings = configOf(sandbox, { dead_letter_path: file, batch_size: 10, rate_limit: { max_concurrency: 1 } })
    await program.write(settings, { visit_records: rows })
    const before = readFileSync(file, 'utf8')
    expect(readLetters(file)).toHaveLength(400)
    const running = startProgram(program.program, [
      ...(program === airbyte ? ['write'] : []),
      ...program.resendArgs({ ...settings, ...corrected }, file),
    ])
    while ((await visitIds(sandbox)).length < 50) await new Promise((done) => setTimeout(done, 10))
    running.kill('SIGKILL')
    expect((await running.ended).signal).toBe('SIGKILL')
    const sent = (await visitIds(sandbox)).length
    expect(sent).toBeLessThan(392)
    expect(readFileSync(file, 'utf8')).toBe(before)

    expect((await resend(program, { ...settings, ...corrected }, file)).status).toBe(0)
    const ids = await visitIds(sandbox)
    expect([ids.length, new Set(ids).size, readLetters(file).length]).toEqual([392, 392, 8])
    expect(existsSync(`${file}.resend`)).toBe(false)
  })

  it('sends locations before visits to them that were rejected before', async () => {
    const sandbox = await startSandbox()
    const file = newTempPath('jsonl')
    const settings = configOf(sandbox, { dead_letter_path: file })
    const visits = Array.from({ length: 150 }, (_, id) => visitRow(id, { clinic: 'N1' }))
    await program.write(settings, { visit_records: visits })
    await program.write(
      { ...settings, mapping: { locations: { active: 'open' } } },
      { locations: [{ code: 'N1', open: 'always', city: 'Rome' }] },
    )
    expect(readLetters(file).map(({ object }) => object)).toEqual([...visits.map(() => 'visit_records'), 'locations'])
    expect((await resend(program, settings, file)).status).toBe(0)
    expect([readFileSync(file, 'utf8'), (await visitIds(sandbox)).length]).toEqual(['', 150])
  })
})

describe('destination-feedback write --resend', () => {
  const locationStates = async (sandbox: Sandbox) =>
    Object.fromEntries((await sandbox.truth()).locations.map(({ code, active }) => [code, active]))

  it('deactivates the locations of a stream of deletions, beside others of a stream of the same name', async () => {
    const sandbox = await startSandbox()
    const file = newTempPath('jsonl')
    const settings = configOf(sandbox, { dead_letter_path: file, mapping: { locations: { code: 'site' } } })
    await sandbox.api.syncLocations(['D1', 'D2', 'D3'].map((code) => ({ code, active: true })))()
    const rowsOf = (...codes: ReadonlyArray<string>) => codes.map((site_code) => ({ site_code }))
    await airbyte.write(settings, { locations: rowsOf('D1', 'D2') }, { destination_sync_mode: 'soft_delete' })
    await airbyte.write(settings, { locations: rowsOf('U1') }, { destination_sync_mode: 'update' })
    expect(readLetters(file).map(({ deletes }) => deletes)).toEqual([true, true, false])
    const fixed = { ...settings, mapping: { locations: { code: 'site_code' } } }
    expect((await resend(airbyte, fixed, file)).status).toBe(0)
    expect(await locationStates(sandbox)).toMatchObject({ D1: false, D2: false, D3: true, U1: true, W1: true })
  })

  it('deactivates nothing for not being among the letters', async () => {
    const sandbox = await startSandbox()
    const [file, ledger] = [newTempPath('jsonl'), newTempPath('ledger')]
    const settings = configOf(sandbox, {
      dead_letter_path: file,
      reconcile: { ledger_path: ledger },
      max_deactivations_percent: 100,
    })
    const ids = { generation_id: 1, minimum_generation_id: 0, sync_id: 1 }
    await airbyte.write(settings, { locations: [{ code: 'L1' }, { code: 'L2', active: 'perhaps' }] }, ids)
    const letters = readFileSync(file, 'utf8')
    writeFileSync(file, letters.replace('"perhaps"', 'true'))
    expect((await resend(airbyte, settings, file)).status).toBe(0)
    expect(await locationStates(sandbox)).toMatchObject({ L1: true, L2: true })
  })

  it('derives ids of the namespace, of a nested key and of whole records as a sync does', async () => {
    const [sandbox, other] = [await startSandbox(), await startSandbox()]
    const file = newTempPath('jsonl')
    const rows = lostRows.slice(0, 3).map(({ visitRecordId, id, ...row }) => ({ ...row, meta: { id } }))
    const streamOf = (name: string, primary_key: ReadonlyArray<ReadonlyArray<string>>) => ({
      stream: { name, namespace: 'shop', json_schema: {} },
      sync_mode: 'incremental',
      destination_sync_mode: 'append',
      destination_object_name: 'visit_records',
      primary_key,
    })
    const catalog = writeTempFile({ streams: [streamOf('keyed', [['meta', 'id']]), streamOf('plain', [])] })
    const stdin = formatLines(
      ['keyed', 'plain'].flatMap((stream) =>
        rows.map((data) => ({ type: 'RECORD', record: { stream, namespace: 'shop', data, emitted_at: 1 } })),
      ),
    )
    const write = (config: Config) => runAirbyte(['--config', writeTempFile(config), '--catalog', catalog], stdin)
    const settings = configOf(sandbox, { dead_letter_path: file })
    await write(settings)
    expect(readLetters(file).map(({ stream }) => stream)).toEqual([
      ...rows.map(() => 'shop.keyed'),
      ...rows.map(() => 'shop.plain'),
    ])
    expect((await resend(airbyte, { ...settings, ...corrected }, file)).status).toBe(0)
    expect((await write(configOf(other, corrected))).status).toBe(0)
    const ids = await visitIds(sandbox)
    expect([new Set(ids).size, ids]).toEqual([6, await visitIds(other)])
  })

  it.each<[string, ReadonlyArray<string>]>([
    ['a catalog beside it', ['--catalog', 'catalog.json', '--resend', 'rejected.jsonl']],
    ['no file', ['--resend', '']],
    ['neither', []],
  ])('refuses %s', async (_, args) => {
    const { status, stderr } = await runAirbyte(['--config', 'config.json', ...args])
    expect([status, stderr]).toEqual([2, expect.stringContaining('either --catalog FILE or --resend FILE')])
  })

  it('names a file that does not exist', async () => {
    const outcome = await resend(airbyte, configOf(await startSandbox()), '/no/such/rejected.jsonl')
    expect([outcome.status, outcome.stdout]).toEqual([
      1,
      expect.stringContaining('/no/such/rejected.jsonl does not exist'),
    ])
  })
})
