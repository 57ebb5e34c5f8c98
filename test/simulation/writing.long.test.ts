import { describe, expect, test } from 'vitest'
import { simulate } from '../support/simulate'

describe('a simulated world of a destination', () => {
  test.each(['destination-feedback', 'target-feedback'])('%s keeps every promise', async (program) => {
    const { status, stdout } = await simulate('--seeds', '8-30', '--program', program, '--times', '2')
    expect(stdout).toContain('0 broke a promise')
    expect(stdout).not.toMatch(/^0 worlds/m)
    expect(status).toBe(0)
  })

  test('shows that a safeguard is missing', async () => {
    const { status, stdout } = await simulate(
      '--seeds',
      '8-60',
      '--until-broken',
      '--defect',
      'state before its visits',
    )
    expect(stdout).toMatch(/state before rows: /)
    expect(status).toBe(1)
  })
})
