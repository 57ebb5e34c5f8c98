import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/interop/clients/*.client.ts'],
    reporters: ['./test/interop/clients/reporter.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
})
