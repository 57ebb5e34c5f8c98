import { defineConfig } from 'vitest/config'

/** The tests of test/slow/, those that take too long for `npm test`, and those that a variable makes longer. */
export default defineConfig({
  test: { include: ['test/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000, maxWorkers: 3, isolate: false },
})
