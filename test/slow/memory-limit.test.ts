import { expect, it } from 'vitest'
import { newTempPath, writeTempFile } from '../support/files'
import { runProgram } from '../support/program'
import { sandboxConfig, startSmallSandbox } from '../support/sandbox'

it('100,000 reviews are read, verified and replaced within 128 MB', async () => {
  const sandbox = await startSmallSandbox({ reviews: 100_000 })
  const config = writeTempFile(sandboxConfig(sandbox, { entities: undefined }))
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
