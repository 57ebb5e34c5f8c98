import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { pickRecordAttributes } from '../../../connector/export/cut/extract'
import { cutReviews, reviewPage } from '../../support/review-page'
import { printNode, reviewNode } from '../../support/review-text'

const pickText = (wanted: ReadonlyArray<string>, json: string | Uint8Array): string =>
  Buffer.from(pickRecordAttributes(new Set(wanted))(Buffer.from(json))).toString()

describe('pick', () => {
  it('leaves wanted attributes as they came', () => {
    const json = '{ "id" : 9007199254740993 , "r\\u0061ting":4.50,"contents":[{"id":1}], "größe":"ü" }'
    expect(pickText(['id', 'rating', 'größe'], json)).toBe(
      '{ "id" : 9007199254740993 , "r\\u0061ting":4.50,"größe":"ü" }',
    )
    expect(pickText([], json)).toBe('{}')
    expect(pickText(['id'], '{}')).toBe('{}')
  })

  it('agrees with a parser on every record that was cut', () => {
    const wanted = ['id', 'modifiedTime', 'contents', 'unknown_attributes', 'textAnalytics']
    let recordCount = 0
    fc.assert(
      fc.property(reviewNode, (record) => {
        const answer = cutReviews(reviewPage(printNode(record)))
        if (E.isLeft(answer)) return
        for (const { json } of answer.right.rows) {
          recordCount += 1
          const all = Object.entries(JSON.parse(Buffer.from(json).toString()))
          expect(JSON.parse(pickText(wanted, json))).toEqual(
            Object.fromEntries(all.filter(([key]) => wanted.includes(key))),
          )
        }
      }),
      { seed: 20261121, numRuns: 500 },
    )
    expect(recordCount).toBeGreaterThan(300)
  })
})
