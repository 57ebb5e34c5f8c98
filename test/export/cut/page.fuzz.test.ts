import { isUtf8 } from 'node:buffer'
import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { byteMutation, mutateBytes } from '../../support/byte-mutation'
import { draws } from '../../support/draws'
import { cutReviews, reviewPage } from '../../support/review-page'
import { printNode, reviewNode } from '../../support/review-text'

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('cutter, on damaged pages', () => {
  it('never throws, and takes nothing that JSON.parse refuses', () => {
    const counts = { taken: 0, refused: 0 }
    fc.assert(
      fc.property(reviewNode, fc.array(byteMutation, { minLength: 1, maxLength: 3 }), (record, mutations) => {
        const bytes = mutations.reduce(mutateBytes, reviewPage(printNode(record)))
        const answer = cutReviews(bytes)
        if (E.isLeft(answer)) {
          counts.refused += 1
          return
        }
        counts.taken += 1
        expect(isUtf8(bytes)).toBe(true)
        expect(isJson(Buffer.from(bytes).toString())).toBe(true)
        for (const { json } of answer.right.rows) expect(isJson(Buffer.from(json).toString())).toBe(true)
      }),
      draws(4000),
    )
    expect(counts.taken).toBeGreaterThan(300)
    expect(counts.refused).toBeGreaterThan(300)
  })

  it('takes exactly what JSON.parse takes', () => {
    const text = fc.oneof(
      fc.json().map((json) => Buffer.from(json)),
      fc
        .array(fc.constantFrom(...'{}[]",:\\/ 0-+.eE1u', 'true', 'null', '"a"', '\\ud83d'), { maxLength: 8 })
        .map((parts) => Buffer.from(parts.join(''))),
    )
    const counts = { taken: 0, refused: 0 }
    fc.assert(
      fc.property(text, fc.array(byteMutation, { maxLength: 2 }), (json, mutations) => {
        const bytes = mutations.reduce(mutateBytes, json)
        const page = Buffer.concat([Buffer.from('{"reviews":[],"more":'), bytes, Buffer.from('}')])
        const isTaken = isUtf8(page) && isJson(page.toString())
        counts[isTaken ? 'taken' : 'refused'] += 1
        expect(E.isRight(cutReviews(page))).toBe(isTaken)
      }),
      draws(20_000),
    )
    expect(counts.taken).toBeGreaterThan(2000)
    expect(counts.refused).toBeGreaterThan(2000)
  })
})
