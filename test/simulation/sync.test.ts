import { describe, expect, test } from 'vitest'
import { simulate } from '../support/simulate'

describe('a simulated world of feedback sync', () => {
  test('keeps every promise, and happens again in the same way', async () => {
    const { status, stdout } = await simulate('--seeds', '22-35', '--program', 'feedback', '--times', '2')
    expect(stdout).toContain('0 broke a promise')
    expect(stdout).not.toMatch(/^0 worlds/m)
    expect(status).toBe(0)
  })
})
