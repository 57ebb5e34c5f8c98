import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { parse } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import { cutter } from '../../../connector/api/cut'
import { Review } from '../../../connector/api/model/review'
import { expected } from './expectation'
import { exact, print, reviewText } from './review-text'

const cut = cutter({
  codec: Review,
  list: 'reviews',
  key: 'id',
  cursor: 'modifiedTime',
  rename: { engagement: 'engagements' },
  undeclared: 'keep',
})
const page = (records: ReadonlyArray<string>): string => `{"reviews":[${records.join(',')}],"filter":{"offset":0}}`
const read = (json: Uint8Array): unknown =>
  parse(Buffer.from(json).toString(), null, (text) => (Number.isFinite(Number(text)) ? exact(text) : 'infinite'))

const seed = 20261121

describe(`cutter, against the codec (seed ${seed})`, () => {
  it('cuts what the codec accepts as it is, the rest with nulls and changes', () => {
    fc.assert(
      fc.property(reviewText, (record) => {
        const text = print(record)
        const answer = cut(Buffer.from(page([text])))
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
})
