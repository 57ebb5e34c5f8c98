import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { checkCommand } from '../../../connector/cli/check'
import { sourceCheckCommand, sourceReadCommand, tapCommand } from '../../../connector/cli/feedback-source'
import { syncCommand } from '../../../connector/cli/sync'
import type { Sandbox } from '../../../connector/sandbox/start'
import { newTempPath, writeTempFile } from '../../support/files'
import { type SingerStream, singerLines, singerRecords, singerState } from '../../support/lines'
import { runProgram } from '../../support/program'
import { runCommand } from '../../support/run-command'
import { sandboxConfig, startTestSandbox } from '../../support/sandbox'

let sandbox: Sandbox
let streams: ReadonlyArray<SingerStream>
beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 60 })
  streams = JSON.parse((await runCommand(tapCommand, ['--discover'])).stdout).streams
})
afterAll(() => sandbox.close())

type Metadata = { readonly breadcrumb: ReadonlyArray<string>; readonly metadata: object }

/** A catalog of one stream with this metadata. */
const select = (name: string, ...metadata: ReadonlyArray<Metadata>) =>
  writeTempFile({
    streams: streams
      .filter(({ tap_stream_id }) => tap_stream_id === name)
      .map((stream) => ({ ...stream, metadata: [...stream.metadata, ...metadata] })),
  })
const selected: Metadata = { breadcrumb: [], metadata: { selected: true } }
const fullTable: Metadata = { breadcrumb: [], metadata: { selected: true, 'replication-method': 'FULL_TABLE' } }

const tap = (
  catalog: string,
  { config = {}, flags = [], state }: { config?: object; flags?: ReadonlyArray<string>; state?: object } = {},
) =>
  runCommand(
    tapCommand,
    [
      ...['--config', writeTempFile(sandboxConfig(sandbox, config)), '--catalog', catalog, ...flags],
      ...(state === undefined ? [] : ['--state', writeTempFile(state)]),
    ],
    { program: 'tap-feedback' },
  )

describe('a setting that is given and not understood', () => {
  it('is named in a warning: a key, a key of the other credentials, a variable', async () => {
    const { credentials } = sandboxConfig(sandbox)
    const config = { pagesize: 5, credentials: { ...credentials, application_id: 'a' } }
    const path = writeTempFile(sandboxConfig(sandbox, config))
    const env = { FEEDBACK_PAGE_SIZES: '5', FEEDBACK_PRIVACY_DROPPED: 'x', FEEDBACK_PAGE_SIZE: '500' }
    const file = await runCommand(sourceCheckCommand, ['--config', path])
    expect(file.stderr).toMatch(/: pagesize is not a key of the config/)
    expect(file.stderr).toMatch(
      /: credentials\.application_id does not belong to what the config chooses for credentials/,
    )
    const both = await runCommand(tapCommand, ['--config', path, '--config', 'ENV', '--test=schema'], {
      env: Object.fromEntries(Object.entries(env).map(([name, value]) => [`TAP_${name}`, value])),
    })
    const variables = [...both.stderr.matchAll(/(TAP_\w+) does not match any key/g)].map(([, name]) => name)
    expect(variables).toEqual(['TAP_FEEDBACK_PAGE_SIZES', 'TAP_FEEDBACK_PRIVACY_DROPPED'])
  })

  it('is named by --discover, which shows the catalog of the default settings', async () => {
    const path = writeTempFile(sandboxConfig(sandbox, { deletes: 'tombstone' }))
    const { status, stdout, stderr } = await runCommand(tapCommand, ['--config', path, '--discover'])
    expect([status, JSON.parse(stdout).streams.length]).toEqual([0, streams.length])
    expect(stderr).toMatch(/deletes must be one of separate, tombstones.* default settings/)
  })

  it.each([
    ['reviews', ['location', 'name'], 'add export.location.name to privacy.drop'],
    ['reviews', ['location', 'id'], 'To keep it back, deselect reviews.location.'],
    ['reviews', ['contents', 'response'], 'add export.contents.response to privacy.drop'],
    ['review_contents', ['overallCommentSentiment', 'score'], 'add export.contents.overallCommentSentiment.score to'],
    ['comments', ['overallRating', 'value'], 'add comments.overallRating.value to privacy.drop'],
  ])('is named with what withholds it: %s without %j', async (stream, [first = '', second = ''], remedy) => {
    const inner = (steps: ReadonlyArray<string>) => ({
      breadcrumb: ['properties', first, ...steps, 'properties', second],
      metadata: { selected: false },
    })
    for (const steps of first === 'contents' ? [['items'], []] : [[]]) {
      const { stderr } = await tap(select(stream, selected, inner(steps)), { flags: ['--test=schema'] })
      expect(stderr).toContain(`WARNING ${stream}.${first}.${second} is deselected, but ${stream}.${first} is selected`)
      expect(stderr).toContain(remedy)
    }
  })
})

it('snapshot_path is named by sync, which has its own file', async () => {
  const path = writeTempFile(sandboxConfig(sandbox, { snapshot_path: newTempPath('unused.duckdb') }))
  const args = ['--config', path, '--db', newTempPath('synced.duckdb'), '--select', 'deleted_reviews']
  expect((await runCommand(syncCommand, args)).stderr).toContain('snapshot_path has no effect on sync')
})

describe('a setting of what is written', () => {
  const zone = { reporting_time_zone: 'Mars/Phobos' }
  const noZone =
    /^reporting_time_zone: there is no time zone Mars\/Phobos\. Give a name such as Europe\/Berlin or UTC\.$/
  const folder = mkdtempSync(join(tmpdir(), 'settings-'))

  it.each<[string, object, RegExp]>([
    ['an unknown time zone', zone, noZone],
    [
      'a file that is none of DuckDB',
      { snapshot_path: writeTempFile({ a: 1 }) },
      /^snapshot_path: \S+ exists and is not a DuckDB file\. It was not changed; give another path\.$/,
    ],
    ['a folder', { snapshot_path: folder }, /^snapshot_path: \S+ is a folder\. Give the path of a file\.$/],
    [
      'a folder that does not exist',
      { snapshot_path: join(folder, 'none', 'a.duckdb') },
      /^snapshot_path: \S+: its folder does not exist\. Make it, or give another path\.$/,
    ],
    [
      'a file in place of a folder',
      { snapshot_path: join(writeTempFile({}), 'a.duckdb') },
      /^snapshot_path: \S+ is not a folder, or leads through a file\. Check the path\.$/,
    ],
    [
      'an address',
      { snapshot_path: 'postgres://me:S3CR3T@host/db' },
      /^snapshot_path: An address was given .* not shown/,
    ],
  ])('fails check before anything is asked: %s', async (_, more, says) => {
    const before = sandbox.stats().requests
    const path = writeTempFile(sandboxConfig(sandbox, more))
    const { status, stdout } = await runCommand(checkCommand, ['--config', path, '--json'])
    const { checks } = JSON.parse(stdout)
    expect([status, checks]).toEqual([
      78,
      [
        {
          check: 'configuration',
          status: 'failed',
          failure: expect.objectContaining({ type: 'config_error', message: expect.stringMatching(says) }),
        },
      ],
    ])
    const checked = await runCommand(sourceCheckCommand, ['--config', path], { fail: reportAirbyteFailure })
    expect(JSON.parse(checked.stdout).connectionStatus).toEqual({
      status: 'FAILED',
      message: expect.stringMatching(says),
    })
    expect(sandbox.stats().requests).toEqual(before)
  })

  it('passes check where it can be used, and check makes no file', async () => {
    const snapshot_path = join(folder, 'a.duckdb')
    const path = writeTempFile(sandboxConfig(sandbox, { snapshot_path, reporting_time_zone: 'Europe/Berlin' }))
    expect((await runCommand(checkCommand, ['--config', path, '--select', 'deleted_reviews'])).status).toBe(0)
    expect(existsSync(snapshot_path)).toBe(false)
  })

  it('leaves no file where the time zone is unknown', async () => {
    const db = newTempPath('duckdb')
    const path = writeTempFile(sandboxConfig(sandbox, zone))
    const { status, stderr } = await runCommand(syncCommand, ['--config', path, '--db', db])
    expect([status, stderr.trim(), existsSync(db)]).toEqual([1, expect.stringMatching(noZone), false])
  })

  it.each<[string, object]>([
    ['time zone', { ...zone, snapshot_path: join(folder, 'b.duckdb') }],
    ['path', { snapshot_path: join(folder, 'none', 'a.duckdb') }],
  ])('ends a read before anything is read: %s', async (_, more) => {
    const before = sandbox.stats().requests
    const catalog = writeTempFile({
      streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'full_refresh' }],
    })
    const args = ['--config', writeTempFile(sandboxConfig(sandbox, more)), '--catalog', catalog]
    const { status, stderr } = await runCommand(sourceReadCommand, args)
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^(reporting_time_zone|snapshot_path): /m)])
    expect(sandbox.stats().requests).toEqual(before)
    expect(existsSync(join(folder, 'b.duckdb'))).toBe(false)
  })
})

describe('tap-feedback', () => {
  it('writes the file of snapshot_path beside its messages', async () => {
    const path = newTempPath('copy.duckdb')
    const { status } = await tap(select('deleted_reviews', selected), { config: { snapshot_path: path } })
    expect([status, existsSync(path)]).toEqual([0, true])
  })

  it('prints schemas alone with --test=schema, without a request, and a record each with --test=records', async () => {
    const before = sandbox.stats().exports
    const schemas = await tap(select('reviews', selected), { flags: ['--test=schema'] })
    expect([schemas.status, singerLines(schemas.stdout).map(({ type }) => type)]).toEqual([0, ['SCHEMA']])
    expect(sandbox.stats().exports).toBe(before)
    for (const flag of ['--test', '--test=records', '--test=all']) {
      const { status, stdout } = await tap(select('reviews', selected), { flags: [flag] })
      expect([flag, status, singerRecords(stdout, 'reviews').length]).toEqual([flag, 0, 1])
    }
    const wrong = await tap(select('reviews', selected), { flags: ['--test=record'] })
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringMatching(/--test is wrong: give one of records/)])
  })
})

describe('a FULL_TABLE read with activate_version', () => {
  const versions = (stdout: string) => [
    ...new Set(stdout.split('\n').flatMap((line) => /"version":(\d+)/.exec(line)?.[1] ?? [])),
  ]
  const config = { activate_version: true }

  it('gives each record the version that it activates after the last one, and a later read a greater one', async () => {
    const catalog = select('review_contents', fullTable)
    const first = await tap(catalog, { config })
    const types: ReadonlyArray<string> = singerLines(first.stdout).map(({ type }) => type)
    expect(types.slice(-3)).toEqual(['ACTIVATE_VERSION', 'STATE', 'STATE'])
    expect(types.filter((type) => type === 'ACTIVATE_VERSION')).toHaveLength(1)
    const records = first.stdout.split('\n').filter((line) => line.startsWith('{"type":"RECORD"'))
    expect(records.length).toBeGreaterThan(60)
    expect(records.filter((line) => !line.includes(`"version":${versions(first.stdout)[0]}`))).toEqual([])
    const state = singerState(first.stdout)
    expect(state).not.toHaveProperty('table_versions')
    const second = await tap(catalog, { config, state })
    expect(versions(second.stdout)).toHaveLength(1)
    expect(Number(versions(second.stdout)[0])).toBeGreaterThan(Number(versions(first.stdout)[0]))
    expect(singerRecords(second.stdout, 'review_contents')).toHaveLength(records.length)
  })

  it('starts over if the state is of a read without versions, so that no row lacks the version', async () => {
    const catalog = select('reviews', fullTable)
    const config = { activate_version: true, page_size: 10 }
    const slow = { page_size: 10, rate_limit: { max_concurrency: 1 } }
    const args = ['--config', writeTempFile(sandboxConfig(sandbox, slow)), '--catalog', catalog]
    const cut = await runProgram('tap-feedback', args, {
      signalAt: (out) => (out.includes('"RECORD"') ? 'SIGTERM' : undefined),
    })
    const state = singerState(cut.stdout)
    expect([cut.status, state.bookmarks.reviews]).toEqual([143, expect.objectContaining({ scan: expect.anything() })])
    const goesOn = await tap(catalog, { config: slow, state })
    expect(singerRecords(goesOn.stdout, 'reviews').length).toBeLessThan(60)
    const resumed = await tap(catalog, { config, state })
    expect(singerRecords(resumed.stdout, 'reviews')).toHaveLength(60)
  })

  it('sends none for what is read incrementally, unless asked for, and not for a share of a backfill', async () => {
    const plain = await tap(select('review_contents', fullTable))
    const changes = await tap(select('review_contents', selected), { config })
    for (const { stdout } of [plain, changes]) expect(stdout).not.toMatch(/ACTIVATE_VERSION|"version":/)
    const share = await tap(select('review_contents', fullTable), {
      config: { ...config, partition: { index: 0, count: 2 } },
    })
    expect([share.status, share.stderr]).toEqual([1, expect.stringMatching(/activate_version cannot be used with/)])
  })
})
