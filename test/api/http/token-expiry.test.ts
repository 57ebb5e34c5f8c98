import { expect, test } from 'vitest'
import { parseLifetime } from '../../../connector/api/http/token-expiry'

const servedAt = Date.parse('2019-10-01T17:14:46Z')
test.each<[unknown, number | undefined]>([
  [1800, 1_800_000],
  ['1800', 1_800_000],
  [2_592_000, 86_400_000],
  [1_569_951_886, 1_800_000],
  ['1569951886', 1_800_000],
  [1_569_951_886_000, 1_800_000],
  ['2019-10-01 17:44:46', 1_800_000],
  ['2019-10-01T17:44:46', 1_800_000],
  ['2019-10-01T17:44:46.500', 1_800_500],
  ['2019-10-01T17:44:46Z', 1_800_000],
  ['2019-10-01T19:44:46+02:00', 1_800_000],
  ['2019-10-01T19:44:46+0200', 1_800_000],
  ['2019-10-01 17:14:46', undefined],
  ['2019-10-02 17:14:47', undefined],
  ['2019-13-01 17:44:46', undefined],
  [-5, undefined],
  [0, undefined],
  ['', undefined],
  [{}, undefined],
  [true, undefined],
])('the expiry %j means a lifetime of %j ms', (expiry, lifetime) => {
  expect(parseLifetime(expiry, servedAt)).toBe(lifetime)
})
