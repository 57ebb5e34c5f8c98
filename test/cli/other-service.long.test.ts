import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { auditCommand } from '../../connector/cli/audit'
import { sourceReadCommand } from '../../connector/cli/feedback-source'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { stateCommand } from '../../connector/cli/state'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import type { Sandbox } from '../../connector/sandbox/start'
import { runCommand } from '../support/run-command'
import { reviewsConfig, startTestSandbox } from '../support/sandbox'
import { openSnapshotFile } from '../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'other-'))
const db = join(folder, 'reviews.duckdb')
let trial: Sandbox
let real: Sandbox

const writeFile = (name: string, value: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
  return path
}

beforeAll(async () => {
  trial = await startTestSandbox({ reviews: 20 })
  real = await startTestSandbox({ reviews: 7 })
  writeFile('trial.json', reviewsConfig(trial))
  writeFile('real.json', reviewsConfig(real))
  // The same service, its address written otherwise.
  writeFile('again.json', reviewsConfig(trial, { base_url: `${trial.url}//` }))
})
afterAll(async () => {
  await trial.close()
  await real.close()
  rmSync(folder, { recursive: true })
})

const sync = (config: string, ...more: string[]) =>
  runCommand(syncCommand, ['--config', join(folder, config), '--db', db, '--select', 'reviews', ...more])
const countReviews = async (): Promise<number> => {
  const snapshot = await openSnapshotFile(db, 'read')
  const count = Number(await snapshot.db.scalar('SELECT count(*) FROM reviews'))
  snapshot.db.close()
  return count
}

it('a snapshot and a state are refused by another service, and started over or continued on request', async () => {
  expect(await sync('trial.json')).toMatchObject({ status: 0 })
  expect(await sync('again.json')).toMatchObject({ status: 0 })

  for (const more of [[], ['--full-refresh']]) {
    const refused = await sync('real.json', ...more)
    expect(refused.status).toBe(1)
    expect(refused.stderr).toContain(`holds the data of ${trial.url.toLowerCase()}, and the config reads ${real.url}`)
    expect(refused.stderr).toContain('--start-anew')
    expect(await countReviews()).toBe(20)
  }
  const verified = await runCommand(verifyCommand, ['--db', db, '--config', join(folder, 'real.json')])
  expect(verified.stderr).toContain('holds the data of')

  const state = join(folder, 'state.json')
  await runCommand(stateCommand, ['export', '--db', db, '--out', state])
  const catalog = writeFile('catalog.json', {
    streams: [
      {
        stream: { name: 'reviews', json_schema: {}, supported_sync_modes: ['incremental'] },
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        cursor_field: ['modifiedTime'],
        primary_key: [['id']],
      },
    ],
  })
  const read = (config: string, path: string) =>
    runCommand(sourceReadCommand, ['--config', join(folder, config), '--catalog', catalog, '--state', path])
  const refusedState = await read('real.json', state)
  expect(refusedState.status).toBe(1)
  expect(refusedState.stdout).toContain('"failure_type":"config_error"')
  expect(refusedState.stdout).not.toContain('"type":"RECORD"')
  const table = ['--stream', 'reviews', '--table', 'reviews', '--dialect', 'duckdb']
  const audited = await runCommand(auditCommand, ['--config', join(folder, 'real.json'), '--state', state, ...table])
  expect(audited.status).toBe(1)
  expect(audited.stderr).toContain('The state of reviews is of another service')
  const old = writeFile('old.json', readFileSync(state, 'utf8').replace(/,"service":"[^"]*"/, ''))
  expect((await read('real.json', old)).status).toBe(0)

  const foreign = writeFile('foreign.jsonl', (await read('real.json', writeFile('none.json', '[]'))).stdout)
  const loaded = await runCommand(snapshotCommand, ['--db', db, foreign])
  expect(loaded.stderr).toContain('holds the data of another service than the state of reviews')
  expect(await countReviews()).toBe(20)

  expect(await sync('real.json', '--start-anew')).toMatchObject({ status: 0 })
  expect(await countReviews()).toBe(7)
  expect(await sync('trial.json', '--service-moved')).toMatchObject({ status: 0 })
  expect((await sync('real.json')).status).toBe(1)
})
