import { expect, it } from 'vitest'
import { findSecrets } from '../../connector/cdk/secrets'

const secretSchema = { type: 'string', airbyte_secret: true }
const schema = {
  properties: {
    open: { type: 'string' },
    token: secretSchema,
    inner: { properties: { key: secretSchema } },
    either: {
      oneOf: [{ properties: { one: secretSchema } }, { properties: { two: secretSchema, kind: { const: 'b' } } }],
    },
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
  expect(findSecrets(schema, value)).toEqual(found)
})
