import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { joinText } from '../../connector/cdk/lines'
import type { CommandIo } from '../../connector/cdk/program/command'
import { runCommandLine } from '../../connector/cdk/program/run-command'
import { programs } from '../../connector/cli/programs'
import { createTestIo, toInput } from '../support/command-io'
import { newTempPath, writeTempFile } from '../support/files'
import { reviewsConfig, startSmallSandbox } from '../support/sandbox'

const run = async (args: ReadonlyArray<string>, more: Partial<CommandIo> = {}) => {
  const [out, err]: [string[], string[]] = [[], []]
  const io = createTestIo(toInput(''), async (text) => void out.push(joinText(text)), {
    printWarning: (line) => err.push(line),
    ...more,
  })
  const status = await runCommandLine('feedback', programs.feedback, io, args, new Promise(() => undefined))
  return { status, stdout: out.join(''), stderr: err.join('\n') }
}

const writeConfig = (...given: Parameters<typeof reviewsConfig>) => writeTempFile(reviewsConfig(...given))

describe('feedback sync', () => {
  it('skips the streams that have nothing to read, says so once, and names the one without a cursor', async () => {
    const config = writeConfig(await startSmallSandbox())
    const { status, stdout, stderr } = await run([
      ...['sync', '--config', config, '--db', newTempPath('duckdb')],
      ...['--select', 'sources,comments,transparency_reviews,entity_ratings'],
    ])
    expect(status, stderr).toBe(0)
    expect(stdout.match(/^\S+ +skipped$/gm)?.map((line) => line.split(' ')[0])).toEqual([
      'comments',
      'transparency_reviews',
      'entity_ratings',
    ])
    expect(stderr).toBe(
      'Skipped comments, transparency_reviews, entity_ratings: the config ' +
        'names no entities, so there is nothing to read. Set entities.',
    )
  })

  it('prints cursor and failure of each stream with --json', async () => {
    const sandbox = await startSmallSandbox({ granted: new Map([['reviews-only', ['exportReviews']]]) })
    const config = writeConfig({ ...sandbox, accessToken: 'reviews-only' })
    const args = ['sync', '--config', config, '--db', newTempPath('duckdb'), '--json']
    const { status, stdout, stderr } = await run([...args, '--select', 'deleted_reviews,reviews,entity_ratings'])
    expect([status, stderr]).toEqual([78, expect.stringMatching(/^deleted_reviews failed\. .*permission/)])
    const outcomes = JSON.parse(stdout)
    const newest = (await sandbox.truth()).reviews.map(({ modifiedTime }) => Date.parse(modifiedTime))
    expect(outcomes).toMatchObject([
      {
        stream: 'deleted_reviews',
        status: 'incomplete',
        failure: { type: 'config_error', message: expect.stringContaining('permission') },
      },
      { stream: 'reviews', status: 'complete', records: 100, cursor_field: 'modifiedTime', failure: null },
      {
        stream: 'entity_ratings',
        status: 'skipped',
        sync_mode: 'full_refresh',
        cursor_field: null,
        cursor: null,
        failure: null,
      },
    ])
    expect(Date.parse(outcomes[1].cursor)).toBe(Math.max(...newest))
  })

  it('ends with 75 where the service fails and may recover', async () => {
    const sandbox = await startSmallSandbox()
    const config = writeConfig(sandbox, { timeouts: { max_wait_seconds: 1 } })
    await sandbox.close()
    const args = ['sync', '--config', config, '--db', newTempPath('duckdb'), '--select', 'reviews', '--json']
    const { status, stdout } = await run(args)
    expect(status).toBe(75)
    expect(JSON.parse(stdout)).toMatchObject([{ stream: 'reviews', failure: { type: 'transient_error' } }])
  })

  it('says how to go on when it is stopped', async () => {
    const config = writeConfig(await startSmallSandbox())
    const db = newTempPath('duckdb')
    const stop = new AbortController()
    const running = run(['sync', '--config', config, '--db', db], { stop: stop.signal })
    stop.abort()
    const { stderr } = await running
    expect(stderr).toContain(
      `Stopped. What was read is kept in ${db}: run the same command again to continue from there.`,
    )
  })
})

describe('--wait', () => {
  const holdFile = async (db: string) => {
    const script = `
      require('@duckdb/node-api').DuckDBInstance.create(${JSON.stringify(db)}).then(() => console.log('held'))
      process.stdin.resume().on('end', () => process.exit())`
    const holder = spawn(process.execPath, ['-e', script])
    await once(holder.stdout, 'data')
    return { release: () => holder.stdin.end() }
  }

  it('waits for a file that another process uses; without it, 75 says to run again', async () => {
    const config = writeConfig(await startSmallSandbox())
    const db = newTempPath('duckdb')
    const args = ['sync', '--config', config, '--db', db, '--select', 'reviews']
    const { release } = await holdFile(db)
    const refused = await run(args)
    expect([refused.status, refused.stderr]).toEqual([75, expect.stringMatching(/is in use by .*--wait 10m waits/)])
    const lines: string[] = []
    const waited = await run([...args, '--wait', '10m'], {
      printProgress: (line) => {
        lines.push(line)
        if (line.includes('is in use')) release()
      },
    })
    expect(waited.status, waited.stderr).toBe(0)
    expect(lines[0]).toMatch(/^Waiting up to 10m: /)
  })

  it('gives up when the time is over', async () => {
    const db = newTempPath('duckdb')
    const { release } = await holdFile(db)
    expect((await run(['query', '--db', db, '--wait', '0s', 'SELECT 1'])).status).toBe(75)
    release()
  })

  it.each(['soon', '10', '1.5h', '-3m', '10 m', ''])('takes a time: %j', async (text) => {
    const { status, stderr } = await run(['query', '--db', 'none.duckdb', `--wait=${text}`, 'SELECT 1'])
    if (text === '10') expect(status).toBe(78)
    else expect([status, stderr]).toEqual([2, `--wait must be a time such as 30s, 10m or 2h, not ${text}.`])
  })

  it.each(['sync', 'state', 'snapshot', 'verify', 'replay', 'diff', 'report', 'query'])(
    'is an option of %s, which opens a file',
    async (verb) => expect((await run([verb, '--help'])).stdout).toMatch(/^ +--wait TIME/m),
  )
})

it('a read that is asked for a stream incrementally says where it has no cursor', async () => {
  const config = writeConfig(await startSmallSandbox())
  const catalog = writeTempFile({
    streams: ['reviews', 'entity_ratings'].map((name) => ({
      stream: { name, json_schema: {} },
      sync_mode: 'incremental',
    })),
  })
  const out: string[] = []
  const io = createTestIo(toInput(''), async (text) => void out.push(joinText(text)))
  const args = ['read', '--config', config, '--catalog', catalog]
  await runCommandLine('source-feedback', programs['source-feedback'], io, args, new Promise(() => undefined))
  const logs = out.flatMap((line) => line.split('\n').filter((each) => each.includes('"LOG"')))
  expect(logs.filter((line) => line.includes('no cursor'))).toEqual([
    expect.stringContaining('entity_ratings has no cursor: every run reads it in full.'),
  ])
})
