import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { createRedactor, findSecrets } from '../../connector/cdk/redact'
import { draws } from '../support/draws'

const secret = 'pä$$ w/ord+"1"'
const clean = createRedactor([secret, ''])

describe('a redacted text does not contain the secret', () => {
  test.each<[string, string]>([
    ['as it is', secret],
    ['in a URL', encodeURIComponent(secret)],
    ['in a URL, in lower case', encodeURIComponent(secret).toLowerCase()],
    ['in a form', new URLSearchParams({ k: secret }).toString().slice(2)],
    ['in JSON', JSON.stringify(secret).slice(1, -1)],
    ['in JSON in JSON', JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)],
    ['in base64', Buffer.from(secret).toString('base64')],
    ['in base64 for URLs', Buffer.from(secret).toString('base64url')],
    ['in base64 in a URL', encodeURIComponent(Buffer.from(secret).toString('base64'))],
    ['in hexadecimal', Buffer.from(secret).toString('hex')],
  ])('%s', (_, form) => {
    expect(clean(`before ${form} after, and ${form}`)).toMatch(/^before \*\*\*\S* after, and \*\*\*\S*$/)
  })

  test('as a header of the basic scheme, whoever it belongs to', () => {
    for (const id of ['', 'a', 'ab', 'abc', 'abcd'])
      for (const end of ['', '1', '22', '333']) {
        const header = Buffer.from(`${id}:${secret}${end}`).toString('base64')
        const left = clean(header).split('***').join('')
        expect(left.length).toBeLessThan(16)
      }
  })

  test('whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4, unit: 'binary' }), (any) => {
        const text = createRedactor([any])(
          [
            any,
            encodeURIComponent(Buffer.from(any).toString()),
            JSON.stringify({ any }),
            new URLSearchParams({ any }),
          ].join('\n'),
        )
        expect(text.includes(any)).toBe('***'.includes(any))
      }),
      draws(100),
    )
  })

  test('nor is the rest of a longer one that begins with another', () => {
    expect(createRedactor(['abcd', 'abcdefgh'])('abcdefgh abcd')).toBe('*** ***')
  })
})

test('all else stays', () => {
  expect(clean('nothing to hide: pä$$')).toBe('nothing to hide: pä$$')
  expect(createRedactor([])('text')).toBe('text')
})

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
