import { describe, expect, test } from 'vitest'
import { simulate } from '../support/simulate'

describe('a simulated world', () => {
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

  test('shows that a safeguard is missing, and what it takes to see it', async () => {
    const { status, stdout } = await simulate('--seed', '15', '--shrink', '--defect', 'pages that need not join')
    expect(stdout).toMatch(/BROKEN nothing (lost|stale): review/)
    expect(stdout).toMatch(/^It takes: npm run simulate -- --seed 15 --only '[\d,]*'$/m)
    expect(status).toBe(1)
  })
})
