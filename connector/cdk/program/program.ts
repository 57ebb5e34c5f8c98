import { unexpectedFailure } from '../failure'
import { createRedactor } from '../redact'
import type { CommandIo } from './command'
import { limitYoungHeap } from './heap'
import { createLineEditor } from './line-editor'
import { createProgressPrinter } from './progress'
import { type Program, runCommandLine } from './run-command'
import { type StopSignal, stallTimeout, stopTimeout, watchForStall } from './signals'
import { createStdoutWriter, outputFailure } from './stdout'
import { createTerminalWriter, showsColors } from './terminal'

/** Runs a program in this process (`host`) and ends it with the exit status, or by the signal that stopped it. */
export const runProgram = (name: string, program: Program, host: NodeJS.Process): void => {
  // The modules of a command are loaded only now, which alone would make the young part eight times as large.
  limitYoungHeap()
  const stop = new AbortController()
  // To name it makes a pipe answer that it is full. A write that waits for room would hold a thread, and with it our
  // exit.
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
