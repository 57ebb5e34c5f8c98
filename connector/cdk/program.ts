import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { connectionStatusLine, errorTraceLine, failureTypes } from './airbyte/encode'
import { type Command, CommandError, type CommandIo, createProgressPrinter, formatHelp, suggestName } from './command'
import { createRedactor, type Failure, redactFailure, transientFailure, unexpectedFailure } from './failure'
import { createLineEditor, createStdoutWriter, createTerminalWriter, type StdoutWriter } from './lines'
import { reportSingerFailure } from './singer/command-line'

/** Enough for the young objects of one or two pages, in bytes. */
const youngHeapBytes = 4 << 20

/** Lets the old part of the heap grow by this percentage of its live objects before a collection; V8 lets it grow to several times that. */
export const setHeapGrowth = (percent: number): void => setFlagsFromString(`--heap-growing-percent=${percent}`)

/** Stops the growth of the young part of the heap if it is large enough; says whether it is. V8 does not make it smaller again. */
const limitYoungHeap = (): boolean => {
  const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0
  if (size < youngHeapBytes) return false
  setFlagsFromString('--semi-space-growth-factor=1')
  return true
}

/**
 * Keeps the heap of a run near what it needs. V8 would let it grow to several times that before a collection, and its young part
 * to 48 MB, which makes a run no faster. The returned function stops the growth of the young part once it is large enough:
 * call it after each message.
 */
export const limitHeap = (): (() => void) => {
  setHeapGrowth(150)
  let growing = true
  return () => {
    if (growing) growing = !limitYoungHeap()
  }
}

/** Reports the failure of a whole command to the caller of the program; returns the exit status. */
export type ReportFailure = (
  io: CommandIo,
  failure: Failure,
  /** `json`: the caller has asked for JSON with `--json`. */
  command: { readonly program: string; readonly verb: string; readonly json?: boolean },
) => Promise<number>

/** How the caller of a program expects it to end. */
type CallerConventions = {
  readonly reportFailure: ReportFailure
  /** After a signal, exit with status 143 or 130; other programs die of the signal itself. */
  readonly exitsOnSignal: boolean
  /** The exit status where stdout cannot be written. */
  readonly outputStatus: number
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

/** The exit statuses of a program for people, those of sysexits.h: another run may succeed only after `Transient`. */
const failureStatuses: Readonly<Record<Failure['_tag'], number>> = { Config: 78, System: 70, Transient: 75 }

/** The exit status for these failures: what a person must mend comes before what passes by itself. Without any: run again. */
export const failureStatus = (failures: ReadonlyArray<Failure>): number =>
  failureStatuses[
    (['Config', 'System'] as const).find((tag) => failures.some(({ _tag }) => _tag === tag)) ?? 'Transient'
  ]

/** A failure as `--json` prints it; the types are those of Airbyte's traces. */
export const describeFailure = ({ _tag, message }: Failure) => ({ type: failureTypes[_tag], message })

const reportToPerson: ReportFailure = async (io, failure, { json = false }) => {
  io.printProgress('')
  io.printWarning(failure.message)
  if (failure._tag === 'System' && failure.detail !== undefined) io.printWarning(failure.detail)
  if (json) await io.print(`${JSON.stringify({ failure: describeFailure(failure) }, null, 2)}\n`)
  return failureStatus([failure])
}

export const airbyteConventions: CallerConventions = {
  reportFailure: reportAirbyteFailure,
  exitsOnSignal: false,
  outputStatus: 1,
}
export const singerConventions: CallerConventions = {
  reportFailure: reportSingerFailure,
  exitsOnSignal: true,
  outputStatus: 1,
}
export const personConventions: CallerConventions = {
  reportFailure: reportToPerson,
  exitsOnSignal: false,
  outputStatus: failureStatuses.Transient,
}

export type Program = CallerConventions & {
  readonly summary: string
  readonly version: () => string
  /** What the list of verbs ends with. */
  readonly notes?: string
  /** By verb, each loaded when it is needed, so that `spec` does not load DuckDB. A program without verbs has one command, named ''. */
  readonly commands: Readonly<Record<string, () => Promise<Command>>>
}

/** What a program prints without a verb: its verbs. */
const formatOverview = async (name: string, { summary, commands, notes }: Program): Promise<string> => {
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
    `${name} VERB --help prints the options of a verb, ${name} --version the version.`,
    ...(notes === undefined ? [] : ['', notes]),
    '',
  ].join('\n')
}

const isHelp = (arg: string): boolean => arg === '--help' || arg === '-h'
const isVersion = (arg: string): boolean => arg === '--version'
/** The arguments before `--`, behind which nothing is an option. */
const optionArgs = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.includes('--') ? args.slice(0, args.indexOf('--')) : args

/** Runs a command of a program and returns the exit status. `crash` rejects with an error that was thrown where nothing awaits it. */
export const runCommandLine = async (
  name: string,
  program: Program,
  io: CommandIo,
  args: ReadonlyArray<string>,
  crash: Promise<never>,
): Promise<number> => {
  const { commands, reportFailure } = program
  const [verb = '', ...commandArgs] = Object.hasOwn(commands, '') ? ['', ...args] : args
  const load = Object.hasOwn(commands, verb) ? commands[verb] : undefined
  const printVersion = async (): Promise<number> => {
    await io.print(`${name} ${program.version()}\n`)
    return 0
  }
  if (load === undefined && isVersion(verb)) return printVersion()
  if (isHelp(verb) || verb === 'help' || (verb === '' && load === undefined)) {
    await io.print(await formatOverview(name, program))
    return verb === '' ? 2 : 0
  }
  if (load === undefined) {
    const verbs = Object.keys(commands)
    io.printWarning(`${name}: there is no verb "${verb}". Choose among ${verbs.join(', ')}.${suggestName(verb, verbs)}`)
    return 2
  }
  const command = await load()
  const given = optionArgs(commandArgs)
  if (given.some(isHelp)) {
    await io.print(formatHelp(name, command))
    return 0
  }
  if (given.some(isVersion) && !Object.hasOwn(command.options, 'version')) return printVersion()
  try {
    return await Promise.race([command.run(io, name, commandArgs), crash])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE' || outputFailure(error) !== undefined) throw error
    const failure = error instanceof CommandError ? error.failure : unexpectedFailure(error)
    const json = Object.hasOwn(command.options, 'json') && given.includes('--json')
    const status = await reportFailure(io, redactFailure(io.redactText, failure), { program: name, verb, json })
    return status !== 0 && error instanceof CommandError ? (error.status ?? status) : status
  }
}

const outputCodes = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']

/** The failure of stdout, where it leads to a file that cannot take what is printed; undefined for any other error. */
const outputFailure = (error: unknown): Failure | undefined => {
  const { code = '', syscall } = error as NodeJS.ErrnoException
  return syscall === 'write' && outputCodes.includes(code)
    ? transientFailure(`The output cannot be written to stdout (${code}). Make room where it goes, and run again.`)
    : undefined
}

type StopSignal = 'SIGTERM' | 'SIGINT'

/** How long a stopped program takes at most, in milliseconds: platforms kill after 10 s. */
const stopTimeout = 9_000

/** How long a stopped program waits for a reader of its output that takes nothing, in milliseconds. */
const stallTimeout = 2_000

/** Calls `onStall` once some output has waited for `stallTimeout` and its reader has taken none of it. */
const watchForStall = ({ progress }: Pick<StdoutWriter, 'progress'>, onStall: () => void): void => {
  let last = progress().written
  let stalledSince = Date.now()
  const timer = setInterval(() => {
    const { waiting, written } = progress()
    if (waiting === 0 || written !== last) {
      last = written
      stalledSince = Date.now()
    } else if (Date.now() - stalledSince >= stallTimeout) {
      clearInterval(timer)
      onStall()
    }
  }, 100).unref()
}

/** https://no-color.org: any text in NO_COLOR but the empty one turns colors off. */
export const showsColors = ({ stdout, env }: Pick<NodeJS.Process, 'stdout' | 'env'>): boolean =>
  stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'

/** Runs a program in this process (`host`) and ends it with the exit status, or by the signal that stopped it. */
export const runProgram = (name: string, program: Program, host: NodeJS.Process): void => {
  // The modules of a command are loaded only now, which alone would make the young part eight times as large.
  limitYoungHeap()
  const stop = new AbortController()
  // To name it makes a pipe answer that it is full. A write that waits for room would hold a thread, and with it our exit.
  const stdout = createStdoutWriter(host.stdout.fd)
  const signals: ReadonlyArray<StopSignal> = ['SIGTERM', 'SIGINT']
  let received: StopSignal | undefined
  const endBySignal = (signal: StopSignal): void => {
    for (const each of signals) host.removeAllListeners(each)
    // A signal does not end the first process of a container.
    if (host.pid === 1 || program.exitsOnSignal) host.exit(signal === 'SIGTERM' ? 143 : 130)
    host.kill(host.pid, signal)
  }
  for (const signal of signals)
    host.on(signal, () => {
      if (received !== undefined) return endBySignal(signal)
      received = signal
      stop.abort()
      setTimeout(() => endBySignal(signal), stopTimeout).unref()
      watchForStall(stdout, () => endBySignal(signal))
    })
  let redactText = createRedactor([])
  const secrets: string[] = []
  const drawOnTerminal = host.stderr.isTTY === true ? createTerminalWriter() : undefined
  const drawProgress = drawOnTerminal ?? ((text: string): unknown => host.stderr.write(text))
  const progress = createProgressPrinter({
    columns: () => (host.stderr.isTTY === true ? host.stderr.columns || 80 : undefined),
    write: (text) => void drawProgress(redactText(text)),
    now: Date.now,
  })
  setInterval(progress.repeat, 500).unref()
  const printWarning = (line: string): void => {
    progress.clear()
    host.stderr.write(`${redactText(line)}\n`)
  }
  const io: CommandIo = {
    env: host.env,
    pid: host.pid,
    stdin: host.stdin,
    print: (text) => {
      progress.clear()
      return stdout.write(text)
    },
    printWarning,
    printProgress: progress.print,
    isInteractive: host.stdin.isTTY === true && host.stderr.isTTY === true,
    printsOnTerminal: host.stdout.isTTY === true,
    hasColors: showsColors(host),
    setEcho: (on) => void host.stdin.setRawMode?.(!on),
    editLines: () => createLineEditor(host.stdin, host.stdout, stdout.flush),
    addSecrets: (more) => {
      secrets.push(...more)
      redactText = createRedactor(secrets)
    },
    redactText: (text) => redactText(text),
    stop: stop.signal,
  }
  host.stderr.on('error', () => undefined)
  const crash = new Promise<never>((_, reject) => host.on('uncaughtException', reject))
  /** Waits until stderr is written, since an exit drops what a slow reader has not read yet. */
  const flushStderr = (): Promise<unknown> =>
    Promise.race([
      new Promise((resolve) => host.stderr.write('', resolve)),
      new Promise((resolve) => setTimeout(resolve, received === undefined ? stopTimeout : stallTimeout).unref()),
    ])
  const run = async (): Promise<number> => {
    const status = await runCommandLine(name, program, io, host.argv.slice(2), crash)
    await stdout.flush()
    return status
  }
  run()
    .catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'EPIPE') return undefined
      const failure = outputFailure(error)
      printWarning((failure ?? unexpectedFailure(error)).message)
      return failure === undefined ? undefined : program.outputStatus
    })
    .then(async (status) => {
      progress.clear()
      await flushStderr()
      return status === undefined || received === undefined ? host.exit(status ?? 1) : endBySignal(received)
    })
}
