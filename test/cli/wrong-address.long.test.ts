import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { syncCommand } from '../../connector/cli/sync'
import { newTempPath, writeTempFile } from '../support/files'
import { sendJson, startServer } from '../support/listen'
import { runCommand } from '../support/run-command'
import { sandboxConfig, startSmallSandbox } from '../support/sandbox'
import { openSnapshotFile } from '../support/snapshot-messages'

describe('sync with a wrong base_url', () => {
  const sync = (config: object, db: string, ...more: ReadonlyArray<string>) =>
    runCommand(syncCommand, ['--config', writeTempFile(config), '--db', db, ...more])
  const countReviews = async (db: string): Promise<number> => {
    const { db: file } = await openSnapshotFile(db, 'read')
    const count = Number(await file.scalar('SELECT count(*) FROM reviews'))
    file.close()
    return count
  }

  it.each<[string, string]>([
    ['a page', '<!doctype html><title>Sign in</title>'],
    ['JSON of another service', '{"hello":"world"}'],
  ])('that answers %s makes no file, and fills it once the address is mended', async (_, body) => {
    const sandbox = await startSmallSandbox()
    const other = await startServer((_seen, to) => sendJson(to, 200, body))
    const db = newTempPath('duckdb')
    const wrong = await sync(sandboxConfig({ ...sandbox, url: other.url }), db)
    expect([wrong.status, wrong.stderr, existsSync(db)]).toEqual([
      1,
      expect.stringMatching(
        /^export reviews: the server at base_url is not the service \(at \$: .*\)\. Check base_url;/,
      ),
      false,
    ])
    const { status, stderr } = await sync(sandboxConfig(sandbox), db)
    expect([status, stderr]).toEqual([0, ''])
    expect(await countReviews(db)).toBeGreaterThan(0)
  })

  it('is not shown by an answer to another request, as from a cache', async () => {
    const echoing = await startServer((_seen, to) => sendJson(to, 200, { reviews: [], filter: { offset: 3 } }))
    const config = sandboxConfig({ ...(await startSmallSandbox()), url: echoing.url })
    const first = await sync(config, newTempPath('duckdb'), '--select', 'reviews')
    expect([first.status, first.stdout]).toEqual([75, expect.stringMatching(/^reviews +incomplete/m)])
  })

  it('is no reason to end a later run: the other answers to it may be right', async () => {
    const sandbox = await startSmallSandbox()
    const db = newTempPath('duckdb')
    expect((await sync(sandboxConfig(sandbox), db)).status).toBe(0)
    const other = await startServer((_seen, to) => sendJson(to, 200, '<html>'))
    const config = sandboxConfig({ ...sandbox, url: other.url })
    const later = await sync(config, db, '--service-moved', '--select', 'reviews')
    expect([later.status, later.stdout]).toEqual([75, expect.stringMatching(/^reviews +incomplete/m)])
  })
})
