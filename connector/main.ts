import { type CommandIo, createRedactor, createStdoutWriter, unexpectedFailure } from './cdk'
import { exitsOnSignal, type ProgramName, runProgram } from './cli'

type StopSignal = 'SIGTERM' | 'SIGINT'

/** How long a stopped program waits for a reader of its output that reads nothing, in milliseconds. */
const stopTimeout = 10_000

/** Runs one of the programs in this process. No other file uses `process`. */
export const main = (name: ProgramName): void => {
  const stop = new AbortController()
  const stdout = createStdoutWriter(1)
  const signals: ReadonlyArray<StopSignal> = ['SIGTERM', 'SIGINT']
  let received: StopSignal | undefined
  const endBySignal = (signal: StopSignal): void => {
    for (const each of signals) process.removeAllListeners(each)
    // A signal does not end the first process of a container.
    if (process.pid === 1 || exitsOnSignal(name)) process.exit(signal === 'SIGTERM' ? 143 : 130)
    process.kill(process.pid, signal)
  }
  for (const signal of signals)
    process.on(signal, () => {
      if (received !== undefined) return endBySignal(signal)
      received = signal
      stop.abort()
      setTimeout(() => endBySignal(signal), stopTimeout).unref()
    })
  let redactText = createRedactor([])
  const secrets: string[] = []
  let hasProgressLine = false
  const printWarning = (line: string): void => {
    process.stderr.write(`${hasProgressLine ? '\r\x1b[K' : ''}${redactText(line)}\n`)
    hasProgressLine = false
  }
  const io: CommandIo = {
    env: process.env,
    pid: process.pid,
    stdin: process.stdin,
    print: stdout.write,
    printWarning,
    printProgress: (line) => {
      if (process.stderr.isTTY !== true) return
      hasProgressLine = true
      process.stderr.write(`\r\x1b[K${redactText(line)}`)
    },
    addSecrets: (more) => {
      secrets.push(...more)
      redactText = createRedactor(secrets)
    },
    redactText: (text) => redactText(text),
    stop: stop.signal,
  }
  process.stderr.on('error', () => undefined)
  const crash = new Promise<never>((_, reject) => process.on('uncaughtException', reject))
  /** Waits until stderr is written, since an exit drops what a slow reader has not read yet. */
  const flushStderr = (): Promise<unknown> =>
    Promise.race([
      new Promise((resolve) => process.stderr.write('', resolve)),
      new Promise((resolve) => setTimeout(resolve, stopTimeout).unref()),
    ])
  const run = async (): Promise<number> => {
    const status = await runProgram(name, io, process.argv.slice(2), crash)
    await stdout.flush()
    return status
  }
  run()
    .catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EPIPE') printWarning(unexpectedFailure(error).message)
      return undefined
    })
    .then(async (status) => {
      await flushStderr()
      return status === undefined || received === undefined ? process.exit(status ?? 1) : endBySignal(received)
    })
}
