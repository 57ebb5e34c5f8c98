import { existsSync, readFileSync } from 'node:fs'
import * as E from 'fp-ts/Either'
import { afterAll, describe, it } from 'vitest'
import { defined } from '../../../connector/cdk/schema'
import { decodeFaultPlan } from '../../../connector/sandbox/faults/plan'
import type { Sandbox } from '../../../connector/sandbox/start'
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
import { newTempPath, writeTempFile } from '../../support/files'
import { type ProgramName, startProgram } from '../../support/program'
import { startTestSandbox } from '../../support/sandbox'

const visitCount = 10_000
const locationCount = 500

/** One visit in 200 has no e-mail, one in 200 is of an unknown location. */
const hasNoEmail = (id: number): boolean => id % 200 === 17
const hasUnknownLocation = (id: number): boolean => id % 200 === 118
const visits = Array.from({ length: visitCount }, (_, id) =>
  visitRow(
    id,
    defined({ mail: hasNoEmail(id) ? null : undefined, clinic: hasUnknownLocation(id) ? 'nowhere' : undefined }),
  ),
)
const rejectedIds = visits.map(({ id }) => Number(id)).filter((id) => hasNoEmail(id) || hasUnknownLocation(id))
const locations = Array.from({ length: locationCount }, (_, id) => locationRow(id))

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

/** `positions`: the number of records that the last state of each stream covers. */
type Acknowledged = {
  readonly positions: ReadonlyMap<string, number>
  readonly accepted: number
  readonly rejected: number
}

const readAirbyteStates = (stdout: string): Acknowledged => {
  const positions = new Map<string, number>()
  let [accepted, rejected] = [0, 0]
  for (const line of stdout.split('\n').slice(0, -1)) {
    const { type, state } = JSON.parse(line)
    if (type !== 'STATE') continue
    positions.set(state.stream.stream_descriptor.name, state.stream.stream_state.at)
    accepted += state.destinationStats.recordCount
    rejected += state.destinationStats.rejectedRecordCount
  }
  return { positions, accepted, rejected }
}

/** Singer states have no counts; a run that ends writes them to stderr. */
const readSingerStates = (stdout: string): Acknowledged => {
  const positions = new Map<string, number>()
  for (const line of stdout.split('\n').slice(0, -1))
    for (const [stream, bookmark] of Object.entries(JSON.parse(line).bookmarks))
      positions.set(stream, (bookmark as { readonly at: number }).at)
  return { positions, accepted: 0, rejected: 0 }
}

/**
 * The program, its protocol, its arguments, the reader of its output, and after how many bytes of output it is killed.
 */
type Case = readonly [
  ProgramName,
  MessageFormat,
  (config: string, catalog: string) => ReadonlyArray<string>,
  (stdout: string) => Acknowledged,
  number,
]

describe.concurrent.each<Case>([
  [
    'destination-feedback',
    airbyteFormat,
    (config, catalog) => ['write', '--config', config, '--catalog', catalog],
    readAirbyteStates,
    1500,
  ],
  ['target-feedback', singerFormat, (config) => ['--config', config], readSingerStates, 350],
])(
  '%s, killed in the middle and run again from its states, under faults',
  (program, format, args, readStates, killAt) => {
    it('writes each visit once, each rejected one to the file with its reason, and counts that add up', async ({
      expect,
    }) => {
      const faults = decodeFaultPlan(plan)
      if (E.isLeft(faults)) throw new Error(faults.left)
      const sandbox = await startTestSandbox({ reviews: 10, faults: faults.right, latency: { minMs: 5, maxMs: 5 } })
      sandboxes.push(sandbox)
      const locationsBefore = (await sandbox.truth()).locations.length
      const deadLetters = newTempPath('jsonl')
      const config = writeTempFile({
        base_url: sandbox.url,
        credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
        mapping,
        dead_letter_path: deadLetters,
      })
      const catalog = writeTempFile(configuredCatalogOf({ locations: 'code', visit_records: 'id' }))
      const inputFrom = (positions: ReadonlyMap<string, number>): string =>
        formatLines([
          ...formatStream(format, 'locations', 'code', locations, { from: positions.get('locations') ?? 0 }),
          ...formatStream(format, 'visit_records', 'id', visits, { from: positions.get('visit_records') ?? 0 }),
        ])

      const first = startProgram(program, args(config, catalog), { stdin: inputFrom(new Map()) })
      first.onOutput((bytes) => bytes > killAt && first.kill('SIGKILL'))
      const killed = await first.ended
      expect(killed.signal).toBe('SIGKILL')
      const acknowledged = readStates(killed.stdout)
      const visitsCovered = acknowledged.positions.get('visit_records') ?? 0
      expect(visitsCovered).toBeGreaterThan(0)
      expect(visitsCovered).toBeLessThan(visitCount)
      const second = await startProgram(program, args(config, catalog), { stdin: inputFrom(acknowledged.positions) })
        .ended
      expect(second.stderr + second.stdout.slice(-2000)).toContain('visit_records: ')
      expect(second.status).toBe(0)
      const rest = readStates(second.stdout)
      expect(rest.positions.get('visit_records')).toBe(visitCount)

      const truth = await sandbox.truth()
      expect(truth.visits).toHaveLength(visitCount - rejectedIds.length)
      expect(truth.visits.filter(({ id }) => id.startsWith('visit-')).map(({ id }) => id)).toEqual(
        visits
          .filter(({ id }) => Number(id) % 2 === 0 && !rejectedIds.includes(Number(id)))
          .map(({ visitRecordId }) => String(visitRecordId))
          .sort(),
      )
      expect(truth.locations).toHaveLength(locationsBefore + locationCount)

      expect(existsSync(deadLetters)).toBe(true)
      const letters = readFileSync(deadLetters, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map(
          (line) => JSON.parse(line) as { record: { id: number }; reason: string; when: string; batch: number | null },
        )
      expect([...new Set(letters.map(({ record }) => record.id))].sort((a, b) => a - b)).toEqual(rejectedIds)
      for (const { record, reason, when, batch } of letters) {
        expect(reason).toBe(hasNoEmail(record.id) ? 'email is missing' : 'the service reports Error')
        expect(batch === null).toBe(hasNoEmail(record.id))
        expect(Number.isNaN(Date.parse(when))).toBe(false)
      }
      if (program === 'destination-feedback') {
        const counted = acknowledged.accepted + acknowledged.rejected + rest.accepted + rest.rejected
        expect(counted).toBe(visitCount + locationCount)
        expect(acknowledged.rejected + rest.rejected).toBe(rejectedIds.length)
      } else {
        const [, received, accepted, rejected] =
          /visit_records: (\d+) received, (\d+) accepted, (\d+) rejected/.exec(second.stderr) ?? []
        expect(Number(received)).toBe(visitCount - visitsCovered)
        expect(Number(accepted) + Number(rejected)).toBe(visitCount - visitsCovered)
      }
    })
  },
)
