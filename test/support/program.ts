import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What `npm run build` made; CONNECTOR_BUILD names another folder in its place. */
export const programPath = (name: string): string =>
  join(__dirname, '../..', process.env.CONNECTOR_BUILD ?? 'build', 'bin', `${name}.js`)
const folder = mkdtempSync(join(tmpdir(), 'feedback-'))
let files = 0

/** A new file with this text, or this value as JSON; answers its path. */
export const writeTempFile = (content: unknown, ending = 'json'): string => {
  files += 1
  const path = join(folder, `${files}.${ending}`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

/** A path in a folder of this test's own, where nothing is yet. */
export const freshPath = (ending: string): string => {
  files += 1
  return join(folder, `${files}.${ending}`)
}

export type ProgramResult = {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export type RunningProgram = {
  readonly kill: (signal: NodeJS.Signals) => void
  /** Calls back with the number of bytes on stdout so far, whenever there are more. */
  readonly onOutput: (listener: (bytes: number) => void) => void
  readonly ended: Promise<ProgramResult>
}

/** Starts one of our built commands as a user would. */
export const startProgram = (
  name: string,
  args: ReadonlyArray<string>,
  options: { readonly stdin?: string; readonly env?: Record<string, string>; readonly cwd?: string } = {},
): RunningProgram => {
  const child = spawn(process.execPath, [programPath(name), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  const chunks: Buffer[] = []
  const errors: Buffer[] = []
  const listeners: Array<(bytes: number) => void> = []
  let bytes = 0
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
    for (const listener of listeners) listener(bytes)
  })
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.stdin ?? '')
  return {
    kill: (signal) => child.kill(signal),
    onOutput: (listener) => listeners.push(listener),
    ended: new Promise((resolve) => {
      child.on('close', (status, signal) =>
        resolve({ status, signal, stdout: Buffer.concat(chunks).toString(), stderr: Buffer.concat(errors).toString() }),
      )
    }),
  }
}

/** Runs one of our built commands to its end. */
export const runProgram = (
  name: string,
  args: ReadonlyArray<string>,
  options: Parameters<typeof startProgram>[2] = {},
): Promise<ProgramResult> => startProgram(name, args, options).ended
