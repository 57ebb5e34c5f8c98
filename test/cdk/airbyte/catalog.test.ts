import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import { decodeConfiguredCatalog, selectAllStreams } from '../../../connector/cdk/airbyte/catalog'
import { findStreamByTable, toInputStream, toSelections } from '../../../connector/cdk/catalog'
import { defineStream } from '../../../connector/cdk/stream'
import { toLoadOptions } from '../../../connector/snapshot/load/target'
import { streams } from '../../../connector/streams'
import { configuredStream, destinationCatalog, snapshotCatalog } from '../../support/catalogs'

const inputStreams = (...streams: ReadonlyArray<unknown>) => destinationCatalog(...streams).map(toInputStream)

describe('a configured catalog of a destination', () => {
  it.each([
    ['its own name', configuredStream('visit_records'), 'visit_records'],
    [
      'destination_object_name',
      configuredStream('patients', { destination_object_name: 'visit_records' }),
      'visit_records',
    ],
    ['its own name where that is null', configuredStream('locations', { destination_object_name: null }), 'locations'],
  ])('sends a stream to %s', (_, one, object) => {
    expect(inputStreams(one)[0]?.objectName).toBe(object)
  })

  it('takes the key of the source where the user chose none', () => {
    const keys = [{ primary_key: [['a', 'b']] }, {}, { primary_key: [] }, { primary_key: null }]
    expect(
      keys.map((more) => inputStreams(configuredStream('x', more, { source_defined_primary_key: [['id']] }))[0]?.key),
    ).toEqual([[['a', 'b']], [['id']], [['id']], [['id']]])
  })

  it.each([
    ['append', 'append', false],
    ['append_dedup', 'append_dedup', false],
    ['overwrite', 'overwrite', false],
    ['update', 'update', false],
    ['soft_delete', 'soft_delete', true],
    [null, undefined, false],
  ])('says whether %s deletes', (mode, read, deletes) => {
    const one = configuredStream('locations', { destination_sync_mode: mode })
    expect(destinationCatalog(one)[0]?.destinationSyncMode).toBe(read)
    expect(inputStreams(one)[0]?.isDeletion).toBe(deletes)
  })

  it('names the key path that is wrong', () => {
    expect(decodeConfiguredCatalog('destination')({ streams: [configuredStream('x'), { stream: {} }] })).toMatchObject({
      left: { _tag: 'Config', message: expect.stringContaining('streams.1.stream.name') },
    })
  })
})

describe('a configured catalog of a source', () => {
  const deletable = defineStream({
    name: 'a',
    codec: t.intersection([
      t.type({ id: t.number, at: t.string }),
      t.partial({ text: t.string, _ab_cdc_deleted_at: t.string }),
    ]),
    primaryKey: ['id'],
    cursor: 'at',
    reader: { name: 'none', read: () => async function* () {} },
    project: () => [],
  })

  it('reads names and sync modes', () => {
    const catalog = {
      streams: [
        { stream: { name: 'a', json_schema: {} }, sync_mode: 'incremental', destination_sync_mode: 'append' },
        { stream: { name: 'b' } },
      ],
    }
    expect(E.map(toSelections([]))(decodeConfiguredCatalog('source')(catalog))).toMatchObject(
      E.right([
        { name: 'a', syncMode: 'incremental' },
        { name: 'b', syncMode: 'full_refresh' },
      ]),
    )
  })

  it.each<[string, unknown, ReadonlyArray<string> | 'all']>([
    ['every attribute', { id: {}, at: {}, text: {}, _ab_cdc_deleted_at: {} }, 'all'],
    ['more than the stream has', { id: {}, at: {}, text: {}, _ab_cdc_deleted_at: {}, other: {} }, 'all'],
    ['all but what always leaves', { text: {} }, 'all'],
    ['no text', { id: {}, at: {} }, ['_ab_cdc_deleted_at', 'at', 'id']],
    ['another attribute alone', { other: {} }, ['_ab_cdc_deleted_at', 'at', 'id', 'other']],
    ['no property', {}, 'all'],
    ['null for properties', null, 'all'],
    ['no properties', undefined, 'all'],
    ['an array for properties', ['id'], 'all'],
  ])('selects the attributes of a schema with %s', (_, properties, expected) => {
    const stream = { name: 'a', json_schema: { type: 'object', properties } }
    const selections = E.map(toSelections([deletable]))(decodeConfiguredCatalog('source')({ streams: [{ stream }] }))
    const attributes = E.isRight(selections) ? selections.right[0]?.attributes : undefined
    expect(attributes?._tag === 'Some' ? [...attributes.value].sort() : 'all').toEqual(expected)
  })

  it.each<[string, unknown, string]>([
    ['no streams', {}, 'streams is missing'],
    ['no stream', { streams: [{}] }, 'streams.0.stream is missing'],
    ['a nameless stream', { streams: [{ stream: {} }] }, 'streams.0.stream.name is missing'],
    ['an odd mode', { streams: [{ stream: { name: 'a' }, sync_mode: 'x' }] }, 'streams.0.sync_mode'],
    ['no object', [], 'it is an array'],
  ])('refuses %s by key path', (_, value, message) => {
    const result = decodeConfiguredCatalog('source')(value)
    expect(E.isLeft(result) && result.left.message).toContain(message)
  })
})

describe('a configured catalog of a snapshot', () => {
  it('gives key, cursor, mode and generation', () => {
    const given = snapshotCatalog({ generation_id: 3, minimum_generation_id: 3, primary_key: [['id'], ['x']] })
    expect(findStreamByTable(given)({ name: 'reviews' })).toMatchObject({
      primaryKey: ['id', 'x'],
      cursor: { value: 'modifiedTime' },
      syncMode: 'incremental',
    })
    expect(given.map(toLoadOptions)).toEqual([{ mode: 'append_dedup', generation: 3, minimum: 3 }])
    expect(snapshotCatalog({ generation_id: 0, minimum_generation_id: 0 }).map(toLoadOptions)).toEqual([
      { mode: 'append_dedup' },
    ])
  })

  it('names the key path that is wrong', () => {
    const wrong = decodeConfiguredCatalog('snapshot')({
      streams: [{ stream: { name: 'reviews' }, sync_mode: 'sometimes' }],
    })
    expect(E.isLeft(wrong) && wrong.left.message).toMatch(/streams\.0\.stream\.json_schema.*streams\.0\.sync_mode/)
  })
})

describe('the catalog that selects all streams', () => {
  it.each(['source', 'destination', 'snapshot'] as const)('is read back whole by a %s', (role) => {
    const written = JSON.parse(JSON.stringify(selectAllStreams(streams)))
    const read = decodeConfiguredCatalog(role)(written)
    expect(streams.length).toBeGreaterThan(5)
    expect(E.isRight(read) && read.right).toMatchObject(
      streams.map(({ name, primaryKey, cursor }) => ({
        name,
        namespace: undefined,
        syncMode: O.isSome(cursor) ? 'incremental' : 'full_refresh',
        destinationSyncMode: O.isSome(cursor) ? 'append_dedup' : 'overwrite',
        primaryKey: primaryKey.map((attribute) => [attribute]),
        cursor: O.isSome(cursor) ? [cursor.value] : [],
      })),
    )
  })
})
