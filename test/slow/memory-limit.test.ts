import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { expect, it } from 'vitest'
import { newTempPath, writeTempFile } from '../support/files'
import { runProgram } from '../support/program'
import { reviewsConfig, startSmallSandbox } from '../support/sandbox'

it('100,000 reviews are read, verified and replaced within 128 MB', async () => {
  const sandbox = await startSmallSandbox({ reviews: 100_000 })
  const config = writeTempFile(reviewsConfig(sandbox))
  const db = newTempPath('duckdb')
  const run = async (...args: ReadonlyArray<string>) => {
    const { status, stdout, stderr } = await runProgram('feedback', [...args, '--db', db, '--memory-limit', '128MB'])
    expect(status, stderr).toBe(0)
    return stdout
  }
  await run('sync', '--config', config, '--history')
  await sandbox.churn({ change: 500, delete: 100, add: 100 })
  // A run leaves what changed in the last five seconds to the next one.
  sandbox.forward(60)
  await run('sync', '--config', config)
  await run('sync', '--config', config, '--full-refresh')
  await run('verify')
  expect(JSON.parse(await run('query', '--json', 'SELECT count(*) AS n FROM reviews'))).toEqual({ n: 100_000 })
})

it('a model of 1,000,000 reviews is asked within 600 MB', async () => {
  const sandbox = await startSmallSandbox({ reviews: 10_000 })
  const config = writeTempFile(reviewsConfig(sandbox))
  const [db, usage] = [newTempPath('duckdb'), newTempPath('json')]
  const synced = await runProgram('feedback', ['sync', '--config', config, '--db', db])
  expect(synced.status, synced.stderr).toBe(0)
  const instance = await DuckDBInstance.create(db, { threads: '1' })
  const connection = await instance.connect()
  // Texts that do not compress, so that the file is larger than what DuckDB may use.
  const words = `list_reduce(list_transform(range(40), lambda i: md5(concat(id, ' ', n, ' ', i))), lambda a, b: a || b)`
  await connection.run(`
    INSERT INTO reviews SELECT r.* REPLACE (
      -1e7 * n - id AS id,
      json_array(json_object('id', n, 'questionType', 'Free Form', 'response', ${words})) AS contents)
    FROM reviews AS r, range(1, 100) AS t (n)`)
  connection.closeSync()
  instance.closeSync()
  const env = { BENCH_USAGE: usage, NODE_OPTIONS: `--require ${join(__dirname, '../../bench/usage.cjs')}` }
  const query = ['query', '--db', db, '--json', 'SELECT sum(reviews)::BIGINT AS n FROM region_monthly']
  const { stdout, stderr } = await runProgram('feedback', query, { env })
  expect(JSON.parse(stdout), stderr).toEqual({ n: 1_000_000 })
  const { peak, cpu }: { readonly peak: number; readonly cpu: number } = JSON.parse(readFileSync(usage, 'utf8'))
  console.log(`region_monthly: peak ${peak.toFixed(0)} MiB, ${cpu.toFixed(1)} s of CPU`)
  expect(peak * 2 ** 20).toBeLessThan(600e6)
})
