import { describe, expect, it } from 'vitest'
import { parseExactJson, printExactJson } from '../../../connector/cdk/json/exact'

describe('a JSON text', () => {
  it.each([
    ['{"id":9007199254740993,"a":1,"a":2}', { id: 9007199254740993n, a: 2 }],
    ['{"a":9007199254740993,"a":1}', { a: 1 }],
    ['[9007199254740993,"\\ud800"]', [9007199254740993n, '\ud800']],
  ])('%s keeps its integers, and of a repeated key the last', (text, value) => {
    expect(parseExactJson(text)).toEqual(value)
  })

  it.each([
    ['[1e400,-1e999]', ['1e400', '-1e999']],
    ['{"a":1e-400,"b":-12.5E-400}', { a: '1e-400', b: '-12.5E-400' }],
    [`[0.${'0'.repeat(400)}1]`, [`0.${'0'.repeat(400)}1`]],
    ['[0e-400,-0.0e-999,0.0,5e-324,1E-300]', [0, -0, 0, 5e-324, 1e-300]],
  ])('%s has the text of a number that no double holds', (text, value) => {
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
