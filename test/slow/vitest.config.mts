import { defineConfig } from 'vitest/config'

/** The tests of test/slow/, and those of `npm test` that a variable makes longer. */
export default defineConfig({
  test: { include: ['test/**/*.test.ts'], testTimeout: 30_000, hookTimeout: 60_000, maxWorkers: 3, isolate: false },
})
