import { describe, expect, it } from 'vitest'
import { decodeSinger } from '../../../connector/cdk/singer/decode'
import { meant } from '../../support/decoded-input'

const schema = (more: object = {}) => ({
  type: 'SCHEMA',
  stream: 'locations',
  schema: { properties: { code: { type: ['string'] } } },
  key_properties: ['code'],
  ...more,
})
const record = { type: 'RECORD', stream: 'locations', record: { code: 'W1' } }
const state = (value: unknown = { bookmarks: {} }) => ({ type: 'STATE', value })

describe('singerArrivals', () => {
  it('takes records as they came and answers the value of a state', async () => {
    const lines = [
      schema(),
      '{"type":"RECORD","stream":"locations","record":{"code":"W1", "n":9007199254740993}}',
      '{"type":"STATE","value":{"a": 12345678901234567890}}',
    ]
    expect(await meant(decodeSinger(JSON.parse), lines)).toEqual([
      ['opened', 'locations', 'locations', [['code']], false],
      ['locations', '{"code":"W1", "n":9007199254740993}'],
      ['state', undefined, '{"a": 12345678901234567890}\n'],
      ['completed', 'locations', true],
    ])
  })

  it.each<[string, ReadonlyArray<unknown>, boolean]>([
    ['a STATE after its last record', [schema(), record, state()], true],
    [
      'a table that was activated',
      [schema(), record, { type: 'ACTIVATE_VERSION', stream: 'locations', version: 1 }],
      true,
    ],
    ['no STATE after its last record, as a tap that was killed leaves it', [schema(), state(), record], false],
    ['a bookmark: only what changed', [schema({ bookmark_properties: ['updated'] }), record, state()], false],
    ['a stream that is still being synced', [schema(), record, state({ currently_syncing: 'locations' })], false],
    ['nobody being synced', [schema(), record, state({ currently_syncing: null })], true],
  ])('takes for everything there is: %s', async (_, lines, whole) => {
    expect((await meant(decodeSinger(JSON.parse), lines)).at(-1)).toEqual(['completed', 'locations', whole])
  })

  it.each([
    ['a RECORD before its SCHEMA', [record], 'locations before its SCHEMA'],
    ['an unknown type', [schema(), { type: 'BATCH' }], 'BATCH'],
    ['a line that is no message', [schema(), 'Traceback (most recent call last)'], 'Line 2'],
    ['a SCHEMA without a schema', [schema({ schema: null })], 'SCHEMA'],
    ['a RECORD without a record', [schema(), { type: 'RECORD', stream: 'locations', record: null }], 'RECORD'],
    ['a STATE without a value', [{ type: 'STATE' }], 'STATE'],
  ])('fails on %s', async (_, lines, named) => {
    const said = await meant(decodeSinger(JSON.parse), lines)
    expect(said.some((one) => typeof one === 'string' && one.includes(named))).toBe(true)
  })
})
