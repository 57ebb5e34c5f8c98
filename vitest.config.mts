import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Most of the time a worker waits for the commands it started: more of them than cores keep two cores busy.
  test: { include: ['test/**/*.test.ts'], testTimeout: 30_000, hookTimeout: 60_000, maxWorkers: 3, isolate: false },
})
