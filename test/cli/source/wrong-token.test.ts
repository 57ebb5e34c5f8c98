import { existsSync, readFileSync, statSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { reportAirbyteFailure } from '../../../connector/cdk/program/exit'
import { sourceReadCommand, tapCommand } from '../../../connector/cli/feedback-source'
import { syncCommand } from '../../../connector/cli/sync'
import type { Sandbox } from '../../../connector/sandbox/start'
import { streams } from '../../../connector/streams/streams'
import { newTempPath, writeTempFile } from '../../support/files'
import { airbyteLines } from '../../support/lines'
import { runCommand } from '../../support/run-command'
import { applicationCredentials, startTestSandbox } from '../../support/sandbox'

const catalog = writeTempFile({
  streams: streams.map(({ name }) => ({ stream: { name, json_schema: {} }, sync_mode: 'incremental' })),
})

describe('credentials that the service refuses', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await startTestSandbox({ reviews: 20, locations: 2, until: Date.now() - 3_600_000 })
  })
  afterAll(() => sandbox.close())

  const configOf = (credentials: object): string =>
    writeTempFile({
      base_url: sandbox.url,
      credentials,
      start_date: '2010-01-01T00:00:00Z',
      entities: { location_ids: ['1001'] },
    })
  const wrongToken = () => configOf({ auth_type: 'access_token', access_token: 'guess-guess' })
  const wrongSecret = () => configOf({ ...applicationCredentials(sandbox), application_secret: 'guess-guess' })
  const rightToken = () => configOf({ auth_type: 'access_token', access_token: sandbox.accessToken })

  let before = 0
  const countRequests = (): number => Object.values(sandbox.stats().requests).reduce((sum, count) => sum + count, 0)
  beforeEach(() => {
    before = countRequests()
  })

  it.each([
    ['a wrong token', wrongToken],
    ['a wrong secret', wrongSecret],
  ])('are said once by feedback sync, which asks once and creates no file: %s', async (_, config) => {
    const db = newTempPath('duckdb')
    const { status, stdout, stderr } = await runCommand(syncCommand, ['--config', config(), '--db', db])
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr.trim().split('\n')).toEqual([expect.stringMatching(/credentials/)])
    expect(countRequests() - before).toBe(1)
    expect([existsSync(db), existsSync(`${db}.wal`)]).toEqual([false, false])
  })

  it('leave an existing file untouched', async () => {
    const db = newTempPath('duckdb')
    expect((await runCommand(syncCommand, ['--config', rightToken(), '--db', db])).status).toBe(0)
    const [bytes, { mtimeMs }] = [readFileSync(db), statSync(db)]
    expect((await runCommand(syncCommand, ['--config', wrongToken(), '--db', db])).status).toBe(1)
    expect(readFileSync(db).equals(bytes)).toBe(true)
    expect(statSync(db).mtimeMs).toBe(mtimeMs)
  })

  it.each([
    ['a wrong token', wrongToken],
    ['a wrong secret', wrongSecret],
  ])('are said once by a read, which asks once and completes no stream: %s', async (_, config) => {
    const args = ['--config', config(), '--catalog', catalog]
    const { status, stdout } = await runCommand(sourceReadCommand, args, { fail: reportAirbyteFailure })
    const traces = airbyteLines(stdout).flatMap(({ trace }) => (trace === undefined ? [] : [trace]))
    expect(traces.filter(({ type }) => type === 'ERROR')).toHaveLength(1)
    const statuses = traces.flatMap((trace) => (trace.stream_status === undefined ? [] : [trace.stream_status]))
    const incomplete = statuses.flatMap((one) => (one.status === 'INCOMPLETE' ? [one.stream_descriptor.name] : []))
    expect(incomplete.sort()).toEqual(streams.map(({ name }) => name).sort())
    expect([status, statuses.filter((one) => one.status === 'COMPLETE')]).toEqual([1, []])
    expect(countRequests() - before).toBe(1)
  })

  it.each([
    ['source-feedback read', sourceReadCommand],
    ['tap-feedback', tapCommand],
  ] as const)('leave no file at the snapshot_path of %s', async (_, command) => {
    const snapshot_path = newTempPath('duckdb')
    const config = writeTempFile({ ...JSON.parse(readFileSync(wrongToken(), 'utf8')), snapshot_path })
    const args = command === sourceReadCommand ? ['--catalog', catalog] : []
    expect((await runCommand(command, ['--config', config, ...args])).status).toBe(1)
    expect([existsSync(snapshot_path), existsSync(`${snapshot_path}.wal`)]).toEqual([false, false])
  })

  it('are said once by the tap', async () => {
    const { status, stderr } = await runCommand(tapCommand, ['--config', wrongToken()])
    expect(status).toBe(1)
    expect(stderr.match(/^.*credentials.*$/gm)).toHaveLength(1)
    expect(countRequests() - before).toBe(1)
  })
})
