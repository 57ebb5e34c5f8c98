import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { brokenAssumptions, findUndetectable } from './assumptions'
import { defects, injectDefect } from './defects'
import { installDuckDb } from './duckdb'
import { installDisk } from './file-disk'
import { drawScenario, kindOf, kinds } from './kinds'
import { installNetwork, type NetworkObserver } from './network'
import {
  addTotals,
  describeTotals,
  enterWorld,
  leaveBroken,
  leaveTotals,
  noTotals,
  runParts,
  type Totals,
} from './parts'
import { installProcesses } from './process'
import { installRealm } from './realm'
import type { Scenario } from './scenario'
import type { OpenSnapshot } from './snapshot'
import { type Outcome, runWorld, type Stage } from './world'

const usage = `Usage: npm run simulate -- [options]

  --seed N       one world, with its history
  --seeds A-B    these worlds, a line for each that breaks a promise
  --hours H      worlds from --seed on, until they have lasted H simulated hours in total
  --minutes M    worlds from --seed on, until M minutes have passed
  --only I,J     only these disturbances of the world, by their number in the history
  --program NAME only the worlds of this program, such as target-feedback
  --kind I,J     only the worlds of these kinds: ${kinds.join(', ')}
  --where REGEXP only the worlds whose scenario, as JSON, matches; if repeated, all must match
  --times N      each world N times: its hash must stay the same
  --hashes       a line for each world
  --ends         a line of JSON for each world of exports: which assumptions it breaks, and which runs did not read
                 everything
  --defect NAME  the product without one of its safeguards; --defect list names them
  --shrink       finds the disturbances that a world needs to break a promise
  --until-broken stops at the lowest seed that breaks a promise
  --oracle NAME  only worlds that break this promise count as broken, such as 'nothing lost'
  --workers N    how many processes share the worlds; one per core by default`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    hours: { type: 'string' },
    minutes: { type: 'string' },
    only: { type: 'string' },
    program: { type: 'string' },
    kind: { type: 'string' },
    where: { type: 'string', multiple: true, default: [] },
    times: { type: 'string', default: '1' },
    hashes: { type: 'boolean', default: false },
    ends: { type: 'boolean', default: false },
    defect: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    'until-broken': { type: 'boolean', default: false },
    oracle: { type: 'string' },
    workers: { type: 'string' },
    part: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const patterns = values.where.map((text) => new RegExp(text))

const realSeconds = (): number => Number(process.hrtime.bigint()) / 1e9

type DeclaredStreams = typeof import('../../connector/streams')['declaredStreams']

/** Streams as Airbyte configures them. */
const configureAirbyteStreams = (declaredStreams: DeclaredStreams) => (names: ReadonlyArray<string>) => ({
  streams: declaredStreams
    .filter(({ name }) => names.includes(name))
    .map(({ name, syncModes }) => ({
      stream: { name, json_schema: {}, supported_sync_modes: syncModes },
      ...(syncModes.includes('incremental')
        ? { sync_mode: 'incremental', destination_sync_mode: 'append_dedup' }
        : { sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }),
      cursor_field: ['modifiedTime'],
      primary_key: [['id']],
    })),
})

/** The catalog that the tap discovers, with these streams selected. */
const selectSingerStreams =
  ({ describeSingerStream }: typeof import('../../connector/cdk/singer/catalog'), declaredStreams: DeclaredStreams) =>
  (names: ReadonlyArray<string>) => ({
    streams: declaredStreams
      .filter(({ name }) => names.includes(name))
      .map((declared) => {
        const stream = describeSingerStream(declared)
        const method = declared.syncModes.includes('incremental') ? 'INCREMENTAL' : 'FULL_TABLE'
        return {
          ...stream,
          metadata: stream.metadata.map((entry) =>
            entry.breadcrumb.length > 0
              ? entry
              : { ...entry, metadata: { ...entry.metadata, selected: true, 'replication-method': method } },
          ),
        }
      }),
  })

/** The bindings of DuckDB, as Node has loaded them for the product. */
const loadBindings = (build: string) => {
  const name = createRequire(join(build, 'main.js')).resolve('@duckdb/node-bindings')
  require(name)
  const loaded = require.cache[name]
  if (loaded === undefined) throw new Error('Node has not loaded @duckdb/node-bindings.')
  return loaded
}

const createStage = (build: string): Stage => {
  const realm = installRealm()
  let observer: NetworkObserver
  const network = installNetwork(realm, {
    onRequest: (...args) => observer.onRequest(...args),
    onAnswer: (...args) => observer.onAnswer(...args),
    onEvent: (text) => observer.onEvent(text),
  })
  const duckDb = installDuckDb(realm, loadBindings(build))
  const disk = installDisk(realm)
  // The built product, after the clocks are replaced.
  const { runProgram } = require(join(build, 'cdk')) as typeof import('../../connector/cdk')
  const { programs } = require(join(build, 'cli')) as typeof import('../../connector/cli')
  const { declaredStreams } = require(join(build, 'streams')) as typeof import('../../connector/streams')
  const processes = installProcesses(realm, runProgram)
  process.on('uncaughtException', (error) => {
    if (processes.crash(error)) return
    console.error(error)
    process.exit(70)
  })
  return {
    realm,
    network,
    processes,
    programs,
    describeCatalog: {
      airbyte: configureAirbyteStreams(declaredStreams),
      singer: selectSingerStreams(require(join(build, 'cdk/singer/catalog')), declaredStreams),
    },
    duckDb,
    disk,
    openSnapshot: (require(join(build, 'snapshot')) as { openSnapshot: OpenSnapshot }).openSnapshot,
    observe: (next) => {
      observer = next
    },
  }
}

const keepOnly = (scenario: Scenario, kept: ReadonlyArray<number>): Scenario => ({
  ...scenario,
  disturbances: scenario.disturbances.filter((_, i) => kept.includes(i)),
})

/**
 * The fewest disturbances found with which a world still breaks the promise: halves, then smaller parts are left out.
 */
const shrink = async (stage: Stage, scenario: Scenario, kept: ReadonlyArray<number>, oracle: string) => {
  let fewest = kept
  for (let size = Math.ceil(fewest.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < fewest.length; ) {
      const fewer = fewest.filter((_, i) => i < at || i >= at + size)
      const { violations } = await runWorld(stage, keepOnly(scenario, fewer))
      if (violations.some((violation) => violation.oracle === oracle)) fewest = fewer
      else at += size
    }
  return fewest
}

const printHistory = (line: string): void => console.log(line)

const describeEnds = (scenario: Scenario, { seed, runs, requests, violations, incomplete }: Outcome): string =>
  JSON.stringify({
    seed,
    kind: kindOf(scenario),
    broken: brokenAssumptions(scenario),
    undetectable: findUndetectable(scenario),
    violations: violations.map(({ oracle, what }) => `${oracle}: ${what.slice(0, 300)}`),
    runs,
    requests,
    incomplete,
  })

const [firstSeed = 1, lastSeed = firstSeed] = (values.seeds ?? values.seed ?? '1').split('-').map(Number)
const isOpenEnded = values.hours !== undefined || values.minutes !== undefined

/**
 * Runs the worlds of one part: every `parts`-th seed, starting with the first plus `part`. The parts communicate in the
 * folder `shared`.
 */
const runPart = async (stage: Stage, part: number, parts: number, shared: string): Promise<Totals> => {
  const showsHistory = values.seeds === undefined && !isOpenEnded && !values.hashes
  const startedAt = realSeconds()
  const parent = process.ppid
  let totals = noTotals
  const wantsMore = (seed: number): boolean => {
    if ((values['until-broken'] && totals.broken > 0) || process.ppid !== parent) return false
    if (values.hours !== undefined) return totals.hours < Number(values.hours) / parts
    return values.minutes === undefined ? seed <= lastSeed : realSeconds() - startedAt < Number(values.minutes) * 60
  }
  for (let seed = firstSeed + part; wantsMore(seed); seed += parts) {
    const whole = drawScenario(seed)
    if (values.program !== undefined && whole.program !== values.program) continue
    if (values.kind !== undefined && !values.kind.split(',').includes(kindOf(whole))) continue
    if (!patterns.every((pattern) => pattern.test(JSON.stringify(whole)))) continue
    if (values['until-broken'] && parts > 1 && !enterWorld(shared, part, seed)) break
    const kept = values.only?.split(',').filter(Boolean).map(Number) ?? [...whole.disturbances.keys()]
    const scenario = keepOnly(whole, kept)
    if (showsHistory) {
      console.log(JSON.stringify({ ...scenario, disturbances: undefined }))
      for (const i of kept) console.log(`  ${i}: ${JSON.stringify(whole.disturbances[i])}`)
    }
    const hashes = new Set<string>()
    for (let time = 0; time < Number(values.times); time += 1) {
      const outcome = await runWorld(stage, scenario, showsHistory ? printHistory : undefined)
      hashes.add(outcome.hash)
      const violations = [
        ...outcome.violations,
        ...(hashes.size === 1 ? [] : [{ oracle: 'replay', what: `hashes ${[...hashes].join(' and ')}` }]),
      ].filter(({ oracle }) => values.oracle === undefined || oracle === values.oracle)
      totals = addTotals(totals, {
        ...outcome,
        worlds: 1,
        hours: outcome.millis / 3_600_000,
        broken: violations.length > 0 ? 1 : 0,
      })
      if (values.ends) console.log(describeEnds(scenario, outcome))
      const [first] = violations
      if (first === undefined) continue
      const report = [
        ...(showsHistory
          ? []
          : [`seed ${seed}: ${violations.map(({ oracle, what }) => `${oracle}: ${what.slice(0, 600)}`).join('\n  ')}`]),
        ...(values.shrink
          ? [
              `It takes: npm run simulate -- --seed ${seed} --only ` +
                `'${(await shrink(stage, whole, kept, first.oracle)).join(',')}'`,
            ]
          : []),
      ].join('\n')
      if (values['until-broken'] && parts > 1) leaveBroken(shared, part, { seed, report })
      else if (report !== '') console.log(report)
      break
    }
    if (values.hashes) console.log(`${seed} ${[...hashes].join(' ')}`)
  }
  return totals
}

const main = async (): Promise<number> => {
  if (values.help) {
    console.log(usage)
    return 0
  }
  if (values.defect === 'list') {
    for (const name of Object.keys(defects)) console.log(name)
    return 0
  }
  const startedAt = realSeconds()
  const hasSeveral = isOpenEnded || lastSeed > firstSeed
  const workers = Number(values.workers ?? availableParallelism())
  if (values.part === undefined && hasSeveral && workers > 1) {
    const totals = await runParts(workers, values['until-broken'])
    console.log(describeTotals(totals, realSeconds() - startedAt))
    return totals.broken === 0 ? 0 : 1
  }
  const build = resolve(process.env.CONNECTOR_BUILD ?? 'build')
  if (values.defect !== undefined) injectDefect(build, values.defect)
  const [part, parts] = (values.part ?? '0/1').split('/').map(Number) as [number, number]
  const shared = tmpdir()
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : shared, 'simulation-'))
  process.chdir(folder)
  process.env.TMPDIR = folder
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const totals = await runPart(createStage(build), part, parts, shared)
  if (values.part === undefined) console.log(describeTotals(totals, realSeconds() - startedAt))
  else leaveTotals(shared, part, totals)
  return totals.broken === 0 ? 0 : 1
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => {
    console.error(error)
    process.exit(70)
  },
)
