import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { afterAll, expect, it } from 'vitest'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { readSnapshotState } from '../../../connector/snapshot/store/metadata'
import { openSnapshot } from '../../../connector/snapshot/store/open'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'

const folder = mkdtempSync(join(tmpdir(), 'killed-'))
afterAll(() => rmSync(folder, { recursive: true }))

const catalog = join(folder, 'catalog.json')
const properties = {
  id: { type: 'integer' },
  modifiedTime: { type: 'string', format: 'date-time' },
  text: { type: 'string' },
}
writeFileSync(
  catalog,
  JSON.stringify({
    streams: [
      {
        stream: { name: 'reviews', json_schema: { properties } },
        sync_mode: 'incremental',
        destination_sync_mode: 'append_dedup',
        primary_key: [['id']],
        cursor_field: ['modifiedTime'],
      },
    ],
  }),
)

const pageRows = 1_000
const pages = 160
const time = (id: number) => new Date(1_700_000_000_000 + id * 1_000).toISOString()
const text = 'words '.repeat(5)

/** One page of the export: its records, then the state that covers them and all before. */
const pageLines = (number: number): string => {
  const ids = Array.from({ length: pageRows }, (_, i) => number * pageRows + i)
  const records = ids.map(
    (id) =>
      `{"type":"RECORD","record":{"stream":"reviews","data":{"id":${id},"modifiedTime":"${time(id)}","text":"${text}"},"emitted_at":1}}\n`,
  )
  const state = `{"pages":${number + 1},"modifiedTimeFrom":"${time((number + 1) * pageRows - 1)}"}`
  return `${records.join('')}{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"reviews"},"stream_state":${state}},"sourceStats":{"recordCount":${pageRows}.0}}}\n`
}
const complete = `{"type":"TRACE","trace":{"type":"STREAM_STATUS","stream_status":{"stream_descriptor":{"name":"reviews"},"status":"COMPLETE"}}}\n`

/** Feeds pages from `from` on; kills the process once it has taken `killAfter` of them. */
const feedMessages = async (db: string, from: number, killAfter = pages): Promise<void> => {
  const child = spawn(
    process.execPath,
    [join(__dirname, '../../../build/bin/feedback.js'), 'snapshot', '--db', db, '--catalog', catalog],
    {
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  )
  child.stdin.on('error', () => undefined)
  const closed = once(child, 'close')
  for (let number = from; number < pages && number < killAfter; number++)
    if (!child.stdin.write(pageLines(number))) await Promise.race([once(child.stdin, 'drain'), closed])
  if (killAfter < pages) child.kill('SIGKILL')
  else child.stdin.end(complete)
  await closed
}

const openFile = async (db: string): Promise<Snapshot> => {
  const opened = await openSnapshot(db)()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}

const readCounts = async (db: string) => {
  const snapshot = await openFile(db)
  const { reviews } = (await readSnapshotState(snapshot)) as { reviews?: { pages: number } }
  const covered = (reviews?.pages ?? 0) * pageRows
  const there = Number(
    (await snapshot.db.scalar(`SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reviews'`)) === 0
      ? 0
      : await snapshot.db.scalar(`SELECT count(*) FROM reviews WHERE id < ${covered}`),
  )
  snapshot.db.close()
  return { pages: reviews?.pages ?? 0, covered, there }
}

it('killed at any point, the file holds a state whose rows are all there, and the next run goes on from it', async () => {
  const db = join(folder, 'killed.duckdb')
  const reached: number[] = []
  for (const killAfter of [2, 70, 100, 140]) {
    await feedMessages(db, reached.at(-1) ?? 0, killAfter)
    const { pages: at, covered, there } = await readCounts(db)
    expect(there).toBe(covered)
    reached.push(at)
  }
  expect(new Set(reached).size).toBeGreaterThan(2)
  await feedMessages(db, reached.at(-1) ?? 0)
  const snapshot = await openFile(db)
  expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])
  expect(await snapshot.db.scalar('SELECT count(DISTINCT id) FROM reviews')).toBe(pages * pageRows)
  snapshot.db.close()
})
