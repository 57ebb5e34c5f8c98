import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the time a worker waits for the commands it started: more of them than cores keep two cores busy.
    maxWorkers: 3,
    isolate: false,
  },
})
