import { existsSync, readFileSync } from 'node:fs'
import * as E from 'fp-ts/Either'
import { afterAll, describe, it } from 'vitest'
import { decodeFaultPlan } from '../../../connector/sandbox/faults/plan'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  locationRow,
  type MessageFormat,
  mapping,
  singerFormat,
  visitRow,
} from '../../support/destination-input'
import { freshPath, startProgram, writeTempFile } from '../../support/program'

const visits = 10_000
const places = 500

/** One visit in 200 lacks its e-mail, one in 200 is of a place that nobody knows. */
const isBare = (id: number): boolean => id % 200 === 17
const isLost = (id: number): boolean => id % 200 === 118
const rows = Array.from({ length: visits }, (_, id) =>
  visitRow(id, { ...(isBare(id) ? { mail: null } : {}), ...(isLost(id) ? { clinic: 'nowhere' } : {}) }),
)
const bad = rows.map(({ id }) => Number(id)).filter((id) => isBare(id) || isLost(id))
const sites = Array.from({ length: places }, (_, id) => locationRow(id))

const writes = ['createVisitRecords', 'syncLocations']
const plan = [
  { kind: '429', operation: writes, requests: [3], retry_after: 0 },
  { kind: 'reset', operation: writes, requests: [7] },
  { kind: 'truncated', operation: writes, requests: [11] },
  { kind: '503', operation: writes, requests: [50] },
  { kind: 'cutjson', operation: writes, requests: [51] },
  { kind: '413', operation: writes, requests: [20] },
  { kind: '400', operation: writes, requests: [60] },
  { kind: 'html', operation: writes, requests: [52] },
]

const sandboxes: Array<Sandbox> = []
afterAll(() => Promise.all(sandboxes.map((sandbox) => sandbox.close())))

type Said = { readonly at: ReadonlyMap<string, number>; readonly accepted: number; readonly rejected: number }

const airbyteAnswers = (stdout: string): Said => {
  const at = new Map<string, number>()
  let [accepted, rejected] = [0, 0]
  for (const line of stdout.split('\n').slice(0, -1)) {
    const { type, state } = JSON.parse(line)
    if (type !== 'STATE') continue
    at.set(state.stream.stream_descriptor.name, state.stream.stream_state.at)
    accepted += state.destinationStats.recordCount
    rejected += state.destinationStats.rejectedRecordCount
  }
  return { at, accepted, rejected }
}

/** A Singer state tells no counts: those on stderr of the runs that ended do. */
const singerAnswers = (stdout: string): Said => {
  const at = new Map<string, number>()
  for (const line of stdout.split('\n').slice(0, -1))
    for (const [stream, bookmark] of Object.entries(JSON.parse(line).bookmarks))
      at.set(stream, (bookmark as { readonly at: number }).at)
  return { at, accepted: 0, rejected: 0 }
}

/** The program, its protocol, its arguments, what its output says, and after how many bytes of that it is killed. */
type Case = readonly [
  string,
  MessageFormat,
  (config: string, catalog: string) => ReadonlyArray<string>,
  (stdout: string) => Said,
  number,
]

describe.concurrent.each<Case>([
  [
    'destination-feedback',
    airbyteFormat,
    (config, catalog) => ['write', '--config', config, '--catalog', catalog],
    airbyteAnswers,
    1500,
  ],
  ['target-feedback', singerFormat, (config) => ['--config', config], singerAnswers, 350],
])('%s, killed in the middle and run again from its states, under faults', (program, face, args, answers, killAt) => {
  it('leaves each visit once, each rejected one in the file with its reason, and counts that add up', async ({
    expect,
  }) => {
    const faults = decodeFaultPlan(plan)
    if (E.isLeft(faults)) throw new Error(faults.left)
    const sandbox = await startSandbox({ reviews: 10, faults: faults.right, latency: { minMs: 5, maxMs: 5 } })
    sandboxes.push(sandbox)
    const before = (await sandbox.truth()).locations.length
    const deadLetters = freshPath('jsonl')
    const config = writeTempFile({
      base_url: sandbox.url,
      credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
      mapping,
      dead_letter_path: deadLetters,
    })
    const catalog = writeTempFile(configuredCatalogOf({ locations: 'code', visit_records: 'id' }))
    const input = (at: ReadonlyMap<string, number>): string =>
      formatLines([
        ...formatStream(face, 'locations', 'code', sites, { from: at.get('locations') ?? 0 }),
        ...formatStream(face, 'visit_records', 'id', rows, { from: at.get('visit_records') ?? 0 }),
      ])

    const first = startProgram(program, args(config, catalog), { stdin: input(new Map()) })
    first.onOutput((bytes) => bytes > killAt && first.kill('SIGKILL'))
    const killed = await first.ended
    expect(killed.signal).toBe('SIGKILL')
    const covered = answers(killed.stdout)
    const done = covered.at.get('visit_records') ?? 0
    expect(done).toBeGreaterThan(0)
    expect(done).toBeLessThan(visits)
    const second = await startProgram(program, args(config, catalog), { stdin: input(covered.at) }).ended
    expect(second.stderr + second.stdout.slice(-2000)).toContain('visit_records: ')
    expect(second.status).toBe(0)
    const rest = answers(second.stdout)
    expect(rest.at.get('visit_records')).toBe(visits)

    const truth = await sandbox.truth()
    expect(truth.visits).toHaveLength(visits - bad.length)
    expect(truth.visits.filter(({ id }) => id.startsWith('visit-')).map(({ id }) => id)).toEqual(
      rows
        .filter(({ id }) => Number(id) % 2 === 0 && !bad.includes(Number(id)))
        .map(({ visitRecordId }) => String(visitRecordId))
        .sort(),
    )
    expect(truth.locations).toHaveLength(before + places)

    expect(existsSync(deadLetters)).toBe(true)
    const letters = readFileSync(deadLetters, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { record: { id: number }; reason: string; when: string; batch: number | null })
    expect([...new Set(letters.map(({ record }) => record.id))].sort((a, b) => a - b)).toEqual(bad)
    for (const { record, reason, when, batch } of letters) {
      expect(reason).toBe(isBare(record.id) ? 'email is missing' : 'the service reports Error')
      expect(batch === null).toBe(isBare(record.id))
      expect(Number.isNaN(Date.parse(when))).toBe(false)
    }
    if (program === 'destination-feedback') {
      const counted = covered.accepted + covered.rejected + rest.accepted + rest.rejected
      expect(counted).toBe(visits + places)
      expect(covered.rejected + rest.rejected).toBe(bad.length)
    } else {
      const [, received, accepted, rejected] =
        /visit_records: (\d+) received, (\d+) accepted, (\d+) rejected/.exec(second.stderr) ?? []
      expect(Number(received)).toBe(visits - done)
      expect(Number(accepted) + Number(rejected)).toBe(visits - done)
    }
  })
})
