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

const value = (result: E.Either<string, unknown>) => (E.isRight(result) ? result.right : 'refused')

describe('converting a column', () => {
  it.each<[unknown, unknown]>([
    ['x', 'x'],
    [1234567890, '1234567890'],
    [9007199254740993n, '9007199254740993'],
    [true, 'refused'],
    [{}, 'refused'],
    [Number.NaN, 'refused'],
  ])('to a text: %s', (given, meant) => expect(value(convertText(given))).toBe(meant))

  it.each<[unknown, unknown]>([
    [42, 42],
    ['42', 42],
    [' 42 ', 42],
    ['42.0', 42],
    ['-3', -3],
    ['4.5', 'refused'],
    [4.5, 'refused'],
    ['forty', 'refused'],
    ['99999999999999999999', 'refused'],
    [true, 'refused'],
  ])('to an integer: %j', (given, meant) => expect(value(convertInteger(given))).toBe(meant))

  it.each<[unknown, unknown]>([
    [true, true],
    ['TRUE', true],
    ['no', false],
    [0, false],
    ['1', true],
    ['perhaps', 'refused'],
    [2, 'refused'],
    ['constructor', 'refused'],
  ])('to true or false: %j', (given, meant) => expect(value(convertBoolean(given))).toBe(meant))

  it.each<[unknown, unknown]>([
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00+02:00', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31 09:30:00+02', '2026-01-31T07:30:00.000Z'],
    ['2026-01-31 09:30:00.123456', '2026-01-31T09:30:00.123Z'],
    ['2026-01-31 09:30:00 UTC', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-02-30', 'refused'],
    ['31.01.2026', 'refused'],
    [1769851800, 'refused'],
  ])('to a time: %j', (given, meant) => expect(value(convertTime(given))).toBe(meant))

  it.each<[unknown, unknown]>([
    [[1], [1]],
    ['[1]', [1]],
    ['a,b', 'refused'],
    [{}, 'refused'],
  ])('to a list: %j', (given, meant) => expect(value(convertList(given))).toEqual(meant))

  it.each<[unknown, unknown]>([
    [{ a: 1 }, { a: 1 }],
    ['{"a":1}', { a: 1 }],
    [[], 'refused'],
    ['null', 'refused'],
  ])('to an object: %j', (given, meant) => expect(value(convertObject(given))).toEqual(meant))
})
