import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseExactJson } from '../../connector/cdk/json/exact'
import { joinText } from '../../connector/cdk/lines'
import { runCommandLine } from '../../connector/cdk/program/run-command'
import { programs } from '../../connector/cli/programs'
import type { Sandbox } from '../../connector/sandbox/start'
import { createTapRunner, selectAll } from '../interop/tap'
import { createTestIo, toInput } from '../support/command-io'
import { createJsonFolder, type JsonFolder, newTempPath, writeTempFile } from '../support/files'
import {
  type AirbyteStream,
  airbyteLines,
  airbyteRecords,
  airbyteState,
  configureStreams,
  recordTexts,
  type SingerStream,
  singerRecords,
  singerState,
} from '../support/lines'
import { runProgram } from '../support/program'
import { startTestSandbox } from '../support/sandbox'

const early = '2000-01-01T00:00:00.000Z'
const future = '2090-01-01T00:00:00.000Z'

let sandbox: Sandbox
let files: JsonFolder
/** A start that leaves out about half of the reviews. */
let late: string
/** Ids of the reviews before it and after it. */
let ids: { readonly all: ReadonlyArray<string>; readonly late: ReadonlyArray<string> }

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 200, until: Date.now() - 3_600_000 })
  files = createJsonFolder()
  const { reviews } = await sandbox.truth()
  const times = reviews.map(({ modifiedTime }) => Date.parse(modifiedTime)).sort((a, b) => a - b)
  // Between two seconds: a run reads a second more than it is asked for.
  const middle = times.findIndex((time, i) => i >= times.length / 2 && time - (times[i - 1] ?? 0) > 5_000)
  late = new Date((times[middle] ?? 0) - 1_000).toISOString()
  const idsOf = (since: string) =>
    reviews
      .filter(({ modifiedTime }) => Date.parse(modifiedTime) >= Date.parse(since))
      .map(({ id }) => String(id))
      .sort()
  ids = { all: idsOf(early), late: idsOf(late) }
  expect(ids.late.length).toBeGreaterThan(20)
  expect(ids.late.length).toBeLessThan(ids.all.length - 20)
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const settings = (start_date: string, more: object = {}) => ({
  base_url: sandbox.url,
  credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
  start_date,
  page_size: 50,
  ...more,
})
const feedback = async (verb: string, args: ReadonlyArray<string>) => {
  const [out, err]: [string[], string[]] = [[], []]
  const io = createTestIo(toInput(''), async (text) => void out.push(joinText(text)), {
    printWarning: (line) => err.push(line),
  })
  const status = await runCommandLine('feedback', programs.feedback, io, [verb, ...args], new Promise(() => undefined))
  return { status, stdout: out.join(''), stderr: err.join('\n') }
}
const sync = (db: string, start: string, ...args: ReadonlyArray<string>) =>
  feedback('sync', ['--config', writeTempFile(settings(start)), '--db', db, '--json', ...args])
const recordsOf = (outcome: { readonly stdout: string }): ReadonlyArray<number> =>
  JSON.parse(outcome.stdout).map(({ records }: { records: number }) => records)
const reviewIds = async (db: string): Promise<ReadonlyArray<string>> => {
  const { stdout } = await feedback('query', ['--db', db, '--json', 'SELECT id::VARCHAR AS id FROM reviews'])
  const lines = stdout.split('\n').filter((line) => line !== '')
  return lines.map((line): string => JSON.parse(line).id).sort()
}

describe('feedback sync', () => {
  const select = ['--select', 'reviews,review_contents,deleted_reviews']

  it('reads everything again from an earlier start, says so in one line, and then goes on', async () => {
    const db = newTempPath('duckdb')
    expect(await sync(db, late, ...select)).toMatchObject({ status: 0, stderr: '' })
    expect(await reviewIds(db)).toEqual(ids.late)

    const moved = await sync(db, early, ...select)
    expect(moved.status).toBe(0)
    expect(moved.stderr.match(/start_date moved back/g)).toHaveLength(2)
    expect(moved.stderr).toContain(
      `reviews, review_contents: start_date moved back from ${late} ` +
        `to ${early}, so everything since then is read again.`,
    )
    expect(moved.stderr).toContain('deleted_reviews: start_date moved back')
    expect(await reviewIds(db)).toEqual(ids.all)

    const again = await sync(db, early, ...select)
    expect(again).toMatchObject({ status: 0, stderr: '' })
    expect(recordsOf(again)).toEqual([0, 0, 0])

    const forward = await sync(db, late, ...select)
    expect(forward).toMatchObject({ status: 0, stderr: '' })
    expect(recordsOf(forward)).toEqual([0, 0, 0])
    // What was read before stays, so this start is not an earlier one.
    const backAgain = await sync(db, '2000-01-01T01:00:00+01:00', ...select)
    expect(backAgain).toMatchObject({ status: 0, stderr: '' })
    expect(recordsOf(backAgain)).toEqual([0, 0, 0])
    expect(await reviewIds(db)).toEqual(ids.all)
  })

  it('leaves a file whose streams status, verify and audit know the starts of', async () => {
    const db = newTempPath('duckdb')
    await sync(db, late, ...select)
    await sync(db, early, '--select', 'reviews')
    const status = await feedback('status', ['--db', db])
    expect(status.stdout).toMatch(new RegExp(`^reviews .*${early}$`, 'm'))
    expect(status.stdout).toMatch(new RegExp(`^review_contents .*${late}$`, 'm'))
    const { streams } = JSON.parse((await feedback('status', ['--db', db, '--json'])).stdout)
    expect(streams).toMatchObject([
      { stream: 'deleted_reviews', read_since: late },
      { stream: 'review_contents', read_since: late },
      { stream: 'reviews', read_since: early },
    ])
    const verified = await feedback('verify', ['--db', db])
    expect(verified.stdout).toMatch(/^one start date +note +2$/m)
    expect(verified.stdout).toContain(`review_contents: read since ${late}`)
  })

  it('and verify with an earlier start lists what the next run brings, not what is missing', async () => {
    const db = newTempPath('duckdb')
    await sync(db, late, ...select)
    const config = writeTempFile(settings(early))
    const { status, stdout } = await feedback('verify', ['--db', db, '--config', config])
    expect(status, stdout).toBe(0)
    expect(stdout).toMatch(/^no review is missing +ok/m)
    expect(stdout).toMatch(new RegExp(`^not read yet +note +${ids.all.length - ids.late.length}$`, 'm'))
  })

  it('refuses a start in the future before it makes a file, and the corrected one reads everything', async () => {
    const db = newTempPath('duckdb')
    const refused = await sync(db, future, ...select)
    expect(refused).toMatchObject({ status: 78, stderr: expect.stringContaining(`start_date (${future}) lies in the`) })
    expect(await sync(db, late, ...select)).toMatchObject({ status: 0, stderr: '' })
    expect((await sync(db, future, ...select)).status).toBe(78)
    expect(await sync(db, late, ...select)).toMatchObject({ status: 0, stderr: '' })
    expect(await reviewIds(db)).toEqual(ids.late)
  })

  it('names what fixes a state that is ahead of the service; the other streams go on', async () => {
    const db = newTempPath('duckdb')
    await sync(db, early, ...select)
    const state = {
      type: 'STREAM',
      stream: { stream_descriptor: { name: 'reviews' }, stream_state: { modifiedTimeFrom: future } },
    }
    const imported = await feedback('state', ['import', '--db', db, '--state', writeTempFile([state])])
    expect(imported).toMatchObject({ status: 0 })
    const refused = await sync(db, early, ...select)
    expect(refused.status).toBe(78)
    expect(refused.stderr).toMatch(
      /^reviews failed\. The state reaches to 2090-01-01.*--full-refresh, or Refresh or Clear/m,
    )
    expect(
      JSON.parse(refused.stdout)
        .map(({ status }: { status: string }) => status)
        .sort(),
    ).toEqual(['complete', 'complete', 'incomplete'])
    expect(await sync(db, early, '--select', 'reviews', '--full-refresh')).toMatchObject({ status: 0, stderr: '' })
    expect(recordsOf(await sync(db, early, ...select))).toEqual([0, 0, 0])
    expect(await reviewIds(db)).toEqual(ids.all)
  })
})

describe('a start date in the future', () => {
  it('fails the check of a person and of a platform', async () => {
    const config = writeTempFile(settings(future))
    const checked = await feedback('check', ['--config', config])
    expect(checked).toMatchObject({ status: 78, stdout: expect.stringMatching(/^configuration +FAILED +start_date/m) })
    const platform = await runProgram('source-feedback', ['check', '--config', config])
    expect(platform.status).toBe(0)
    const statuses = airbyteLines(platform.stdout).flatMap(({ connectionStatus }) => connectionStatus ?? [])
    expect(statuses).toMatchObject([{ status: 'FAILED', message: expect.stringContaining('start_date') }])
  })
})

describe('source-feedback', () => {
  const streams: ReadonlyArray<string> = ['reviews', 'locations', 'comments']
  const read = async (start: string, state: unknown, more: object = {}) => {
    const discovered = await runProgram('source-feedback', ['discover', '--config', writeTempFile(settings(early))])
    const all = airbyteLines(discovered.stdout).flatMap(({ catalog }) => catalog?.streams ?? [])
    const selected = all.filter(({ name }: AirbyteStream) => streams.includes(name))
    const config = settings(start, { entities: { location_ids: ['1001', '1002'] }, ...more })
    return runProgram('source-feedback', [
      'read',
      ...['--config', writeTempFile(config), '--catalog', writeTempFile(configureStreams(selected, 'incremental'))],
      ...(state === undefined ? [] : ['--state', writeTempFile(state as object)]),
    ])
  }
  const counts = (stdout: string) => streams.map((name) => airbyteRecords(stdout, name).length)

  it('reads what lies between in every stream, by entity too', async () => {
    const first = await read(late, undefined)
    expect(first.status, first.stdout).toBe(0)
    const whole = await read(early, undefined)
    const moved = await read(early, airbyteState(first.stdout))
    expect(moved.status, moved.stdout).toBe(0)
    expect(counts(moved.stdout)).toEqual(counts(whole.stdout))
    expect(counts(moved.stdout)[2]).toBeGreaterThan(counts(first.stdout)[2] ?? 0)
    const warnings = moved.stdout.match(/[\w, ]+: start_date moved back/g)?.sort()
    expect(warnings).toEqual(['comments: start_date moved back', 'reviews, locations: start_date moved back'])
    const again = await read(early, airbyteState(moved.stdout))
    expect([again.status, ...counts(again.stdout)]).toEqual([0, 0, 0, 0])
    expect(again.stdout).not.toContain('moved back')
  })

  it('ends every stream INCOMPLETE without a state where the start lies in the future', async () => {
    const { status, stdout } = await read(future, undefined)
    expect(status).toBe(1)
    const errors = airbyteLines(stdout).flatMap(({ trace }) => trace?.error ?? [])
    expect(errors[0]).toMatchObject({ failure_type: 'config_error', message: expect.stringContaining('start_date') })
    expect(airbyteLines(stdout).filter(({ type }) => type === 'STATE')).toEqual([])
  })

  it('keeps the state of a start in the future as it was', async () => {
    const { stdout: first } = await read(late, undefined)
    const { stdout } = await read(future, airbyteState(first))
    expect(stdout).not.toMatch(/"startDate":"2090/)
    const again = await read(late, airbyteState(`${first}${stdout}`))
    expect([again.status, ...counts(again.stdout)]).toEqual([0, 0, 0, 0])
  })
})

describe('tap-feedback', () => {
  it('reads from an earlier start, and refuses one in the future', async () => {
    const discovered = JSON.parse((await runProgram('tap-feedback', ['--discover'])).stdout).streams
    const catalog = selectAll(
      discovered.filter(({ tap_stream_id }: SingerStream) => ['reviews', 'deleted_reviews'].includes(tap_stream_id)),
    )
    const runTap = createTapRunner(sandbox, files)
    const run = (start_date: string, state?: unknown) => runTap({ catalog, state, config: { start_date } })
    const first = await run(late)
    const moved = await run(early, singerState(first.stdout))
    expect(moved.status, moved.stderr).toBe(0)
    expect(moved.stderr).toMatch(/WARNING reviews: start_date moved back/)
    const sent = recordTexts(moved.stdout, 'reviews').map((text) => parseExactJson(text) as { readonly id: unknown })
    expect(sent.map(({ id }) => String(id)).sort()).toEqual(ids.all)
    const again = await run(early, singerState(moved.stdout))
    expect(singerRecords(again.stdout, 'reviews')).toEqual([])
    const refused = await run(future, singerState(again.stdout))
    expect(refused.status).toBe(1)
    expect(refused.stderr).toContain(`start_date (${future}) lies in the future`)
    expect(singerState(refused.stdout)).toEqual(singerState(again.stdout))
  })
})
