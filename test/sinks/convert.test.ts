import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import {
  convertBoolean,
  convertInteger,
  convertList,
  convertObject,
  convertText,
  convertTime,
} from '../../connector/sinks/convert'

const valueOf = (result: E.Either<string, unknown>) => (E.isRight(result) ? result.right : 'no value')

describe('a column is converted', () => {
  it.each<[unknown, unknown]>([
    ['x', 'x'],
    [1234567890, '1234567890'],
    [9007199254740993n, '9007199254740993'],
    [true, 'no value'],
    [{}, 'no value'],
    [Number.NaN, 'no value'],
  ])('to a text: %s', (original, converted) => expect(valueOf(convertText(original))).toBe(converted))

  it.each<[unknown, unknown]>([
    [42, 42],
    ['42', 42],
    [' 42 ', 42],
    ['42.0', 42],
    ['-3', -3],
    ['4.5', 'no value'],
    [4.5, 'no value'],
    ['forty', 'no value'],
    ['99999999999999999999', 'no value'],
    [true, 'no value'],
  ])('to an integer: %j', (original, converted) => expect(valueOf(convertInteger(original))).toBe(converted))

  it.each<[unknown, unknown]>([
    [true, true],
    ['TRUE', true],
    ['no', false],
    [0, false],
    ['1', true],
    ['perhaps', 'no value'],
    [2, 'no value'],
    ['constructor', 'no value'],
  ])('to true or false: %j', (original, converted) => expect(valueOf(convertBoolean(original))).toBe(converted))

  it.each<[unknown, unknown]>([
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00+02:00', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31 09:30:00+02', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31 09:30:00.123456', '2026-01-31T09:30:00.123Z'],
    ['2026-01-31 09:30:00 UTC', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31t09:30:00.5z', '2026-01-31T09:30:00.500Z'],
    ['2026-01-31 09:30:00.000 -0800', '2026-01-31T17:30:00.000Z'],
    ['2026-01-31 09:30:00.0000000 +05:30', '2026-01-31T04:00:00.000Z'],
    ['2026-01-31 09:30:00 +02', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31 09:30:00 Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30', '2026-01-31T09:30:00.000Z'],
    ['2026-01', 'no value'],
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-02-30', 'no value'],
    ['31.01.2026', 'no value'],
    [1769851800, 'no value'],
  ])('to a time: %j', (original, converted) => expect(valueOf(convertTime(original))).toBe(converted))

  it.each<[unknown, unknown]>([
    [[1], [1]],
    ['[1]', [1]],
    ['a,b', 'no value'],
    [{}, 'no value'],
  ])('to a list: %j', (original, converted) => expect(valueOf(convertList(original))).toEqual(converted))

  it.each<[unknown, unknown]>([
    [{ a: 1 }, { a: 1 }],
    ['{"a":1}', { a: 1 }],
    [[], 'no value'],
    ['null', 'no value'],
  ])('to an object: %j', (original, converted) => expect(valueOf(convertObject(original))).toEqual(converted))
})
