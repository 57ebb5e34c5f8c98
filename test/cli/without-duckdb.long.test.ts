import { execFile } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../package.json'
import { formatLines, formatStream, locationRow, singerFormat } from '../support/destination-input'
import { installPacked } from '../support/packed-package'
import { sandboxConfig, startSmallSandbox } from '../support/sandbox'

let folder: string
beforeAll(() => {
  folder = installPacked()
})
afterAll(() => rmSync(folder, { recursive: true }))

type Outcome = { readonly status: number; readonly stdout: string; readonly stderr: string }

const run = (program: keyof typeof manifest.bin, args: ReadonlyArray<string>, stdin = ''): Promise<Outcome> =>
  new Promise((resolve) => {
    const path = join(folder, 'node_modules', 'feedback-connector', manifest.bin[program])
    const options = { cwd: folder, maxBuffer: 1e9 }
    const child = execFile(process.execPath, [path, ...args], options, (error, stdout, stderr) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    )
    child.stdin?.on('error', () => undefined).end(stdin)
  })

const writeConfig = (value: object): string => {
  writeFileSync(join(folder, 'config.json'), JSON.stringify(value))
  return 'config.json'
}

describe('where DuckDB is not installed', () => {
  it('every program shows its help', async () => {
    expect(existsSync(join(folder, 'node_modules', '@duckdb'))).toBe(false)
    for (const program of Object.keys(manifest.bin) as ReadonlyArray<keyof typeof manifest.bin>) {
      const { status, stdout } = await run(program, ['--help'])
      expect([status, stdout], program).toEqual([0, expect.stringContaining(`Usage: ${program}`)])
    }
    expect((await run('feedback', ['sync', '--help'])).stdout).toContain('--db')
  })

  it('the source and the tap read', async () => {
    const sandbox = await startSmallSandbox()
    const config = writeConfig(sandboxConfig(sandbox))
    const discovered = await run('source-feedback', ['discover', '--config', config])
    const [reviews] = JSON.parse(discovered.stdout).catalog.streams.filter(
      ({ name }: { readonly name: string }) => name === 'reviews',
    )
    const selected = { stream: reviews, sync_mode: 'incremental', destination_sync_mode: 'append' }
    writeFileSync(join(folder, 'catalog.json'), JSON.stringify({ streams: [selected] }))
    const read = await run('source-feedback', ['read', '--config', config, '--catalog', 'catalog.json'])
    expect([read.status, read.stdout.match(/^\{"type":"RECORD"/gm)?.length]).toEqual([0, 100])
    const tap = await run('tap-feedback', ['--config', config])
    expect([tap.status, tap.stderr]).toEqual([0, expect.not.stringContaining('DuckDB')])
    expect(tap.stdout.match(/^\{"type":"RECORD","stream":"reviews"/gm)).toHaveLength(100)
  })

  it('the target writes', async () => {
    const sandbox = await startSmallSandbox()
    const { base_url, credentials } = sandboxConfig(sandbox)
    const config = writeConfig({ base_url, credentials })
    const input = formatLines(formatStream(singerFormat, 'locations', 'code', [locationRow(1)]))
    const { status, stdout, stderr } = await run('target-feedback', ['--config', config], input)
    expect([status, stdout, stderr]).toEqual([
      0,
      '{"bookmarks":{"locations":{"at":1}}}\n',
      expect.not.stringContaining('DuckDB'),
    ])
  })

  it.each<readonly [string, ReadonlyArray<string>]>([
    ['sync', ['sync', '--config', 'config.json', '--db', 'reviews.duckdb']],
    ['query', ['query', '--db', 'reviews.duckdb', 'SELECT 1']],
    ['verify', ['verify', '--db', 'reviews.duckdb']],
    ['demo', ['demo']],
  ])('%s says what to install', async (_, args) => {
    const sandbox = await startSmallSandbox()
    writeConfig(sandboxConfig(sandbox))
    // The first bytes of a DuckDB file, so that it is opened.
    writeFileSync(join(folder, 'reviews.duckdb'), Buffer.alloc(20_000).fill('DUCK', 8, 12))
    const { status, stderr } = await run('feedback', args)
    expect(stderr).toContain('A snapshot needs DuckDB, which is not installed. Run npm install @duckdb/node-api')
    expect([status, stderr]).toEqual([78, expect.not.stringMatching(/^ +at /m)])
  })

  it('a read with snapshot_path says what to install before it reads', async () => {
    const sandbox = await startSmallSandbox()
    const config = writeConfig(sandboxConfig(sandbox, { snapshot_path: join(folder, 'copy.duckdb') }))
    const { status, stdout, stderr } = await run('tap-feedback', ['--config', config])
    expect([status, stdout, stderr]).toEqual([1, '', expect.stringContaining('DuckDB, which is not installed')])
  })
})
