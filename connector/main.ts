import {
  type Command,
  CommandError,
  type CommandIo,
  createRedactor,
  createStdoutWriter,
  type Failure,
  formatHelp,
  parseOptions,
  redactFailure,
  unexpectedFailure,
} from './cdk'

type Program = {
  readonly summary: string
  /** Loaded only when asked for, so that `spec` does not pay for DuckDB. A program without verbs has one, named ''. */
  readonly verbs: Readonly<Record<string, () => Promise<Command>>>
  /** How a failure is told to the caller of this program; answers the exit status. */
  readonly fail: (io: CommandIo, verb: string, failure: Failure) => Promise<number>
  /** After a signal: an exit status of 143 or 130, where others die of the signal itself. */
  readonly exitsOnSignal?: true
}

const reportToPerson: Program['fail'] = async (io, _verb, failure) => {
  io.printWarning(failure.message)
  if (failure._tag === 'System' && failure.detail !== undefined) io.printWarning(failure.detail)
  return 1
}

const programs = {
  'source-feedback': {
    summary: 'Airbyte source for the Feedback Data Service',
    verbs: {
      spec: async () => (await import('./cli/airbyte-source.js')).sourceSpecCommand,
      check: async () => (await import('./cli/airbyte-source.js')).sourceCheckCommand,
      discover: async () => (await import('./cli/airbyte-source.js')).sourceDiscoverCommand,
      read: async () => (await import('./cli/airbyte-source.js')).sourceReadCommand,
    },
    fail: async (io, verb, failure) => (await import('./cli/programs.js')).reportAirbyteFailure(io, verb, failure),
  },
  'tap-feedback': {
    summary: 'Singer tap for the Feedback Data Service',
    verbs: { '': async () => (await import('./cli/singer-tap.js')).tapCommand },
    fail: async (io, verb, failure) => (await import('./cli/programs.js')).reportTapFailure(io, verb, failure),
    exitsOnSignal: true,
  },
  'destination-feedback': {
    summary: 'Airbyte destination for the Feedback Data Service',
    verbs: {
      spec: async () => (await import('./cli/airbyte-destination.js')).destinationSpecCommand,
      check: async () => (await import('./cli/airbyte-destination.js')).destinationCheckCommand,
      discover: async () => (await import('./cli/airbyte-destination.js')).destinationDiscoverCommand,
      write: async () => (await import('./cli/airbyte-destination.js')).destinationWriteCommand,
    },
    fail: async (io, verb, failure) => (await import('./cli/programs.js')).reportAirbyteFailure(io, verb, failure),
  },
  'target-feedback': {
    summary: 'Singer target for the Feedback Data Service',
    verbs: { '': async () => (await import('./cli/singer-target.js')).targetCommand },
    fail: async (io, verb, failure) => (await import('./cli/programs.js')).reportTargetFailure(io, verb, failure),
    exitsOnSignal: true,
  },
  feedback: {
    summary: 'The Feedback Data Service, for people',
    verbs: {
      sync: async () => (await import('./cli/sync.js')).syncCommand,
      catalog: async () => (await import('./cli/catalog.js')).catalogCommand,
      state: async () => (await import('./cli/state.js')).stateCommand,
      snapshot: async () => (await import('./cli/snapshot.js')).snapshotCommand,
      verify: async () => (await import('./cli/verify.js')).verifyCommand,
      replay: async () => (await import('./cli/replay.js')).replayCommand,
      diff: async () => (await import('./cli/diff.js')).diffCommand,
      report: async () => (await import('./cli/report.js')).reportCommand,
      query: async () => (await import('./cli/query.js')).queryCommand,
      sandbox: async () => (await import('./cli/sandbox.js')).sandboxCommand,
      demo: async () => (await import('./cli/demo.js')).demoCommand,
    },
    fail: reportToPerson,
  },
} satisfies Record<string, Program>

const formatOverview = async (name: string, { summary, verbs }: Program): Promise<string> => {
  const lines = await Promise.all(
    Object.entries(verbs).map(async ([verb, load]) => `  ${verb.padEnd(10)}${(await load()).summary}`),
  )
  return [
    `Usage: ${name} VERB [options]`,
    '',
    summary,
    '',
    'Verbs:',
    ...lines,
    '',
    `${name} VERB --help tells more.`,
    '',
  ].join('\n')
}

/** `crashed` rejects with what was thrown where nobody waits for it. */
const runProgram = async (
  name: string,
  program: Program,
  io: CommandIo,
  args: ReadonlyArray<string>,
  crashed: Promise<never>,
): Promise<number> => {
  const [verb = '', ...rest] = Object.hasOwn(program.verbs, '') ? ['', ...args] : args
  if ((verb === '' && !Object.hasOwn(program.verbs, '')) || verb === '--help' || verb === '-h' || verb === 'help') {
    await io.print(await formatOverview(name, program))
    return verb === '' ? 2 : 0
  }
  const load = Object.hasOwn(program.verbs, verb) ? program.verbs[verb] : undefined
  if (load === undefined) {
    io.printWarning(`${name}: there is no verb "${verb}". Choose among ${Object.keys(program.verbs).join(', ')}.`)
    return 2
  }
  const command = await load()
  if (rest.includes('--help') || rest.includes('-h')) {
    await io.print(formatHelp(name, command))
    return 0
  }
  try {
    return await Promise.race([command.run(io, parseOptions(name, command, rest)), crashed])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') throw error
    const failure = error instanceof CommandError ? error.failure : unexpectedFailure(error)
    const told = await program.fail(io, verb, redactFailure(io.redactText, failure))
    return told !== 0 && error instanceof CommandError ? Math.max(told, error.status) : told
  }
}

/** How long a stop waits for a reader that takes nothing any more, in milliseconds. */
const stopTimeout = 10_000

/** Runs one of the programs on this process: the only place that touches it. */
export const main = (name: keyof typeof programs): void => {
  const stop = new AbortController()
  const out = createStdoutWriter(1)
  const signals = ['SIGTERM', 'SIGINT'] as const
  let caught: (typeof signals)[number] | undefined
  const die = (signal: (typeof signals)[number]): void => {
    for (const each of signals) process.removeAllListeners(each)
    const { exitsOnSignal }: Program = programs[name]
    if (process.pid === 1 || exitsOnSignal === true) process.exit(signal === 'SIGTERM' ? 143 : 130)
    process.kill(process.pid, signal)
  }
  for (const signal of signals)
    process.on(signal, () => {
      if (caught !== undefined) return die(signal)
      caught = signal
      stop.abort()
      setTimeout(() => die(signal), stopTimeout).unref()
    })
  let clean = createRedactor([])
  const hidden: string[] = []
  let progressing = false
  const warn = (line: string): void => {
    process.stderr.write(`${progressing ? '\r\x1b[K' : ''}${clean(line)}\n`)
    progressing = false
  }
  const io: CommandIo = {
    env: process.env,
    pid: process.pid,
    stdin: process.stdin,
    print: out.write,
    printWarning: warn,
    printProgress: (line) => {
      if (process.stderr.isTTY !== true) return
      progressing = true
      process.stderr.write(`\r\x1b[K${clean(line)}`)
    },
    addSecrets: (secrets) => {
      hidden.push(...secrets)
      clean = createRedactor(hidden)
    },
    redactText: (text) => clean(text),
    hasColours: process.stdout.isTTY === true && process.env.NO_COLOR === undefined,
    stop: stop.signal,
  }
  process.stderr.on('error', () => undefined)
  const crashed = new Promise<never>((_, reject) => process.on('uncaughtException', reject))
  /** To exit drops what a slow reader of stderr has not taken yet. */
  const told = (): Promise<unknown> =>
    Promise.race([
      new Promise((resolve) => process.stderr.write('', resolve)),
      new Promise((resolve) => setTimeout(resolve, stopTimeout).unref()),
    ])
  const finish = async () => {
    const status = await runProgram(name, programs[name], io, process.argv.slice(2), crashed)
    await out.flush()
    return status
  }
  finish()
    .catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EPIPE') warn(unexpectedFailure(error).message)
      return undefined
    })
    .then(async (status) => {
      await told()
      return status === undefined || caught === undefined ? process.exit(status ?? 1) : die(caught)
    })
}
