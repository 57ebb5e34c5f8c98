import { EventEmitter } from 'node:events'
import fs from 'node:fs'
import { Readable, Writable } from 'node:stream'
import type { Program } from '../../connector/cdk'
import type { Chance } from './random'
import { createOwner, type Owner, type Realm } from './realm'

/** How a process ended. */
export type ProcessEnd = { readonly status: number } | { readonly signal: string }

/** A pipe between a process and its reader. */
type Pipe = {
  readonly owner: Owner
  /** What the process has written and the reader has not read. */
  held: Buffer[]
  heldBytes: number
  /** How much the kernel holds: 64 KiB, or a page where a user has many pipes. */
  readonly size: number
  isReaderGone: boolean
}

const firstPid = 100

/** A program that runs in the simulation. */
export type SimulatedProcess = {
  readonly owner: Owner
  readonly ended: () => ProcessEnd | undefined
  /** The pipe is empty. */
  readonly isDrained: () => boolean
  readonly stderr: () => string
  readonly signal: (name: 'SIGTERM' | 'SIGINT') => void
  /** Ends it at once: none of its code runs any more, and what it has not written is gone. */
  readonly kill: () => void
  /** As `kill`, in the middle of its next write to stdout. */
  readonly killInWrite: () => void
  /** The reader of stdout goes away. */
  readonly closeOutput: () => void
  /** From now on the reader pauses so long after each of some hundred pieces, milliseconds. */
  readonly slowReader: (pause: number) => void
}

/** More pauses of 5 s would take a run days, with an event each 16 ms in which it looks for room in the pipe. */
const mostSlowPieces = 500

export type ProcessOptions = {
  readonly name: string
  readonly program: Program
  readonly args: ReadonlyArray<string>
  /** Opens what it reads from stdin; undefined: an empty input. */
  readonly stdin: ((owner: Owner) => Readable) | undefined
  readonly chance: Chance
  /** Receives what the reader of stdout reads. */
  readonly onOutput: (bytes: Buffer) => void
  readonly onEnd: (owner: Owner) => void
}

/** Starts programs: `runProgram` of the kit with a process that is not this one. */
export type ProcessTable = {
  readonly start: (options: ProcessOptions) => SimulatedProcess
  /** Starts another world, with the same process ids as the first. */
  readonly reset: () => void
  /** Passes an uncaught error to the process whose code is running. Returns true if there is one. */
  readonly crash: (error: unknown) => boolean
}

export const installProcesses = (
  realm: Realm,
  runProgram: (name: string, program: Program, host: NodeJS.Process) => void,
): ProcessTable => {
  const pipes = new Map<
    number,
    { readonly pipe: Pipe; readonly write: (bytes: Buffer) => number | 'EAGAIN' | 'EPIPE' }
  >()
  const hosts = new Map<Owner, EventEmitter>()
  let lastFd = 1_000_000
  let lastPid = firstPid

  const realWrite = fs.write
  const write = (
    fd: number,
    buffer: Buffer,
    from: number,
    length: number,
    position: number | null,
    callback: (error: NodeJS.ErrnoException | null, written: number, buffer: Buffer) => void,
  ): void => {
    const found = pipes.get(fd)
    if (found === undefined) return void realWrite(fd, buffer, from, length, position, callback)
    // A thread of the pool writes it, a moment later.
    realm.schedule(0, found.pipe.owner, 'write', () => {
      const written = found.write(buffer.subarray(from, from + length))
      if (typeof written === 'number') return found.pipe.owner.isAlive ? callback(null, written, buffer) : undefined
      callback(Object.assign(new Error(`${written}: write`), { code: written, syscall: 'write' }), 0, buffer)
    })
  }
  Object.assign(fs, { write })

  const start = ({ name, program, args, stdin, chance, onOutput, onEnd }: ProcessOptions): SimulatedProcess => {
    lastFd += 1
    lastPid += 1
    const fd = lastFd
    const owner = createOwner(`${name} ${lastPid}`)
    const reader = createOwner(`reader of ${lastPid}`)
    const pipe: Pipe = { owner, held: [], heldBytes: 0, size: chance.pick([4_096, 65_536]), isReaderGone: false }
    let end: ProcessEnd | undefined
    let pause = 0
    let slowPieces = 0
    let isReading = false
    let isKilledInWrite = false
    const errors: string[] = []

    const read = (): void => {
      if (isReading || pipe.isReaderGone || pipe.heldBytes === 0) return
      isReading = true
      const isSlow = slowPieces > 0
      slowPieces -= 1
      realm.schedule((isSlow ? pause : 0) + chance.next(), reader, 'read', () => {
        isReading = false
        if (pipe.isReaderGone) return
        const all = Buffer.concat(pipe.held)
        const size = Math.min(all.length, chance.pick([100, 4_096, 65_536]))
        pipe.held = size === all.length ? [] : [all.subarray(size)]
        pipe.heldBytes -= size
        onOutput(all.subarray(0, size))
        read()
      })
    }
    pipes.set(fd, {
      pipe,
      write: (bytes) => {
        if (pipe.isReaderGone) return 'EPIPE'
        const size = Math.min(bytes.length, pipe.size - pipe.heldBytes)
        if (size === 0) return 'EAGAIN'
        const written = isKilledInWrite ? chance.between(0, size) : size
        pipe.held.push(Buffer.from(bytes.subarray(0, written)))
        pipe.heldBytes += written
        read()
        if (isKilledInWrite) finish({ signal: 'SIGKILL' })
        return written
      },
    })
    const finish = (how: ProcessEnd): void => {
      if (end !== undefined) return
      end = how
      owner.isAlive = false
      pipes.delete(fd)
      hosts.delete(owner)
      onEnd(owner)
    }
    const stderr = new Writable({
      write: (chunk, _encoding, callback) => {
        if (owner.isAlive) errors.push(String(chunk))
        callback()
      },
    })
    const host = Object.assign(new EventEmitter(), {
      argv: ['node', name, ...args],
      env: {},
      pid: lastPid,
      stdin: stdin?.(owner) ?? Readable.from([]),
      stdout: { isTTY: false, fd },
      stderr,
      exit: (status: number) => finish({ status }),
      kill: (_pid: number, signal: string) => finish({ signal }),
    })
    hosts.set(owner, host)
    realm.schedule(0, owner, 'start', () => runProgram(name, program, host as unknown as NodeJS.Process))
    return {
      owner,
      ended: () => end,
      isDrained: () => pipe.isReaderGone || pipe.heldBytes === 0,
      stderr: () => errors.join(''),
      signal: (signal) => void realm.schedule(0, owner, signal, () => void host.emit(signal)),
      kill: () => finish({ signal: 'SIGKILL' }),
      killInWrite: () => {
        isKilledInWrite = true
      },
      closeOutput: () => {
        pipe.isReaderGone = true
      },
      slowReader: (millis) => {
        pause = millis
        slowPieces = mostSlowPieces
      },
    }
  }
  return {
    start,
    reset: () => {
      lastPid = firstPid
    },
    crash: (error) => hosts.get(realm.owner())?.emit('uncaughtException', error) ?? false,
  }
}
