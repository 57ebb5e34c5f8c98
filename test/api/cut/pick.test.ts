import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { pick } from '../../../connector/api/cut/pick'
import { cutReviews, pageOf } from './page-of'
import { print, reviewText } from './review-text'

const picked = (wanted: ReadonlyArray<string>, json: string | Uint8Array): string =>
  Buffer.from(pick(new Set(wanted))(Buffer.from(json))).toString()

describe('pick', () => {
  it('leaves wanted attributes as they came', () => {
    const json = '{ "id" : 9007199254740993 , "r\\u0061ting":4.50,"contents":[{"id":1}], "größe":"ü" }'
    expect(picked(['id', 'rating', 'größe'], json)).toBe('{"id" : 9007199254740993,"r\\u0061ting":4.50,"größe":"ü"}')
    expect(picked([], json)).toBe('{}')
    expect(picked(['id'], '{}')).toBe('{}')
  })

  it('agrees with a parser on every record that was cut', () => {
    const wanted = ['id', 'modifiedTime', 'contents', 'unknown_attributes', 'textAnalytics']
    fc.assert(
      fc.property(reviewText, (record) => {
        const answer = cutReviews(pageOf(print(record)))
        if (E.isLeft(answer)) return
        for (const { json } of answer.right.rows) {
          const all = Object.entries(JSON.parse(Buffer.from(json).toString()))
          expect(JSON.parse(picked(wanted, json))).toEqual(
            Object.fromEntries(all.filter(([key]) => wanted.includes(key))),
          )
        }
      }),
      { seed: 20261121, numRuns: 500 },
    )
  })
})
