import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { stateCommand } from '../../connector/cli/state'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import type { Sandbox } from '../../connector/sandbox/start'
import { openSnapshot } from '../../connector/snapshot/store/file'
import { writeTempFile } from '../support/files'
import { startProxy } from '../support/gate'
import { sendJson } from '../support/listen'
import { runCommand } from '../support/run-command'
import { reviewsConfig, startTestSandbox } from '../support/sandbox'

const folder = mkdtempSync(join(tmpdir(), 'verify-'))
const config = join(folder, 'config.json')
const db = join(folder, 'reviews.duckdb')
let sandbox: Sandbox

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300, until: Date.now() - 3_600_000 })
  writeFileSync(config, JSON.stringify(reviewsConfig(sandbox, { page_size: 50 })))
  expect(await runCommand(syncCommand, ['--config', config, '--db', db])).toMatchObject({ status: 0 })
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

const change = async (sql: string, path = db) => {
  const opened = await openSnapshot(path, 'change')()
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
const compared = async (path = db, more: ReadonlyArray<string> = [], settings = config) => {
  const { stdout, stderr } = await runCommand(verifyCommand, ['--db', path, '--config', settings, '--json', ...more])
  expect(stdout, stderr).not.toBe('')
  const results = JSON.parse(stdout) as ReadonlyArray<Result>
  return Object.fromEntries(
    results
      .slice(-6)
      .map(({ name, ok, examples }) => [name, { ok, ids: examples.map((text) => /^id (\d+)/.exec(text)?.[1]) }]),
  )
}

const fine = { ok: true, ids: [] }

describe('feedback verify --config', () => {
  it('says how many reviews it has read of the service', async () => {
    const steps: string[] = []
    await runCommand(verifyCommand, ['--db', db, '--config', config], { printProgress: (line) => steps.push(line) })
    const counts = steps.flatMap((step) => /^Reading the service: (\d+) reviews/.exec(step)?.[1] ?? []).map(Number)
    expect(counts[0]).toBe(50)
    expect(counts.at(-1)).toBeGreaterThanOrEqual(300)
    expect(steps.slice(-2)).toEqual(['Comparing the service with the file', ''])
  })

  it('checks the file while it reads the service, and ends both where one cannot be read', async () => {
    const steps: string[] = []
    const args = ['--db', db, '--config', config]
    await runCommand(verifyCommand, args, { printProgress: (line) => steps.push(line) })
    expect(steps.filter((step) => /^Reading .*\. Check \d+ of \d+: /.test(step))).not.toEqual([])
    const settings = {
      ...JSON.parse(readFileSync(config, 'utf8')),
      credentials: { auth_type: 'access_token', access_token: 'wrong' },
    }
    const failed = await runCommand(verifyCommand, ['--db', db, '--config', writeTempFile(settings)])
    expect([failed.status, failed.stdout]).toEqual([1, ''])
    expect(failed.stderr).toContain('401')
  })

  it('finds no difference after a sync', async () => {
    expect(await compared()).toEqual({
      'no review is missing': fine,
      'no review is stale': fine,
      'no review is extra': fine,
      'no deletion is undone': fine,
      'forgotten on purpose': fine,
      'not read yet': fine,
    })
  })

  it('calls a review lost that the next run would read again and knows as sent', async () => {
    const lost = async (sql: string, count: number, check: string) => {
      const copy = join(folder, 'lost.duckdb')
      copyFileSync(db, copy)
      await change(
        `CREATE TEMP TABLE newest AS SELECT id FROM reviews ORDER BY "modifiedTime" DESC, id LIMIT ${count}; ${sql}`,
        copy,
      )
      const found = await compared(copy)
      expect(found[check]).toMatchObject({ ok: false })
      expect(found[check]?.ids, check).toHaveLength(count)
      expect(found['not read yet']).toEqual(fine)
    }
    await lost('DELETE FROM reviews WHERE id IN (FROM newest)', 1, 'no review is missing')
    await lost(
      `UPDATE reviews SET "modifiedTime" = "modifiedTime" - INTERVAL 1 DAY WHERE id IN (FROM newest)`,
      1,
      'no review is stale',
    )
  })

  it('expects a review that the next run reads again and does not know as sent', async () => {
    const copy = join(folder, 'unknown.duckdb')
    copyFileSync(db, copy)
    await change(
      `DELETE FROM reviews WHERE id = (SELECT id FROM reviews ORDER BY "modifiedTime" DESC LIMIT 1);
       UPDATE _state SET state = json_merge_patch(state, '{"recent":null}') WHERE stream = 'reviews'`,
      copy,
    )
    expect(await compared(copy)).toMatchObject({
      'no review is missing': fine,
      'not read yet': { ok: true, ids: [expect.any(String)] },
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

  it('calls a review extra whose deletion was already read', async () => {
    const copy = join(folder, 'extra.duckdb')
    await runCommand(syncCommand, ['--config', config, '--db', db])
    copyFileSync(db, copy)
    await change(
      `INSERT INTO reviews SELECT * REPLACE ((SELECT max(id) FROM deleted_reviews) AS id) FROM reviews LIMIT 1`,
      copy,
    )
    expect((await compared(copy))['no review is extra']).toEqual({ ok: false, ids: [expect.any(String)] })
  })

  it.each([
    ['deleted_reviews', '"modifiedTime"'],
    ['_deletions', 'time'],
  ])('names a review that %s has as deleted and the service has restored with its old time', async (table, time) => {
    const copy = join(folder, `${table}.duckdb`)
    await runCommand(syncCommand, ['--config', config, '--db', db])
    copyFileSync(db, copy)
    await change(
      `INSERT INTO ${table} BY NAME
         SELECT id, "modifiedTime" + INTERVAL 1 MINUTE AS ${time} FROM reviews ORDER BY "modifiedTime" LIMIT 1;
       DELETE FROM reviews WHERE id IN (SELECT id FROM ${table} WHERE id IN (SELECT id FROM reviews))`,
      copy,
    )
    expect(await compared(copy)).toMatchObject({
      'no review is missing': fine,
      'no deletion is undone': { ok: false, ids: [expect.any(String)] },
    })
  })

  it('finds no difference in a review that the service both serves and lists as deleted, while it does', async () => {
    let listed: { readonly id: number; readonly modifiedTime: string } | undefined
    const { url } = await startProxy(sandbox.url, (seen, response) => {
      if (!seen.url.endsWith('/deleted-reviews')) return false
      const filter = JSON.parse(seen.body) as { readonly modifiedTimeFrom: string; readonly offset?: number }
      const isAsked = listed !== undefined && listed.modifiedTime > filter.modifiedTimeFrom && !filter.offset
      sendJson(response, 200, { reviews: isAsked ? [listed] : [], filter })
      return true
    })
    const settings = writeTempFile({ ...JSON.parse(readFileSync(config, 'utf8')), base_url: url })
    const file = join(folder, 'served-and-deleted.duckdb')
    const sync = () => runCommand(syncCommand, ['--config', settings, '--db', file])
    expect((await sync()).status).toBe(0)
    const [review] = (await sandbox.truth()).reviews
    listed = { id: Number(review?.id), modifiedTime: new Date(Date.now() - 60_000).toISOString() }
    expect((await sync()).status).toBe(0)
    const undone = async () => (await compared(file, [], settings))['no deletion is undone']
    expect(await undone()).toEqual(fine)
    listed = undefined
    expect(await undone()).toEqual({ ok: false, ids: [review?.id] })
  })

  it('names every missing, stale and extra review, and writes files that repair them', async () => {
    await runCommand(syncCommand, ['--config', config, '--db', db])
    await change(`
      CREATE TEMP TABLE chosen AS SELECT row_number() OVER (ORDER BY "modifiedTime") AS n, id FROM reviews;
      DELETE FROM reviews WHERE id IN (SELECT id FROM chosen WHERE n IN (10, 20));
      UPDATE reviews SET "modifiedTime" = "modifiedTime" - INTERVAL 1 DAY
        WHERE id = (SELECT id FROM chosen WHERE n = 30);
      UPDATE reviews SET "modifiedTime" = "modifiedTime" + INTERVAL 1 DAY
        WHERE id = (SELECT id FROM chosen WHERE n = 35);
      INSERT INTO reviews SELECT * REPLACE (77 AS id) FROM reviews WHERE id = (SELECT id FROM chosen WHERE n = 40)`)
    const repair = join(folder, 'repair')
    const found = await compared(db, ['--repair', repair])
    expect(found).toMatchObject({
      'no review is missing': { ok: false, ids: [expect.any(String), expect.any(String)] },
      'no review is stale': { ok: false, ids: [expect.any(String), expect.any(String)] },
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

describe('feedback verify', () => {
  it.each<[string, (path: string) => Promise<void> | void, RegExp]>([
    ['a file cut in half', (path) => truncateSync(path, statSync(path).size >> 1), /cut short or damaged/],
    ['a file without its last bytes', (path) => truncateSync(path, statSync(path).size - 10), /cut short or damaged/],
    ['a file without its metadata', (path) => change('DROP TABLE _streams', path), /tables were changed by hand/],
    [
      'a cursor of another type',
      (path) => change('ALTER TABLE reviews ALTER "modifiedTime" TYPE VARCHAR', path),
      /reviews\.modifiedTime, the cursor, is VARCHAR/,
    ],
    [
      'names that are integers',
      (path) => change('CREATE OR REPLACE TABLE comments AS SELECT * REPLACE (7 AS "entityName") FROM comments', path),
      /comments\.entityName is not text/,
    ],
  ])('says with status 2 why it cannot answer: %s', async (name, damage, reason) => {
    const copy = join(folder, `${name.replaceAll(' ', '-')}.duckdb`)
    copyFileSync(db, copy)
    await damage(copy)
    const { status, stdout, stderr } = await runCommand(verifyCommand, ['--db', copy])
    expect([status, stdout + stderr]).toEqual([2, expect.stringMatching(reason)])
  })

  it('names a state from which its own stream could not go on', async () => {
    const copy = join(folder, 'state.duckdb')
    copyFileSync(db, copy)
    await change(
      `UPDATE _state SET state = '{"cursor":7}' WHERE stream = 'review_contents';
       UPDATE _state SET state = '{"fromDate":7}' WHERE stream = 'comments'`,
      copy,
    )
    const { status, stdout } = await runCommand(verifyCommand, ['--db', copy])
    expect([status, stdout]).toEqual([1, expect.stringContaining('The state of review_contents is wrong')])
    expect(stdout).toContain('The state of comments is wrong')
  })
})
