import { writeFileSync } from 'node:fs'
import type { RunOutput } from './consumer'
import type { SimulatedDuckDb } from './duckdb'
import { createLineReader } from './lines'
import type { Violation } from './oracles'
import type { OpenRun, Platform } from './platform'
import type { Chance } from './random'
import { mustComplete } from './scenario'
import type { SnapshotScenario } from './scenario-snapshot'
import type { ExportService } from './service'
import { checkStates, compareSnapshot, type OpenSnapshot, readSnapshot } from './snapshot'

const path = 'reviews.duckdb'

/** Reads lines that are for people. */
const createReader = (): Pick<OpenRun, 'take' | 'output'> => {
  const talk: string[] = []
  const output: RunOutput = { talk, statuses: {}, failureTypes: [], states: 0, records: 0 }
  return { take: createLineReader((line) => void talk.push(line)), output: () => output }
}

/** What the exit status of a run may be, beside 0; `stderr`: what the run told. */
const checkStatus = (
  status: number,
  stderr: string,
  { faults, isRefused }: { readonly faults: ReadonlyArray<string>; readonly isRefused: boolean },
): ReadonlyArray<Violation> => {
  const broken = (what: string): ReadonlyArray<Violation> => [
    { oracle: 'exit status', what: `${what}: ${stderr.slice(-800)}` },
  ]
  const isFull = /disk is full/.test(stderr)
  if (isFull && !faults.includes('full disk')) return broken('a disk with room is called full')
  // By a signal, or with 1 where the reader of the output is gone: `checkEnd` knows of both.
  if (isFull && !Number.isNaN(status) && ![1, 75, 78].includes(status))
    return broken(`${status} where the disk is full`)
  if (isFull && !/[Mm]ake room/.test(stderr)) return broken('no advice where the disk is full')
  const mayNeedHands = isRefused || faults.includes('no memory')
  return status === 78 && !mayNeedHands ? broken('78 where nothing is to be changed') : []
}

/** Someone who runs `feedback sync` again and again into one file, on a machine that may fail. */
export const createSnapshotPlatform = (
  scenario: SnapshotScenario,
  service: ExportService,
  {
    duckDb,
    openSnapshot,
    chance,
  }: {
    readonly duckDb: SimulatedDuckDb
    readonly openSnapshot: OpenSnapshot
    readonly chance: Chance
  },
  report: (oracle: string, what: string) => void,
): Platform => {
  duckDb.reset(path, chance.split('duckdb'))
  /** How often rows had changed when the run began in which a scan was first seen; by the time at which the scan began. */
  const changesBefore = new Map<string, number>()
  return {
    service,
    open: ({ index, isQuiet, connection, armed }) => {
      const changesAtStart = service.changes()
      writeFileSync('config.json', JSON.stringify({ ...scenario.config, ...connection }))
      const faults = scenario.disturbances.flatMap((each) =>
        each.run === index && each.what === 'disk' ? [each.fault] : [],
      )
      return {
        ...createReader(),
        args: [
          ...['sync', '--config', 'config.json', '--db', path, '--select', scenario.snapshot.streams.join(',')],
          // It depends on the machine by default, and the requests for more memory with it.
          ...['--memory-limit', '256MB'],
          ...(scenario.snapshot.history ? ['--history'] : []),
          ...(scenario.snapshot.refreshes.includes(index) ? ['--full-refresh'] : []),
        ],
        mustComplete: isQuiet || mustComplete(scenario, index, armed),
        check: async ({ status, stderr }) => {
          const wrong = checkStatus(status, stderr, {
            faults,
            isRefused: scenario.disturbances.some(
              (each) =>
                each.run <= index &&
                each.what === 'service' &&
                ['401', '401 in 200', 'token expired'].includes(each.fault),
            ),
          })
          if (status === 0) return wrong
          const rows = await readSnapshot(path, openSnapshot, report, {
            hasLostSectors: faults.includes('lost sectors'),
          })
          for (const { scan } of Object.values(rows.states))
            if (scan !== undefined && !changesBefore.has(scan.begun)) changesBefore.set(scan.begun, changesAtStart)
          const hasRested = (begun: string): boolean =>
            changesBefore.get(begun) === service.changes() &&
            scenario.service.lag === 0 &&
            !['ties', 'random'].includes(scenario.service.order)
          return [...wrong, ...checkStates(rows, service, hasRested)]
        },
      }
    },
    compare: async (now) =>
      compareSnapshot(await readSnapshot(path, openSnapshot, report, { hasLostSectors: false }), service, now),
  }
}
