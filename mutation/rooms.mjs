/**
 * The rooms that are mutated, and the tests that look at their mutants: those of the room itself that take no more than a second.
 * `files`: the tests that look at one file, where not all of the room do. `later`: tests that only look at what the others leave alive. `without`: files and names of tests that are left out, since they
 * take seconds or look at whole programs. What only these would kill counts as survived. `testTimeout`: milliseconds after which a
 * test that waits for ever has failed.
 */
export const rooms = {
  'export/scan': {
    tests: 'test/export/scan',
    later: ['scan.test.ts', 'prefetch-requests.test.ts'],
    without: {
      names:
        '^without |^an unordered service|the newest rows come first, and|^sends a single review without|^a plain pass|^takes few requests',
    },
    env: { SCAN_RUNS: '10' },
  },
  'cdk/write': { tests: 'test/cdk/write', testTimeout: 5000 },
  'snapshot/load': {
    tests: 'test/snapshot/load',
    files: {
      'commit.ts': ['commit.test.ts', 'merge.test.ts', 'writer.test.ts', 'writer-messages.test.ts'],
      'earlier-runs.ts': ['earlier-runs.test.ts', 'writer.test.ts'],
      'evolve.ts': ['evolve.test.ts', 'writer.test.ts'],
      'insert.ts': ['insert.test.ts', 'evolve.test.ts', 'writer.test.ts'],
      'merge.ts': ['merge.test.ts', 'commit.test.ts', 'old-rows.test.ts', 'writer.test.ts'],
      'stream-load.ts': ['stream-load.test.ts', 'writer.test.ts', 'writer-messages.test.ts'],
      'writer.ts': ['writer-messages.test.ts', 'writer.test.ts', 'stream-load.test.ts', 'commit.test.ts'],
    },
    later: ['commit.test.ts', 'old-rows.test.ts'],
    without: {
      files: ['file-size.test.ts', 'writer-kill.test.ts', 'writer-size.test.ts'],
      names: '^of which each part is still large|^after 64 MB',
    },
    testTimeout: 30_000,
  },
}
