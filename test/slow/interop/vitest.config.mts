import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/slow/interop/*.client.ts'],
    globalSetup: ['test/slow/interop/quick.setup.ts'],
    reporters: ['./test/slow/interop/reporter.ts'],
    // Each file keeps one core busy, with Python most of the time.
    maxWorkers: 2,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
