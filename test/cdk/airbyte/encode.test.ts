import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { encodeAirbyte, errorTraceLine } from '../../../connector/cdk/airbyte/encode'
import { configFailure, systemFailure, transientFailure } from '../../../connector/cdk/failure'
import { JsonText } from '../../../connector/cdk/json/exact'
import { joinText } from '../../../connector/cdk/lines'
import type { Message } from '../../../connector/cdk/message'
import { decodeAirbyteState } from '../../../connector/cdk/state-file'

const lines = (message: Message) =>
  encodeAirbyte(() => 1700000000000.5)(message)
    .map(joinText)
    .join('')

const stream = { name: 'reviews', schema: {}, primaryKey: ['id'], cursor: O.none, syncMode: 'incremental' } as const

describe('encodeAirbyte', () => {
  it.each<[string, Message, string]>([
    [
      'a start',
      { _tag: 'Started', stream },
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1700000000000,' +
        '"stream_status":{"stream_descriptor":{"name":"reviews"},"status":"STARTED"}}}\n',
    ],
    [
      'records, byte for byte, with an integer time',
      {
        _tag: 'Records',
        stream: 'reviews',
        at: 1700000000001.7,
        rows: [
          { json: Buffer.from('{"id":9007199254740993}') },
          {
            json: Buffer.from('{"id":2,"rating":null}'),
            changes: [{ field: 'rating', change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' }],
          },
        ],
      },
      '{"type":"RECORD","record":{"stream":"reviews","data":{"id":9007199254740993},"emitted_at":1700000000001}}\n' +
        '{"type":"RECORD","record":{"stream":"reviews","data":{"id":2,"rating":null},' +
        '"emitted_at":1700000000001,"meta":{"changes":[{"field":"rating","change":"NULLED",' +
        '"reason":"SOURCE_SERIALIZATION_ERROR"}]}}}\n',
    ],
    [
      'a state with its count as a double',
      { _tag: 'Checkpoint', stream: 'reviews', state: { modifiedTimeFrom: 'x' }, count: 5 },
      '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"reviews"},' +
        '"stream_state":{"modifiedTimeFrom":"x"}},"sourceStats":{"recordCount":5.0}}}\n',
    ],
    [
      'a wait',
      { _tag: 'Waiting', stream: 'reviews', until: 1700000060000.2 },
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1700000000000,' +
        '"stream_status":{"stream_descriptor":{"name":"reviews"},"status":"RUNNING",' +
        '"reasons":[{"type":"RATE_LIMITED","rate_limited":{"quota_reset":1700000060000}}]}}}\n',
    ],
    [
      'a failed stream',
      { _tag: 'Failed', stream: 'reviews', failure: transientFailure('later', 'why') },
      '{"type":"TRACE","trace":{"type":"ERROR","emitted_at":1700000000000,"error":{"message":"later",' +
        '"internal_message":"why","failure_type":"transient_error",' +
        '"stream_descriptor":{"name":"reviews"}}}}\n' +
        '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1700000000000,' +
        '"stream_status":{"stream_descriptor":{"name":"reviews"},"status":"INCOMPLETE"}}}\n',
    ],
    [
      'a log line',
      { _tag: 'Log', level: 'warn', message: 'm' },
      '{"type":"LOG","log":{"level":"WARN","message":"m"}}\n',
    ],
    [
      'a state that came as text, without a count that is not known',
      { _tag: 'Checkpoint', stream: 'reviews', state: new JsonText('{"n":9007199254740993}'), count: Number.NaN },
      '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"reviews"},' +
        '"stream_state":{"n":9007199254740993}}}}\n',
    ],
    [
      'a received state with the counts of its records',
      {
        _tag: 'SharedCheckpoint',
        states: [],
        received: Buffer.from('{"type":"STATE", "state":{"data":{}}}'),
        counts: { accepted: 2, rejected: 1 },
      },
      '{"type":"STATE", "state":{"data":{},"destinationStats":{"recordCount":2.0,"rejectedRecordCount":1.0}}}\n',
    ],
  ])('prints %s', (_, message, expected) => {
    expect(lines(message)).toBe(expected)
  })

  it('prints an estimate of a stream whose count is known', () => {
    expect(lines({ _tag: 'Running', stream: 'reviews', total: 7 })).toBe(
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1700000000000,' +
        '"stream_status":{"stream_descriptor":{"name":"reviews"},"status":"RUNNING"}}}\n' +
        '{"type":"TRACE","trace":{"type":"ESTIMATE","emitted_at":1700000000000,' +
        '"estimate":{"name":"reviews","type":"STREAM","row_estimate":7}}}\n',
    )
  })

  it.each([
    ['config_error', configFailure('m')],
    ['transient_error', transientFailure('m')],
    ['system_error', systemFailure('m', 'Error: m\n  at x')],
  ])('prints the failure type %s', (type, failure) => {
    const { error } = JSON.parse(errorTraceLine(() => 1, failure)).trace
    expect(error.failure_type).toBe(type)
    expect('stack_trace' in error).toBe(type === 'system_error')
  })

  it.each([
    [configFailure('Set start_date.'), undefined, 'Set start_date.'],
    [transientFailure('Run again later.', ''), 'reviews', 'Run again later.'],
    [systemFailure('Please report it.', '\n'), undefined, 'Please report it.'],
    [systemFailure('Please report it.', 'Error: m\n  at x'), 'reviews', 'Error: m'],
  ])('has an internal_message in every error trace: %j of %s', (failure, stream, expected) => {
    expect(JSON.parse(errorTraceLine(() => 1, failure, stream)).trace.error.internal_message).toBe(expected)
  })
})

describe('decodeAirbyteState', () => {
  const state = { modifiedTimeFrom: '2024-01-01T00:00:00.000Z' }
  const one = {
    type: 'STREAM',
    stream: { stream_descriptor: { name: 'reviews', namespace: null }, stream_state: state },
  }
  it.each<[string, unknown]>([
    ['an array of stream states', [one]],
    ['the python models, with nulls', [{ ...one, global_: null, data: null, sourceStats: null }, null]],
    ['one message', one],
    ['printed lines', [{ type: 'STATE', state: one }]],
    [
      'a later state over an earlier',
      [{ type: 'STREAM', stream: { stream_descriptor: { name: 'reviews' }, stream_state: { old: 1 } } }, one],
    ],
    ['GLOBAL', [{ type: 'GLOBAL', global: { shared_state: null, stream_states: [one.stream] } }]],
    ['LEGACY', { type: 'LEGACY', data: { reviews: state } }],
    ['a bare object', { reviews: state }],
    ['the whole as text', JSON.stringify([one])],
    ['a message as text', [JSON.stringify(one)]],
    ['its stream as text', [{ ...one, stream: JSON.stringify(one.stream) }]],
    ['its state as text', [{ ...one, stream: { ...one.stream, stream_state: JSON.stringify(state) } }]],
    ['a bare object of texts', { reviews: JSON.stringify(state) }],
    ['LEGACY as text', { type: 'LEGACY', data: JSON.stringify({ reviews: state }) }],
  ])('reads %s', (_, value) => {
    expect(decodeAirbyteState(value)).toEqual(E.right({ reviews: state }))
  })

  it.each<[string, unknown]>([
    ['[]', []],
    ['null', null],
    ['{}', {}],
    ['a stream without state', [{ type: 'STREAM', stream: { stream_descriptor: { name: 'reviews' } } }]],
    [
      'an empty stream state',
      [{ type: 'STREAM', stream: { stream_descriptor: { name: 'reviews' }, stream_state: {} } }],
    ],
  ])('takes %s for no state', (_, value) => {
    expect(decodeAirbyteState(value)).toEqual(E.right({}))
  })

  it.each<[string, unknown]>([
    ['text', 'x'],
    ['numbers', [1]],
    ['a configuration', { base_url: 'https://feedback.example.com', entities: {} }],
    ['a nameless stream', [{ type: 'STREAM', stream: { stream_state: {} } }]],
  ])('refuses %s', (_, value) => {
    expect(decodeAirbyteState(value)).toMatchObject({ _tag: 'Left', left: { _tag: 'Config' } })
  })
})
