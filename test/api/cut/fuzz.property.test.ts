import { isUtf8 } from 'node:buffer'
import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { cutReviews, pageOf } from './page-of'
import { print, reviewText } from './review-text'

const seed = 20261121

const accepts = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

type Mutation = { readonly at: number; readonly byte: number; readonly how: 'flip' | 'delete' | 'insert' | 'truncate' }

const telling = [...Buffer.from('{}[]",:\\/ \t\n\r0-+.eEu1ntf'), 0, 0x1f, 0x7f, 0x80, 0xc3, 0xed, 0xa0, 0xff]
const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(),
  byte: fc.constantFrom(...telling),
  how: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('flip' as const, 'delete' as const, 'insert' as const) },
    { weight: 1, arbitrary: fc.constant('truncate' as const) },
  ),
})

const mutate = (bytes: Uint8Array, { at, byte, how }: Mutation): Uint8Array => {
  const place = at % (bytes.length + 1)
  const head = bytes.subarray(0, place)
  switch (how) {
    case 'truncate':
      return head
    case 'delete':
      return Buffer.concat([head, bytes.subarray(place + 1)])
    case 'insert':
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(place)])
    case 'flip':
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(place + 1)])
  }
}

describe(`cutter, on damaged pages (seed ${seed})`, () => {
  it('never throws, and takes nothing that JSON.parse refuses', () => {
    fc.assert(
      fc.property(reviewText, fc.array(mutation, { minLength: 1, maxLength: 3 }), (record, mutations) => {
        const bytes = mutations.reduce(mutate, pageOf(print(record)))
        const answer = cutReviews(bytes)
        if (E.isLeft(answer)) return
        expect(isUtf8(bytes)).toBe(true)
        expect(accepts(Buffer.from(bytes).toString())).toBe(true)
        for (const { json } of answer.right.rows) expect(accepts(Buffer.from(json).toString())).toBe(true)
      }),
      { seed, numRuns: 4000 },
    )
  })

  it('takes exactly what JSON.parse takes', () => {
    const text = fc.oneof(
      fc.json().map((json) => Buffer.from(json)),
      fc
        .array(fc.constantFrom(...'{}[]",:\\/ 0-+.eE1u', 'true', 'null', '"a"', '\\ud83d'), { maxLength: 8 })
        .map((parts) => Buffer.from(parts.join(''))),
    )
    fc.assert(
      fc.property(text, fc.array(mutation, { maxLength: 2 }), (json, mutations) => {
        const bytes = mutations.reduce(mutate, json)
        const page = Buffer.concat([Buffer.from('{"reviews":[],"more":'), bytes, Buffer.from('}')])
        expect(E.isRight(cutReviews(page))).toBe(isUtf8(page) && accepts(page.toString()))
      }),
      { seed, numRuns: 20_000 },
    )
  })
})
