import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { readSnapshotState } from '../../../connector/snapshot/store/metadata'
import { verifySnapshot } from '../../../connector/snapshot/verify/verify'
import { openSnapshotFile } from '../../support/snapshot-messages'

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
const pageCount = 260
const timeOfReview = (id: number) => new Date(1_700_000_000_000 + id * 1_000).toISOString()
/**
 * A commit begins after 64 MB, which are 46 pages, once the one before it has ended: after 92 pages the first one has.
 */
const text = 'words '.repeat(220)

/** One page: its records, then the state that covers them and all earlier pages. */
const pageLines = (number: number): string => {
  const ids = Array.from({ length: pageRows }, (_, i) => number * pageRows + i)
  const records = ids.map(
    (id) =>
      `{"type":"RECORD","record":{"stream":"reviews","emitted_at":1,` +
      `"data":{"id":${id},"modifiedTime":"${timeOfReview(id)}","text":"${text}"}}}\n`,
  )
  const state = `{"pages":${number + 1},"modifiedTimeFrom":"${timeOfReview((number + 1) * pageRows - 1)}"}`
  const stream = `{"stream_descriptor":{"name":"reviews"},"stream_state":${state}}`
  const message = `{"type":"STREAM","stream":${stream},"sourceStats":{"recordCount":${pageRows}.0}}`
  return `${records.join('')}{"type":"STATE","state":${message}}\n`
}
const completeStatus = '{"stream_descriptor":{"name":"reviews"},"status":"COMPLETE"}'
const completeLine = `{"type":"TRACE","trace":{"type":"STREAM_STATUS","stream_status":${completeStatus}}}\n`

/** Sends the pages from number `from` on to a process, and kills it once it has taken page `killAfter - 1`. */
const feedMessages = async (db: string, from: number, killAfter = pageCount): Promise<void> => {
  const child = spawn(
    process.execPath,
    [join(__dirname, '../../../build/bin/feedback.js'), 'snapshot', '--db', db, '--catalog', catalog],
    {
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  )
  child.stdin.on('error', () => undefined)
  const closed = once(child, 'close')
  for (let number = from; number < pageCount && number < killAfter; number++)
    if (!child.stdin.write(pageLines(number))) await Promise.race([once(child.stdin, 'drain'), closed])
  if (killAfter < pageCount) child.kill('SIGKILL')
  else child.stdin.end(completeLine)
  await closed
}

/** The number of pages that the saved state covers, of their rows, and of those rows that are in the file. */
const readCounts = async (db: string) => {
  const snapshot = await openSnapshotFile(db)
  const { reviews } = (await readSnapshotState(snapshot)) as { reviews?: { pages: number } }
  const covered = (reviews?.pages ?? 0) * pageRows
  const present = Number(
    (await snapshot.db.scalar(`SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reviews'`)) === 0
      ? 0
      : await snapshot.db.scalar(`SELECT count(*) FROM reviews WHERE id < ${covered}`),
  )
  snapshot.db.close()
  return { pages: reviews?.pages ?? 0, covered, present }
}

it('a run killed at any point leaves a state with all its rows in the file, and the next goes on from it', async () => {
  const db = join(folder, 'killed.duckdb')
  const savedPages: number[] = []
  for (const killAfter of [2, 110, 150, 220]) {
    await feedMessages(db, savedPages.at(-1) ?? 0, killAfter)
    const { pages, covered, present } = await readCounts(db)
    expect(present).toBe(covered)
    savedPages.push(pages)
  }
  expect(new Set(savedPages).size).toBeGreaterThan(2)
  await feedMessages(db, savedPages.at(-1) ?? 0)
  const snapshot = await openSnapshotFile(db)
  expect((await verifySnapshot(snapshot)).filter(({ ok }) => !ok)).toEqual([])
  expect(await snapshot.db.scalar('SELECT count(DISTINCT id) FROM reviews')).toBe(pageCount * pageRows)
  snapshot.db.close()
})
