import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { toDestinationCatalog, toDestinationMode, toSourceCatalog } from './model/catalog'
import type { ConfiguredStream, Connection, Json } from './model/connection'
import { commandArguments, containerEnvironment, workingFolder } from './model/containers'
import { completeLines, missingStates, takeBlocks, toDestinationRecord, toDestinationState } from './model/envelope'
import { type Job, type Kept, keepState, prepareAttempt } from './model/jobs'
import { mapColumn, mapRecord, toDestinationName, toSourceName } from './model/mappers'
import {
  type AttemptEnd,
  attemptStatus,
  checkAnswer,
  jobReason,
  listFailures,
  mayRetry,
  toExitStatus,
} from './model/outcome'
import { screenMessage } from './model/screen'
import { endsForBlockedWrite, endsForSilence } from './model/timeouts'
import {
  acknowledge,
  completeStreams,
  countedBy,
  countRecord,
  noteComplete,
  stageState,
  startTrack,
} from './model/track'

const streamOf = (name: string, more: Partial<ConfiguredStream> = {}, description: object = {}): ConfiguredStream => ({
  stream: { name, json_schema: {}, ...description },
  sync_mode: 'incremental',
  destination_sync_mode: 'append',
  ...more,
})
const full = { sync_mode: 'full_refresh' } as const
const connectionOf = (streams: ReadonlyArray<ConfiguredStream>, more: Partial<Connection> = {}): Connection => ({
  definition: 'refreshes',
  streams,
  ...more,
})
const streamState = (name: string, stream_state: unknown, more: object = {}): Json => ({
  type: 'STATE',
  state: { type: 'STREAM', stream: { stream_descriptor: { name }, stream_state }, ...more },
})
const keptOf = (...names: ReadonlyArray<string>): Kept => ({
  isGlobal: false,
  states: Object.fromEntries(names.map((name) => [name, { descriptor: { name }, state: { at: 1 } }])),
  generations: Object.fromEntries(names.map((name) => [name, 4])),
})

describe('a job prepares', () => {
  const streams = [
    streamOf('visits'),
    streamOf('list', { ...full, destination_sync_mode: 'overwrite' }),
    streamOf('log', { ...full, destination_sync_mode: 'append' }),
  ]
  const visits = ['visits']
  const prepare = (job: Job, attempt: number, definition: Connection['definition'] = 'refreshes') =>
    prepareAttempt({ definition, streams }, job, { id: 9, attempt }, keptOf('visits', 'list', 'log'))

  // generation_id/minimum_generation_id of visits, list and log; the streams whose state is still there.
  it.each<[string, Job, number, ReadonlyArray<string>, ReadonlyArray<string>]>([
    ['a sync', { kind: 'sync' }, 1, ['4/0', '5/5', '5/0'], visits],
    ['a sync', { kind: 'sync' }, 2, ['4/0', '5/5', '5/0'], visits],
    ['a refresh that replaces', { kind: 'truncate', streams: visits }, 1, ['5/5', '5/5', '5/0'], []],
    ['a refresh that replaces', { kind: 'truncate', streams: visits }, 2, ['4/4', '5/5', '5/0'], visits],
    ['a refresh that keeps', { kind: 'merge', streams: visits }, 1, ['5/0', '5/5', '5/0'], []],
    ['a refresh that keeps', { kind: 'merge', streams: visits }, 2, ['4/0', '5/5', '5/0'], visits],
    ['a Clear', { kind: 'clear', streams: visits }, 1, ['5/5'], ['list', 'log']],
    ['a Clear', { kind: 'clear', streams: visits }, 2, ['4/4'], ['visits', 'list', 'log']],
  ])('%s: ids and states (%j, attempt %i)', (_, job, attempt, ids, states) => {
    const prepared = prepare(job, attempt)
    expect(prepared.streams.map((one) => `${one.generation_id}/${one.minimum_generation_id}`)).toEqual(ids)
    expect(prepared.streams.map(({ sync_id }) => sync_id)).toEqual(ids.map(() => 9))
    expect(Object.keys(prepared.kept.states)).toEqual(states)
  })

  it('no ids for a custom definition, but the same states', () => {
    const { streams: prepared, kept } = prepare({ kind: 'sync' }, 1, 'custom')
    expect(prepared).toEqual(streams)
    expect(Object.keys(kept.states)).toEqual(visits)
  })

  it('a Clear without a source: overwrite of the cleared streams, and states without content', () => {
    const { streams: prepared, cleared, inputState } = prepare({ kind: 'clear', streams: visits }, 1)
    expect(prepared).toMatchObject([{ sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }])
    expect([cleared, inputState]).toEqual([
      [{ type: 'STATE', state: { type: 'STREAM', stream: { stream_descriptor: { name: 'visits' } } } }],
      undefined,
    ])
    expect(prepare({ kind: 'sync' }, 1).cleared).toBeUndefined()
  })

  it.each<[string, Kept, ReadonlyArray<Json>]>([
    ['nothing where no state was kept', keptOf('list'), []],
    [
      'one GLOBAL state where the states are GLOBAL',
      { ...keptOf('visits'), isGlobal: true, shared: { lsn: 1 } },
      [
        {
          type: 'STATE',
          state: { type: 'GLOBAL', global: { stream_states: [{ stream_descriptor: { name: 'visits' } }] } },
        },
      ],
    ],
  ])('a Clear: %s', (_, kept, cleared) => {
    const prepared = prepareAttempt(
      { definition: 'custom', streams },
      { kind: 'clear', streams: visits },
      { id: 1, attempt: 1 },
      kept,
    )
    expect(prepared.cleared).toEqual(cleared)
  })

  it.each<[string, Kept, unknown]>([
    ['no --state where none is kept', keptOf(), undefined],
    [
      'STREAM states',
      keptOf('visits'),
      [{ type: 'STREAM', stream: { stream_descriptor: { name: 'visits' }, stream_state: { at: 1 } } }],
    ],
    [
      'a GLOBAL state',
      { ...keptOf('visits'), isGlobal: true, shared: { lsn: 7 } },
      [
        {
          type: 'GLOBAL',
          global: {
            shared_state: { lsn: 7 },
            stream_states: [{ stream_descriptor: { name: 'visits' }, stream_state: { at: 1 } }],
          },
        },
      ],
    ],
  ])('%s', (_, kept, inputState) => {
    expect(
      prepareAttempt({ definition: 'custom', streams }, { kind: 'sync' }, { id: 1, attempt: 1 }, kept).inputState,
    ).toEqual(inputState)
  })
})

describe('a state that came back', () => {
  it.each<[string, Json, ReadonlyArray<string>]>([
    ['is kept', streamState('list', { at: 2 }).state as Json, ['visits', 'list']],
    ['without content deletes', { type: 'STREAM', stream: { stream_descriptor: { name: 'visits' } } }, []],
    ['with null deletes', streamState('visits', null).state as Json, []],
    [
      'GLOBAL, keeps one stream and deletes another',
      {
        type: 'GLOBAL',
        global: {
          shared_state: 1,
          stream_states: [
            { stream_descriptor: { name: 'visits' } },
            { stream_descriptor: { name: 'list' }, stream_state: {} },
          ],
        },
      },
      ['list'],
    ],
  ])('%s', (_, state, streams) => {
    const kept = keepState(keptOf('visits'), state)
    expect([Object.keys(kept.states), kept.isGlobal]).toEqual([streams, state.type === 'GLOBAL'])
  })
})

it('what a GLOBAL state shares stays when a STREAM state follows', () => {
  const global = keepState(keptOf(), { type: 'GLOBAL', global: { shared_state: { lsn: 7 }, stream_states: [] } })
  const kept = keepState(global, streamState('list', {}).state as Json)
  expect([kept.isGlobal, kept.shared, Object.keys(kept.states)]).toEqual([true, { lsn: 7 }, ['list']])
})

it('a Clear names the namespace of a stream that has one', () => {
  const descriptor = { name: 'a', namespace: 'n' }
  const kept: Kept = { isGlobal: false, states: { 'n.a': { descriptor, state: {} } }, generations: {} }
  const connection = { definition: 'custom', streams: [streamOf('a', {}, { namespace: 'n' })] } as const
  const prepared = prepareAttempt(connection, { kind: 'clear', streams: ['a'] }, { id: 1, attempt: 1 }, kept)
  expect(prepared.cleared).toMatchObject([{ state: { stream: { stream_descriptor: descriptor } } }])
})

describe('the catalogue', () => {
  it.each<[ConfiguredStream['destination_sync_mode'], string, string]>([
    ['append', 'append', 'append'],
    ['append_dedup', 'append_dedup', 'append_dedup'],
    ['overwrite', 'overwrite', 'append'],
    ['overwrite_dedup', 'overwrite', 'append_dedup'],
    ['update', 'update', 'update'],
    ['soft_delete', 'soft_delete', 'soft_delete'],
  ])('has for %s the mode %s without ids and %s with them', (mode, withoutIds, withIds) => {
    const configured = streamOf('a', { destination_sync_mode: mode })
    expect(toDestinationMode(configured)).toBe(withoutIds)
    expect(toDestinationMode({ ...configured, generation_id: 0 })).toBe(withIds)
  })

  it.each(['update', 'soft_delete'] as const)('asks a source to append where the mode is %s', (mode) => {
    const catalog = toSourceCatalog([
      streamOf('a', { destination_sync_mode: mode }),
      streamOf('b', { destination_sync_mode: 'overwrite' }),
    ])
    expect(catalog).toMatchObject({
      streams: [{ destination_sync_mode: 'append' }, { destination_sync_mode: 'overwrite' }],
    })
  })

  it('has new schemas, names and keys for the destination', () => {
    const json_schema = {
      required: ['id'],
      properties: {
        id: { type: ['null', 'integer'], description: 'Key' },
        at: { type: ['string', 'null'], format: 'date-time', airbyte_type: 'timestamp_with_timezone' },
        tags: { type: ['null', 'array'], items: { type: 'string' } },
      },
    }
    const stream = streamOf(
      'visits',
      { primary_key: [['id']], cursor_field: ['at'] },
      { json_schema, namespace: 'own' },
    )
    const connection = connectionOf([stream], {
      prefix: 'crm_',
      namespace: 'other',
      mappers: [
        { kind: 'hash', stream: 'visits', column: 'id' },
        { kind: 'rename', stream: 'visits', from: 'at', to: 'time' },
      ],
    })
    expect(toDestinationCatalog(connection, [stream])).toEqual({
      streams: [
        {
          ...stream,
          stream: {
            name: 'crm_visits',
            namespace: 'other',
            json_schema: {
              $schema: 'http://json-schema.org/schema#',
              type: 'object',
              properties: {
                id_hashed: { type: 'integer' },
                time: { type: 'string', format: 'date-time', airbyte_type: 'timestamp_with_timezone' },
                tags: { type: 'array', items: { type: 'string' } },
              },
              additionalProperties: true,
            },
          },
          primary_key: [['id_hashed']],
          cursor_field: ['time'],
        },
      ],
    })
  })
})

describe('mappers', () => {
  const connection = connectionOf([], {
    mappers: [
      { kind: 'rename', stream: 'a', from: 'x', to: 'y' },
      { kind: 'hash', stream: 'a', column: 'mail' },
      { kind: 'filter', stream: 'a', keep: ({ y }) => y !== 2 },
    ],
  })
  it.each<[string, Json, Json | undefined]>([
    ['a', { x: 1, z: 3 }, { z: 3, y: 1 }],
    ['a', { x: 2 }, undefined],
    ['a', { mail: 'b' }, { mail_hashed: createHash('sha256').update('b').digest('hex') }],
    ['other', { x: 2 }, { x: 2 }],
  ])('turn a record of %s %j into %j', (stream, data, mapped) =>
    expect(mapRecord(connection, stream, data)).toEqual(mapped),
  )

  it.each([
    ['a', 'x', 'y'],
    ['a', 'mail', 'mail_hashed'],
    ['a', 'z', 'z'],
    ['other', 'x', 'x'],
  ])('turn the column of %s %s into %s', (stream, column, mapped) =>
    expect(mapColumn(connection, stream, column)).toBe(mapped),
  )
})

describe('of what a source sends', () => {
  const streams = [
    streamOf(
      'a',
      { primary_key: [['id'], ['part']], destination_sync_mode: 'append_dedup' },
      { json_schema: { properties: { id: {}, part: {}, x: {} } } },
    ),
    streamOf('free', {}, { namespace: 'n' }),
    streamOf('keyless', { destination_sync_mode: 'append_dedup' }),
  ]
  const recordOf = (stream: string, data: unknown, more: object = {}): Json => ({
    type: 'RECORD',
    record: { stream, data, ...more },
  })
  const status = (name: string, more: object = { emitted_at: 1 }): Json => ({
    type: 'TRACE',
    trace: { type: 'STREAM_STATUS', stream_status: { stream_descriptor: { name }, status: 'COMPLETE' }, ...more },
  })
  const passed = (message: Json) => ({ verdict: 'pass', message })
  const dropped = { verdict: 'drop' }
  const failed = expect.objectContaining({ verdict: 'fail' })

  it.each<[string, Json, unknown]>([
    ['a record goes on', recordOf('a', { id: 1 }), passed(recordOf('a', { id: 1 }))],
    ['attributes outside the schema are removed', recordOf('a', { id: 1, y: 2 }), passed(recordOf('a', { id: 1 }))],
    [
      'a schema without properties selects all',
      recordOf('free', { y: 2 }, { namespace: 'n' }),
      passed(recordOf('free', { y: 2 }, { namespace: 'n' })),
    ],
    ['a record of an unknown stream ends the sync', recordOf('b', { id: 1 }), failed],
    ['a record of another namespace too', recordOf('free', { id: 1 }), failed],
    ['a record without data is dropped', recordOf('a', undefined), dropped],
    ['a record with empty data too', recordOf('a', {}), dropped],
    ['append_dedup with all keys null ends the sync', recordOf('a', { id: null, x: 1 }), failed],
    [
      'append_dedup with one key null does not',
      recordOf('a', { id: null, part: 1 }),
      passed(recordOf('a', { id: null, part: 1 })),
    ],
    [
      'append_dedup of a stream without keys goes on',
      recordOf('keyless', { x: 1 }),
      passed(recordOf('keyless', { x: 1 })),
    ],
    ['a trace without a time is dropped', status('a', {}), dropped],
    ['COMPLETE goes on', status('a'), passed(status('a'))],
    ['COMPLETE for an unknown stream ends the sync', status('b'), failed],
    ['a LEGACY state ends the sync', { type: 'STATE', state: { type: 'LEGACY', data: {} } }, failed],
    ['a STREAM state goes on', streamState('a', {}), passed(streamState('a', {}))],
  ])('%s', (_, message, expected) =>
    expect(screenMessage({ definition: 'refreshes', streams }, message)).toEqual(expected),
  )

  it('COMPLETE for an unknown stream passes without refreshes', () =>
    expect(screenMessage({ definition: 'custom', streams }, status('b')).verdict).toBe('pass'))
})

describe('the envelope', () => {
  const stream = streamOf('a', full)
  const connection = connectionOf([stream], { prefix: 'p_' })

  it('of a record leaves out nulls and adds the prefix', () =>
    expect(
      toDestinationRecord(connection, {
        type: 'RECORD',
        record: { stream: 'a', namespace: null, data: { x: null }, emitted_at: 1, meta: null, other: 1 },
      }),
    ).toEqual({ type: 'RECORD', record: { stream: 'p_a', data: { x: null }, emitted_at: 1 } }))

  it.each<[string, object, object, number]>([
    ["the platform's count where the source gives none", {}, { records: 7, filtered: 0 }, 7],
    ["the source's count where it gives one", { sourceStats: { recordCount: 9 } }, { records: 7, filtered: 0 }, 9],
    ['less what a row filter dropped', { sourceStats: { recordCount: 9 } }, { records: 9, filtered: 4 }, 5],
  ])('of a state has an id and %s', (_, more, counted, recordCount) => {
    const sent = toDestinationState(connection, streamState('a', { at: 1 }, more), {
      records: 0,
      filtered: 0,
      ...counted,
      id: 3,
    })
    expect(sent).toEqual({
      type: 'STATE',
      state: {
        type: 'STREAM',
        stream: { stream_descriptor: { name: 'p_a' }, stream_state: { at: 1 } },
        sourceStats: { recordCount },
        id: 3,
      },
    })
  })

  it.each<[string, ConfiguredStream, ReadonlyArray<string>, number]>([
    ['a full refresh without a state', stream, [], 1],
    ['one with a state', stream, ['a'], 0],
    ['one that can be resumed', streamOf('a', full, { is_resumable: true }), [], 0],
    ['an incremental stream', streamOf('a'), [], 0],
  ])('%s gets so many injected states', (_, configured, withState, count) => {
    const state = {
      type: 'STATE',
      state: { type: 'STREAM', stream: { stream_descriptor: { name: 'a' }, stream_state: {} } },
    }
    expect(missingStates([configured], new Set(withState))).toEqual(count === 1 ? [state] : [])
  })

  it('of COMPLETE names each stream, and its time as a Java double; a custom definition gets none', () => {
    expect(completeLines(connection, [stream], 1_790_000_000_000)).toEqual([
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1.79E12,' +
        '"stream_status":{"stream_descriptor":{"name":"p_a"},"status":"COMPLETE"}}}',
    ])
    expect(completeLines({ ...connection, definition: 'custom' }, [stream], 1)).toEqual([])
  })

  it.each([
    [0, 0, 0],
    [8191, 0, 8191],
    [8192, 8192, 0],
    [20_000, 16_384, 3616],
  ])('of %i characters sends %i and keeps %i', (length, sent, kept) => {
    const { blocks, rest } = takeBlocks('x'.repeat(length))
    expect([blocks.length, rest.length]).toEqual([sent, kept])
  })

  it('has no namespace where the source names null', () =>
    expect(toDestinationName(connection, { name: 'a', namespace: null as never })).toEqual({ name: 'p_a' }))

  it('of a state that comes back has the own name of the stream', () => {
    const named = connectionOf([streamOf('a', {}, { namespace: 'n' })], { prefix: 'p_', namespace: 'm' })
    expect(toSourceName(named, { name: 'p_a', namespace: 'm' })).toEqual({ name: 'a', namespace: 'n' })
    expect(toSourceName(named, { name: 'p_a' })).toEqual({ name: 'p_a' })
  })
})

describe('the platform tracks', () => {
  const connection = connectionOf([streamOf('a'), streamOf('b')])
  const send = (track: ReturnType<typeof startTrack>, name: string, count: number, sourceCount = count) => {
    const counted = Array.from({ length: count }).reduce<typeof track>(
      (sum) => countRecord(sum, { name }, false),
      track,
    )
    const message = streamState(name, { at: count }, { sourceStats: { recordCount: sourceCount } })
    return stageState(
      counted,
      message,
      toDestinationState(connection, message, { ...countedBy(counted, message), id: counted.nextId }),
    )
  }
  const back = (name: string, id: unknown, accepted: number, rejected = 0) =>
    streamState(name, { at: 1 }, { id, destinationStats: { recordCount: accepted, rejectedRecordCount: rejected } })
  const start = startTrack(keptOf())
  const sent = send(send(start, 'a', 3), 'b', 2)

  it('counts per stream since its last state, and what was filtered', () => {
    const track = countRecord(
      countRecord(countRecord(start, { name: 'a' }, false), { name: 'a' }, true),
      { name: 'b' },
      false,
    )
    expect(countedBy(track, streamState('a', {}))).toEqual({ records: 2, filtered: 1 })
    expect(countedBy(track, { type: 'STATE', state: { type: 'GLOBAL', global: {} } })).toEqual({
      records: 3,
      filtered: 1,
    })
    expect(countedBy(sent, streamState('a', {}))).toEqual({ records: 0, filtered: 0 })
    expect([track.emitted, sent.nextId]).toEqual([2, 3])
  })

  it.each<[string, Json, object]>([
    ['a state with its id', back('a', 1, 3), { acknowledged: 3, mismatches: [], warnings: [], trouble: undefined }],
    ['rejected records', back('a', 1, 1, 2), { acknowledged: 3, rejected: 2, mismatches: [] }],
    [
      'a state without its id: the sync fails',
      back('a', undefined, 3),
      { acknowledged: 0, trouble: expect.stringContaining('id') },
    ],
    [
      'a state whose id is a text: the sync fails',
      back('a', '1', 3),
      { acknowledged: 0, trouble: expect.stringContaining('id') },
    ],
    [
      'a state of an unknown id: a warning',
      back('a', 8, 3),
      { acknowledged: 0, warnings: [expect.stringContaining('8')], trouble: undefined },
    ],
    [
      'a count that differs: logged',
      back('a', 1, 2),
      { acknowledged: 3, mismatches: [expect.stringContaining('a: ')], trouble: undefined },
    ],
  ])('%s', (_, message, expected) => expect(acknowledge(connection, sent, message)).toMatchObject(expected))

  it("a source's own count that differs from what came", () => {
    expect(acknowledge(connection, send(start, 'a', 3, 5), back('a', 1, 3)).mismatches).toHaveLength(1)
    expect(acknowledge(connection, send(start, 'a', 3, 5), back('a', 1, 5)).mismatches).toHaveLength(1)
  })

  it('a state covers all before it of its stream only', () => {
    const track = acknowledge(connection, send(sent, 'a', 4), back('a', 3, 4))
    expect([track.acknowledged, track.staged.map(({ id }) => id), track.mismatches]).toEqual([7, [2], []])
  })

  it('a stream is complete once the source said so and its newest state came back', () => {
    const said = noteComplete(sent, { name: 'a' })
    expect([completeStreams(sent), completeStreams(said)]).toEqual([[], []])
    expect(completeStreams(acknowledge(connection, said, back('a', 1, 3)))).toEqual(['a'])
    expect(completeStreams(acknowledge(connection, send(said, 'a', 1), back('a', 1, 3)))).toEqual([])
    expect(completeStreams(acknowledge(connection, sent, back('a', 1, 3)))).toEqual([])
  })

  it('a GLOBAL state counts the records of all streams once, less what was filtered', () => {
    const counted = countRecord(
      countRecord(countRecord(start, { name: 'a' }, false), { name: 'b' }, false),
      { name: 'b' },
      true,
    )
    const message = { type: 'STATE', state: { type: 'GLOBAL', global: { stream_states: [] } } }
    const staged = stageState(counted, message, { ...message, state: { ...message.state, id: 1 } })
    expect([staged.uncounted, staged.staged.map(({ records }) => records)]).toEqual([{}, [2]])
  })

  it('a state of one stream leaves the counts of the others', () => {
    const counted = countRecord(countRecord(start, { name: 'a' }, false), { name: 'b' }, false)
    const staged = stageState(counted, streamState('a', {}), streamState('a', {}, { id: 1 }))
    expect(Object.keys(staged.uncounted)).toEqual(['b'])
  })

  it('counts are not compared where a state was skipped', () => {
    expect(acknowledge(connection, send(sent, 'a', 4), back('a', 3, 7)).mismatches).toEqual([])
  })

  it('the streams of a GLOBAL state have a state', () => {
    const message = {
      type: 'STATE',
      state: { type: 'GLOBAL', global: { stream_states: [{ stream_descriptor: { name: 'a' } }] } },
    }
    expect([
      ...stageState(start, message, { ...message, state: { ...message.state, id: 1 } }).streamsWithState,
    ]).toEqual(['a'])
  })
})

describe('an attempt ends', () => {
  const error = (emitted_at: number, message: string, more: object = {}): Json => ({
    emitted_at,
    error: { message, failure_type: 'transient_error', ...more },
  })
  const good: AttemptEnd = { isCancelled: false, sourceStatus: 0, destinationStatus: 0, traces: [], trouble: undefined }
  const trace = { origin: 'destination', trace: error(1, 'x') } as const

  it.each<[string, Partial<AttemptEnd>, string]>([
    ['with both 0', {}, 'COMPLETED'],
    ['with an error trace and both 0', { traces: [trace] }, 'COMPLETED'],
    ['without a source', { sourceStatus: undefined }, 'COMPLETED'],
    ['with 1 of the source', { sourceStatus: 1 }, 'FAILED'],
    ['with 143 of the destination', { destinationStatus: 143 }, 'FAILED'],
    ['with trouble of the platform', { trouble: 'x' }, 'FAILED'],
    ['cancelled', { isCancelled: true, sourceStatus: 137 }, 'CANCELLED'],
  ])('%s', (_, end, status) => expect(attemptStatus({ ...good, ...end })).toBe(status))

  it('with failures: traces by time, then trouble, then exit codes, the source first', () => {
    const end: AttemptEnd = {
      ...good,
      ...{ sourceStatus: 1, destinationStatus: 1, trouble: 'odd' },
      traces: [
        { origin: 'destination', trace: error(9, 'late') },
        { origin: 'source', trace: error(3, 'early', { internal_message: 'why' }) },
      ],
    }
    expect(listFailures(end)).toEqual([
      { origin: 'source', type: 'transient_error', message: 'early', internalMessage: 'why' },
      { origin: 'destination', type: 'transient_error', message: 'late' },
      { origin: 'platform', type: 'system_error', message: 'odd' },
      { origin: 'source', type: 'system_error', message: 'The source exited with 1' },
      { origin: 'destination', type: 'system_error', message: 'The destination exited with 1' },
    ])
  })

  it.each<[string, object, boolean, string]>([
    ['config_error', { failure_type: 'config_error', internal_message: 'why' }, false, 'why'],
    ['config_error without internal_message', { failure_type: 'config_error' }, false, 'Unknown failure reason'],
    ['transient_error', { internal_message: 'why' }, true, 'shown'],
  ])('%s first: another attempt, and the reason shown', (_, more, retry, reason) => {
    const failures = listFailures({
      ...good,
      sourceStatus: 1,
      traces: [{ origin: 'source', trace: error(1, 'shown', more) }],
    })
    expect([mayRetry(failures), jobReason(failures)]).toEqual([retry, reason])
  })

  it.each([
    ['0\n', 0],
    ['143\n', 143],
    [undefined, 1],
  ])('with the exit file %j, status %i', (file, status) => expect(toExitStatus(file)).toBe(status))

  const answered = (status: string) => [{ type: 'CONNECTION_STATUS', connectionStatus: { status } }]
  it.each<[ReadonlyArray<Json>, number, string]>([
    [answered('SUCCEEDED'), 1, 'SUCCEEDED'],
    [answered('FAILED'), 0, 'FAILED'],
    [[{ type: 'TRACE', trace: { type: 'ERROR' } }], 0, 'error trace'],
    [[{ type: 'TRACE', trace: { type: 'ESTIMATE' } }], 0, 'exception'],
    [[{ type: 'LOG', trace: { type: 'ERROR' } }], 0, 'exception'],
    [[], 1, 'error trace'],
    [[], 0, 'exception'],
  ])('a check with %j and %i: %s', (messages, status, answer) => expect(checkAnswer(messages, status)).toBe(answer))
})

describe('containers', () => {
  it.each([
    ['read', '/source', false, 'read --config /source/connectorConfig.json --catalog /source/catalog.json'],
    [
      'read',
      '/source',
      true,
      'read --config /source/connectorConfig.json --catalog /source/catalog.json --state /source/inputState.json',
    ],
    ['write', '/dest', true, 'write --config /dest/connectorConfig.json --catalog /dest/catalog.json'],
    ['check', '/config', false, 'check --config /config/connectionConfiguration.json'],
    ['discover', '/config', false, 'discover --config /config/connectionConfiguration.json'],
    ['spec', '/config', false, 'spec'],
  ] as const)('%s runs in %s (state: %j) as %s', (verb, folder, hasState, command) => {
    expect(workingFolder(verb)).toBe(folder)
    expect(commandArguments(verb, folder, hasState).join(' ')).toBe(command)
  })

  it('have variables of the job; attempts count from 0 there', () =>
    expect(containerEnvironment('/x', { id: 4, attempt: 2 })).toMatchObject({
      AIRBYTE_ENTRYPOINT: '/x',
      WORKER_JOB_ID: '4',
      WORKER_JOB_ATTEMPT: '1',
    }))
})

describe('timeouts', () => {
  it.each([
    [10_801, true, true],
    [10_800, true, false],
    [99_999, false, false],
  ])('a source that is silent for %i s, with heartbeat.failSync %s: ended %s', (seconds, failSync, isEnded) =>
    expect(endsForSilence(seconds, { 'heartbeat.failSync': failSync })).toBe(isEnded),
  )

  it.each([
    [10_800, true, false],
    [86_401, true, true],
    [10_800, false, true],
    [7200, false, false],
  ])('a write that is blocked for %i s, with a file of flags %s: ended %s', (seconds, hasFile, isEnded) =>
    expect(endsForBlockedWrite(seconds, hasFile)).toBe(isEnded),
  )

  it('leave time for the longest wait that the config of our destination allows', () => {
    const [, longest] =
      /"max_wait_seconds": \{[^}]*"maximum": (\d+)/.exec(readFileSync('spec/destination.json', 'utf8')) ?? []
    expect(endsForBlockedWrite(Number(longest), true)).toBe(false)
    expect(endsForBlockedWrite(Number(longest), false)).toBe(false)
  })
})
