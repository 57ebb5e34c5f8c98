import { constants, openSync, writeSync, write as writeTo } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Row } from './stream'

/** A text to print, or the pieces of a long one; each piece is valid until the next is asked for. */
export type OutputText = string | Iterable<Uint8Array>

/** The whole text as a string. */
export const joinText = (text: OutputText): string =>
  typeof text === 'string' ? text : Buffer.concat([...text]).toString()

/** One JSON line. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`

/**
 * Rows as lines, each between `before` and what `after` returns for it, in pieces: a page is never copied into one buffer, and
 * no record becomes a string. `after` is called for each row that has changes, and once for all others.
 */
export function* wrapRows(rows: ReadonlyArray<Row>, before: string, after: (row: Row) => string): Iterable<Uint8Array> {
  const tail = `${after({ json: new Uint8Array() })}\n`
  // One piece between two records: each piece costs a step of the iterator.
  const between = Buffer.from(tail + before)
  if (rows.length > 0) yield Buffer.from(before)
  let remaining = rows.length
  for (const row of rows) {
    yield row.json
    remaining -= 1
    const isLast = remaining === 0
    const end = row.changes === undefined ? tail : `${after(row)}\n`
    yield row.changes === undefined && !isLast ? between : Buffer.from(isLast ? end : end + before)
  }
}

const newline = 0x0a
const carriageReturn = 0x0d

/** Lines that came together, without their line ends. `isCut`: the input ended within this one line. */
export type LineBatch = { readonly lines: ReadonlyArray<Buffer>; readonly isCut: boolean }

/** The lines of a stream of bytes, without their line ends; the lines of a chunk come together. A line within a chunk is not copied. */
export async function* splitLines(input: AsyncIterable<Uint8Array>): AsyncIterable<LineBatch> {
  let lineStart: Array<Buffer> = []
  for await (const bytes of input) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines: Array<Buffer> = []
    let from = 0
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
      lines.push(
        trimCarriageReturn(
          lineStart.length === 0 ? chunk.subarray(from, to) : Buffer.concat([...lineStart, chunk.subarray(from, to)]),
        ),
      )
      lineStart = []
      from = to + 1
    }
    if (from < chunk.length) lineStart.push(chunk.subarray(from))
    if (lines.length > 0) yield { lines, isCut: false }
  }
  if (lineStart.length > 0) yield { lines: [trimCarriageReturn(Buffer.concat(lineStart))], isCut: true }
}

const trimCarriageReturn = (line: Buffer): Buffer => (line.at(-1) === carriageReturn ? line.subarray(0, -1) : line)

/** Writes to a file descriptor in order, on a thread of the pool: a reader that blocks the write does not block the signals of the process. */
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

/**
 * Writes to the terminal behind stderr what it takes at once, and drops the rest: Node's own writes to a terminal wait, and one that
 * is stopped by Ctrl-S would hold up the process. Undefined where the terminal cannot be opened once more.
 */
export const createTerminalWriter = (): ((text: string) => void) | undefined => {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
  try {
    const fd = openSync('/dev/stderr', O_WRONLY | O_NONBLOCK | O_NOCTTY)
    return (text) => {
      try {
        writeSync(fd, text)
      } catch {
        // It takes nothing now; the next redraw shows more.
      }
    }
  } catch {
    return undefined
  }
}

/** Milliseconds since 1970. */
export type TimeRange = { readonly from: number; readonly to: number }

/** How much of a range of time a list has covered, by the times of some of its rows. */
export type RangeEstimate = {
  readonly add: (time: number) => void
  /** From 0 to 1: now, and when this run began. Undefined where the rows keep no order of time. */
  readonly share: () => { readonly share: number; readonly before: number } | undefined
}

/** A list that falls back by more than this part of the range is in order of time only in parts, as by source and then by time. */
const maxFallback = 0.05

/** `asked`: what the list covers in the end. `earlier`: what runs before have read of it. */
export const createRangeEstimate = (asked: TimeRange, earlier: TimeRange | undefined): RangeEstimate => {
  let [first, last]: (number | undefined)[] = []
  /** How often the time moved forward and back from one row to the next. */
  let [forward, back] = [0, 0]
  let [highest, lowest] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  /** The longest ways back from the highest time and from the lowest. */
  let [fall, rise] = [0, 0]
  return {
    add: (time) => {
      if (last !== undefined && time > last) forward += 1
      if (last !== undefined && time < last) back += 1
      highest = Math.max(highest, time)
      lowest = Math.min(lowest, time)
      fall = Math.max(fall, highest - time)
      rise = Math.max(rise, time - lowest)
      first ??= time
      last = time
    },
    share: () => {
      if (first === undefined || last === undefined || forward + back === 0) return undefined
      const isAscending = forward >= 20 * back
      if (!isAscending && back < 20 * forward) return undefined
      const origin = isAscending ? Math.min(first, earlier?.from ?? first) : Math.max(first, earlier?.to ?? first)
      const length = isAscending ? asked.to - origin : origin - asked.from
      if (length <= 0 || (isAscending ? fall : rise) > maxFallback * length) return undefined
      const toShare = (time: number): number => Math.min(1, Math.abs(time - origin) / length)
      return { share: toShare(last), before: toShare(first) }
    },
  }
}

/** A time of milliseconds in words, such as `2 min`. */
export const formatTimeLeft = (millis: number): string => {
  const seconds = Math.round(millis / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** What a person types on a terminal: lines that can be edited, with those before them at the arrow keys for as long as the program runs. */
export type LineEditor = {
  /** The next line; 'interrupted' where Ctrl-C dropped it, 'ended' after Ctrl-D. */
  readonly readLine: (prompt: string) => Promise<{ readonly line: string } | 'interrupted' | 'ended'>
  /** Runs work that Ctrl-C stops, and not the program. */
  readonly runUntilInterrupt: <A>(work: (interrupt: AbortSignal) => Promise<A>) => Promise<A>
  readonly close: () => void
}

/** `flush`: resolves once all that was printed before a prompt is written. */
export const createLineEditor = (
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  flush: () => Promise<void>,
): LineEditor => {
  const editor = createInterface({ input, output, terminal: true, historySize: 1_000, removeHistoryDuplicates: true })
  const events: Array<Awaited<ReturnType<LineEditor['readLine']>>> = []
  let wake = (): void => undefined
  let interrupt: AbortController | undefined
  const push = (event: (typeof events)[number]): void => {
    events.push(event)
    wake()
  }
  editor.on('line', (line) => push({ line }))
  editor.on('close', () => push('ended'))
  editor.on('SIGINT', () => {
    if (interrupt !== undefined) return interrupt.abort()
    output.write('^C\n')
    // The cursor may stand inside the line: to its end, and all before it away, without another prompt.
    editor.setPrompt('')
    for (const name of ['e', 'u']) editor.write(null, { ctrl: true, name })
    push('interrupted')
  })
  return {
    readLine: async (prompt) => {
      await flush()
      if (events.length === 0) {
        editor.setPrompt(prompt)
        editor.prompt(true)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return events.shift() ?? 'ended'
    },
    runUntilInterrupt: async (work) => {
      interrupt = new AbortController()
      return work(interrupt.signal).finally(() => {
        interrupt = undefined
      })
    },
    close: () => editor.close(),
  }
}
