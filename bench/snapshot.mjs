import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from './bin.mjs'
import { measure } from './measure.mjs'
import { review } from './review.mjs'

const distinct = 20_000
const firstId = 4_000_000_000_000_000

/**
 * A file with the given number of reviews as Airbyte records with unique ids, and a state after every 1,000. Created
 * once.
 */
const input = (folder, count) => {
  const path = join(folder, `run-${count}.jsonl`)
  if (existsSync(path)) return path
  const file = openSync(path, 'w')
  const texts = Array.from({ length: Math.min(distinct, count) }, (_, index) => JSON.stringify(review(index, firstId)))
  for (let from = 0; from < count; from += 1000) {
    const records = Array.from({ length: Math.min(1000, count - from) }, (_, index) => {
      const text = texts[(from + index) % distinct].replaceAll(String(firstId), String(firstId + from + index))
      return `{"type":"RECORD","record":{"stream":"reviews","data":${text},"emitted_at":1760000000000}}\n`
    })
    const state = {
      stream_descriptor: { name: 'reviews' },
      stream_state: { modifiedTimeFrom: '2025-01-01T00:00:00.000Z' },
    }
    const sourceStats = { recordCount: records.length }
    const checkpoint = { type: 'STATE', state: { type: 'STREAM', stream: state, sourceStats } }
    writeSync(file, `${records.join('')}${JSON.stringify(checkpoint)}\n`)
  }
  const stream_status = { stream_descriptor: { name: 'reviews' }, status: 'COMPLETE' }
  writeSync(
    file,
    `${JSON.stringify({ type: 'TRACE', trace: { type: 'STREAM_STATUS', emitted_at: 1, stream_status } })}\n`,
  )
  closeSync(file)
  return path
}

/** Loads the lines into a fresh file and counts what the file holds afterwards. */
export const load = async (folder, args) => {
  const db = join(folder, 'snapshot.duckdb')
  for (const path of [db, `${db}.wal`]) rmSync(path, { force: true })
  const result = await measure(folder, args(db))
  const count = join(import.meta.dirname, 'count.mjs')
  return { ...result, lines: Number(execFileSync(process.execPath, [count, db])) }
}

export const readJsonFloor = ({ folder, pages }) => {
  const lines = input(folder, pages * 1000)
  return load(folder, (db) => [join(import.meta.dirname, 'floors', 'read-json.mjs'), lines, db])
}

/** `feedback snapshot` of the same lines. */
export const snapshot = ({ folder, pages }) => {
  const lines = input(folder, pages * 1000)
  return load(folder, (db) => [bin('feedback'), 'snapshot', '--db', db, lines])
}
