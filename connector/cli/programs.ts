import { airbyteConventions, type Program, personConventions, singerConventions } from '../cdk'

const loadSource = () => import('./airbyte-source.js')
const loadDestination = () => import('./airbyte-destination.js')

/** What each program runs, and how its caller expects it to end. */
export const programs = {
  'source-feedback': {
    ...airbyteConventions,
    summary: 'Airbyte source for the Feedback Data Service',
    commands: {
      spec: async () => (await loadSource()).sourceSpecCommand,
      check: async () => (await loadSource()).sourceCheckCommand,
      discover: async () => (await loadSource()).sourceDiscoverCommand,
      read: async () => (await loadSource()).sourceReadCommand,
    },
  },
  'tap-feedback': {
    ...singerConventions,
    summary: 'Singer tap for the Feedback Data Service',
    commands: { '': async () => (await import('./singer-tap.js')).tapCommand },
  },
  'destination-feedback': {
    ...airbyteConventions,
    summary: 'Airbyte destination for the Feedback Data Service',
    commands: {
      spec: async () => (await loadDestination()).destinationSpecCommand,
      check: async () => (await loadDestination()).destinationCheckCommand,
      discover: async () => (await loadDestination()).destinationDiscoverCommand,
      write: async () => (await loadDestination()).destinationWriteCommand,
    },
  },
  'target-feedback': {
    ...singerConventions,
    summary: 'Singer target for the Feedback Data Service',
    commands: { '': async () => (await import('./singer-target.js')).targetCommand },
  },
  feedback: {
    ...personConventions,
    summary: 'The Feedback Data Service on the command line',
    commands: {
      sync: async () => (await import('./sync.js')).syncCommand,
      catalog: async () => (await import('./catalog.js')).catalogCommand,
      state: async () => (await import('./state.js')).stateCommand,
      snapshot: async () => (await import('./snapshot.js')).snapshotCommand,
      verify: async () => (await import('./verify.js')).verifyCommand,
      replay: async () => (await import('./replay.js')).replayCommand,
      diff: async () => (await import('./diff.js')).diffCommand,
      report: async () => (await import('./report.js')).reportCommand,
      query: async () => (await import('./query.js')).queryCommand,
      sandbox: async () => (await import('./sandbox.js')).sandboxCommand,
      demo: async () => (await import('./demo.js')).demoCommand,
    },
  },
} satisfies Record<string, Program>

export type ProgramName = keyof typeof programs
