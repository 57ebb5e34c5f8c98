import { describe, expect, it } from 'vitest'
import { parseExactJson, printExactJson } from '../../../connector/cdk/json/exact'

describe('a JSON text', () => {
  it.each([
    ['{"id":9007199254740993,"a":1,"a":2}', { id: 9007199254740993n, a: 2 }],
    ['{"a":9007199254740993,"a":1}', { a: 1 }],
    ['[9007199254740993,"\\ud800",1e400]', [9007199254740993n, '\ud800', Number.POSITIVE_INFINITY]],
  ])('%s keeps its integers, and of a repeated key the last', (text, value) => {
    expect(parseExactJson(text)).toEqual(value)
  })

  it('that is none is refused beside large integers too', () => {
    for (const text of ['{"a":9007199254740993', '[9007199254740993,]', "{'a':9007199254740993}"])
      expect(() => parseExactJson(text)).toThrow()
  })

  it('sets no prototype', () => {
    const value = parseExactJson('{"__proto__":{"admin":true},"id":9007199254740993}')
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as { readonly admin?: unknown }).admin).toBeUndefined()
  })

  it('prints as it was', () => {
    for (const text of ['{"a":9007199254740993}', '[1,null,"x"]'])
      expect(printExactJson(parseExactJson(text))).toBe(text)
  })
})
