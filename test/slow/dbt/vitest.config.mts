import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/slow/dbt/*.client.ts'],
    reporters: ['./test/slow/interop/reporter.ts'],
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 900_000,
  },
})
