import { unexpectedFailure } from '../failure'
import { limitYoungHeap } from './heap'
import { createProcessIo } from './process-io'
import { type Program, runCommandLine } from './run-command'
import { stallTimeout, stopOnSignals, stopTimeout } from './signals'
import { createStdoutWriter, outputFailure } from './stdout'

/** Runs a program in this process (`host`) and ends it with the exit status, or by the signal that stopped it. */
export const runProgram = (name: string, program: Program, host: NodeJS.Process): void => {
  // The modules of a command are loaded only now, which alone would make the young part eight times as large.
  limitYoungHeap()
  // Naming host.stdout makes a full pipe say so. A write that waits for room would hold a thread, and with it our exit.
  const stdout = createStdoutWriter(host.stdout.fd)
  const stop = stopOnSignals(host, program.exitsOnSignal, stdout)
  const io = createProcessIo(host, stdout, stop.signal)
  const crash = new Promise<never>((_, reject) => host.on('uncaughtException', reject))
  /** The exit status; undefined if the reader of the output is gone or the program is wrong, which is 1 in any case. */
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

/** Waits until stderr is written, since an exit drops what a slow reader has not read yet. */
const flushStderr = ({ stderr }: NodeJS.Process, timeout: number): Promise<unknown> =>
  Promise.race([
    new Promise((resolve) => stderr.write('', resolve)),
    new Promise((resolve) => setTimeout(resolve, timeout).unref()),
  ])
