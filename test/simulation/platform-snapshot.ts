import { existsSync, statSync, writeFileSync } from 'node:fs'
import type { RunOutput } from './consumer'
import type { SimulatedDuckDb } from './duckdb'
import { createLineReader } from './lines'
import type { Violation } from './oracles'
import type { OpenRun, Platform } from './platform'
import type { Chance } from './random'
import { mustComplete, quietRuns } from './scenario'
import type { SnapshotScenario, SnapshotVerb } from './scenario-snapshot'
import type { ExportService } from './service'
import {
  checkForgotten,
  checkStates,
  compareSnapshot,
  findRemedy,
  type OpenSnapshot,
  readSnapshot,
  type SnapshotRows,
} from './snapshot'

const path = 'reviews.duckdb'

/** Reads lines that are for people. */
const createReader = (): Pick<OpenRun, 'take' | 'output'> => {
  const talk: string[] = []
  const output: RunOutput = { talk, statuses: {}, failureTypes: [], states: 0, records: 0 }
  return { take: createLineReader((line) => void talk.push(line)), output: () => output }
}

/** Checks the exit status of a run; `stderr`: what the run printed. */
const checkStatus = (
  status: number,
  stderr: string,
  {
    faults,
    isRefused,
    isDamaged,
    isMissing,
  }: { readonly faults: ReadonlyArray<string> } & Readonly<Record<'isRefused' | 'isDamaged' | 'isMissing', boolean>>,
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
  const mayNeedHands =
    isRefused ||
    isMissing ||
    /is empty: .*feedback sync creates it again/.test(stderr) ||
    faults.includes('no memory') ||
    (isDamaged && findRemedy(stderr) !== undefined)
  return status === 78 && !mayNeedHands ? broken('78 where nothing is to be changed') : []
}

/** There is no file, or an unfinished one: it has at most its first pages, and no log. */
const holdsNothing = (file: string): boolean =>
  (statSync(file, { throwIfNoEntry: false })?.size ?? 0) <= 12_288 && !existsSync(`${file}.wal`)

/** The arguments of a run besides those that every command takes. */
const listArguments = (
  { snapshot: { streams, history, refreshes } }: SnapshotScenario,
  verb: SnapshotVerb | undefined,
  index: number,
): ReadonlyArray<string> => {
  if (verb === 'compact') return ['compact']
  if (verb !== undefined) return ['forget', '--review', verb.forget.join(',')]
  return [
    ...['sync', '--config', 'config.json', '--select', streams.join(',')],
    ...(history ? ['--history'] : []),
    ...(refreshes.includes(index) ? ['--full-refresh'] : []),
  ]
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
  duckDb.reset(path, chance.split('duckdb'), scenario.snapshot.lies === true)
  const remedying = chance.split('remedies')
  /** The file is damaged and nobody has followed the advice yet: the next run is refused, or does not notice. */
  let isDamaged = false
  /**
   * What was forgotten for certain, and the versions of reviews that the file had: unless the disk has lost something,
   * they stay so.
   */
  const mustForget = new Set<string>()
  let knownVersions: ReadonlySet<string> = new Set()
  const checkKept = ({ forgotten, versions }: SnapshotRows): ReadonlyArray<Violation> => {
    const lost = [...knownVersions].filter((version) => {
      const [id = ''] = version.split(' ')
      return !versions.has(version) && !forgotten.has(id)
    })
    knownVersions = versions
    return [
      ...[...mustForget]
        .filter((id) => !forgotten.has(id))
        .map((id) => ({ oracle: 'forgotten for good', what: `review ${id} is no longer known as forgotten` })),
      ...(scenario.snapshot.history ? lost.map((what) => ({ oracle: 'every version kept', what })) : []),
    ]
  }
  const readRows = async (index: number, isLost: boolean): Promise<SnapshotRows | undefined> => {
    const wasDamaged = isDamaged
    const found = await readSnapshot(path, openSnapshot, report, { mayBeDamaged: isLost || wasDamaged })
    isDamaged = typeof found === 'string'
    if (typeof found !== 'string') return found
    const isNextQuiet = index + 1 >= scenario.pauses.length - quietRuns
    if (scenario.snapshot.lies === true && !wasDamaged && !isNextQuiet && remedying.happens(0.5)) return undefined
    duckDb.repair(found)
    mustForget.clear()
    knownVersions = new Set()
    return readRows(index, true)
  }
  /**
   * How often rows had changed when the run began in which a scan was first seen; by the time at which the scan began.
   */
  const changesBefore = new Map<string, number>()
  return {
    service,
    open: ({ index, isQuiet, connection, armed }) => {
      const changesAtStart = service.changes()
      writeFileSync('config.json', JSON.stringify({ ...scenario.config, ...connection }))
      const verb = scenario.snapshot.verbs?.[index]
      const isMissing = verb !== undefined && holdsNothing(path)
      const faults = scenario.disturbances.flatMap((each) =>
        each.run === index && each.what === 'disk' ? [each.fault] : [],
      )
      return {
        ...createReader(),
        args: [
          ...listArguments(scenario, verb, index),
          // The memory depends on the machine by default, and the requests for more of it with it.
          ...['--db', path, '--memory-limit', '256MB'],
        ],
        mustComplete: isQuiet || (!isDamaged && !isMissing && mustComplete(scenario, index, armed)),
        check: async ({ status, stderr }) => {
          const wrong = checkStatus(status, stderr, {
            faults,
            isDamaged,
            isMissing,
            isRefused: scenario.disturbances.some(
              (each) =>
                each.run <= index &&
                each.what === 'service' &&
                ['401', '401 in 200', 'token expired'].includes(each.fault),
            ),
          })
          const loss = duckDb.takeLoss()
          if (loss !== 'nothing' || faults.includes('lost sectors')) {
            mustForget.clear()
            knownVersions = new Set()
          }
          if (status === 0 && !isDamaged && verb === undefined) return wrong
          const rows = await readRows(index, faults.includes('lost sectors') || loss === 'parts')
          if (rows === undefined) return wrong
          if (status === 0 && verb !== undefined && verb !== 'compact')
            for (const id of verb.forget) mustForget.add(String(id))
          for (const { scan } of Object.values(rows.states))
            if (scan !== undefined && !changesBefore.has(scan.begun)) changesBefore.set(scan.begun, changesAtStart)
          const hasRested = (begun: string): boolean =>
            changesBefore.get(begun) === service.changes() &&
            scenario.service.lag === 0 &&
            !['ties', 'random'].includes(scenario.service.order)
          return [
            ...wrong,
            ...checkKept(rows),
            ...checkForgotten(path, rows, service),
            ...checkStates(rows, service, hasRested),
          ]
        },
      }
    },
    compare: async (now) => {
      const rows = await readSnapshot(path, openSnapshot, report, { mayBeDamaged: false })
      if (typeof rows === 'string') return []
      return [
        ...checkKept(rows),
        ...checkForgotten(path, rows, service),
        ...compareSnapshot(rows, service, now, scenario.service.hasFamily === true),
      ]
    },
  }
}
