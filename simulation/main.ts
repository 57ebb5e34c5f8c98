import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { defects, injectDefect } from './defects'
import { installNetwork, type NetworkObserver } from './network'
import { installProcesses } from './process'
import { installRealm } from './realm'
import { createScenario, type Scenario } from './scenario'
import { type Outcome, runWorld, type Stage } from './world'

const usage = `Usage: npm run simulate -- [options]

  --seed N       one world, with its history
  --seeds A-B    these worlds, a line for each that breaks a promise
  --hours H      worlds from --seed on, until they have lasted H simulated hours together
  --only I,J     of the world's disturbances only these, by their number in the history
  --times N      each world N times: its hash must not change
  --hashes       a line for each world
  --defect NAME  the product without one of its safeguards; --defect list names them
  --shrink       of a world that breaks a promise, the disturbances that it takes
  --until-broken ends with the first world that breaks a promise`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    hours: { type: 'string' },
    only: { type: 'string' },
    times: { type: 'string', default: '1' },
    hashes: { type: 'boolean', default: false },
    defect: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    'until-broken': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const realSeconds = (): number => Number(process.hrtime.bigint()) / 1e9

/** The streams that are read, as Airbyte configures them. */
const airbyteCatalog = {
  streams: ['reviews', 'deleted_reviews'].map((name) => ({
    stream: { name, json_schema: {}, supported_sync_modes: ['full_refresh', 'incremental'] },
    sync_mode: 'incremental',
    destination_sync_mode: 'append_dedup',
    cursor_field: ['modifiedTime'],
    primary_key: [['id']],
  })),
}

/** The catalog that the tap discovers, with the same streams selected. */
const selectSingerStreams = (
  { describeSingerStream }: typeof import('../connector/cdk/singer/catalog'),
  { streams }: typeof import('../connector/streams'),
) => ({
  streams: streams
    .filter(({ name }) => ['reviews', 'deleted_reviews'].includes(name))
    .map(describeSingerStream)
    .map((stream) => ({
      ...stream,
      metadata: stream.metadata.map((entry) =>
        entry.breadcrumb.length > 0
          ? entry
          : { ...entry, metadata: { ...entry.metadata, selected: true, 'replication-method': 'INCREMENTAL' } },
      ),
    })),
})

const createStage = (build: string): Stage => {
  const realm = installRealm()
  let observer: NetworkObserver
  const network = installNetwork(realm, {
    onRequest: (...args) => observer.onRequest(...args),
    onAnswer: (...args) => observer.onAnswer(...args),
    onEvent: (text) => observer.onEvent(text),
  })
  // The built product, after the clocks are replaced.
  const { runProgram } = require(join(build, 'cdk')) as typeof import('../connector/cdk')
  const { programs } = require(join(build, 'cli')) as typeof import('../connector/cli')
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
    catalogs: {
      airbyte: airbyteCatalog,
      singer: selectSingerStreams(require(join(build, 'cdk/singer/catalog')), require(join(build, 'streams'))),
    },
    observe: (next) => {
      observer = next
    },
  }
}

const keepOnly = (scenario: Scenario, kept: ReadonlyArray<number>): Scenario => ({
  ...scenario,
  disturbances: scenario.disturbances.filter((_, i) => kept.includes(i)),
})

/** The fewest disturbances found with which a world still breaks the promise: halves, then smaller parts are left out. */
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

const main = async (): Promise<number> => {
  if (values.help) {
    console.log(usage)
    return 0
  }
  if (values.defect === 'list') {
    for (const name of Object.keys(defects)) console.log(name)
    return 0
  }
  const build = resolve(process.env.CONNECTOR_BUILD ?? 'build')
  if (values.defect !== undefined) injectDefect(build, values.defect)
  const folder = mkdtempSync(join(tmpdir(), 'simulation-'))
  process.chdir(folder)
  process.env.TMPDIR = folder
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const stage = createStage(build)
  const [first, last] = (values.seeds ?? values.seed ?? '1').split('-').map(Number)
  const showsHistory = values.seeds === undefined && values.hours === undefined && !values.hashes
  const totals = { worlds: 0, hours: 0, requests: 0, kills: 0, steps: 0, runs: 0 }
  const failed: Outcome[] = []
  const startedAt = realSeconds()
  const wantsMore = (seed: number): boolean =>
    values['until-broken'] && failed.length > 0
      ? false
      : values.hours === undefined
        ? seed <= (last ?? first ?? 1)
        : totals.hours < Number(values.hours)
  for (let seed = first ?? 1; wantsMore(seed); seed += 1) {
    const whole = createScenario(seed)
    const kept = values.only?.split(',').filter(Boolean).map(Number) ?? [...whole.disturbances.keys()]
    const scenario = keepOnly(whole, kept)
    if (showsHistory) {
      console.log(JSON.stringify({ ...scenario, disturbances: undefined }))
      for (const i of kept) console.log(`  ${i}: ${JSON.stringify(whole.disturbances[i])}`)
    }
    let hash: string | undefined
    for (let time = 0; time < Number(values.times); time += 1) {
      const outcome = await runWorld(stage, scenario, showsHistory ? printHistory : undefined)
      if (hash !== undefined && outcome.hash !== hash)
        failed.push({ ...outcome, violations: [{ oracle: 'replay', what: `${outcome.hash} after ${hash}` }] })
      hash = outcome.hash
      if (outcome.violations.length > 0) failed.push(outcome)
      totals.worlds += 1
      totals.hours += outcome.millis / 3_600_000
      totals.requests += outcome.requests
      totals.kills += outcome.kills
      totals.steps += outcome.steps
      totals.runs += outcome.runs
      if (outcome.violations.length > 0 && !showsHistory)
        console.log(
          `seed ${seed}: ${outcome.violations.map(({ oracle, what }) => `${oracle}: ${what.slice(0, 600)}`).join('\n  ')}`,
        )
    }
    const broken = failed.find((outcome) => outcome.seed === seed)?.violations[0]?.oracle
    if (values.shrink && broken !== undefined)
      console.log(
        `It takes: npm run simulate -- --seed ${seed} --only '${(await shrink(stage, whole, kept, broken)).join(',')}'`,
      )
    if (values.hashes) console.log(`${seed} ${hash}`)
  }
  const seconds = realSeconds() - startedAt
  console.log(
    `${totals.worlds} worlds, ${totals.runs} runs, ${totals.kills} kills, ${totals.requests} requests, ${totals.steps} steps, ${totals.hours.toFixed(0)} simulated hours in ${seconds.toFixed(1)} s (${((totals.hours / seconds) * 60).toFixed(0)} a minute); ${failed.length} broke a promise`,
  )
  return failed.length === 0 ? 0 : 1
}

main().then(
  (status) => process.exit(status),
  (error: unknown) => {
    console.error(error)
    process.exit(70)
  },
)
