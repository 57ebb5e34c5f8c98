import { expect, it } from 'vitest'
import { maskMessage } from '../../connector/api/quotable'

it.each([
  ['limit must be between 1 and 1000', 'limit must be between 1 and 1000'],
  [
    "modifiedTimeFrom: expected the pattern yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "modifiedTimeFrom: expected the pattern yyyy-MM-dd'***'HH:mm:ss.SSS'***'",
  ],
  ['npi is missing in record 17', 'npi is missing in record 17'],
  ['Rosalind Quickwater wrote: "The nurse forgot me twice"', '***: "The ***"'],
  ['no such user rosalind.quickwater@example.org', 'no *** user ***'],
  ['call +1 415 555 2671, born 1950, id 9007199254740993', 'call +*** 1950, id ***'],
  ['Anna\nMüller-Lüdenscheidt\u0000 (Anna)', '***)'],
])('%j is repeated as %j', (text, told) => {
  expect(maskMessage(text)).toBe(told)
})

it('is a short line whatever it is made of', () => {
  expect(maskMessage('the limit '.repeat(100_000)).length).toBeLessThanOrEqual(200)
  expect(maskMessage('x '.repeat(100_000))).toBe('***')
})

it('masks a secret that is made of plain words', () => {
  expect(maskMessage('the token secret value is invalid', ['secret value'])).toBe('the token *** is invalid')
})
