import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sandbox } from '../../connector/sandbox/start'
import { programPath } from './program'
import { reviewsConfig } from './sandbox'

export type ShellResult = { readonly status: number | null; readonly stdout: string; readonly stderr: string }

/** Runs a program, with `folder` first on the PATH. */
export const runIn = (
  folder: string,
  program: string,
  args: ReadonlyArray<string>,
  { cwd = folder, env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<ShellResult> =>
  new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(program, args, {
      cwd,
      env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}`, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [stdout, stderr] = ['', '']
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, stdout, stderr }))
  })

/** A program of this name in `bin` of the folder, first on the PATH of `runIn`. */
export const putProgram = (folder: string, name: string, script: string): void => {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const path = join(folder, 'bin', name)
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
}

/** `feedback` as it is built. */
export const putFeedback = (folder: string): void =>
  putProgram(folder, 'feedback', `exec "${process.execPath}" "${programPath('feedback')}" "$@"`)

/**
 * `feedback` that writes down its verb and ends with one status after the other; with the last of them from then on.
 */
export const putStandIn = (folder: string, statuses: ReadonlyArray<number>): void => {
  writeFileSync(join(folder, 'statuses'), `${statuses.join('\n')}\n`)
  putProgram(
    folder,
    'feedback',
    `cd "${folder}"; echo "$1" >> verbs; n=$(wc -l < verbs); m=$(wc -l < statuses); [ "$n" -le "$m" ] || n=$m
echo "the log of $1" >&2; exit "$(sed -n "$n"p statuses)"`,
  )
}

const runningFolder = join(__dirname, '..', '..', 'examples', 'running')

/** Copies the files that docs/running.md names, and makes a config.json for the sandbox. */
export const makeSchedulingFiles = (folder: string, sandbox: Sandbox): void => {
  cpSync(runningFolder, folder, { recursive: true })
  writeFileSync(join(folder, 'config.json'), JSON.stringify(reviewsConfig(sandbox)))
}

/** Alerts without their ages, which may change between two queries. */
export const withoutAges = (alerts: unknown): ReadonlyArray<unknown> =>
  (alerts as ReadonlyArray<Readonly<Record<string, unknown>>>).map(({ age_days: _, ...alert }) => alert)
