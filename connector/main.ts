import { type Command, help, type Io, parse, Stopped } from './cdk/cli'
import { type Failure, unexpected } from './cdk/failure'
import { redact, redactFailure } from './cdk/redact'
import { writer } from './cdk/writer'

type Program = {
  readonly summary: string
  /** Loaded only when asked for, so that `spec` does not pay for DuckDB. A program without verbs has one, named ''. */
  readonly verbs: Readonly<Record<string, () => Promise<Command>>>
  /** How a failure is told to the caller of this program; answers the exit status. */
  readonly fail: (io: Io, verb: string, failure: Failure) => Promise<number>
  /** After a signal: an exit status of 143 or 130, where others die of the signal itself. */
  readonly exitsOnSignal?: true
}

const tellPerson: Program['fail'] = async (io, _verb, failure) => {
  io.warn(failure.message)
  if (failure._tag === 'System' && failure.detail !== undefined) io.warn(failure.detail)
  return 1
}

const programs = {
  'source-feedback': {
    summary: 'Airbyte source for the Feedback Data Service',
    verbs: {
      spec: async () => (await import('./commands/source/spec.js')).spec,
      check: async () => (await import('./commands/source/check.js')).check,
      discover: async () => (await import('./commands/source/discover.js')).discover,
      read: async () => (await import('./commands/source/read.js')).read,
    },
    fail: async (io, verb, failure) => (await import('./commands/source/fail.js')).fail(io, verb, failure),
  },
  'tap-feedback': {
    summary: 'Singer tap for the Feedback Data Service',
    verbs: { '': async () => (await import('./commands/tap/tap.js')).tap },
    fail: async (io, verb, failure) => (await import('./commands/tap/fail.js')).fail(io, verb, failure),
    exitsOnSignal: true,
  },
  'destination-feedback': {
    summary: 'Airbyte destination for the Feedback Data Service',
    verbs: {
      spec: async () => (await import('./commands/destination/spec.js')).spec,
      check: async () => (await import('./commands/destination/check.js')).check,
      discover: async () => (await import('./commands/destination/discover.js')).discover,
      write: async () => (await import('./commands/destination/write.js')).write,
    },
    fail: async (io, verb, failure) => (await import('./commands/source/fail.js')).fail(io, verb, failure),
  },
  'target-feedback': {
    summary: 'Singer target for the Feedback Data Service',
    verbs: { '': async () => (await import('./commands/target/target.js')).target },
    fail: async (io, verb, failure) => (await import('./commands/target/fail.js')).fail(io, verb, failure),
    exitsOnSignal: true,
  },
  feedback: {
    summary: 'The Feedback Data Service, for people',
    verbs: {
      sync: async () => (await import('./commands/sync.js')).sync,
      catalog: async () => (await import('./commands/catalog.js')).catalog,
      state: async () => (await import('./commands/state.js')).state,
      snapshot: async () => (await import('./commands/snapshot.js')).snapshot,
      verify: async () => (await import('./commands/verify.js')).verify,
      replay: async () => (await import('./commands/replay.js')).replay,
      diff: async () => (await import('./commands/diff.js')).diff,
      report: async () => (await import('./commands/report.js')).report,
      query: async () => (await import('./commands/query.js')).query,
      sandbox: async () => (await import('./commands/sandbox.js')).sandbox,
      demo: async () => (await import('./commands/demo.js')).demo,
    },
    fail: tellPerson,
  },
} satisfies Record<string, Program>

const overview = async (name: string, { summary, verbs }: Program): Promise<string> => {
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
const run = async (
  name: string,
  program: Program,
  io: Io,
  args: ReadonlyArray<string>,
  crashed: Promise<never>,
): Promise<number> => {
  const [verb = '', ...rest] = Object.hasOwn(program.verbs, '') ? ['', ...args] : args
  if ((verb === '' && !Object.hasOwn(program.verbs, '')) || verb === '--help' || verb === '-h' || verb === 'help') {
    await io.print(await overview(name, program))
    return verb === '' ? 2 : 0
  }
  const load = Object.hasOwn(program.verbs, verb) ? program.verbs[verb] : undefined
  if (load === undefined) {
    io.warn(`${name}: there is no verb "${verb}". Choose among ${Object.keys(program.verbs).join(', ')}.`)
    return 2
  }
  const command = await load()
  if (rest.includes('--help') || rest.includes('-h')) {
    await io.print(help(name, command))
    return 0
  }
  try {
    return await Promise.race([command.run(io, parse(name, command, rest)), crashed])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') throw error
    const failure = error instanceof Stopped ? error.failure : unexpected(error)
    const told = await program.fail(io, verb, redactFailure(io.clean, failure))
    return told !== 0 && error instanceof Stopped ? Math.max(told, error.status) : told
  }
}

/** How long a stop waits for a reader that takes nothing any more, in milliseconds. */
const patience = 10_000

/** Runs one of the programs on this process: the only place that touches it. */
export const main = (name: keyof typeof programs): void => {
  const stop = new AbortController()
  const out = writer(1)
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
      setTimeout(() => die(signal), patience).unref()
    })
  let clean = redact([])
  const hidden: string[] = []
  let progressing = false
  const warn = (line: string): void => {
    process.stderr.write(`${progressing ? '\r\x1b[K' : ''}${clean(line)}\n`)
    progressing = false
  }
  const io: Io = {
    env: process.env,
    pid: process.pid,
    stdin: process.stdin,
    print: out.write,
    warn,
    progress: (line) => {
      if (process.stderr.isTTY !== true) return
      progressing = true
      process.stderr.write(`\r\x1b[K${clean(line)}`)
    },
    hide: (secrets) => {
      hidden.push(...secrets)
      clean = redact(hidden)
    },
    clean: (text) => clean(text),
    colours: process.stdout.isTTY === true && process.env.NO_COLOR === undefined,
    stop: stop.signal,
  }
  process.stderr.on('error', () => undefined)
  const crashed = new Promise<never>((_, reject) => process.on('uncaughtException', reject))
  /** To exit drops what a slow reader of stderr has not taken yet. */
  const told = (): Promise<unknown> =>
    Promise.race([
      new Promise((resolve) => process.stderr.write('', resolve)),
      new Promise((resolve) => setTimeout(resolve, patience).unref()),
    ])
  const finish = async () => {
    const status = await run(name, programs[name], io, process.argv.slice(2), crashed)
    await out.flush()
    return status
  }
  finish()
    .catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EPIPE') warn(unexpected(error).message)
      return undefined
    })
    .then(async (status) => {
      await told()
      return status === undefined || caught === undefined ? process.exit(status ?? 1) : die(caught)
    })
}
