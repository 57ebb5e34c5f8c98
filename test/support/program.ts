import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import manifest from '../../package.json'

/** What `npm run build` made; CONNECTOR_BUILD names another folder in its place. */
export const buildFolder = join(__dirname, '../..', process.env.CONNECTOR_BUILD ?? 'build')

export type ProgramName = keyof typeof manifest.bin

export const programPath = (program: ProgramName): string =>
  join(buildFolder, manifest.bin[program].replace(/^build\//, ''))

export type ProgramResult = {
  /** 128 and the signal's number where a signal ended the program, as in a shell. */
  readonly status: number
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export type ProgramOptions = {
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Returns a signal to send, once stdout holds what it waits for. */
  readonly signalAt?: (stdout: string) => NodeJS.Signals | undefined
  /** Closes our end of stdout after this many chunks. */
  readonly closeStdoutAfter?: number
}

export type RunningProgram = {
  readonly pid: number | undefined
  readonly kill: (signal: NodeJS.Signals) => void
  /** Calls back with the number of bytes on stdout so far, whenever there are more. */
  readonly onOutput: (listener: (bytes: number) => void) => void
  readonly ended: Promise<ProgramResult>
}

/** Starts a built program as a user does. */
export const startProgram = (
  program: ProgramName,
  args: ReadonlyArray<string>,
  { stdin = '', env = {}, cwd, signalAt, closeStdoutAfter }: ProgramOptions = {},
): RunningProgram => {
  const child = spawn(process.execPath, [programPath(program), ...args], { cwd, env: { ...process.env, ...env } })
  const chunks: Buffer[] = []
  const errors: Buffer[] = []
  const listeners: Array<(bytes: number) => void> = []
  let bytes = 0
  let isSignalSent = false
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
    if (chunks.length === closeStdoutAfter) child.stdout.destroy()
    for (const listener of listeners) listener(bytes)
    if (isSignalSent || signalAt === undefined) return
    const signal = signalAt(Buffer.concat(chunks).toString())
    if (signal === undefined) return
    isSignalSent = true
    child.kill(signal)
  })
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  return {
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    onOutput: (listener) => listeners.push(listener),
    ended: new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, signal) =>
        resolve({
          status: code ?? 128 + (signal === null ? 0 : constants.signals[signal]),
          signal,
          stdout: Buffer.concat(chunks).toString(),
          stderr: Buffer.concat(errors).toString(),
        }),
      )
    }),
  }
}

/** Runs a built program to its end. */
export const runProgram = (
  program: ProgramName,
  args: ReadonlyArray<string>,
  options?: ProgramOptions,
): Promise<ProgramResult> => startProgram(program, args, options).ended

/** Kills a program once a file that it writes has this many bytes, or lets it end earlier. */
export const killOnceWritten = async (program: RunningProgram, path: string, bytes: number): Promise<ProgramResult> => {
  let hasEnded = false
  void program.ended.then(() => {
    hasEnded = true
  })
  while (!hasEnded && (statSync(path, { throwIfNoEntry: false })?.size ?? -1) < bytes) await sleep(1)
  program.kill('SIGKILL')
  return program.ended
}
