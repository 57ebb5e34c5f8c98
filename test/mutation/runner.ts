import { appendFileSync, readFileSync } from 'node:fs'
import { TestRunner } from 'vitest'

/** What the switches of an instrumented source read and write. */
type Switches = {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  hitCount?: number | undefined
  hitLimit?: number | undefined
  mutantCoverage?: { static: Record<string, number>; perTest: Record<string, Record<string, number>> }
}
type Plan = {
  readonly mutants: ReadonlyArray<string>
  readonly results: string
  /** In each test of this process, from the loading of the source on. */
  readonly active?: string
  /** With how many tests a mutant is tried at most; null: with all. */
  readonly tries: number | null
}

const plan: Plan = JSON.parse(readFileSync(process.env.MUTATION_PLAN ?? '', 'utf8'))
const global = globalThis as { __stryker__?: Switches; mutantTries?: Map<string, number> }
global.__stryker__ ??= { activeMutant: plan.active }
/** The mutants that are alive, and how often each was tried. */
global.mutantTries ??= new Map(plan.mutants.map((id) => [id, 0]))
const [switches, tries] = [global.__stryker__, global.mutantTries]
const tell = (line: object) => appendFileSync(plan.results, `${JSON.stringify(line)}\n`)
const { setTimeout, clearTimeout } = globalThis

/** A test that takes this long with a mutant, in milliseconds, hangs. `usual`: how long it takes without. */
const longest = (usual: number): number => 8000 + 10 * usual

/** How a test ends: passed, failed, or not in its time. */
const runOnce = async (run: () => unknown, limit: number): Promise<'passed' | 'failed' | 'late'> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), limit)
  })
  try {
    return await Promise.race([Promise.resolve(run()).then(() => 'passed' as const), late])
  } catch {
    return 'failed'
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Runs each test first without a mutant, then once with each mutant that it reaches and that is still alive: all in one
 * process, since a process for each mutant would take longer to load than its tests take to run.
 */
export default class MutantRunner extends TestRunner {
  async runTask(test: Parameters<TestRunner['onBeforeRunTask']>[0]): Promise<void> {
    const run = TestRunner.getTestFn(test as never) as () => unknown
    if (plan.active !== undefined) {
      if ((await runOnce(run, 120_000)) !== 'passed') throw new Error('The mutant is killed.')
      return
    }
    switches.currentTestId = test.id
    const began = performance.now()
    try {
      await run()
    } finally {
      switches.currentTestId = undefined
    }
    const usual = performance.now() - began
    const reached = switches.mutantCoverage?.perTest[test.id] ?? {}
    tell({ reached: Object.keys(reached), loaded: Object.keys(switches.mutantCoverage?.static ?? {}) })
    const killed: Array<object> = []
    for (const [id, hits] of Object.entries(reached)) {
      const tried = tries.get(id)
      if (tried === undefined || tried >= (plan.tries ?? Number.POSITIVE_INFINITY)) continue
      tries.set(id, tried + 1)
      tell({ trying: id })
      Object.assign(switches, { activeMutant: id, hitCount: 0, hitLimit: 100 * hits })
      const end = await runOnce(run, longest(usual))
      const isEndless = (switches.hitCount ?? 0) > 100 * hits
      Object.assign(switches, { activeMutant: undefined, hitCount: undefined })
      if (end === 'passed') continue
      tries.delete(id)
      killed.push({ id, status: end === 'late' || isEndless ? 'Timeout' : 'Killed', by: test.name })
    }
    // What the trials reached was not reached as the file was loaded.
    if (switches.mutantCoverage !== undefined) switches.mutantCoverage.static = {}
    // What a mutant leaves behind may break the test for later ones, so it is unknown which one was killed.
    if (killed.length > 0) {
      const isSound = (await runOnce(run, longest(usual))) === 'passed'
      for (const line of killed) tell(isSound ? line : { ...line, status: 'Doubtful' })
    }
    tell({ tried: test.name })
  }
}
