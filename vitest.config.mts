import { defineConfig } from 'vitest/config'

/** Ends what hangs, and nothing else: on a busy machine a test takes many times as long. A test of more draws may take longer. */
const timeLimit = 300_000 * Math.max(1, Number(process.env.DRAWS ?? 1))

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // What needs other software or minutes of its own: test/slow/run.
    exclude: ['test/slow/**'],
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: timeLimit,
    hookTimeout: timeLimit,
    expect: { poll: { timeout: timeLimit } },
    // Most of the time a worker waits for the commands it started: more of them than cores keep two cores busy.
    maxWorkers: 3,
    isolate: false,
  },
})
