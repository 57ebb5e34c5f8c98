import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** The virtual environments that test/slow/run interop made. */
export const pythonProgram = (
  environment:
    | 'meltano'
    | 'airbyte'
    | 'airbyte-rules'
    | 'dbt'
    | 'dlt'
    | 'target-postgres'
    | 'fakesnow'
    | 'spark'
    | 'uv'
    | `duckdb-${string}`,
  program: string,
): string => join(process.env.INTEROP_VENV ?? '.venv', environment, 'bin', program)

/**
 * A program that comes before that of its environment on the path: a `pip`, and a Meltano that runs as a fork of one
 * that has already been imported.
 */
export const quickProgram = (environment: 'meltano' | 'airbyte' | 'dlt', program: string): string =>
  join(process.env.INTEROP_QUICK ?? '', environment, program)

export type ShellResult = { readonly status: number; readonly output: string }

export type ShellOptions = {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** Ends the command with SIGTERM once its output holds this. */
  readonly until?: RegExp
}

/** Runs a command to its end; `output` is stdout and stderr as they came. */
export const runShell = (
  command: string,
  args: ReadonlyArray<string>,
  { cwd, env, until }: ShellOptions,
): Promise<ShellResult> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let ended = false
    const hear = (chunk: Buffer) => {
      output += chunk.toString()
      if (ended || until === undefined || !until.test(output)) return
      ended = true
      child.kill('SIGTERM')
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', (code) => resolve({ status: code ?? -1, output }))
  })

/** The output of a command, which must have ended well. */
export const requireOutput = (command: string, { status, output }: ShellResult): string => {
  if (status !== 0) throw new Error(`${command} ended with ${status}:\n${output.slice(-4000)}`)
  return output
}

/** The same, which must end well. */
export const runShellOrThrow = async (
  command: string,
  args: ReadonlyArray<string>,
  how: ShellOptions,
): Promise<string> => requireOutput([command, ...args].join(' '), await runShell(command, args, how))
