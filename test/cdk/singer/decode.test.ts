import { describe, expect, it } from 'vitest'
import { protocols } from '../../../connector/cdk/protocols'
import { summarizeInput } from '../../support/decoded-input'

const schema = (more: object = {}) => ({
  type: 'SCHEMA',
  stream: 'locations',
  schema: { properties: { code: { type: ['string'] } } },
  key_properties: ['code'],
  ...more,
})
const record = { type: 'RECORD', stream: 'locations', record: { code: 'W1' } }
const state = (value: unknown = { bookmarks: {} }) => ({ type: 'STATE', value })

describe('Singer lines for a destination', () => {
  it('are records as they came, and states whose value is printed back', async () => {
    const lines = [
      schema(),
      '{"type":"RECORD","stream":"locations","record":{"code":"W1", "n":9007199254740993}}',
      '{"type":"STATE","value":{"a": 12345678901234567890}}',
    ]
    expect(await summarizeInput(protocols.singer, [], lines)).toEqual([
      ['started', 'locations', ['code']],
      ['locations', '{"code":"W1", "n":9007199254740993}'],
      ['state', undefined, '{"a": 12345678901234567890}\n'],
      ['finished', 'locations', 'everything'],
    ])
  })

  it.each<[string, ReadonlyArray<unknown>, string]>([
    ['a STATE after its last record', [schema(), record, state()], 'everything'],
    [
      'a table that was activated',
      [schema(), record, { type: 'ACTIVATE_VERSION', stream: 'locations', version: 1 }],
      'everything',
    ],
    ['no STATE after its last record, as a tap that was killed leaves it', [schema(), state(), record], 'changes'],
    ['a bookmark: only what changed', [schema({ bookmark_properties: ['updated'] }), record, state()], 'changes'],
    ['a stream that is still being synced', [schema(), record, state({ currently_syncing: 'locations' })], 'unknown'],
    [
      'a STATE that names no stream as being synced',
      [schema(), record, state({ currently_syncing: null })],
      'everything',
    ],
  ])('say what the records of a stream are after %s', async (_, lines, extent) => {
    expect((await summarizeInput(protocols.singer, [], lines)).at(-1)).toEqual(['finished', 'locations', extent])
  })

  it.each([
    ['a RECORD before its SCHEMA', [record], 'locations before its SCHEMA'],
    ['an unknown type', [schema(), { type: 'BATCH' }], 'BATCH'],
    ['a line that is no message', [schema(), 'Traceback (most recent call last)'], 'Line 2'],
    ['a SCHEMA without a schema', [schema({ schema: null })], 'SCHEMA'],
    ['a RECORD without a record', [schema(), { type: 'RECORD', stream: 'locations', record: null }], 'RECORD'],
    ['a STATE without a value', [{ type: 'STATE' }], 'STATE'],
  ])('fail on %s', async (_, lines, named) => {
    const items = await summarizeInput(protocols.singer, [], lines)
    expect(items.some((one) => typeof one === 'string' && one.includes(named))).toBe(true)
  })
})
