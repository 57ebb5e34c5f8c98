import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox } from '../../connector/sandbox/start'
import manifest from '../../package.json'

const root = join(__dirname, '..', '..')

/** What `npm run build` made; CONNECTOR_BUILD names another folder in its place. */
export const buildFolder = join(root, process.env.CONNECTOR_BUILD ?? 'build')

export type ProgramName = keyof typeof manifest.bin

export const programPath = (program: ProgramName): string =>
  join(buildFolder, manifest.bin[program].replace(/^build\//, ''))

export type ProgramResult = {
  /** 128 and the signal's number where a signal ended it, as a shell has it. */
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

export type ProgramOptions = {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Answers a signal to send once stdout holds what it waits for. */
  readonly signalAt?: (stdout: string) => NodeJS.Signals | undefined
  /** Closes our end of stdout after this many chunks. */
  readonly closeStdoutAfter?: number
}

const signalNumbers: Readonly<Record<string, number>> = { SIGINT: 2, SIGPIPE: 13, SIGTERM: 15, SIGKILL: 9 }

/** Runs a built program to its end. */
export const runProgram = (
  program: ProgramName,
  args: ReadonlyArray<string>,
  how: ProgramOptions = {},
): Promise<ProgramResult> =>
  new Promise((resolve, reject) => {
    const child = spawn(programPath(program), args, { cwd: how.cwd, env: { ...process.env, ...how.env } })
    let stdout = ''
    let stderr = ''
    let sent = false
    let chunks = 0
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      chunks += 1
      if (chunks === how.closeStdoutAfter) child.stdout.destroy()
      const signal = sent ? undefined : how.signalAt?.(stdout)
      if (signal === undefined) return
      sent = true
      child.kill(signal)
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.stdin.end()
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const status = code ?? 128 + (signalNumbers[signal ?? ''] ?? 0)
      resolve({ status, stdout, stderr })
    })
  })

/** A folder of JSON files that goes away again. */
export type JsonFolder = {
  readonly path: string
  readonly put: (name: string, value: unknown) => string
  readonly remove: () => void
}

export const createJsonFolder = (): JsonFolder => {
  const path = mkdtempSync(join(tmpdir(), 'connector-'))
  return {
    path,
    put: (name, value) => {
      const file = join(path, name)
      writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value))
      return file
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}

/** A config under which every stream of a sandbox has something to read. */
export const sandboxConfig = ({ url, accessToken }: Sandbox, more: object = {}) => ({
  base_url: url,
  start_date: '2000-01-01T00:00:00Z',
  entities: { location_ids: ['1001', '1002'], entity_ids: ['10'] },
  credentials: { auth_type: 'access_token', access_token: accessToken },
  ...more,
})
