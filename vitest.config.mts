import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

/** The files that take longest, which `test/slow/run long` runs instead. */
const longTests = readFileSync('test/slow/long.txt', 'utf8').trim().split('\n')

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', ...longTests],
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the time a worker waits for the commands it started: more of them than cores keep two cores busy.
    maxWorkers: 3,
    isolate: false,
  },
})
