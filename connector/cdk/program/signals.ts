import type { StdoutWriter } from './stdout'

export type StopSignal = 'SIGTERM' | 'SIGINT'

/** How long a stopped program takes at most, in milliseconds: platforms kill after 10 s. */
export const stopTimeout = 9_000

/** How long a stopped program waits for a reader of its output that takes nothing, in milliseconds. */
export const stallTimeout = 2_000

/** Calls `onStall` once some output has waited for `stallTimeout` and its reader has taken none of it. */
export const watchForStall = ({ progress }: Pick<StdoutWriter, 'progress'>, onStall: () => void): void => {
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
