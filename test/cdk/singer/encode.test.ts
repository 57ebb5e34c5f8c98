import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { configFailure, systemFailure } from '../../../connector/cdk/failure'
import { joinText } from '../../../connector/cdk/lines'
import type { Message, StreamInfo } from '../../../connector/cdk/message'
import type { MessageEncoder } from '../../../connector/cdk/protocol'
import { formatPlainLog } from '../../../connector/cdk/singer/command-line'
import { createSingerEncoder } from '../../../connector/cdk/singer/encode'

const info = (name: string): StreamInfo => ({
  name,
  schema: {
    type: 'object',
    properties: { id: { type: 'integer' }, at: { type: 'string', airbyte_type: 'timestamp_with_timezone' } },
    required: ['id'],
  },
  primaryKey: ['id'],
  cursor: O.some('at'),
  syncMode: 'incremental',
})
const started = (name: string): Message => ({ _tag: 'Started', stream: info(name) })
const records = (stream: string, ...rows: string[]): Message => ({
  _tag: 'Records',
  stream,
  at: Date.UTC(2026, 0, 1),
  rows: rows.map((json) => ({ json: Buffer.from(json) })),
})
const checkpoint = (stream: string, state: unknown): Message => ({ _tag: 'Checkpoint', stream, state, count: 1 })
const finished = (stream: string): Message => ({ _tag: 'Finished', stream })

const createEncoder = (givenState: Record<string, unknown> = {}): MessageEncoder => {
  let tick = 0
  return createSingerEncoder({ now: () => tick++ * 1000, givenState })
}

const encodeAll = (encoder: MessageEncoder, messages: ReadonlyArray<Message>) => {
  const outputs = [...messages.map(encoder.encode), encoder.end()]
  return {
    lines: outputs.flatMap(({ lines }) => lines.map(joinText).flatMap((text) => text.trimEnd().split('\n'))),
    log: outputs.flatMap(({ log }) => log.map(formatPlainLog)),
  }
}

describe('createSingerEncoder', () => {
  it('prints a run: schema, state before records, records byte for byte, state, state last', () => {
    const run = encodeAll(createEncoder({ bookmarks: { other: { at: 1 } }, extra: true }), [
      started('reviews'),
      { _tag: 'Running', stream: 'reviews' },
      records('reviews', '{"id":9007199254740993}', '{"id": 2}'),
      checkpoint('reviews', { modifiedTimeFrom: 'x' }),
      finished('reviews'),
    ])
    expect(run.lines).toEqual([
      '{"type":"SCHEMA","stream":"reviews","schema":{"type":["object"],' +
        '"properties":{"id":{"type":["integer"]},"at":{"type":["string"]}},"required":["id"]},' +
        '"key_properties":["id"],"bookmark_properties":["at"]}',
      '{"type":"STATE","value":{"bookmarks":{"other":{"at":1}},"extra":true,"currently_syncing":"reviews"}}',
      '{"type":"RECORD","stream":"reviews","record":{"id":9007199254740993},' +
        '"time_extracted":"2026-01-01T00:00:00.000Z"}',
      '{"type":"RECORD","stream":"reviews","record":{"id": 2},"time_extracted":"2026-01-01T00:00:00.000Z"}',
      '{"type":"STATE","value":{"bookmarks":{"other":{"at":1},"reviews":{"modifiedTimeFrom":"x"}},' +
        '"extra":true,"currently_syncing":"reviews"}}',
      '{"type":"STATE","value":{"bookmarks":{"other":{"at":1},"reviews":{"modifiedTimeFrom":"x"}},' +
        '"extra":true,"currently_syncing":null}}',
    ])
    expect(run.log).toEqual([
      'INFO METRIC: {"type":"counter","metric":"record_count","value":2,"tags":{"stream":"reviews"}}',
      'INFO METRIC: ' +
        '{"type":"timer","metric":"sync_duration","value":1,"tags":{"stream":"reviews","status":"succeeded"}}',
    ])
  })

  it('gives the rows of a full refresh a version, keeps it in the state, and activates it at the end', () => {
    const refreshed: Message = { _tag: 'Started', stream: { ...info('reviews'), syncMode: 'full_refresh' } }
    const start = (givenState: Record<string, unknown>, at: number) =>
      createSingerEncoder({ now: () => at, givenState, tableVersions: true })
    const parse = (lines: ReadonlyArray<string>) =>
      lines.map((text) => JSON.parse(text)).filter(({ type }) => type !== 'SCHEMA')
    const first = parse(
      encodeAll(start({ table_versions: { other: 5 } }, 1000), [
        refreshed,
        records('reviews', '{"id":1}'),
        checkpoint('reviews', { n: 1 }),
      ]).lines,
    )
    expect(first[1]).toMatchObject({ type: 'RECORD', version: 1000, time_extracted: '2026-01-01T00:00:00.000Z' })
    const kept = first.at(-1).value
    expect(kept.table_versions).toEqual({ other: 5, reviews: 1000 })
    const second = parse(
      encodeAll(start(kept, 2000), [refreshed, records('reviews', '{"id":2}'), finished('reviews')]).lines,
    )
    expect(second.map(({ type, version, value }) => [type, version, value?.table_versions])).toEqual([
      ['STATE', undefined, { other: 5, reviews: 1000 }],
      ['RECORD', 1000, undefined],
      ['ACTIVATE_VERSION', 1000, undefined],
      ['STATE', undefined, { other: 5 }],
      ['STATE', undefined, { other: 5 }],
    ])
  })

  it('has no version where only changes are read, after a failure, or unless it is asked for', () => {
    const refreshed: Message = { _tag: 'Started', stream: { ...info('a'), syncMode: 'full_refresh' } }
    const failed: Message = { _tag: 'Failed', stream: 'a', failure: systemFailure('broken') }
    const types = (tableVersions: boolean, ...messages: Message[]) =>
      encodeAll(createSingerEncoder({ now: () => 1, tableVersions }), messages).lines.map(
        (text) => JSON.parse(text).type,
      )
    expect(types(true, started('a'), records('a', '{}'), finished('a'))).not.toContain('ACTIVATE_VERSION')
    expect(types(true, refreshed, records('a', '{}'), failed)).not.toContain('ACTIVATE_VERSION')
    expect(types(false, refreshed, records('a', '{}'), finished('a'))).not.toContain('ACTIVATE_VERSION')
    expect(types(true, refreshed, records('a', '{}'), finished('a'))).toContain('ACTIVATE_VERSION')
  })

  it('prints a state even if nothing was read', () => {
    expect(encodeAll(createEncoder(), []).lines).toEqual([
      '{"type":"STATE","value":{"bookmarks":{},"currently_syncing":null}}',
    ])
  })

  it('prints the schema of the catalog', () => {
    const schemas = new Map([['a', { type: ['object'], properties: {} }]])
    expect(encodeAll(createSingerEncoder({ now: () => 0, schemas }), [started('a')]).lines[0]).toBe(
      '{"type":"SCHEMA","stream":"a","schema":{"type":["object"],"properties":{}},' +
        '"key_properties":["id"],"bookmark_properties":["at"]}',
    )
  })

  it('names the first open stream until it ends, in whatever order streams interleave', () => {
    const { lines } = encodeAll(createEncoder(), [
      started('a'),
      started('b'),
      checkpoint('b', { n: 1 }),
      finished('a'),
      checkpoint('b', { n: 2 }),
      finished('b'),
      started('c'),
    ])
    const syncing = lines.map((text) => JSON.parse(text)).filter(({ type }) => type === 'STATE')
    expect(syncing.map(({ value }) => value.currently_syncing)).toEqual(['a', 'a', 'b', 'c', 'c'])
  })

  it('logs failures and goes on, without naming the failed stream as currently syncing', () => {
    const { lines, log } = encodeAll(createEncoder(), [
      started('a'),
      { _tag: 'Failed', stream: 'a', failure: systemFailure('broken', 'Error: broken\n  at x') },
      { _tag: 'Failed', failure: configFailure('all wrong') },
    ])
    expect(log).toEqual([
      'ERROR a: broken',
      'ERROR Error: broken\\n  at x',
      'INFO METRIC: {"type":"counter","metric":"record_count","value":0,"tags":{"stream":"a"}}',
      'INFO METRIC: {"type":"timer","metric":"sync_duration","value":1,"tags":{"stream":"a","status":"failed"}}',
      'ERROR all wrong',
    ])
    expect(lines.at(-1)).toBe('{"type":"STATE","value":{"bookmarks":{},"currently_syncing":null}}')
  })

  it('counts records that no state covers', () => {
    const { log } = encodeAll(createEncoder(), [started('a'), records('a', '{}', '{}', '{}'), finished('a')])
    expect(log[0]).toContain('"value":3')
  })

  it('logs an attribute left out once a run', () => {
    const changed: Message = {
      _tag: 'Records',
      stream: 'a',
      at: 0,
      rows: [1, 2].map(() => ({
        json: Buffer.from('{"id":1,"rating":null}'),
        changes: [{ field: 'rating', change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' }],
      })),
    }
    const { lines, log } = encodeAll(createEncoder(), [started('a'), changed, changed])
    expect(log).toEqual(['WARNING a.rating has values that do not match its declared type; they are sent as null.'])
    expect(lines[2]).toBe(
      '{"type":"RECORD","stream":"a","record":{"id":1,"rating":null},"time_extracted":"1970-01-01T00:00:00.000Z"}',
    )
  })

  it('logs waits and notes', () => {
    expect(
      encodeAll(createEncoder(), [
        { _tag: 'Waiting', stream: 'a', until: 60_000 },
        { _tag: 'Log', level: 'warn', message: 'm' },
      ]).log,
    ).toEqual(['INFO The service makes a wait until 1970-01-01T00:01:00.000Z.', 'WARNING m'])
  })
})
