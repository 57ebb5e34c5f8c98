/** What Stryker does with one file, which mutation/run.mjs names. */
export default {
  mutate: [process.env.MUTATION_FILE],
  plugins: ['@stryker-mutator/vitest-runner'],
  testRunner: 'vitest',
  vitest: { configFile: 'mutation/vitest.config.mts', related: false },
  coverageAnalysis: 'perTest',
  concurrency: Number(process.env.MUTATION_CONCURRENCY ?? 1),
  timeoutMS: 20_000,
  dryRunTimeoutMinutes: 15,
  reporters: ['json', 'progress-append-only'],
  jsonReporter: { fileName: process.env.MUTATION_REPORT },
  incremental: true,
  incrementalFile: process.env.MUTATION_REPORT.replace(/\.json$/, '.incremental.json'),
  tempDirName: '.scratch/mutation/work',
  ignorePatterns: ['/bench', '/build', '/docs', '/examples', '/mutation/node_modules', '/.*'],
  // TypeScript 7 cannot rewrite it for Stryker, and nothing here compiles.
  tsconfigFile: 'none',
  allowConsoleColors: false,
  allowEmpty: false,
}
