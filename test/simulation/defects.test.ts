import { describe, expect, test } from 'vitest'
import { defects } from '../../simulation/defects'
import { simulate } from '../support/simulate'

/** Which promise breaks without each safeguard. */
const broken = {
  'no overlap': 'nothing lost',
  'no lookback': 'nothing lost|nothing stale',
  'state before rows': 'nothing lost',
  'rate too high': 'the rate',
  'Retry-After for the refused request alone': 'Retry-After',
  'Retry-After ignored': 'Retry-After',
  'secrets in errors': 'no secret|no patient',
  'no response time-out': 'the run ends',
  'a partial write taken for whole': 'the run ends|whole lines',
}

describe('some seed shows that a safeguard is missing', { timeout: 600_000 }, () => {
  test('of each', () => {
    expect(Object.keys(broken)).toEqual(Object.keys(defects))
  })

  test.each(Object.entries(broken))('%s', async (defect, oracle) => {
    const { status, stdout } = await simulate('--seeds', '1-300', '--until-broken', '--defect', defect)
    expect(stdout).toMatch(new RegExp(`(${oracle}): `))
    expect(status).toBe(1)
  })
})
