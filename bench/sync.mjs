import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from './bin.mjs'
import { measure } from './measure.mjs'
import { load } from './snapshot.mjs'

const config = (folder, url, pages) => {
  const path = join(folder, `sync-${pages}.json`)
  const credentials = { auth_type: 'access_token', access_token: 'bench' }
  writeFileSync(
    path,
    JSON.stringify({ base_url: `${url}/${pages}/0`, credentials, start_date: '2024-01-01T00:00:00Z' }),
  )
  return path
}

/** Runs `feedback sync` of the server's reviews into a fresh file and counts the reviews that it holds afterwards. */
export const sync =
  (...select) =>
  ({ folder, url, pages }) =>
    load(folder, (db) => [bin('feedback'), 'sync', '--config', config(folder, url, pages), '--db', db, ...select])

/** A file with the given number of pages of reviews and nothing else. Created once. */
const synced = (folder, url, pages) => {
  const db = join(folder, `synced-${pages}.duckdb`)
  const args = ['sync', '--config', config(folder, url, pages), '--db', db, '--select', 'reviews']
  if (!existsSync(db)) execFileSync(process.execPath, [bin('feedback'), ...args], { stdio: 'ignore' })
  return db
}

/** A command on that file. */
export const onFile =
  (args) =>
  ({ folder, url, pages }) =>
    measure(folder, args(synced(folder, url, pages), folder, config(folder, url, pages)))

const changed = 100

/** The first reviews of the server as a run would send them a year later, as Airbyte records. */
const changes = (folder, url) => {
  const path = join(folder, 'changes.jsonl')
  if (existsSync(path)) return path
  const settings = config(folder, url, 1)
  const catalog = join(folder, 'changes-catalog.json')
  const run = (program, ...args) =>
    execFileSync(process.execPath, [bin(program), ...args, '--config', settings], { maxBuffer: 1e9 })
  writeFileSync(catalog, run('feedback', 'catalog', '--select', 'reviews'))
  const lines = run('source-feedback', 'read', '--catalog', catalog).toString().split('\n')
  const records = lines.filter((line) => line.startsWith('{"type":"RECORD"')).slice(0, changed)
  const statuses = lines.filter((line) => line.includes('"STREAM_STATUS"') && line.includes('"reviews"'))
  const later = records.map((line) => line.replace('"modifiedTime":"2025', '"modifiedTime":"2026'))
  writeFileSync(path, [...later, ...statuses, ''].join('\n'))
  return path
}

/** Loads 100 changed reviews into a copy of a file with the given number of pages. */
export const loadChanges = async ({ folder, url, pages }) => {
  const file = synced(folder, url, pages)
  const db = join(folder, 'changed.duckdb')
  copyFileSync(file, db)
  const input = changes(folder, url)
  if (readFileSync(input, 'utf8').split('"RECORD"').length - 1 !== changed) throw new Error(`${input}: not ${changed}`)
  const result = await measure(folder, [bin('feedback'), 'snapshot', '--db', db, input])
  const count = join(import.meta.dirname, 'count.mjs')
  return { ...result, lines: Number(execFileSync(process.execPath, [count, db])) }
}
