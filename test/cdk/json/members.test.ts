import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type JsonSpan, readMembersAt, readObjectMembers, valueAt } from '../../../connector/cdk/json/members'
import { draws } from '../../support/draws'

const values = (line: string, members: ReadonlyMap<string, JsonSpan> | undefined): unknown =>
  members && Object.fromEntries([...members].map(([name, span]) => [name, valueAt(Buffer.from(line), span)]))

describe('readObjectMembers', () => {
  it('agrees with a parser on every object', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string().filter((name) => name !== '__proto__'),
          fc.jsonValue(),
        ),
        (object) => {
          const line = ` ${JSON.stringify(object, null, 1)} `
          const parsed = JSON.parse(line)
          expect(values(line, readObjectMembers(Buffer.from(line), 'nothing is called this'))).toEqual(parsed)
          expect(values(line, readMembersAt(Buffer.from(line), { from: 1, to: line.length - 1 }))).toEqual(parsed)
        },
      ),
      draws(1000),
    )
  })

  it('gives the members of one member beside the others', () => {
    const line = '{"type":"RECORD","record":{"stream":"a","data":{"x":[1]}},"z":2}'
    expect(values(line, readObjectMembers(Buffer.from(line), 'record'))).toEqual({
      type: 'RECORD',
      record: { stream: 'a', data: { x: [1] } },
      'record.stream': 'a',
      'record.data': { x: [1] },
      z: 2,
    })
  })

  it('gives a member whatever its value contains, so that a record that is not JSON is refused by name', () => {
    const line = '{"type":"RECORD","record":{"stream":"a","data":{"x":NaN}}}'
    const bytes = Buffer.from(line)
    const data = readObjectMembers(bytes, 'record')?.get('record.data')
    expect(data && bytes.toString('utf8', data.from, data.to)).toBe('{"x":NaN}')
  })

  it.each([
    '',
    ' ',
    '[1]',
    '"a"',
    '{',
    '{"a"',
    '{"a":',
    '{"a":}',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '{"a":"x}',
    '{"a" 1}',
    '{a:1}',
    '{"a":1 "b":2}',
  ])('finds no whole object in %s', (line) => expect(readObjectMembers(Buffer.from(line), 'a')).toBeUndefined())
})
