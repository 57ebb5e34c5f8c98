import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { codeBlocks } from '../../support/doc-blocks'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { runProgram } from '../../support/program'
import { sandboxConfig } from '../../support/sandbox'
import { putFeedback } from '../../support/scheduling'
import { pythonProgram, quickProgram, runShellOrThrow } from './shell'

let sandbox: Sandbox
/** How far the service's clock is ahead of ours, in milliseconds: a run leaves the last seconds to the next one. */
let ahead = 0
let files: JsonFolder

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 500, now: () => Date.now() + ahead })
  files = createJsonFolder()
  files.put('config.json', sandboxConfig(sandbox))
  putFeedback(files.path)
  const script = join(__dirname, '..', '..', '..', 'examples', 'running', 'feedback_dlt.py')
  copyFileSync(script, join(files.path, 'feedback_dlt.py'))
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const run = (program: string, ...args: ReadonlyArray<string>): Promise<string> =>
  runShellOrThrow(program, args, {
    cwd: files.path,
    env: {
      DLT_DATA_DIR: join(files.path, 'dlt'),
      RUNTIME__DLTHUB_TELEMETRY: 'false',
      PATH: [
        join(files.path, 'bin'),
        dirname(quickProgram('dlt', 'pip')),
        pythonProgram('dlt', ''),
        process.env.PATH,
      ].join(':'),
    },
  })

/** The commands of docs/running.md for dlt and others; those of a lake need a server. */
const commands = codeBlocks('running.md', 'bash').filter((text) => !text.includes('--lake'))

/** Runs sync and the commands of the page; returns how many rows of reviews they loaded. */
const load = async (): Promise<number> => {
  const paths = ['--config', join(files.path, 'config.json'), '--db', join(files.path, 'reviews.duckdb')]
  const { status, stdout } = await runProgram('feedback', ['sync', ...paths])
  expect([status, status === 0 ? '' : stdout]).toEqual([0, ''])
  return Number(/'reviews': (\d+)/.exec(await run('bash', '-euo', 'pipefail', '-c', commands.join('\n')))?.[1] ?? 0)
}

/** The reviews, and the number of contents, that dlt's destination has. */
const loaded = async (): Promise<{ readonly reviews: ReadonlyArray<string>; readonly contents: number }> => {
  const output = await run(
    'python',
    '-c',
    `
import duckdb, json
db = duckdb.connect("load_reviews.duckdb", read_only=True)
rows = db.sql("""
  SELECT id::VARCHAR || strftime(modified_time AT TIME ZONE 'UTC', ' %Y-%m-%dT%H:%M:%S.%gZ') FROM feedback.reviews
""").fetchall()
contents = db.sql("SELECT count(*) FROM feedback.review_contents").fetchone()[0]
print("RESULT", json.dumps({"reviews": sorted(text for (text,) in rows), "contents": contents}))`,
  )
  return JSON.parse(/^RESULT (.*)$/m.exec(output)?.[1] ?? '{}')
}

const there = async () => {
  const { reviews } = await sandbox.truth()
  const lines = reviews.map(({ id, modifiedTime }) => `${id} ${new Date(modifiedTime).toISOString()}`)
  return { reviews: lines.sort(), contents: expect.any(Number) }
}

describe.skipIf(!existsSync(pythonProgram('dlt', 'python')))('the script for dlt', () => {
  it('loads every review, and none in a second run', async () => {
    expect(await load()).toBeGreaterThanOrEqual(500)
    const first = await loaded()
    expect(first).toEqual(await there())
    expect(first.contents).toBeGreaterThan(0)
    rmSync(join(files.path, 'lake'), { recursive: true })
    expect(await load()).toBe(0)
    expect(await loaded()).toEqual(first)
  })

  it('and others find the rows in the DuckDB file and in Parquet', async () => {
    const read = `
import duckdb
with duckdb.connect("reviews.duckdb", read_only=True) as db:
    table = db.sql("FROM reviews_current").to_arrow_table()
    exported = db.sql("FROM 'lake/reviews/**/*.parquet'").to_arrow_table()
print("RESULT", table.num_rows, exported.num_rows)`
    const count = (await there()).reviews.length
    expect(await run('python', '-c', read)).toContain(`RESULT ${count} ${count}`)
  })

  it('has what the service has after changes, deletions and new reviews', async () => {
    await sandbox.churn({ change: 40, delete: 10, add: 20, restore: 3 })
    ahead += 10_000
    rmSync(join(files.path, 'lake'), { recursive: true })
    const count = await load()
    expect(count).toBeGreaterThanOrEqual(60)
    expect(count).toBeLessThan(200)
    expect(await loaded()).toEqual(await there())
  })
})
