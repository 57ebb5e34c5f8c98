import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { joinText } from '../../connector/cdk/lines'
import { runCommandLine } from '../../connector/cdk/program/run-command'
import { programs } from '../../connector/cli/programs'
import { closeSnapshot } from '../../connector/snapshot/store/file'
import { createTestIo, toInput } from '../support/command-io'
import { newTempPath, writeTempFile } from '../support/files'
import { reviewsConfig, startSmallSandbox } from '../support/sandbox'
import { openSnapshotFile, reviewJson, reviewsInfo, streamMessages, writeMessages } from '../support/snapshot-messages'

const run = async (...args: ReadonlyArray<string>) => {
  const [out, err]: [string[], string[]] = [[], []]
  const io = createTestIo(toInput(''), async (text) => void out.push(joinText(text)), {
    printWarning: (line) => err.push(line),
  })
  const status = await runCommandLine('feedback', programs.feedback, io, args, new Promise(() => undefined))
  return { status, stdout: out.join(''), stderr: err.join('\n') }
}

const writeSnapshot = async (): Promise<string> => {
  const db = newTempPath('duckdb')
  const snapshot = await openSnapshotFile(db)
  await writeMessages(snapshot, streamMessages(reviewsInfo(), reviewJson(1, 1)))
  await closeSnapshot(snapshot)
  return db
}

describe('--memory-limit', () => {
  it('is too little for a sync: it says so, keeps what was committed, and goes on with more', async () => {
    const sandbox = await startSmallSandbox({ reviews: 3000 })
    const config = writeTempFile(reviewsConfig(sandbox))
    const db = newTempPath('duckdb')
    const sync = (...more: ReadonlyArray<string>) => run('sync', '--config', config, '--db', db, ...more)
    const failed = await sync('--memory-limit', '16MB')
    expect(failed.status, failed.stderr).toBe(78)
    expect(failed.stderr).toMatch(
      new RegExp(
        String.raw`duckdb: committing [\d,]+ records of reviews and \d+ more ` +
          String.raw`needs more memory than the limit of 16MB\. ` +
          String.raw`Raise it with --memory-limit, such as 32MB\. Nothing is lost: .*\.$`,
        'm',
      ),
    )
    expect(failed.stderr).not.toMatch(/Out of Memory| at .*:\d+:\d+/)
    const passed = await sync('--memory-limit', '64MB')
    expect(passed.status, passed.stderr).toBe(0)
    const verified = await run('verify', '--db', db, '--memory-limit', '64MB')
    expect(verified.status, verified.stdout).toBe(0)
    expect((await run('query', '--db', db, '--json', 'SELECT count(*) AS n FROM reviews')).stdout).toBe('{"n":3000}\n')
  })

  it.each(['sync', 'state', 'snapshot', 'verify', 'status', 'replay', 'diff', 'report', 'query'])(
    'is an option of %s, which opens a file',
    async (verb) => expect((await run(verb, '--help')).stdout).toMatch(/^ +--memory-limit SIZE/m),
  )

  it.each(['', 'much', '512', '-1GB', '15MB', '80%'])('is a size, not %j', async (text) =>
    expect(await run('query', '--db', 'none.duckdb', `--memory-limit=${text}`, 'SELECT 1')).toEqual({
      status: 2,
      stdout: '',
      stderr: `--memory-limit must be a size of at least 16MB, such as 512MB or 1GiB, not ${text}.`,
    }),
  )

  it('says so where the folder for what does not fit cannot be made; the file is not taken for damaged', async () => {
    const db = await writeSnapshot()
    writeFileSync(`${db}.tmp`, 'no folder')
    const sorted = `
      SELECT max(text) AS text FROM (
        SELECT text, row_number() OVER (ORDER BY text) AS n
        FROM (SELECT md5(range::VARCHAR) AS text FROM range(1000000))
      )`
    expect((await run('query', '--db', db, '--memory-limit', '512MB', '--json', sorted)).status).toBe(0)
    expect(await run('query', '--db', db, '--memory-limit', '32MB', sorted)).toMatchObject({
      status: 78,
      stderr:
        `${db}: the query needs more memory than the limit of 32MB, and the folder for what does ` +
        `not fit, ${db}.tmp, cannot be created. Check who may write there, or raise the limit with --memory-limit.`,
    })
  })

  it('bounds the data of a sandbox, which says what is wrong', async () => {
    const sandbox = (limit: string) => run('sandbox', '--reviews', '50000', '--memory-limit', limit)
    expect(await sandbox('16MB')).toMatchObject({
      status: 78,
      stderr:
        'The data of the sandbox needs more memory than the limit of 16MB. Raise it with --memory-limit, such as 32MB.',
    })
    expect(await sandbox('much')).toMatchObject({ status: 2, stderr: expect.stringContaining('512MB or 1GiB') })
  })

  it('is what DuckDB may use, also for a query that could set it', async () => {
    const db = await writeSnapshot()
    const sql = "SELECT current_setting('memory_limit') AS memory"
    expect((await run('query', '--db', db, '--memory-limit', '512MiB', '--json', sql)).stdout).toBe(
      '{"memory":"512.0 MiB"}\n',
    )
    const raised = await run('query', '--db', db, '--memory-limit', '64MB', "SET memory_limit = '2GB'")
    expect([raised.status, raised.stderr]).toEqual([78, expect.stringContaining('A query cannot change settings')])
  })

  it('is not taken at once by a query, which begins with less and is run again where that is too little', async () => {
    const db = await writeSnapshot()
    const query = (...sql: ReadonlyArray<string>) => run('query', '--db', db, '--json', ...sql)
    const setting = "current_setting('memory_limit') AS memory"
    expect((await query(`SELECT ${setting}`)).stdout).toBe('{"memory":"244.1 MiB"}\n')
    const { stdout, stderr } = await query(`SELECT len(list(range)) AS n, ${setting} FROM range(20000000)`)
    expect(JSON.parse(stdout)).toMatchObject({ n: 20_000_000, memory: expect.not.stringMatching('244.1 MiB') })
    expect(stderr).toBe('')
    const parts = 'SELECT range AS n FROM range(100000) UNION ALL SELECT len(list(range)) FROM range(20000000)'
    expect((await query(parts)).stdout.split('\n')).toHaveLength(100_002)
  })

  it('is too little for a query with a reason, and a higher one is enough', async () => {
    const db = await writeSnapshot()
    const query = (limit: string) =>
      run('query', '--db', db, '--memory-limit', limit, '--json', 'SELECT len(list(range)) AS n FROM range(5000000)')
    expect(await query('32MB')).toEqual({
      status: 78,
      stdout: expect.stringContaining('"type": "config_error"'),
      stderr:
        `${db}: the query needs more memory than the limit of 32MB. Raise ` +
        'it with --memory-limit, such as 64MB. The file was not changed.',
    })
    expect(await query('512MB')).toEqual({ status: 0, stdout: '{"n":5000000}\n', stderr: '' })
  })
})
