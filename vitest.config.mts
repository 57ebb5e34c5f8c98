import { defineConfig } from 'vitest/config'

/**
 * Ends what hangs, and nothing else: on a busy machine a test takes many times as long. A test of more draws may take
 * longer.
 */
const timeLimit = 300_000 * Math.max(1, Number(process.env.DRAWS ?? 1))

/** `vitest run` alone leaves out what is called *.long.test.ts; a file or folder that is named runs whole. */
const namesTests = process.argv.some((word) => /^(\.\/)?test\b|\.test\b/.test(word))

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // What needs other software or minutes of its own: test/slow/run.
    exclude: ['test/slow/**', ...(namesTests ? [] : ['test/**/*.long.test.ts'])],
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: timeLimit,
    hookTimeout: timeLimit,
    expect: { poll: { timeout: timeLimit } },
    // A worker mostly waits for the commands that it started, so more of them than cores keep two cores busy.
    maxWorkers: 5,
    isolate: false,
  },
})
