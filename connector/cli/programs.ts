import { airbyteConventions, type Program, personConventions, type protocols, singerConventions } from '../cdk'
import { readPackageVersion } from './options'

const loadSource = () => import('./feedback-source.js')
const loadDestination = () => import('./feedback-destination.js')

/** The commands of a source and a destination, and how both end, for each protocol of the kit. */
const protocolCommands = {
  airbyte: {
    conventions: airbyteConventions,
    source: {
      spec: async () => (await loadSource()).sourceSpecCommand,
      check: async () => (await loadSource()).sourceCheckCommand,
      discover: async () => (await loadSource()).sourceDiscoverCommand,
      read: async () => (await loadSource()).sourceReadCommand,
    },
    destination: {
      spec: async () => (await loadDestination()).destinationSpecCommand,
      check: async () => (await loadDestination()).destinationCheckCommand,
      discover: async () => (await loadDestination()).destinationDiscoverCommand,
      write: async () => (await loadDestination()).destinationWriteCommand,
    },
  },
  singer: {
    conventions: singerConventions,
    source: { '': async () => (await loadSource()).tapCommand },
    destination: { '': async () => (await loadDestination()).targetCommand },
  },
} as const satisfies Readonly<
  Record<
    keyof typeof protocols,
    {
      readonly conventions: Omit<Program, 'summary' | 'version' | 'commands'>
      readonly source: Program['commands']
      readonly destination: Program['commands']
    }
  >
>

/** The programs that platforms run: what each does, and which protocol it speaks. */
export const platformPrograms = {
  'source-feedback': { run: 'source', protocol: 'airbyte', summary: 'Airbyte source for the Feedback Data Service' },
  'tap-feedback': { run: 'source', protocol: 'singer', summary: 'Singer tap for the Feedback Data Service' },
  'destination-feedback': {
    run: 'destination',
    protocol: 'airbyte',
    summary: 'Airbyte destination for the Feedback Data Service',
  },
  'target-feedback': { run: 'destination', protocol: 'singer', summary: 'Singer target for the Feedback Data Service' },
} as const satisfies Readonly<Record<string, PlatformProgram>>

type PlatformProgram = {
  readonly run: 'source' | 'destination'
  readonly protocol: keyof typeof protocols
  readonly summary: string
}

const createPlatformProgram = ({ run, protocol, summary }: PlatformProgram): Program => ({
  ...protocolCommands[protocol].conventions,
  summary,
  version: readPackageVersion,
  commands: protocolCommands[protocol][run],
})

const exitStatusNotes = [
  'Exit status of every verb: 0 all is well, 1 the answer is no (verify, diff, status, demo, audit --answer; ' +
    'snapshot and',
  'replay: a stream is not complete; any verb: the reader of its output went away), ' +
    '2 the command line is wrong, 70 an error in',
  'the connector, 75 run it again later, 78 the configuration or a file is wrong, ' +
    '130 and 143 stopped by Ctrl-C (SIGINT) and SIGTERM.',
].join('\n')

/** The program for people. */
const feedbackProgram: Program = {
  ...personConventions,
  summary: 'The Feedback Data Service on the command line',
  version: readPackageVersion,
  notes: exitStatusNotes,
  commands: {
    init: async () => (await import('./init.js')).initCommand,
    check: async () => (await import('./check.js')).checkCommand,
    sync: async () => (await import('./sync.js')).syncCommand,
    catalog: async () => (await import('./catalog.js')).catalogCommand,
    state: async () => (await import('./state.js')).stateCommand,
    snapshot: async () => (await import('./snapshot.js')).snapshotCommand,
    verify: async () => (await import('./verify.js')).verifyCommand,
    audit: async () => (await import('./audit.js')).auditCommand,
    status: async () => (await import('./status.js')).statusCommand,
    replay: async () => (await import('./replay.js')).replayCommand,
    compact: async () => (await import('./compact.js')).compactCommand,
    forget: async () => (await import('./forget.js')).forgetCommand,
    diff: async () => (await import('./diff.js')).diffCommand,
    report: async () => (await import('./report.js')).reportCommand,
    query: async () => (await import('./query.js')).queryCommand,
    sandbox: async () => (await import('./sandbox.js')).sandboxCommand,
    demo: async () => (await import('./demo.js')).demoCommand,
  },
}

export type ProgramName = keyof typeof platformPrograms | 'feedback'

export const programs: Readonly<Record<ProgramName, Program>> = {
  'source-feedback': createPlatformProgram(platformPrograms['source-feedback']),
  'tap-feedback': createPlatformProgram(platformPrograms['tap-feedback']),
  'destination-feedback': createPlatformProgram(platformPrograms['destination-feedback']),
  'target-feedback': createPlatformProgram(platformPrograms['target-feedback']),
  feedback: feedbackProgram,
}
