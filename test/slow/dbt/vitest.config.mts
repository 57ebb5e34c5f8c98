import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/slow/dbt/*.client.ts'],
    reporters: ['./test/slow/interop/reporter.ts'],
    // Each file keeps one core busy, with Python most of the time.
    maxWorkers: 2,
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
})
