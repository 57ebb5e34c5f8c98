import { defineConfig } from 'vitest/config'

/** The tests that look at the mutants of one file; mutation/run.mjs names them. */
export default defineConfig({
  test: {
    include: (process.env.MUTATION_TESTS ?? '').split(','),
    setupFiles: ['mutation/setup.ts'],
    testTimeout: Number(process.env.MUTATION_TEST_TIMEOUT),
    hookTimeout: 60_000,
    // A worker for each mutant, not for each file.
    isolate: false,
  },
})
