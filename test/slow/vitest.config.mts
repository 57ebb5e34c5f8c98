import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Begins with the simulated worlds: one of their files takes longest, and what begins last would leave a core idle. */
class WorldsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isWorld = ({ moduleId }: TestSpecification): boolean => moduleId.includes('/test/simulation/')
    return [...sorted.filter(isWorld), ...sorted.filter((file) => !isWorld(file))]
  }
}

/** The tests of test/slow/, those that take too long for `npm test`, and those that a variable makes longer. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 3,
    isolate: false,
    sequence: { sequencer: WorldsFirst },
  },
})
