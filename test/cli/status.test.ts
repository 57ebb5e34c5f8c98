import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { statusCommand } from '../../connector/cli/status'
import { runCommand } from '../support/run-command'
import {
  checkpointMessage,
  deletedReviewsInfo,
  openSnapshotFile,
  recordsMessage,
  reviewJson,
  reviewsInfo,
  startedMessage,
  streamMessages,
  writeMessages,
} from '../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'status-'))
afterAll(() => rmSync(folder, { recursive: true }))
const hour = 3_600_000
const path = (name: string) => join(folder, `${name}.duckdb`)

beforeAll(async () => {
  const empty = await openSnapshotFile(path('empty'))
  empty.db.close()
  for (const [name, age] of [
    ['fresh', 1],
    ['old', 30],
  ] as const) {
    const snapshot = await openSnapshotFile(path(name))
    const at = Date.now() - age * hour
    await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1)), { now: () => at })
    await writeMessages(snapshot, streamMessages(deletedReviewsInfo()), { now: () => Date.now() - hour })
    snapshot.db.close()
  }
  const cut = await openSnapshotFile(path('cut'))
  await writeMessages(cut, streamMessages(reviewsInfo(), reviewJson(1, 1)), { now: () => Date.now() - 2 * hour })
  await writeMessages(
    cut,
    [startedMessage(reviewsInfo()), recordsMessage('reviews', reviewJson(2, 1)), checkpointMessage('reviews', {}, 1)],
    { now: () => Date.now() - hour },
  )
  cut.db.close()
})

describe('feedback status', () => {
  it.each<[name: string, args: ReadonlyArray<string>, status: number, says: string]>([
    ['fresh', [], 0, 'Every stream is up to date.'],
    ['fresh', ['--max-age', '90m'], 0, 'Every stream is up to date.'],
    ['fresh', ['--max-age', '30m'], 1, 'reviews was last complete 60 minutes ago.'],
    ['old', [], 1, 'reviews was last complete 30 hours ago.'],
    ['old', ['--max-age', '2d'], 0, 'Every stream is up to date.'],
    ['old', ['--select', 'deleted_reviews'], 0, 'Every stream is up to date.'],
    ['old', ['--select', 'deleted_reviews,comments'], 1, 'comments was never loaded.'],
    ['cut', [], 1, 'reviews has an incomplete last load.'],
    ['empty', [], 1, 'holds no stream yet.'],
  ])('of a file that is %s with %j ends with %i', async (name, args, status, says) => {
    const outcome = await runCommand(statusCommand, ['--db', path(name), ...args])
    expect(outcome).toMatchObject({ status, stderr: '' })
    expect(outcome.stdout).toContain(says)
    const json = await runCommand(statusCommand, ['--db', path(name), '--json', ...args])
    expect(json.status).toBe(status)
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: status === 0 })
  })

  it.each([
    ['soon', 2],
    ['26', 2],
    ['-1h', 2],
  ])('refuses --max-age %s as a wrong command line', async (maxAge, status) => {
    const outcome = await runCommand(statusCommand, ['--db', path('fresh'), `--max-age=${maxAge}`])
    expect(outcome.status).toBe(status)
    expect(outcome.stderr).toContain('such as 26h')
  })

  it('fails for a file that does not exist', async () => {
    await expect(
      runCommand(statusCommand, ['--db', path('none')], { fail: async (_io, failure) => Promise.reject(failure) }),
    ).rejects.toMatchObject({ _tag: 'Config' })
  })
})
