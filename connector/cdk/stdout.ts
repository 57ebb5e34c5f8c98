import { write as writeTo } from 'node:fs'
import type { OutputText } from './lines'

/** Writes in order to a file descriptor, off the main thread, so that a reader that blocks us does not block our signals. */
export type StdoutWriter = {
  /** Copies the text; settles once less than `room` bytes wait. Rejects when the descriptor is broken (EPIPE). */
  readonly write: (text: OutputText) => Promise<void>
  /** Settles once everything taken has been written. */
  readonly flush: () => Promise<void>
}

type WaitingCaller = { readonly below: number; readonly resolve: () => void; readonly reject: (error: Error) => void }

/** Bytes to be written, from `from` to `to`. */
type OutputBlock = { readonly bytes: Buffer; from: number; to: number }

const blockSize = 1 << 18

/** How long a reader whose pipe is full is left alone, longer each time in a row (milliseconds). */
const minPause = 1
const maxPause = 16

/** A writer to `fd` that lets at most about `room` bytes wait, in blocks that are used again and again. */
export const createStdoutWriter = (fd: number, room = 1 << 20): StdoutWriter => {
  const full: OutputBlock[] = []
  const free: Buffer[] = []
  let open: OutputBlock = { bytes: Buffer.allocUnsafeSlow(blockSize), from: 0, to: 0 }
  let waiting = 0
  let busy = false
  let pause = minPause
  let broken: Error | undefined
  let waiters: WaitingCaller[] = []
  let turn: Promise<unknown> = Promise.resolve()

  const seal = (): void => {
    full.push(open)
    open = { bytes: free.pop() ?? Buffer.allocUnsafeSlow(blockSize), from: 0, to: 0 }
  }
  const append = (piece: Uint8Array): void => {
    for (let at = 0; at < piece.length; ) {
      if (open.to === blockSize) seal()
      const end = Math.min(piece.length, at + blockSize - open.to)
      open.bytes.set(at === 0 && end === piece.length ? piece : piece.subarray(at, end), open.to)
      open.to += end - at
      at = end
    }
    waiting += piece.length
  }
  const settle = () => {
    const ready = waiters.filter(({ below }) => broken !== undefined || waiting < below)
    waiters = waiters.filter((waiter) => !ready.includes(waiter))
    for (const { resolve, reject } of ready) broken === undefined ? resolve() : reject(broken)
  }
  const taken = (block: OutputBlock, written: number) => {
    waiting -= written
    block.from += written
    if (block.from < block.to) return
    full.shift()
    if (free.length * blockSize < room) free.push(block.bytes)
  }
  const resume = () => {
    busy = false
    pump()
  }
  const pump = () => {
    if (full.length === 0 && open.to > 0) seal()
    const block = full[0]
    if (busy || broken !== undefined || block === undefined) return
    busy = true
    writeTo(fd, block.bytes, block.from, block.to - block.from, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(resume, pause)
        pause = Math.min(pause * 2, maxPause)
        return
      }
      pause = minPause
      if (error === null) taken(block, written)
      else broken = error
      settle()
      resume()
    })
  }
  const until = (below: number) =>
    broken !== undefined
      ? Promise.reject(broken)
      : waiting < below
        ? Promise.resolve()
        : new Promise<void>((resolve, reject) => waiters.push({ below, resolve, reject }))
  const take = async (text: OutputText): Promise<void> => {
    for (const piece of typeof text === 'string' ? [Buffer.from(text)] : text) {
      append(piece)
      if (waiting < room) continue
      pump()
      await until(room)
    }
    pump()
    await until(room)
  }
  const inTurn = (effect: () => Promise<void>): Promise<void> => {
    const mine = turn.then(effect)
    turn = mine.catch(() => undefined)
    return mine
  }

  return { write: (text) => inTurn(() => take(text)), flush: () => inTurn(() => until(1)) }
}
