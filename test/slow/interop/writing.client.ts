import { spawn } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { decodeFaultPlan } from '../../../connector/sandbox/faults/plan'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import {
  airbyteFormat,
  formatLines,
  formatStream,
  locationRow,
  mapping,
  singerFormat,
  visitRow,
} from '../../support/destination-input'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { programPath } from '../../support/program'
import { pythonProgram, quickProgram } from './shell'

const visits = 10_000
const places = 500
const isBare = (id: number): boolean => id % 200 === 17
const isLost = (id: number): boolean => id % 200 === 118
const rows = Array.from({ length: visits }, (_, id) =>
  visitRow(id, { ...(isBare(id) ? { mail: null } : {}), ...(isLost(id) ? { clinic: 'nowhere' } : {}) }),
)
const bad = rows.map(({ id }) => Number(id)).filter((id) => isBare(id) || isLost(id))
const sites = Array.from({ length: places }, (_, id) => locationRow(id))

const writes = ['createVisitRecords', 'syncLocations']
const faults = decodeFaultPlan([
  { kind: '429', operation: writes, requests: [4], retry_after: 0 },
  { kind: 'reset', operation: writes, requests: [9] },
  { kind: 'truncated', operation: writes, requests: [15] },
  { kind: '413', operation: writes, requests: [25] },
  { kind: '503', operation: writes, requests: [70] },
  { kind: 'cutjson', operation: writes, requests: [90] },
])

let sandbox: Sandbox
let files: JsonFolder
let config: string
let deadLetters: string

beforeEach(async () => {
  sandbox = await startSandbox({
    reviews: 10,
    faults: E.isRight(faults) ? faults.right : [],
    latency: { minMs: 20, maxMs: 20 },
  })
  files = createJsonFolder()
  deadLetters = join(files.path, 'rejected.jsonl')
  config = files.put('config.json', {
    base_url: sandbox.url,
    credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
    mapping,
    dead_letter_path: deadLetters,
  })
})
afterEach(async () => {
  await sandbox.close()
  files.remove()
})

/** A program of the test's own that a client starts. */
const program = (name: string, lines: ReadonlyArray<string>): string => {
  const path = files.put(name, ['#!/usr/bin/env node', ...lines, ''].join('\n'))
  chmodSync(path, 0o755)
  return path
}

/**
 * Runs a client to its end, or kills it and all it started once the sandbox has received this many batches of visits.
 */
const client = (
  command: string,
  args: ReadonlyArray<string>,
  killAfter = Number.POSITIVE_INFINITY,
): Promise<{ readonly status: number | null; readonly output: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: files.path, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    const watch = setInterval(() => {
      if ((sandbox.stats().requests.createVisitRecords ?? 0) < killAfter || child.pid === undefined) return
      clearInterval(watch)
      process.kill(-child.pid, 'SIGKILL')
    }, 20)
    child.on('error', reject)
    child.on('close', (status) => {
      clearInterval(watch)
      resolve({ status, output })
    })
  })

const holdsEachVisitOnce = async (before: number): Promise<void> => {
  const truth = await sandbox.truth()
  expect(truth.visits).toHaveLength(visits - bad.length)
  const brought = truth.visits.map(({ id }) => id).filter((id) => id.startsWith('visit-'))
  expect(brought).toEqual(
    rows
      .filter(({ id }) => Number(id) % 2 === 0 && !bad.includes(Number(id)))
      .map(({ visitRecordId }) => String(visitRecordId))
      .sort(),
  )
  expect(truth.locations).toHaveLength(before + places)
  const letters = readFileSync(deadLetters, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly record: { readonly id: number }; readonly reason: string })
  expect([...new Set(letters.map(({ record }) => record.id))].sort((a, b) => a - b)).toEqual(bad)
  for (const { record, reason } of letters)
    expect(reason).toBe(isBare(record.id) ? 'email is missing' : 'the service reports Error')
}

it('target-feedback under Meltano writes each visit once although it is killed and run again', async () => {
  const before = (await sandbox.truth()).locations.length
  files.put(
    'messages.jsonl',
    formatLines([
      ...formatStream(singerFormat, 'locations', 'code', sites),
      ...formatStream(singerFormat, 'visit_records', 'id', rows),
    ]),
  )
  program('tap-file', ["require('node:fs').createReadStream('messages.jsonl').pipe(process.stdout)"])
  files.put('meltano.yml', {
    default_environment: 'dev',
    send_anonymous_usage_stats: false,
    environments: [{ name: 'dev' }],
    plugins: {
      extractors: [{ name: 'tap-file', namespace: 'tap_file', executable: './tap-file' }],
      loaders: [
        {
          name: 'target-feedback',
          namespace: 'target_feedback',
          executable: programPath('target-feedback'),
          settings: [{ name: 'base_url' }],
          config: JSON.parse(readFileSync(config, 'utf8')),
        },
      ],
    },
  })
  // A run that was killed still counts as running for Meltano.
  const args = ['run', '--force', 'tap-file', 'target-feedback']
  expect((await client(pythonProgram('meltano', 'meltano'), args, 30)).status).toBeNull()
  const { status, output } = await client(quickProgram('meltano', 'meltano'), args)
  if (status !== 0) throw new Error(`The second run ended with ${status}:\n${output.slice(-4000)}`)
  expect(output).toMatch(/visit_records: 10000 received, 9900 accepted, 100 rejected/)
  await holdsEachVisitOnce(before)
})

it('destination-feedback under PyAirbyte writes each visit once although it is killed and run again', async () => {
  const before = (await sandbox.truth()).locations.length
  const stream = (name: string, key: string, row: object) => ({
    name,
    json_schema: {
      type: 'object',
      properties: Object.fromEntries(
        Object.entries(row).map(([column, value]) => [
          column,
          { type: ['null', typeof value === 'number' ? 'integer' : 'string'] },
        ]),
      ),
    },
    supported_sync_modes: ['full_refresh'],
    source_defined_primary_key: [[key]],
  })
  const streams = [stream('locations', 'code', locationRow(0)), stream('visit_records', 'id', visitRow(0))]
  files.put('catalog.jsonl', formatLines([{ type: 'CATALOG', catalog: { streams } }]))
  files.put(
    'spec.jsonl',
    formatLines([{ type: 'SPEC', spec: { connectionSpecification: { type: 'object', properties: {} } } }]),
  )
  files.put('check.jsonl', formatLines([{ type: 'CONNECTION_STATUS', connectionStatus: { status: 'SUCCEEDED' } }]))
  files.put(
    'read.jsonl',
    formatLines([
      ...formatStream(airbyteFormat, 'locations', 'code', sites),
      ...formatStream(airbyteFormat, 'visit_records', 'id', rows),
    ]),
  )
  const warehouse = program('source-warehouse', [
    "const names = { discover: 'catalog.jsonl', spec: 'spec.jsonl', check: 'check.jsonl', read: 'read.jsonl' }",
    `require('node:fs').createReadStream(${JSON.stringify(files.path)} ` +
      `+ '/' + names[process.argv[2]]).pipe(process.stdout)`,
  ])
  const args = [
    join(__dirname, 'write.py'),
    warehouse,
    programPath('destination-feedback'),
    config,
    join(files.path, 'cache.duckdb'),
  ]
  const run = (killAfter?: number) => client(pythonProgram('airbyte', 'python'), args, killAfter)
  expect((await run(30)).status).toBeNull()
  const { status, output } = await run()
  if (status !== 0) throw new Error(`The second run ended with ${status}:\n${output.slice(-4000)}`)
  await holdsEachVisitOnce(before)
})
