import { spawn } from 'node:child_process'
import { join } from 'node:path'

const root = join(__dirname, '../..')

/** Runs worlds in a separate process, whose clocks they replace. */
export const simulate = (
  ...args: ReadonlyArray<string>
): Promise<{ readonly status: number | null; readonly stdout: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'test/simulation/run.mjs'), ...args], { cwd: root })
    const parts: string[] = []
    child.stdout.on('data', (part) => parts.push(String(part)))
    child.stderr.on('data', (part) => parts.push(String(part)))
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, stdout: parts.join('') }))
  })
