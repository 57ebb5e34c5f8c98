import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What worlds have come to. */
export type Totals = {
  readonly worlds: number
  readonly runs: number
  readonly requests: number
  readonly kills: number
  readonly faults: number
  readonly steps: number
  /** Simulated. */
  readonly hours: number
  /** Worlds that broke a promise. */
  readonly broken: number
}

export const noTotals: Totals = {
  worlds: 0,
  runs: 0,
  requests: 0,
  kills: 0,
  faults: 0,
  steps: 0,
  hours: 0,
  broken: 0,
}

export const addTotals = (a: Totals, b: Totals): Totals => ({
  worlds: a.worlds + b.worlds,
  runs: a.runs + b.runs,
  requests: a.requests + b.requests,
  kills: a.kills + b.kills,
  faults: a.faults + b.faults,
  steps: a.steps + b.steps,
  hours: a.hours + b.hours,
  broken: a.broken + b.broken,
})

export const describeTotals = (totals: Totals, seconds: number): string =>
  `${totals.worlds} worlds, ${totals.runs} runs, ${totals.kills} kills, ${totals.faults} ` +
  `faults, ${totals.requests} requests, ${totals.steps} steps, ${totals.hours.toFixed(0)} ` +
  `simulated hours in ${seconds.toFixed(1)} s (${((totals.hours / seconds) * 60).toFixed(0)} ` +
  `a minute); ${totals.broken} broke a promise`

const totalsFile = (folder: string, part: number): string => join(folder, `totals-${part}.json`)

/**
 * Leaves what a part has come to for `runParts`: a channel between the processes would keep each from ever being idle.
 */
export const leaveTotals = (folder: string, part: number, totals: Totals): void =>
  writeFileSync(totalsFile(folder, part), JSON.stringify(totals))

const brokenFile = (folder: string, part: number): string => join(folder, `broken-${part}.json`)
const seedFile = (folder: string, part: number): string => join(folder, `seed-${part}`)

/** A world that broke a promise, and what is printed of it. */
export type BrokenWorld = { readonly seed: number; readonly report: string }

/** The world of the lowest seed that a part has left. */
const lowestBroken = (folder: string): BrokenWorld | undefined =>
  readdirSync(folder)
    .filter((name) => name.startsWith('broken-'))
    .map((name): BrokenWorld => JSON.parse(readFileSync(join(folder, name), 'utf8')))
    .reduce<BrokenWorld | undefined>((a, b) => (a === undefined || b.seed < a.seed ? b : a), undefined)

/** Tells `runParts` what a part runs next; false: a world of a lower seed is broken, so this one is not needed. */
export const enterWorld = (folder: string, part: number, seed: number): boolean => {
  if (seed > (lowestBroken(folder)?.seed ?? Number.POSITIVE_INFINITY)) return false
  writeFileSync(seedFile(folder, part), String(seed))
  return true
}

/** Leaves a broken world for `runParts`, whole or not at all. */
export const leaveBroken = (folder: string, part: number, world: BrokenWorld): void => {
  const file = join(folder, `part-${part}`)
  writeFileSync(file, JSON.stringify(world))
  renameSync(file, brokenFile(folder, part))
}

/**
 * Runs this program in this many processes, each with its part of the seeds. `untilBroken`: ends once no seed lower
 * than that of a broken world is left, and prints the world with the lowest seed, so that the result does not depend on
 * which process is the fastest.
 */
export const runParts = async (parts: number, untilBroken: boolean): Promise<Totals> => {
  const folder = mkdtempSync(join(tmpdir(), 'simulation-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const children = Array.from({ length: parts }, (_, part) =>
    spawn(process.execPath, [...process.argv.slice(1), '--part', `${part}/${parts}`], {
      stdio: 'inherit',
      env: { ...process.env, TMPDIR: folder },
    }),
  )
  // A world may keep its process too busy for any other signal.
  const end = (): void => {
    for (const child of children) child.kill('SIGKILL')
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      end()
      process.exit(130)
    })
  const endHigher = (): void => {
    const lowest = lowestBroken(folder)?.seed ?? Number.POSITIVE_INFINITY
    for (const [part, child] of children.entries()) {
      const file = seedFile(folder, part)
      if (existsSync(file) && Number(readFileSync(file, 'utf8')) > lowest) child.kill('SIGKILL')
    }
  }
  await Promise.all(
    children.map(
      (child) =>
        new Promise<void>((resolve, reject) => {
          child.on('error', reject)
          child.on('close', (status, signal) => {
            if (status !== 0 && status !== 1 && (!untilBroken || lowestBroken(folder) === undefined))
              return reject(new Error(`A part of the simulation ended with ${signal ?? `status ${status}`}.`))
            if (untilBroken) endHigher()
            resolve()
          })
        }),
    ),
  )
  const broken = lowestBroken(folder)
  if (broken !== undefined) console.log(broken.report)
  return children
    .map((_, part) => totalsFile(folder, part))
    .filter(existsSync)
    .map((file): Totals => JSON.parse(readFileSync(file, 'utf8')))
    .reduce(addTotals, noTotals)
}
