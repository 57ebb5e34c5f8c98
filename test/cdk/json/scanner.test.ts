import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findValueEnd } from '../../../connector/cdk/json/members'
import { createScanner, JsonSyntaxError, skipSpace, skipValue } from '../../../connector/cdk/json/scanner'
import { byteMutation, mutateBytes } from '../../support/byte-mutation'
import { draws } from '../../support/draws'

const isJson = (bytes: Buffer): boolean => {
  try {
    JSON.parse(bytes.toString('latin1'))
    return true
  } catch {
    return false
  }
}

/** The bytes are one value between white space. */
const isValue = (bytes: Uint8Array): boolean => {
  const scanner = createScanner(bytes)
  try {
    return skipSpace(scanner, skipValue(scanner, skipSpace(scanner, 0))) === bytes.length
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}

/** A view of the same bytes that begins at an odd offset of its buffer. */
const atOddOffset = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from('['), bytes, Buffer.from('"]')]).subarray(1, -2)

const jsonText = fc.oneof(
  fc.json().map((json) => Buffer.from(json)),
  fc
    .array(fc.constantFrom(...'{}[]",:\\/ 0-+.eE1u', 'true', 'null', '"a"', '\\ud83d'), { maxLength: 8 })
    .map((parts) => Buffer.from(parts.join(''))),
)

describe('skipValue', () => {
  it('takes exactly what JSON.parse takes', () => {
    const count = { json: 0, other: 0 }
    fc.assert(
      fc.property(jsonText, fc.array(byteMutation, { maxLength: 2 }), (json, mutations) => {
        const bytes = atOddOffset(mutations.reduce(mutateBytes, json))
        expect(isValue(bytes)).toBe(isJson(bytes))
        count[isJson(bytes) ? 'json' : 'other'] += 1
      }),
      draws(20_000),
    )
    expect(Math.min(count.json, count.other)).toBeGreaterThan(4000)
  })

  it('finds the end of a string of any length, wherever it has an escape', () => {
    for (let length = 0; length < 24; length++)
      for (let at = 0; at <= length; at++)
        for (const middle of ['', '\\"', '\\\\', '\\u00e9', ' !#[]~\u007f', 'é😀', '\t', '\u0001', '\\x', '"']) {
          const bytes = Buffer.from(`"${'x'.repeat(at)}${middle}${'y'.repeat(length - at)}"`)
          expect(isValue(bytes)).toBe(isJson(bytes))
        }
  })

  it('notifies an observer of keys that may be repeated, half surrogate pairs and line breaks', () => {
    const observe = (text: string): ReadonlyArray<unknown> => {
      const found: unknown[] = []
      const bytes = Buffer.from(text)
      const scanner = createScanner(bytes, {
        onDuplicateKey: () => found.push('key'),
        onLoneSurrogate: (from, to) => found.push(bytes.toString('latin1', from, to)),
        onLineBreak: () => found.push('line'),
      })
      skipValue(scanner, 0)
      return found
    }
    expect(observe('{"a":1,"b":{"a":1,"b":2},"c":["\\ud83d\\ude00"]}')).toEqual([])
    expect(observe('{"a":1,"b":{"a":1,"a":2}}')).toEqual(['key'])
    expect(observe('["\\ud83d","\\ude00x",\n1]')).toEqual(['\\ud83d', '\\ude00', 'line'])
  })

  it('names the position of what is wrong', () => {
    const message = (text: string): string => {
      try {
        skipValue(createScanner(Buffer.from(text)), 0)
        return 'nothing'
      } catch (error) {
        return error instanceof JsonSyntaxError ? error.message : 'another error'
      }
    }
    expect(message('[1,]')).toBe('not JSON at byte 3 of 4')
    expect(message('{"a":1')).toBe('cut short after 6 bytes')
    expect(message('['.repeat(501))).toBe('nested more than 500 levels deep')
  })
})

describe('findValueEnd', () => {
  it('ends every value where skipValue does', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const scanner = createScanner(Buffer.from(`${json},"x"]}`))
        expect(findValueEnd(scanner, 0)).toBe(skipValue(scanner, 0))
      }),
      draws(2000),
    )
  })

  it('never passes the end of damaged text', () => {
    fc.assert(
      fc.property(jsonText, fc.array(byteMutation, { maxLength: 2 }), (json, mutations) => {
        const bytes = mutations.reduce(mutateBytes, json)
        const end = findValueEnd(createScanner(atOddOffset(bytes)), 0)
        expect(end).toBeGreaterThanOrEqual(-1)
        expect(end).toBeLessThanOrEqual(bytes.length)
      }),
      draws(5000),
    )
  })
})
