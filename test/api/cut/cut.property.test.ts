import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { parse } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import { cutter } from '../../../connector/api/cut'
import { expected } from './expectation'
import { cutReviews, pageOf, reviewOptions } from './page-of'
import { exact, print, reviewText } from './review-text'

const read = (json: Uint8Array): unknown =>
  parse(Buffer.from(json).toString(), null, (text) => (Number.isFinite(Number(text)) ? exact(text) : 'infinite'))

const seed = 20261121

describe(`cutter, against the codec (seed ${seed})`, () => {
  it('cuts what the codec accepts as it is, the rest with nulls and changes', () => {
    fc.assert(
      fc.property(reviewText, (record) => {
        const text = print(record)
        const answer = cutReviews(pageOf(text))
        const wanted = expected(record)
        expect(E.isRight(answer)).toBe(wanted !== undefined)
        if (wanted === undefined || E.isLeft(answer)) return
        const [row] = answer.right.rows
        expect(row).toBeDefined()
        if (row === undefined) return
        expect(row.id).toBe(wanted.id)
        expect(Buffer.from(row.raw).toString()).toBe(text)
        expect(row.json).not.toContain(0x0a)
        expect(row.json).not.toContain(0x0d)
        const data = read(row.json)
        expect(data).toEqual(wanted.data)
        expect(row.modifiedTime).toBe(Date.parse((data as { modifiedTime: string }).modifiedTime))
        expect((row.changes ?? []).map(({ field }) => field).sort()).toEqual([...wanted.nulled].sort())
      }),
      { seed, numRuns: 4000 },
    )
  })

  it('lets nothing private through, whatever stands in its place', () => {
    const hiding = cutter({
      ...reviewOptions,
      actions: {
        'contents.response': () => 'hidden',
        brand: () => 'hidden',
        taskDetails: 'drop',
        'provider.name': 'drop',
      },
    })
    fc.assert(
      fc.property(reviewText, (record) => {
        const answer = hiding(pageOf(print(record)))
        if (E.isLeft(answer)) return
        for (const { json } of answer.right.rows) {
          const { contents, brand, taskDetails, provider } = JSON.parse(Buffer.from(json).toString())
          expect([undefined, null, 'hidden']).toContain(brand)
          expect(taskDetails).toBeUndefined()
          expect(provider ?? {}).not.toHaveProperty('name')
          for (const { response } of contents ?? []) expect([undefined, null, 'hidden']).toContain(response)
        }
      }),
      { seed, numRuns: 2000 },
    )
  })
})
