import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import { commentsResponse, lookupResponse, reviewsResponse, visitRecordResponse } from '../../connector/api/envelopes'
import { VisitRecordResult } from '../../connector/api/model/written'
import { jsonResponse } from '../../connector/api/route'
import { draws } from '../support/draws'

const parsedResponse = jsonResponse(VisitRecordResult)
const decodeBoth = (text: string) =>
  [visitRecordResponse, parsedResponse].map(({ decode }) => decode({ body: Buffer.from(text) }))

const word = fc.oneof(fc.constantFrom('Success', 'Error'), fc.string(), fc.constant('\u00e9"\\'))
const responseBody = fc.record(
  {
    records: fc.oneof({ weight: 5, arbitrary: fc.dictionary(word, word) }, fc.jsonValue() as fc.Arbitrary<object>),
    status: fc.oneof(fc.record({ code: fc.oneof(fc.integer(), fc.string()), message: word }), fc.jsonValue()),
    mood: fc.jsonValue(),
  },
  { requiredKeys: [] },
)

describe('visit outcomes read from bytes', () => {
  it('are those that a parser finds, and errors have its words', () => {
    fc.assert(
      fc.property(responseBody, fc.constantFrom(undefined, 1, 2), (value, indent) => {
        const [extracted, parsed] = decodeBoth(JSON.stringify(value, null, indent))
        expect(extracted).toEqual(parsed)
      }),
      draws(500),
    )
  })

  it('are an error where the body is cut short, at any byte', () => {
    const text = JSON.stringify({ records: { a: 'Success', b: 'Error' }, status: { code: 200, message: 'Success' } })
    for (let end = 0; end < text.length; end += 1)
      expect(decodeBoth(text.slice(0, end)).map(E.isLeft)).toEqual([true, true])
  })

  it.each([
    ['an id that every object has as a property', '{"records":{"__proto__":"Error","constructor":"Success"}}'],
    ['a code beyond 2^53', '{"records":{},"status":{"code":"1","message":null},"n":9007199254740993}'],
    ['text before it', 'x{"records":{}}'],
    ['an outcome that is no text', '{"records":{"a":true}}'],
  ])('equal those of a parser for %s', (_, text) => {
    const [extracted, parsed] = decodeBoth(text)
    expect(extracted).toEqual(parsed)
  })
})

describe('an answer in JSON', () => {
  const body = (text: string) => ({ body: Buffer.from(text, 'latin1') })
  const entities = (name: string) =>
    `{"status":{"code":0,"message":"success"},"data":{"entities":[{"id":"1","name":"${name}"}]}}`

  it.each([
    ['operations 1 to 3', reviewsResponse(t.unknown, t.unknown), entities('Ren\xe9e')],
    ['operations 1 to 3, in a key', commentsResponse(t.unknown, t.unknown), entities('a","\xff":"b')],
    ['a lookup', lookupResponse, '[{"name":"\xe9"}]'],
    ['any other', jsonResponse(t.unknown), '"\xc3"'],
  ])('of %s that is not UTF-8 is refused in the words of an export', (_, { decode }, text) => {
    expect(decode(body(text))).toEqual(E.left({ _tag: 'Decode', path: '$', message: 'not UTF-8' }))
    expect(E.isRight(decode({ body: Buffer.from(text) }))).toBe(true)
  })

  it('that is not UTF-8 still shows that the token expired', () => {
    const text = '{"status":{"code":401,"message":"jeton expir\xe9"}}'
    expect(reviewsResponse(t.unknown, t.unknown).decode(body(text))).toMatchObject({
      left: { _tag: 'Application', code: '401' },
    })
  })
})
