import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { stateCommand } from '../../connector/cli/state'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { openSnapshot } from '../../connector/snapshot/store/open'
import { runCommand } from '../support/run-command'

const folder = mkdtempSync(join(tmpdir(), 'verify-'))
const config = join(folder, 'config.json')
const db = join(folder, 'reviews.duckdb')
let sandbox: Sandbox

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 300, until: Date.now() - 3_600_000 })
  writeFileSync(
    config,
    JSON.stringify({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      start_date: '2000-01-01T00:00:00Z',
      page_size: 50,
    }),
  )
  expect(await runCommand(syncCommand, ['--config', config, '--db', db])).toMatchObject({ status: 0 })
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

const change = async (sql: string) => {
  const opened = await openSnapshot(db, 'change')()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  await opened.right.db.run(sql)
  opened.right.db.close()
}

type Result = {
  readonly name: string
  readonly ok: boolean
  readonly failures: number
  readonly examples: ReadonlyArray<string>
}
const compared = async (...more: string[]) => {
  const { stdout, stderr } = await runCommand(verifyCommand, ['--db', db, '--config', config, '--json', ...more])
  expect(stdout, stderr).not.toBe('')
  const results = JSON.parse(stdout) as ReadonlyArray<Result>
  return Object.fromEntries(
    results
      .slice(-4)
      .map(({ name, ok, examples }) => [name, { ok, ids: examples.map((text) => /^id (\d+)/.exec(text)?.[1]) }]),
  )
}

const fine = { ok: true, ids: [] }

describe('feedback verify --config', () => {
  it('finds no difference after a sync', async () => {
    expect(await compared()).toEqual({
      'no review is missing': fine,
      'no review is stale': fine,
      'no review is extra': fine,
      'not read yet': fine,
    })
  })

  it('does not report changes that the next run will read', async () => {
    await sandbox.churn({ change: 2, add: 1, delete: 1 })
    const found = await compared()
    expect(found).toMatchObject({
      'no review is missing': fine,
      'no review is stale': fine,
      'no review is extra': fine,
      'not read yet': { ok: true },
    })
    expect(found['not read yet']?.ids.length).toBeGreaterThanOrEqual(3)
  })

  it('names every missing, stale and extra review, and writes files that repair them', async () => {
    await runCommand(syncCommand, ['--config', config, '--db', db])
    await change(`
      CREATE TEMP TABLE chosen AS SELECT row_number() OVER (ORDER BY "modifiedTime") AS n, id FROM reviews;
      DELETE FROM reviews WHERE id IN (SELECT id FROM chosen WHERE n IN (10, 20));
      UPDATE reviews SET "modifiedTime" = "modifiedTime" - INTERVAL 1 DAY WHERE id = (SELECT id FROM chosen WHERE n = 30);
      INSERT INTO reviews SELECT * REPLACE (77 AS id) FROM reviews WHERE id = (SELECT id FROM chosen WHERE n = 40)`)
    const repair = join(folder, 'repair')
    const found = await compared('--repair', repair)
    expect(found).toMatchObject({
      'no review is missing': { ok: false, ids: [expect.any(String), expect.any(String)] },
      'no review is stale': { ok: false, ids: [expect.any(String)] },
      'no review is extra': { ok: false, ids: ['77'] },
    })

    expect((await runCommand(snapshotCommand, ['--db', db, join(repair, 'messages.jsonl')])).status).toBe(0)
    expect((await runCommand(stateCommand, ['import', '--db', db, '--state', join(repair, 'state.json')])).status).toBe(
      0,
    )
    expect((await runCommand(syncCommand, ['--config', config, '--db', db])).status).toBe(0)
    expect(await compared()).toMatchObject({
      'no review is missing': fine,
      'no review is stale': fine,
      'no review is extra': fine,
    })
    expect(await runCommand(verifyCommand, ['--db', db])).toMatchObject({ status: 0 })
    expect(readFileSync(join(repair, 'state.json'), 'utf8')).not.toContain('recent')
  })

  it('has nothing to repair without differences, and needs --config', async () => {
    const none = join(folder, 'none')
    expect((await runCommand(verifyCommand, ['--db', db, '--config', config, '--repair', none])).stderr).toContain(
      'nothing to repair',
    )
    expect(existsSync(none)).toBe(false)
    expect((await runCommand(verifyCommand, ['--db', db, '--repair', none])).stderr).toContain('needs --config')
  })
})
