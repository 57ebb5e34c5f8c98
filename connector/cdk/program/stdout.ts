import { write as writeTo } from 'node:fs'
import { type Failure, transientFailure } from '../failure'
import type { OutputText } from '../lines'

/**
 * Writes to a file descriptor in order, on a thread of the pool: a reader that blocks the write does not block the
 * signals of the process.
 */
export type StdoutWriter = {
  /** Copies the text; resolves once fewer than `room` bytes wait. Rejects if the descriptor is broken (EPIPE). */
  readonly write: (text: OutputText) => Promise<void>
  /** Resolves once everything is written. */
  readonly flush: () => Promise<void>
  /** The bytes that wait for the reader, and those that it has room for by now. */
  readonly progress: () => { readonly waiting: number; readonly written: number }
}

type WaitingCaller = { readonly below: number; readonly resolve: () => void; readonly reject: (error: Error) => void }

/** Bytes to be written, from `from` to `to`. */
type OutputBlock = { readonly bytes: Buffer; from: number; to: number }

const blockSize = 1 << 18

/** The pause before the next try to write into a full pipe, doubled each time in a row (milliseconds). */
const minPause = 1
const maxPause = 16

/** A writer to `fd` that lets at most about `room` bytes wait, in blocks that it reuses. */
export const createStdoutWriter = (fd: number, room = 1 << 20): StdoutWriter => {
  const full: OutputBlock[] = []
  const free: Buffer[] = []
  let open: OutputBlock = { bytes: Buffer.allocUnsafeSlow(blockSize), from: 0, to: 0 }
  let waitingBytes = 0
  let writtenBytes = 0
  let isWriting = false
  let pause = minPause
  let broken: Error | undefined
  let waiters: WaitingCaller[] = []
  let queue: Promise<unknown> = Promise.resolve()

  const closeBlock = (): void => {
    full.push(open)
    open = { bytes: free.pop() ?? Buffer.allocUnsafeSlow(blockSize), from: 0, to: 0 }
  }
  const append = (piece: Uint8Array): void => {
    for (let at = 0; at < piece.length; ) {
      if (open.to === blockSize) closeBlock()
      const end = Math.min(piece.length, at + blockSize - open.to)
      open.bytes.set(at === 0 && end === piece.length ? piece : piece.subarray(at, end), open.to)
      open.to += end - at
      at = end
    }
    waitingBytes += piece.length
  }
  const resolveWaiters = () => {
    const ready = waiters.filter(({ below }) => broken !== undefined || waitingBytes < below)
    waiters = waiters.filter((waiter) => !ready.includes(waiter))
    for (const { resolve, reject } of ready) broken === undefined ? resolve() : reject(broken)
  }
  const recordWritten = (block: OutputBlock, written: number) => {
    waitingBytes -= written
    writtenBytes += written
    block.from += written
    if (block.from < block.to) return
    full.shift()
    if (free.length * blockSize < room) free.push(block.bytes)
  }
  const resume = () => {
    isWriting = false
    writeNext()
  }
  const writeNext = () => {
    if (full.length === 0 && open.to > 0) closeBlock()
    const block = full[0]
    if (isWriting || broken !== undefined || block === undefined) return
    isWriting = true
    writeTo(fd, block.bytes, block.from, block.to - block.from, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(resume, pause)
        pause = Math.min(pause * 2, maxPause)
        return
      }
      pause = minPause
      if (error === null) recordWritten(block, written)
      else broken = error
      resolveWaiters()
      resume()
    })
  }
  const waitBelow = (below: number) =>
    broken !== undefined
      ? Promise.reject(broken)
      : waitingBytes < below
        ? Promise.resolve()
        : new Promise<void>((resolve, reject) => waiters.push({ below, resolve, reject }))
  const appendAndWait = async (text: OutputText): Promise<void> => {
    for (const piece of typeof text === 'string' ? [Buffer.from(text)] : text) {
      append(piece)
      if (waitingBytes < room) continue
      writeNext()
      await waitBelow(room)
    }
    writeNext()
    await waitBelow(room)
  }
  const enqueue = (effect: () => Promise<void>): Promise<void> => {
    const result = queue.then(effect)
    queue = result.catch(() => undefined)
    return result
  }

  return {
    write: (text) => enqueue(() => appendAndWait(text)),
    flush: () => enqueue(() => waitBelow(1)),
    progress: () => ({ waiting: waitingBytes, written: writtenBytes }),
  }
}

const outputCodes = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']

/** The failure of stdout, where it leads to a file that cannot take what is printed; undefined for any other error. */
export const outputFailure = (error: unknown): Failure | undefined => {
  const { code = '', syscall } = error as NodeJS.ErrnoException
  return syscall === 'write' && outputCodes.includes(code)
    ? transientFailure(`The output cannot be written to stdout (${code}). Make room where it goes, and run again.`)
    : undefined
}
