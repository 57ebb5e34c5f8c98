import { createHash } from 'node:crypto'
import type { Program } from '../../connector/cdk'
import type { SimulatedDuckDb } from './duckdb'
import type { SimulatedDisk } from './file-disk'
import { createPlatform } from './kinds'
import { createLineSplitter } from './lines'
import type { Network, NetworkObserver } from './network'
import { checkEnd, checkLeaks, checkRate, createTokenWatch, findFailures, hasLostRows, type Violation } from './oracles'
import type { OpenRun, Platform } from './platform'
import type { ProcessTable, SimulatedProcess } from './process'
import { createChance } from './random'
import { createOwner, type Owner, type Realm } from './realm'
import { type Disturbance, maxWaitSeconds, type PlannedDisturbance, quietRuns, type Scenario } from './scenario'
import { listen } from './service'
import type { OpenSnapshot } from './snapshot'

/** What every world runs in. */
export type Stage = {
  readonly realm: Realm
  readonly network: Network
  readonly processes: ProcessTable
  readonly programs: Readonly<Record<string, Program>>
  readonly duckDb: SimulatedDuckDb
  readonly disk: SimulatedDisk
  readonly openSnapshot: OpenSnapshot
  /** The catalog of these streams, as a platform gives it. */
  readonly describeCatalog: Readonly<Record<'airbyte' | 'singer', (streams: ReadonlyArray<string>) => unknown>>
  /** Where the network and the processes report to. */
  readonly observe: (observer: NetworkObserver) => void
}

/** What became of a world. */
export type Outcome = {
  readonly seed: number
  /** Of everything that happened, in order. */
  readonly hash: string
  readonly violations: ReadonlyArray<Violation>
  /** Simulated time, milliseconds. */
  readonly millis: number
  readonly steps: number
  readonly requests: number
  readonly kills: number
  /** Of the service and the network. */
  readonly faults: number
  readonly runs: number
  /** The runs that ended without having read everything, and were not killed. */
  readonly incomplete: ReadonlyArray<IncompleteRun>
}

/** What a run says of why it did not read everything. */
export type IncompleteRun = { readonly run: number; readonly isQuiet: boolean; readonly why: ReadonlyArray<string> }

/** A run that takes longer, or more steps, does not end; milliseconds. */
const longestRun = 48 * 3_600_000
const mostSteps = 1_000_000

/** The longest time that a program takes to end after SIGTERM or SIGINT, milliseconds. */
const longestStop = 9_000

const protocols = {
  'source-feedback': 'airbyte',
  'tap-feedback': 'singer',
  'destination-feedback': 'airbyte',
  'target-feedback': 'singer',
  feedback: 'text',
} as const

const describe = ({ what, ...rest }: Disturbance): string => [what, ...Object.values(rest)].join(' ')

/** Without the plan of when it happens. */
const toDisturbance = ({ run: _run, step: _step, before: _before, ...disturbance }: PlannedDisturbance): Disturbance =>
  disturbance

/** Runs one world to its end, or to the first run that breaks a promise. `print` receives its history. */
export const runWorld = async (
  stage: Stage,
  scenario: Scenario,
  print: (line: string) => void = () => undefined,
): Promise<Outcome> => {
  const { realm, network } = stage
  const chance = createChance(scenario.seed)
  const violations: Violation[] = []
  const incomplete: IncompleteRun[] = []
  const trace = createHash('sha256')
  const sends = new Map<Owner, number[]>()
  const pauseEnds = new Map<Owner, number>()
  // The Retry-After of an answer that is still being received.
  const askedPauses = new WeakMap<object, number>()
  const tokens = createTokenWatch()
  let [steps, requests, kills, networkFaults, wallOffset] = [0, 0, 0, 0, 0]
  let wasStopped = false

  const report = (oracle: string, what: string): void => {
    // What follows mostly has the same cause.
    if (violations.length < 5) violations.push({ oracle, what })
  }
  const tell = (line: string): void => {
    trace.update(line)
    print(`${(realm.ticks() / 1000).toFixed(3).padStart(12)} s  ${line}`)
  }

  // DuckDB puts random bytes into a file, so the SHA-256 that a receipt of `feedback forget` has of it is another each
  // time.
  const traceLine = (line: string): void => void trace.update(`${line.replace(/^ {4}[0-9a-f]{64}$/, '')}\n`)

  realm.reset(chance.split('process').next)
  network.reset(chance.split('network'))
  stage.processes.reset()
  stage.observe({
    onRequest: (owner, head) => {
      trace.update(head)
      requests += 1
      const now = realm.ticks()
      sends.set(owner, [...(sends.get(owner) ?? []), now])
      const pauseEnd = pauseEnds.get(owner) ?? 0
      if (now < pauseEnd) report('Retry-After', `a request left ${(pauseEnd - now).toFixed(0)} ms too early`)
      const expired = tokens.checkRequest(head, now)
      if (expired !== undefined) report('a valid token', expired)
    },
    onAnswer: (owner, connection, bytes, isLast) => {
      trace.update(bytes)
      if (isLast) tokens.takeAnswer(bytes, realm.ticks())
      const head = bytes.toString('latin1', 0, 1000)
      const asked = /^HTTP[^\n]* (?:429|503) [\s\S]*\r\nRetry-After: ([^\r]+)/.exec(head)?.[1]
      const date = /\r\nDate: ([^\r]+)/.exec(head)?.[1] ?? ''
      if (asked !== undefined)
        askedPauses.set(connection, /^\d+$/.test(asked) ? Number(asked) : (Date.parse(asked) - Date.parse(date)) / 1000)
      const seconds = askedPauses.get(connection) ?? 0
      if (!isLast) return
      askedPauses.delete(connection)
      // A longer wait than the config allows ends the stream instead.
      if (seconds > 0 && seconds <= maxWaitSeconds)
        pauseEnds.set(owner, Math.max(pauseEnds.get(owner) ?? 0, realm.ticks() + seconds * 1000))
    },
    onEvent: (text) => {
      networkFaults += 1
      tell(text)
    },
  })

  network.setLatency(1, scenario.latency)
  const serviceOwner = createOwner('service')
  const protocol = protocols[scenario.program]
  const platform: Platform = createPlatform(scenario, protocol, { ...stage, chance }, report)
  const { service } = platform
  let url = ''
  await realm.runAs(serviceOwner, () => {
    listen(service).then((address) => {
      url = address
    })
  })

  const step = async (): Promise<boolean> => {
    const done = await realm.step()
    if (done === undefined) return false
    steps += 1
    trace.update(`${done.at} ${done.owner.name} ${done.kind}\n`)
    return true
  }
  const passTime = async (millis: number): Promise<void> => {
    let isOver = false
    realm.schedule(millis, serviceOwner, 'pause', () => {
      isOver = true
    })
    while (!isOver && (await step()));
  }

  const disturb = (
    disturbance: Disturbance,
    running: SimulatedProcess,
    { input }: OpenRun,
    signals: string[],
  ): void => {
    tell(describe(disturbance))
    switch (disturbance.what) {
      case 'kill':
        kills += 1
        signals.push('SIGKILL')
        running.kill()
        return
      case 'kill in a write':
        kills += 1
        signals.push('SIGKILL')
        running.killInWrite()
        return
      case 'signal':
        signals.push(disturbance.signal)
        running.signal(disturbance.signal)
        return
      case 'close output':
        signals.push('EPIPE')
        running.closeOutput()
        return
      case 'slow reader':
        running.slowReader(disturbance.pause)
        return
      case 'close input':
        input?.close()
        return
      case 'slow input':
        input?.slowDown(disturbance.pause)
        return
      case 'network':
        network.arm(disturbance.fault)
        return
      case 'slow network':
        network.setLatency(1, disturbance.most)
        return
      case 'service':
        service.arm(disturbance.fault, disturbance.times)
        return
      case 'rows':
        service.change(disturbance.change, disturbance.count)
        return
      case 'disk':
        stage.duckDb.arm(disturbance.fault, disturbance.amount, (what) => {
          kills += 1
          signals.push('SIGKILL')
          tell(what)
          running.kill()
        })
        return
      case 'file':
        stage.disk.arm(disturbance.fault, disturbance.amount, (what) => {
          kills += 1
          signals.push('SIGKILL')
          tell(what)
          running.kill()
        })
        return
      case 'lower limit':
        service.lowerLimit?.(disturbance.most)
        return
      case 'clock':
        wallOffset += disturbance.jump
        running.owner.wallOffset = wallOffset
    }
  }

  const runOnce = async (run: number, isQuiet: boolean): Promise<void> => {
    const opened = platform.open({
      index: run,
      isQuiet,
      connection: { base_url: url, credentials: service.credentials },
      armed: service.armed() + network.armed(),
      now: realm.wall(),
      localOffset: wallOffset,
    })
    const startedAt = realm.ticks()
    const firstStep = steps
    let [stoppedAt, endedAt, isOutputClosed] = [Number.POSITIVE_INFINITY, Number.NaN, false]
    let planned = scenario.disturbances.filter((each) => each.run === run && each.before === undefined)
    const signals: string[] = []
    const output = createLineSplitter(traceLine)
    const running = stage.processes.start({
      name: scenario.program,
      program: stage.programs[scenario.program] as Program,
      args: opened.args,
      stdin: opened.input?.open,
      chance: chance.split(`output ${run}`),
      onOutput: (bytes) => {
        output.take(bytes)
        opened.take(bytes)
      },
      onEnd: network.sever,
    })
    running.owner.wallOffset = wallOffset
    service.allowChurn(20)
    tell(`run ${run} starts${isQuiet ? ', quiet' : ''}`)
    while (running.ended() === undefined || !running.isDrained()) {
      while (planned[0] !== undefined && planned[0].step <= steps - firstStep && running.ended() === undefined) {
        const disturbance = toDisturbance(planned[0])
        planned = planned.slice(1)
        if (disturbance.what === 'signal') stoppedAt = Math.min(stoppedAt, realm.ticks())
        isOutputClosed ||= disturbance.what === 'close output'
        disturb(disturbance, running, opened, signals)
      }
      if (running.ended() !== undefined && Number.isNaN(endedAt)) endedAt = realm.ticks()
      const goesOn = await step()
      if (running.ended() !== undefined && Number.isNaN(endedAt)) endedAt = realm.ticks()
      if (!goesOn && running.ended() === undefined) {
        report('the run ends', 'nothing is left that could happen, and the process has not ended')
        running.kill()
      } else if (realm.ticks() - startedAt > longestRun || steps - firstStep > mostSteps) {
        report('the run ends', `still running after ${((realm.ticks() - startedAt) / 3_600_000).toFixed(1)} h`)
        running.kill()
        return stage.duckDb.leave(running.owner)
      }
    }
    await stage.duckDb.leave(running.owner)
    stage.disk.leave()
    const end = running.ended() ?? { status: Number.NaN }
    if (endedAt - stoppedAt > longestStop)
      report('stops in time', `it ended ${((endedAt - stoppedAt) / 1000).toFixed(1)} s after the signal`)
    const told = opened.output()
    tell(
      `run ${run} ends: ${'signal' in end ? end.signal : `status ${end.status}`}, ` +
        `${told.records} records, ${told.states} states`,
    )
    const { requests_per_minute: perMinute } = scenario.config.rate_limit as { readonly requests_per_minute?: number }
    const sent = sends.get(running.owner) ?? []
    const exceeded = perMinute === undefined ? undefined : checkRate(sent, perMinute)
    if (exceeded !== undefined) report('the rate', exceeded)
    const talk = [...told.talk, running.stderr()].join('\n')
    trace.update(output.rest())
    trace.update(running.stderr())
    if (!('signal' in end) && end.status !== 0 && signals.length === 0)
      incomplete.push({ run, isQuiet, why: findFailures(told.talk, running.stderr()) })
    const goesOn = wasStopped
    wasStopped = ('signal' in end || end.status !== 0) && !hasLostRows(talk)
    violations.push(
      ...checkLeaks(talk, service.secrets(), service.words()),
      ...checkEnd(end, told, running.stderr(), { protocol, signals, mustComplete: opened.mustComplete, goesOn }),
      ...((await opened.check?.({
        status: 'signal' in end ? Number.NaN : end.status,
        stderr: running.stderr(),
        isOutputClosed,
        requests: sent.length,
        records: told.records,
      })) ?? []),
    )
  }

  const firstQuiet = scenario.pauses.length - quietRuns
  for (const [run, pause] of scenario.pauses.entries()) {
    if (run === firstQuiet) {
      service.calm()
      network.disarm()
      network.setLatency(1, scenario.latency)
    }
    let left = pause
    for (const planned of scenario.disturbances.filter((each) => each.run === run && each.before !== undefined)) {
      await passTime(left - (planned.before ?? 0))
      left = planned.before ?? 0
      const disturbance = toDisturbance(planned)
      tell(describe(disturbance))
      if (disturbance.what === 'rows') service.change(disturbance.change, disturbance.count)
    }
    await passTime(left)
    await runOnce(run, run >= firstQuiet)
    if (violations.length > 0) break
  }
  if (violations.length === 0) violations.push(...(await platform.compare(realm.wall())))
  for (const { oracle, what } of violations) tell(`BROKEN ${oracle}: ${what}`)
  return {
    seed: scenario.seed,
    hash: trace.digest('hex').slice(0, 16),
    violations,
    millis: realm.ticks(),
    steps,
    requests,
    kills,
    faults: networkFaults + service.faults(),
    runs: scenario.pauses.length,
    incomplete,
  }
}
