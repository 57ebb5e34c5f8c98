import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diffCommand } from '../../connector/cli/diff'
import { queryCommand } from '../../connector/cli/query'
import { replayCommand } from '../../connector/cli/replay'
import { reportCommand } from '../../connector/cli/report'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import type { Sandbox } from '../../connector/sandbox/start'
import { runCommand } from '../support/run-command'
import { reviewsConfig, startTestSandbox } from '../support/sandbox'

const folder = mkdtempSync(join(tmpdir(), 'history-'))
const path = (name: string) => join(folder, name)
const [config, kept, plain] = [path('config.json'), path('kept.duckdb'), path('plain.duckdb')]
const minute = 60_000
let ahead = -5 * minute
let sandbox: Sandbox

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 40, until: Date.now() - 60 * minute, now: () => Date.now() + ahead })
  writeFileSync(config, JSON.stringify(reviewsConfig(sandbox)))
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

const synced = async (db: string, ...more: string[]) =>
  expect(
    await runCommand(syncCommand, ['--config', config, '--db', db, '--select', 'reviews,deleted_reviews', ...more]),
  ).toMatchObject({ status: 0 })
const rows = async (db: string, sql: string) =>
  (await runCommand(queryCommand, ['--db', db, '--json', sql])).stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

describe('feedback sync --history', () => {
  it('keeps every version with its time span, and a later sync without the option continues to do so', async () => {
    await synced(kept, '--history')
    await synced(plain)
    await sandbox.churn({ change: 5, delete: 2 })
    ahead += minute
    await synced(kept)
    await synced(plain)

    const ended = await rows(
      kept,
      `SELECT old.id, new.id AS next, gone.id AS gone FROM reviews_versions AS old
       LEFT JOIN reviews_versions AS new ON new.id = old.id AND new.valid_from = old.valid_to
       LEFT JOIN deleted_reviews AS gone ON gone.id = old.id AND gone."modifiedTime" = old.valid_to
       WHERE old.valid_to IS NOT NULL`,
    )
    const { reviews, deleted } = await sandbox.truth()
    const fresh = await rows(
      kept,
      `SELECT id FROM reviews WHERE "modifiedTime" = (SELECT max("modifiedTime") FROM reviews)`,
    )
    expect(ended.filter(({ gone }) => gone === null).map(({ id, next }) => id === next)).toEqual(fresh.map(() => true))
    expect(ended.filter(({ gone }) => gone !== null)).toHaveLength(2)
    expect(deleted.length).toBeGreaterThanOrEqual(2)
    expect(await rows(kept, 'SELECT count(*) AS n FROM reviews_versions WHERE valid_to IS NULL')).toEqual([
      { n: reviews.length },
    ])
  })

  it('writes a file that verify, report and diff treat like one without versions', async () => {
    expect(await runCommand(verifyCommand, ['--db', kept])).toMatchObject({ status: 0 })
    expect(await runCommand(reportCommand, ['--db', kept, '--out', path('report.html')])).toMatchObject({ status: 0 })
    expect(await runCommand(diffCommand, [kept, plain])).toMatchObject({ status: 0 })
  })
})

describe('feedback replay --history', () => {
  it('keeps the versions and prints the hash of the current tables', async () => {
    const line = (time: string, rating: number) =>
      '{"type":"RECORD","record":{"stream":"reviews","data":{"id":1,' +
      `"modifiedTime":"2026-01-0${time}T00:00:00.000Z","rating":${rating}},"emitted_at":1}}`
    const run = path('run.jsonl')
    writeFileSync(
      run,
      `${line('1', 2)}\n${line('2', 5)}\n{"type":"TRACE","trace":{"type":"STREAM_STATUS",` +
        '"stream_status":{"stream_descriptor":{"name":"reviews"},"status":"COMPLETE"}}}',
    )
    const [a, b] = [path('a.duckdb'), path('b.duckdb')]
    const versioned = await runCommand(replayCommand, [run, '--db', a, '--history', '--json'])
    const without = await runCommand(replayCommand, [run, '--db', b, '--json'])
    expect(versioned).toMatchObject({ status: 0, stdout: without.stdout })
    expect(await rows(a, 'SELECT rating, valid_to FROM reviews_versions ORDER BY valid_from')).toEqual([
      { rating: 2, valid_to: '2026-01-02T00:00:00.000Z' },
      { rating: 5, valid_to: null },
    ])
  })
})
