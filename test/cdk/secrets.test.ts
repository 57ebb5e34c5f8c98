import { expect, it } from 'vitest'
import { secretsIn } from '../../connector/cdk/secrets'

const secret = { type: 'string', airbyte_secret: true }
const schema = {
  properties: {
    open: { type: 'string' },
    token: secret,
    inner: { properties: { key: secret } },
    either: { oneOf: [{ properties: { one: secret } }, { properties: { two: secret, kind: { const: 'b' } } }] },
  },
}

it.each<[string, unknown, ReadonlyArray<string>]>([
  ['at the top', { open: 'seen', token: ' t0ken ' }, ['t0ken']],
  ['inside', { inner: { key: 'k' } }, ['k']],
  ['in whichever alternative', { either: { one: 'a', two: 'b', kind: 'c' } }, ['a', 'b']],
  ['that is a number', { token: 123 }, ['123']],
  [
    'that is an address, with its password',
    { token: 'redis://me:p%40ss@host:1' },
    ['redis://me:p%40ss@host:1', 'p%40ss', 'p@ss'],
  ],
  ['beside what is wrong', { inner: 7, either: [], token: null }, []],
  ['in what is no object', 'text', []],
])('finds a secret %s', (_, value, found) => {
  expect(secretsIn(schema, value)).toEqual(found)
})
