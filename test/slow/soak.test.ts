import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../connector/sandbox/start'
import { openSnapshot } from '../../connector/snapshot/store/file'
import { newTempPath, writeTempFile } from '../support/files'
import { runProgram, startProgram } from '../support/program'
import { random } from '../support/random'
import { startChangingSandbox } from '../support/sandbox'

/** How many runs are killed. */
const runCount = Number(process.env.SOAK ?? 20)
const seed = Number(process.env.SEED ?? 20261121)
const churn = { change: 2, delete: 1, add: 1 }

const listSnapshotReviews = async (path: string) => {
  const opened = await openSnapshot(path, 'read')()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  const { db } = opened.right
  try {
    const rows = await db.query('SELECT id::VARCHAR AS id, epoch_ms(modifiedTime) AS time FROM reviews')
    return rows.map(({ id, time }) => `${id} ${new Date(Number(time)).toISOString()}`).sort()
  } finally {
    db.close()
  }
}

describe(`${runCount} runs, each killed at a random moment (seed ${seed})`, () => {
  let sandbox: Sandbox
  let stopChanges: (millis: number) => void
  beforeAll(async () => {
    // More than one transaction of the snapshot, so that a killed pass leaves some rows.
    const service = await startChangingSandbox({ reviews: 18_000, churn })
    sandbox = service.sandbox
    stopChanges = service.stopChanges
  })
  afterAll(() => sandbox.close())

  it('end in a snapshot that equals the service, with no key twice', { timeout: 1_800_000 }, async () => {
    const chance = random(seed)
    const db = newTempPath('duckdb')
    const config = writeTempFile({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      start_date: '2010-01-01T00:00:00Z',
    })
    const sync = ['sync', '--config', config, '--db', db, '--select', 'reviews,deleted_reviews']
    const ends: Record<string, number> = {}
    for (let count = 0; count < runCount; count += 1) {
      // Some runs read everything again, so that many kills hit a long first pass.
      const from = count % 25 === 0 ? [...sync, '--full-refresh'] : sync
      const running = startProgram('feedback', from)
      const signal = chance() < 0.7 ? 'SIGKILL' : chance() < 0.5 ? 'SIGTERM' : 'SIGINT'
      const asked = sandbox.stats().exports + Math.floor(chance() * (chance() < 0.4 ? 30 : 4))
      const later = Math.floor(chance() * 150)
      let over = false
      const ended = running.ended.then((ran) => {
        over = true
        return ran
      })
      while (!over && sandbox.stats().exports < asked) await sleep(5)
      await Promise.race([ended, sleep(later)])
      running.kill(signal)
      const { status, signal: died, stderr } = await ended
      const end = died ?? `exit ${status}`
      ends[end] = (ends[end] ?? 0) + 1
      expect(['SIGKILL', 'SIGTERM', 'SIGINT', 'exit 0'], `run ${count}: ${stderr}`).toContain(end)
    }
    for (let quiet = 0; quiet < 2; quiet += 1) {
      stopChanges(60_000)
      const { status, stderr } = await runProgram('feedback', sync)
      expect(status, stderr).toBe(0)
    }
    const truth = (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`).sort()
    const held = await listSnapshotReviews(db)
    expect(new Set(held.map((row) => row.split(' ')[0])).size).toBe(held.length)
    expect(held).toEqual(truth)
    const { status, stdout } = await runProgram('feedback', ['verify', '--db', db])
    expect(status, stdout).toBe(0)
    console.log(
      Object.entries(ends)
        .map(([end, times]) => `${end}: ${times}`)
        .join(', '),
    )
  })
})
