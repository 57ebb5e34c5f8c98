import type { StdoutWriter } from './stdout'

type StopSignal = 'SIGTERM' | 'SIGINT'

/** How long a stopped program may take, in milliseconds. Platforms kill it after 10 s. */
export const stopTimeout = 9_000

/** How long a stopped program waits for a reader that takes no output, in milliseconds. */
export const stallTimeout = 2_000

type ProgramStop = {
  /** Aborted by the first signal. A second signal, or a run that does not end in time, ends the process. */
  readonly signal: AbortSignal
  readonly received: () => StopSignal | undefined
  /** Ends the process as the signal would. */
  readonly end: (signal: StopSignal) => void
}

/** `exitsOnSignal`: exit with status 143 or 130 instead of ending by the signal. */
export const stopOnSignals = (host: NodeJS.Process, exitsOnSignal: boolean, stdout: StdoutWriter): ProgramStop => {
  const signals: ReadonlyArray<StopSignal> = ['SIGTERM', 'SIGINT']
  const stop = new AbortController()
  let received: StopSignal | undefined
  const end = (signal: StopSignal): void => {
    for (const each of signals) host.removeAllListeners(each)
    // A signal does not end the first process of a container.
    if (host.pid === 1 || exitsOnSignal) host.exit(signal === 'SIGTERM' ? 143 : 130)
    host.kill(host.pid, signal)
  }
  for (const signal of signals)
    host.on(signal, () => {
      if (received !== undefined) return end(signal)
      received = signal
      stop.abort()
      setTimeout(() => end(signal), stopTimeout).unref()
      watchForStall(stdout, () => end(signal))
    })
  return { signal: stop.signal, received: () => received, end }
}

/** Calls `onStall` if some output has waited for `stallTimeout` and its reader has taken none of it. */
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
