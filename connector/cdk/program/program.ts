import { unexpectedFailure } from '../failure'
import { limitYoungHeap } from './heap'
import { createProcessIo } from './process-io'
import { type Program, runCommandLine } from './run-command'
import { stallTimeout, stopOnSignals, stopTimeout } from './signals'
import { createStdoutWriter, outputFailure } from './stdout'

/** Runs a program in this process (`host`). Ends it with the exit status, or by the signal that stopped it. */
export const runProgram = (name: string, program: Program, host: NodeJS.Process): void => {
  // The modules of a command are loaded only now. That alone would make the young generation eight times as large.
  limitYoungHeap()
  // Accessing host.stdout makes a full pipe report that it is full. A write that waits for room would block a thread,
  // and with it our exit.
  const stdout = createStdoutWriter(host.stdout.fd)
  const stop = stopOnSignals(host, program.exitsOnSignal, stdout)
  const io = createProcessIo(host, stdout, stop.signal)
  const crash = new Promise<never>((_, reject) => host.on('uncaughtException', reject))
  /** The exit status. Undefined, which means 1, if the output's reader is gone or the program has a bug. */
  const run = async (): Promise<number | undefined> => {
    try {
      const status = await runCommandLine(name, program, io, host.argv.slice(2), crash)
      await stdout.flush()
      return status
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPIPE') return undefined
      const failure = outputFailure(error)
      io.printWarning((failure ?? unexpectedFailure(error)).message)
      return failure === undefined ? undefined : program.outputStatus
    }
  }
  run().then(async (status) => {
    io.printProgress('')
    await flushStderr(host, stop.received() === undefined ? stopTimeout : stallTimeout)
    const signal = stop.received()
    return status === undefined || signal === undefined ? host.exit(status ?? 1) : stop.end(signal)
  })
}

/** Waits until stderr is written. An exit would drop what a slow reader has not read yet. */
const flushStderr = ({ stderr }: NodeJS.Process, timeout: number): Promise<unknown> =>
  Promise.race([
    new Promise((resolve) => stderr.write('', resolve)),
    new Promise((resolve) => setTimeout(resolve, timeout).unref()),
  ])
