import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(__dirname, '../..')

/** Runs worlds in a process of their own, whose clocks they replace. */
const simulate = (
  ...args: ReadonlyArray<string>
): Promise<{ readonly status: number | null; readonly stdout: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(root, 'simulation/run.mjs'), ...args], { cwd: root })
    const parts: string[] = []
    child.stdout.on('data', (part) => parts.push(String(part)))
    child.stderr.on('data', (part) => parts.push(String(part)))
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, stdout: parts.join('') }))
  })

describe('a simulated world', { timeout: 120_000 }, () => {
  test('keeps every promise, and happens again in the same way', async () => {
    const { status, stdout } = await simulate('--seeds', '1-3', '--times', '2')
    expect(stdout).toContain('0 broke a promise')
    expect(status).toBe(0)
  })

  test('is another with another seed', async () => {
    const { stdout } = await simulate('--seeds', '5-6', '--hashes')
    const hashes = [...stdout.matchAll(/^\d+ ([0-9a-f]{16})$/gm)].map(([, hash]) => hash)
    expect(new Set(hashes).size).toBe(2)
  })

  test('shows that a safeguard is missing', async () => {
    const { status, stdout } = await simulate('--seeds', '1-40', '--until-broken', '--defect', 'no overlap')
    expect(stdout).toMatch(/^seed \d+: nothing lost: review/m)
    expect(status).toBe(1)
  })
})
