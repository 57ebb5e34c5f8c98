import {
  type Command,
  CommandError,
  type CommandIo,
  connectionStatusLine,
  errorTraceLine,
  type Failure,
  formatHelp,
  redactFailure,
  unexpectedFailure,
} from '../cdk'

/** Reports the failure of a whole command to the caller of the program; returns the exit status. */
export type ReportFailure = (
  io: CommandIo,
  failure: Failure,
  command: { readonly program: string; readonly verb: string },
) => Promise<number>

/** How the caller of a program expects it to end. */
type CallerConventions = {
  readonly reportFailure: ReportFailure
  /** After a signal, exit with status 143 or 130; other programs die of the signal itself. */
  readonly exitsOnSignal: boolean
}

/** `check` answers a wrong config with a status; every other failure is a trace. */
export const reportAirbyteFailure: ReportFailure = async (io, failure, { verb }) => {
  io.printWarning(failure.message)
  if (verb === 'check' && failure._tag === 'Config') {
    await io.print(connectionStatusLine('FAILED', failure.message))
    return 0
  }
  await io.print(errorTraceLine(Date.now, failure))
  return 1
}

const reportToPerson: ReportFailure = async (io, failure) => {
  io.printWarning(failure.message)
  if (failure._tag === 'System' && failure.detail !== undefined) io.printWarning(failure.detail)
  return 1
}

const airbyteConventions: CallerConventions = { reportFailure: reportAirbyteFailure, exitsOnSignal: false }
const singerConventions: CallerConventions = {
  reportFailure: async (...args) => (await import('./singer-program.js')).reportSingerFailure(...args),
  exitsOnSignal: true,
}
const personConventions: CallerConventions = { reportFailure: reportToPerson, exitsOnSignal: false }

type Program = CallerConventions & {
  readonly summary: string
  /** By verb, each loaded when it is needed, so that `spec` does not load DuckDB. A program without verbs has one command, named ''. */
  readonly commands: Readonly<Record<string, () => Promise<Command>>>
}

const loadSource = () => import('./airbyte-source.js')
const loadDestination = () => import('./airbyte-destination.js')

const programs = {
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

const findProgram = (name: ProgramName): Program => programs[name]

/** Whether the program exits with a status after a signal, where others die of the signal itself. */
export const exitsOnSignal = (name: ProgramName): boolean => findProgram(name).exitsOnSignal

/** What a program prints without a verb: its verbs. */
const formatOverview = async (name: string, { summary, commands }: Program): Promise<string> => {
  const verbs = await Promise.all(
    Object.entries(commands).map(async ([verb, load]) => `  ${verb.padEnd(10)}${(await load()).summary}`),
  )
  return [
    `Usage: ${name} VERB [options]`,
    '',
    summary,
    '',
    'Verbs:',
    ...verbs,
    '',
    `${name} VERB --help prints the options of a verb.`,
    '',
  ].join('\n')
}

const isHelp = (arg: string): boolean => arg === '--help' || arg === '-h'

/** Runs a program and returns its exit status. `crash` rejects with an error that was thrown where nothing awaits it. */
export const runProgram = async (
  name: ProgramName,
  io: CommandIo,
  args: ReadonlyArray<string>,
  crash: Promise<never>,
): Promise<number> => {
  const program = findProgram(name)
  const { commands, reportFailure } = program
  const [verb = '', ...commandArgs] = Object.hasOwn(commands, '') ? ['', ...args] : args
  const load = Object.hasOwn(commands, verb) ? commands[verb] : undefined
  if (isHelp(verb) || verb === 'help' || (verb === '' && load === undefined)) {
    await io.print(await formatOverview(name, program))
    return verb === '' ? 2 : 0
  }
  if (load === undefined) {
    io.printWarning(`${name}: there is no verb "${verb}". Choose among ${Object.keys(commands).join(', ')}.`)
    return 2
  }
  const command = await load()
  if (commandArgs.some(isHelp)) {
    await io.print(formatHelp(name, command))
    return 0
  }
  try {
    return await Promise.race([command.run(io, name, commandArgs), crash])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') throw error
    const failure = error instanceof CommandError ? error.failure : unexpectedFailure(error)
    const status = await reportFailure(io, redactFailure(io.redactText, failure), { program: name, verb })
    return status !== 0 && error instanceof CommandError ? Math.max(status, error.status) : status
  }
}
