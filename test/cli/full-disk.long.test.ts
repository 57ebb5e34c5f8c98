import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  mapping,
  visitRow,
} from '../support/destination-input'
import { newTempPath, writeTempFile } from '../support/files'
import { type ProgramName, programPath } from '../support/program'
import { sandboxConfig, startTestSandbox } from '../support/sandbox'

/** Runs a built program whose stdout goes to `output`; `limit`: the largest file that it may write, in KiB. */
const runInto = (
  output: string,
  program: ProgramName,
  args: ReadonlyArray<string>,
  { stdin = '', limit = 'unlimited' } = {},
): Promise<{ readonly status: number | null; readonly stderr: string }> => {
  const shell = `trap '' XFSZ; ulimit -f ${limit}; exec "$0" "$@" > '${output}'`
  const child = spawn('bash', ['-c', shell, process.execPath, programPath(program), ...args])
  const errors: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  return new Promise((resolve) =>
    child.on('close', (status) => resolve({ status, stderr: Buffer.concat(errors).toString() })),
  )
}

const told = /^The output cannot be written to stdout \((ENOSPC|EFBIG)\)\. Free up space there, then run again\.$/gm

// A device that is always full simulates a full disk, and so does the maximum file size.
describe.skipIf(!existsSync('/dev/full'))('where stdout is full', () => {
  let config: string
  let db: string
  let catalog: string
  beforeAll(async () => {
    const sandbox = await startTestSandbox({ reviews: 300 })
    config = writeTempFile(sandboxConfig(sandbox))
    catalog = writeTempFile({ streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }] })
    db = newTempPath('duckdb')
    return () => sandbox.close()
  })

  const commands: ReadonlyArray<readonly [ProgramName, ReadonlyArray<string>, number]> = [
    ['source-feedback', ['spec'], 1],
    ['source-feedback', ['check', '--config', 'CONFIG'], 1],
    ['source-feedback', ['read', '--config', 'CONFIG', '--catalog', 'CATALOG'], 1],
    ['tap-feedback', ['--config', 'CONFIG'], 1],
    ['feedback', ['sync', '--config', 'CONFIG', '--db', 'DB', '--select', 'reviews'], 75],
    ['feedback', ['query', '--db', 'DB', 'SELECT count(*) FROM reviews'], 75],
    ['feedback', ['verify', '--db', 'DB'], 75],
  ]
  it.each(commands)('%s %j says so once and ends with %i', async (program, args, expected) => {
    const paths: Readonly<Record<string, string>> = { CONFIG: config, CATALOG: catalog, DB: db }
    const given = args.map((arg) => paths[arg] ?? arg)
    const { status, stderr } = await runInto('/dev/full', program, given)
    expect([status, stderr.match(told)?.length], stderr).toEqual([expected, 1])
    expect(stderr).not.toMatch(/unexpected error|report it/)
  })

  it('says so of a file that has reached the largest size allowed', async () => {
    const args = ['read', '--config', config, '--catalog', catalog]
    const { status, stderr } = await runInto(newTempPath('jsonl'), 'source-feedback', args, { limit: '8' })
    expect([status, stderr.match(told)?.length], stderr).toEqual([1, 1])
  })

  it.each([
    ['compact', []],
    ['forget', ['--review', '1']],
  ])('feedback %s says so where its log does not fit into the file', async (verb, args) => {
    const path = newTempPath('duckdb')
    const script = `
      const { DuckDBInstance } = require('@duckdb/node-api')
      DuckDBInstance.create(${JSON.stringify(path)}).then(async (instance) => {
        const db = await instance.connect()
        await db.run("SET checkpoint_threshold = '1TB'; CREATE TABLE t AS SELECT random() AS a FROM range(100000)")
        process.kill(process.pid, 'SIGKILL')
      })`
    copyFileSync(db, path)
    await once(spawn(process.execPath, ['-e', script]), 'exit')
    const limit = String(Math.ceil(statSync(db).size / 1024))
    const { status, stderr } = await runInto(newTempPath('txt'), 'feedback', [verb, '--db', path, ...args], { limit })
    expect(stderr).toContain(`${path} cannot grow: the disk is full`)
    expect(status).toBe(75)
  })

  it('says so where there is no room for a new DuckDB file', async () => {
    const path = newTempPath('duckdb')
    const sync = ['sync', '--config', config, '--db', path, '--select', 'reviews']
    const { status, stderr } = await runInto(newTempPath('txt'), 'feedback', sync, { limit: '8' })
    expect(stderr).toContain(`${path} cannot grow: the disk is full`)
    expect(status).toBe(75)
    expect((await runInto(newTempPath('txt'), 'feedback', sync)).status).toBe(0)
  })

  it('says of a dead-letter file that it cannot be written, and acknowledges nothing', async () => {
    const sandbox = await startTestSandbox({ reviews: 1 })
    const { base_url, credentials } = sandboxConfig(sandbox)
    const settings = writeTempFile({ base_url, credentials, mapping, dead_letter_path: '/dev/full' })
    const rows = [visitRow(0, { clinic: 'W1', mail: 'nobody' })]
    const stdin = formatLines(formatStream(airbyteFormat, 'visit_records', 'id', rows))
    const visits = writeTempFile(configuredCatalogOf({ visit_records: 'id' }))
    const output = newTempPath('jsonl')
    const args = ['write', '--config', settings, '--catalog', visits]
    const { status } = await runInto(output, 'destination-feedback', args, { stdin })
    await sandbox.close()
    const lines = readFileSync(output, 'utf8')
    expect(status).toBe(1)
    expect(lines).toMatch(/dead-letter file cannot be written: .*Free up space, or choose another dead_letter_path/)
    expect(lines).not.toContain('"STATE"')
  })
})

describe('where an output file has no room', () => {
  let db: string
  beforeAll(async () => {
    const sandbox = await startTestSandbox({ reviews: 300 })
    db = newTempPath('duckdb')
    const args = ['sync', '--config', writeTempFile(sandboxConfig(sandbox)), '--db', db, '--select', 'reviews']
    expect((await runInto('/dev/null', 'feedback', args)).status).toBe(0)
    await sandbox.close()
  })

  it.each([
    ['a query as Parquet', (out: string) => ['query', '--db', db, '--format', 'parquet', '--out', out, 'FROM reviews']],
    ['a query as CSV', (out: string) => ['query', '--db', db, '--format', 'csv', '--out', out, 'FROM reviews']],
    ['a report', (out: string) => ['report', '--db', db, '--out', out, '--format', 'html']],
    ['an export', (out: string) => ['snapshot', '--db', db, '--export', 'parquet', out]],
  ])('%s says so, leaves nothing of it, and ends with 75', async (_name, argsOf) => {
    const out = newTempPath('out')
    const { status, stderr } = await runInto('/dev/null', 'feedback', argsOf(out), { limit: '8' })
    expect([status, stderr]).toEqual([
      75,
      `${out} cannot be written: the disk is full, or the file has ` +
        `reached the largest size allowed. Make room and run again.\n`,
    ])
    const folder = dirname(out)
    expect(readdirSync(folder).filter((name) => name.startsWith(`${basename(out)}.`))).toEqual([])
    if (existsSync(out)) expect(readdirSync(out)).toEqual([])
    expect((await runInto('/dev/null', 'feedback', argsOf(out))).status).toBe(0)
  })
})
