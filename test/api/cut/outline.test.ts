import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { carve, isThere, rawAt, textAt } from '../../../connector/api/cut/carve'
import { outliner } from '../../../connector/api/cut/outline'
import { cutReviews, pageOf } from './page-of'
import { print, reviewText } from './review-text'

const outline = outliner({
  modifiedTime: 'value',
  location: { id: 'value', name: 'value' },
  contents: [{ id: 'value', response: 'value', sentiments: [{ id: 'value' }] }],
})

const carved = (json: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(json)
  const { contents } = outline(bytes).members
  return (contents?.elements ?? []).map((element) =>
    Buffer.from(carve(bytes, element, [element.members.sentiments, element.members.id], '"a":1')).toString(),
  )
}

type Parsed = Readonly<Record<string, unknown>> | null

/** What a parser makes of it. */
const without = (element: Parsed): unknown => {
  const { id: _, sentiments: __, ...rest } = element ?? {}
  return { ...rest, a: 1 }
}

describe('outliner', () => {
  it('finds members wherever they stand, and null as nothing', () => {
    const json = Buffer.from(
      '{ "x":{"id":"}"}, "location" : {"name":"a\\"ü", "id":9007199254740993} ,"contents":null,"id":1}',
    )
    const { location, contents, modifiedTime } = outline(json).members
    expect(isThere(json, modifiedTime)).toBe(false)
    expect(isThere(json, contents)).toBe(false)
    expect(contents?.elements).toEqual([])
    expect(location === undefined ? '' : rawAt(json, location)).toBe(
      Buffer.from('{"name":"a\\"ü", "id":9007199254740993}').toString('latin1'),
    )
    const { id, name } = location?.members ?? {}
    expect([id, name].map((at) => at && textAt(json, at))).toEqual(['9007199254740993', 'a"ü'])
  })

  it('looks into elements that are objects, and at null as one without members', () => {
    const json = Buffer.from('{"contents":[null,{"id":5,"sentiments":[]},{}]}')
    const elements = outline(json).members.contents?.elements ?? []
    expect(elements.map(({ members }) => members.id && textAt(json, members.id))).toEqual([undefined, '5', undefined])
  })
})

describe('carve', () => {
  it.each([
    ['{"id":1,"response":"x"}', '{"response":"x","a":1}'],
    ['{"response":"x","id":1}', '{"response":"x","a":1}'],
    ['{"response":"x" , "id":1 }', '{"response":"x" ,"a":1}'],
    ['{ "id":1 }', '{"a":1}'],
    [
      '{"sentiments":[{"id":"}],"}],"big":9223372036854775807,"id":1,"n":1.50}',
      '{"big":9223372036854775807,"n":1.50,"a":1}',
    ],
    ['{}', '{"a":1}'],
    ['null', '{"a":1}'],
  ])('%s', (element, expected) => {
    expect(carved(`{"contents":[${element}]}`)).toEqual([expected])
  })

  it('agrees with a parser on every review that was cut', () => {
    fc.assert(
      fc.property(fc.array(reviewText, { maxLength: 3 }), (records) => {
        const answer = cutReviews(pageOf(...records.map(print)))
        if (E.isLeft(answer)) return
        for (const row of answer.right.rows) {
          const json = Buffer.from(row.json).toString()
          const { contents, location } = JSON.parse(json) as { contents?: Parsed[] | null; location?: Parsed }
          expect(carved(json).map((text) => JSON.parse(text))).toEqual((contents ?? []).map(without))
          const found = outline(row.json).members.location
          expect(found === undefined ? undefined : JSON.parse(textOf(row.json, found))).toEqual(location)
        }
      }),
      { seed: 20261121, numRuns: 500 },
    )
  })
})

const textOf = (json: Uint8Array, { from, to }: { readonly from: number; readonly to: number }): string =>
  Buffer.from(json.subarray(from, to)).toString()
