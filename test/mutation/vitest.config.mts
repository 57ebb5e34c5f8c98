import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const plan = JSON.parse(readFileSync(process.env.MUTATION_PLAN ?? '', 'utf8'))

/** The tests in the order of the plan: those that kill fast first. */
class PlannedSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => plan.tests.findIndex((test: string) => moduleId.endsWith(test))
    return files.toSorted((a, b) => place(a) - place(b))
  }
}

/** The tests that look at the mutants of one file; test/mutation/run.mjs plans them. */
export default defineConfig({
  plugins: [{ name: 'mutants', enforce: 'pre', load: (id) => (id === plan.path ? plan.text : undefined) }],
  test: {
    include: plan.tests,
    setupFiles: ['test/mutation/setup.ts'],
    runner: './test/mutation/runner.ts',
    sequence: { sequencer: PlannedSequencer },
    // test/mutation/runner.ts sets separate limits for each mutant.
    testTimeout: 86_400_000,
    hookTimeout: 600_000,
    // What a mutant leaves unawaited may fail while the next one is tried.
    dangerouslyIgnoreUnhandledErrors: plan.active === undefined,
    bail: plan.active === undefined ? 0 : 1,
    maxWorkers: 1,
    isolate: false,
  },
})
