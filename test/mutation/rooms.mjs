/**
 * The rooms that are mutated, and the tests that look at their mutants: those of the room itself that take no more than
 * a second. `files`: the tests that look at one file, in their order, where not all of the room do. `later`: tests that
 * come after all others. `without`: files and names of tests that are left out, since they take seconds or look at
 * whole programs. What only these would kill counts as survived.
 */
export const rooms = {
  reading: { tests: 'test/reading', later: ['read.test.ts', 'assumptions.test.ts'], env: { DRAWS: '0.5' } },
  'cdk/write': { tests: 'test/cdk/write' },
  'snapshot/load': {
    tests: 'test/snapshot/load',
    files: {
      'changes.ts': ['changes.test.ts', 'writer-messages.test.ts', 'writer.test.ts'],
      'commit.ts': [
        'commit-tables.test.ts',
        'merge.test.ts',
        'writer-messages.test.ts',
        'writer.test.ts',
        'commit.test.ts',
      ],
      'earlier-runs.ts': ['earlier-runs.test.ts', 'stream-load.test.ts', 'writer.test.ts'],
      'evolve.ts': ['evolve.test.ts', 'open-loads.test.ts', 'writer.test.ts'],
      'load-end.ts': ['writer-messages.test.ts', 'writer.test.ts', 'stream-load.test.ts', 'commit.test.ts'],
      'load-rows.ts': ['commit-tables.test.ts', 'writer-messages.test.ts', 'writer.test.ts'],
      'lookups.ts': ['merge-sql.test.ts', 'merge.test.ts', 'writer.test.ts'],
      'merge.ts': ['merge-sql.test.ts', 'merge.test.ts', 'writer.test.ts', 'old-rows.test.ts', 'commit.test.ts'],
      'open-loads.ts': ['open-loads.test.ts', 'stream-load.test.ts', 'writer.test.ts'],
      'receive.ts': ['writer-messages.test.ts', 'writer.test.ts', 'stream-load.test.ts', 'commit.test.ts'],
      'run.ts': ['writer-messages.test.ts', 'writer.test.ts', 'stream-load.test.ts', 'commit.test.ts'],
      'slices.ts': ['commit-tables.test.ts', 'commit.test.ts'],
      'stream-load.ts': [
        'open-loads.test.ts',
        'changes.test.ts',
        'stream-load.test.ts',
        'writer-messages.test.ts',
        'writer.test.ts',
      ],
      'writer.ts': ['writer-messages.test.ts', 'writer.test.ts', 'stream-load.test.ts', 'commit.test.ts'],
    },
    without: {
      files: ['file-size.long.test.ts', 'writer-kill.test.ts', 'writer-size.long.test.ts'],
      names: '^of which each part is still large',
    },
  },
}
