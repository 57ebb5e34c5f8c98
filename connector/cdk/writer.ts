import { writev } from 'node:fs'

/** Writes in order to a file descriptor, off the main thread, so that a reader that blocks us does not block our signals. */
export type Writer = {
  /** Takes a chunk; settles once less than `room` bytes wait. Rejects when the descriptor is broken (EPIPE). */
  readonly write: (chunk: string | Uint8Array) => Promise<void>
  /** Settles once everything taken has been written. */
  readonly flush: () => Promise<void>
}

type Waiter = { readonly below: number; readonly resolve: () => void; readonly reject: (error: Error) => void }

/** A writer to `fd` that lets at most about `room` bytes wait. */
export const writer = (fd: number, room = 1 << 20): Writer => {
  let queue: Uint8Array[] = []
  let waiting = 0
  let busy = false
  let broken: Error | undefined
  let waiters: Waiter[] = []

  const settle = () => {
    const ready = waiters.filter(({ below }) => broken !== undefined || waiting < below)
    waiters = waiters.filter((waiter) => !ready.includes(waiter))
    for (const { resolve, reject } of ready) broken === undefined ? resolve() : reject(broken)
  }
  const taken = (written: number) => {
    waiting -= written
    let left = written
    while (queue[0] !== undefined && queue[0].length <= left) left -= queue.shift()?.length ?? 0
    if (queue[0] !== undefined && left > 0) queue[0] = queue[0].subarray(left)
  }
  const pump = () => {
    if (busy || broken !== undefined || queue.length === 0) return
    busy = true
    writev(fd, queue.slice(0, 512), (error, written) => {
      busy = false
      if (error === null) taken(written)
      else if (error.code !== 'EAGAIN') {
        broken = error
        queue = []
      }
      settle()
      if (error?.code === 'EAGAIN') setTimeout(pump, 5)
      else pump()
    })
  }
  const until = (below: number) =>
    broken !== undefined
      ? Promise.reject(broken)
      : waiting < below
        ? Promise.resolve()
        : new Promise<void>((resolve, reject) => waiters.push({ below, resolve, reject }))

  return {
    write: (chunk) => {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      if (bytes.length > 0) queue.push(bytes)
      waiting += bytes.length
      pump()
      return until(room)
    },
    flush: () => until(1),
  }
}
