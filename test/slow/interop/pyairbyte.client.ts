import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { airbyteLines, configureStreams } from '../../support/lines'
import { programPath, runProgram } from '../../support/program'
import { sandboxConfig } from '../../support/sandbox'
import { pythonProgram, runShellOrThrow, type ShellOptions } from './shell'

let sandbox: Sandbox
/** How far the service's clock is ahead of ours, in milliseconds: a run leaves the last seconds to the next one. */
let ahead = 0
let files: JsonFolder
let config: string
let how: ShellOptions
let streams: ReadonlyArray<string>
let first: Read

const source = programPath('source-feedback')

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 2000, now: () => Date.now() + ahead })
  files = createJsonFolder()
  config = files.put('config.json', sandboxConfig(sandbox, { page_size: 500 }))
  how = { cwd: files.path }
  const discovered = await runProgram('source-feedback', ['discover', '--config', config])
  streams = (airbyteLines(discovered.stdout)[0]?.catalog?.streams ?? []).map(({ name }) => name).sort()
  expect(streams.length).toBeGreaterThan(10)
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

type Read = {
  readonly streams: ReadonlyArray<string>
  readonly records: number
  readonly tables: Readonly<Record<string, number>>
  readonly reviews: ReadonlyArray<string>
}
const read = async (): Promise<Read> => {
  const args = [join(__dirname, 'read.py'), source, config, join(files.path, 'cache.duckdb')]
  const output = await runShellOrThrow(pythonProgram('airbyte', 'python'), args, how)
  return JSON.parse(/^RESULT (.*)$/m.exec(output)?.[1] ?? '{}')
}
const there = async () => (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`).sort()

it('pyab validate accepts the executable, its spec and its check', async () => {
  const output = await runShellOrThrow(
    pythonProgram('airbyte', 'pyab'),
    ['validate', `--connector=${source}`, `--config=${config}`],
    how,
  )
  expect(output).toMatch(/Connection check succeeded/)
})

it('PyAirbyte reads every stream into a DuckDB cache', async () => {
  first = await read()
  expect([...first.streams].sort()).toEqual(streams)
  expect(Object.keys(first.tables).sort()).toEqual(streams)
  expect(Object.entries(first.tables).filter(([, count]) => count === 0)).toEqual([])
  expect(first.records).toBe(Object.values(first.tables).reduce((sum, count) => sum + count, 0))
  expect(first.reviews).toEqual(await there())
})

it('PyAirbyte reads no records of incremental streams in a second run', async () => {
  const again = await read()
  expect(again.records).toBe(again.tables.entity_ratings)
  expect(again.tables).toEqual(first.tables)
})

it('the cache of PyAirbyte equals the service again after changes, deletions and new reviews', async () => {
  await sandbox.churn({ change: 40, delete: 10, add: 20 })
  ahead += 10_000
  const after = await read()
  expect(after.records).toBeGreaterThanOrEqual(70)
  expect(after.reviews).toEqual(await there())
})

it("the spec, the catalog and the records pass Airbyte's standard checks", async () => {
  const spec = await runProgram('source-feedback', ['spec'])
  const discovered = await runProgram('source-feedback', ['discover', '--config', config])
  const all = airbyteLines(discovered.stdout)[0]?.catalog?.streams ?? []
  const catalog = files.put('catalog.json', configureStreams(all, 'full_refresh'))
  const records = await runProgram('source-feedback', ['read', '--config', config, '--catalog', catalog])
  const printed = [spec, discovered, records].map(({ stdout }, i) => files.put(`printed-${i}.jsonl`, stdout))
  expect(
    await runShellOrThrow(pythonProgram('airbyte', 'python'), [join(__dirname, 'standard.py'), ...printed], how),
  ).toMatch(/RESULT all hold/)
})
