import { write as writeTo } from 'node:fs'
import { type Failure, transientFailure } from '../failure'
import type { OutputText } from '../lines'

/**
 * Writes to a file descriptor in order, on a pool thread. A reader that blocks the write does not block the process's
 * signal handlers.
 */
export type StdoutWriter = {
  /** Copies the text. Resolves once fewer than `room` bytes wait. Rejects if the descriptor is broken (EPIPE). */
  readonly write: (text: OutputText) => Promise<void>
  /** Resolves once everything is written. */
  readonly flush: () => Promise<void>
  /** How many bytes wait for the reader, and how many it has taken so far. */
  readonly progress: () => { readonly waiting: number; readonly written: number }
}

/** A writer to `fd` with a buffer of about `room` bytes, in blocks that are reused. */
export const createStdoutWriter = (fd: number, room = 1 << 20): StdoutWriter => {
  const output = newOutput(fd, room)
  let queue: Promise<unknown> = Promise.resolve()
  const enqueue = (effect: () => Promise<void>): Promise<void> => {
    const result = queue.then(effect)
    queue = result.catch(() => undefined)
    return result
  }
  return {
    write: (text) => enqueue(() => appendText(output, text)),
    flush: () => enqueue(() => waitBelow(output, 1)),
    progress: () => ({ waiting: output.waitingBytes, written: output.writtenBytes }),
  }
}

/** The bytes to write, from `from` to `to`. */
type OutputBlock = { readonly bytes: Buffer; from: number; to: number }

const blockSize = 1 << 18

const newBlock = (bytes: Buffer = Buffer.allocUnsafeSlow(blockSize)): OutputBlock => ({ bytes, from: 0, to: 0 })

type WaitingCaller = { readonly below: number; readonly resolve: () => void; readonly reject: (error: Error) => void }

/** The pending output of a writer. */
type Output = {
  readonly fd: number
  readonly room: number
  /** In writing order. The first block may be partly written. */
  readonly full: OutputBlock[]
  /** The block that receives the next bytes. */
  open: OutputBlock
  readonly free: Buffer[]
  waitingBytes: number
  writtenBytes: number
  isWriting: boolean
  /**
   * The pause before the next attempt to write into a full pipe, in milliseconds. Doubled after each failed attempt.
   */
  pause: number
  broken: Error | undefined
  waiters: ReadonlyArray<WaitingCaller>
}

const minPause = 1
const maxPause = 16

const newOutput = (fd: number, room: number): Output => ({
  fd,
  room,
  full: [],
  open: newBlock(),
  free: [],
  waitingBytes: 0,
  writtenBytes: 0,
  isWriting: false,
  pause: minPause,
  broken: undefined,
  waiters: [],
})

const appendText = async (output: Output, text: OutputText): Promise<void> => {
  for (const piece of typeof text === 'string' ? [Buffer.from(text)] : text) {
    appendBytes(output, piece)
    if (output.waitingBytes < output.room) continue
    writeNext(output)
    await waitBelow(output, output.room)
  }
  writeNext(output)
  await waitBelow(output, output.room)
}

const appendBytes = (output: Output, piece: Uint8Array): void => {
  for (let at = 0; at < piece.length; ) {
    if (output.open.to === blockSize) closeBlock(output)
    const { open } = output
    const end = Math.min(piece.length, at + blockSize - open.to)
    open.bytes.set(at === 0 && end === piece.length ? piece : piece.subarray(at, end), open.to)
    open.to += end - at
    at = end
  }
  output.waitingBytes += piece.length
}

const closeBlock = (output: Output): void => {
  output.full.push(output.open)
  output.open = newBlock(output.free.pop())
}

/** Writes the first block and then the others, unless a write is in progress. */
const writeNext = (output: Output): void => {
  if (output.full.length === 0 && output.open.to > 0) closeBlock(output)
  const [block] = output.full
  if (output.isWriting || output.broken !== undefined || block === undefined) return
  output.isWriting = true
  writeTo(output.fd, block.bytes, block.from, block.to - block.from, null, (error, written) => {
    if (error?.code === 'EAGAIN') {
      setTimeout(resume, output.pause, output)
      output.pause = Math.min(output.pause * 2, maxPause)
      return
    }
    output.pause = minPause
    if (error === null) recordWritten(output, block, written)
    else output.broken = error
    settleWaiters(output)
    resume(output)
  })
}

const resume = (output: Output): void => {
  output.isWriting = false
  writeNext(output)
}

const recordWritten = (output: Output, block: OutputBlock, written: number): void => {
  output.waitingBytes -= written
  output.writtenBytes += written
  block.from += written
  if (block.from < block.to) return
  output.full.shift()
  if (output.free.length * blockSize < output.room) output.free.push(block.bytes)
}

/** Resolves once fewer than `below` bytes wait. */
const waitBelow = (output: Output, below: number): Promise<void> => {
  if (output.broken !== undefined) return Promise.reject(output.broken)
  if (output.waitingBytes < below) return Promise.resolve()
  return new Promise((resolve, reject) => {
    output.waiters = [...output.waiters, { below, resolve, reject }]
  })
}

const settleWaiters = (output: Output): void => {
  const { broken, waitingBytes, waiters } = output
  const ready = waiters.filter(({ below }) => broken !== undefined || waitingBytes < below)
  output.waiters = waiters.filter((waiter) => !ready.includes(waiter))
  for (const { resolve, reject } of ready) broken === undefined ? resolve() : reject(broken)
}

const outputCodes = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']

/** The failure for an error of stdout, if it leads to a file that cannot be written; undefined for any other error. */
export const outputFailure = (error: unknown): Failure | undefined => {
  const { code = '', syscall } = error as NodeJS.ErrnoException
  return syscall === 'write' && outputCodes.includes(code)
    ? transientFailure(`The output cannot be written to stdout (${code}). Free up space there, then run again.`)
    : undefined
}
