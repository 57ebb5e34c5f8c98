import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import { toJsonSchema } from '../../../connector/cdk/schema'
import { decodeSingerCatalog, describeSingerStream, formatSingerCatalog } from '../../../connector/cdk/singer/catalog'
import { defineStream } from '../../../connector/cdk/stream'

const reviews = defineStream({
  name: 'reviews',
  codec: t.intersection([
    t.type({ id: t.number, at: t.string }),
    t.partial({ text: t.string, place: t.type({ name: t.string }) }),
  ]),
  primaryKey: ['id'],
  cursor: 'at',
  reader: { name: 'none', read: () => async function* () {} },
  project: () => [],
})

type Metadata = { breadcrumb: string[]; metadata: Record<string, unknown> }
const catalog = (metadata: Metadata[], more: object = {}) => ({
  streams: [{ tap_stream_id: 'reviews', schema: describeSingerStream(reviews).schema, metadata, ...more }],
})
const root = (metadata: Record<string, unknown>): Metadata => ({ breadcrumb: [], metadata })
const at = (path: string, metadata: Record<string, unknown>): Metadata => ({
  breadcrumb: path.split('.').flatMap((part) => ['properties', part]),
  metadata,
})
const asked = (value: unknown) => {
  const result = decodeSingerCatalog([reviews])(value)
  if (E.isLeft(result)) throw new Error(result.left.message)
  return result.right
}
const attributes = (value: unknown) => {
  const kept = asked(value).catalog[0]?.attributes ?? O.none
  return O.isNone(kept) ? 'all' : [...kept.value].sort()
}

describe('discovery', () => {
  it('names keys, cursor and what is automatic', () => {
    const [entry] = JSON.parse(formatSingerCatalog([reviews])).streams
    expect(entry).toEqual({
      tap_stream_id: 'reviews',
      stream: 'reviews',
      key_properties: ['id'],
      replication_method: 'INCREMENTAL',
      replication_key: 'at',
      schema: {
        type: ['object'],
        properties: {
          id: { type: ['number'] },
          at: { type: ['string'] },
          text: { type: ['string'] },
          place: {
            type: ['object'],
            properties: { name: { type: ['string'] } },
            required: ['name'],
            additionalProperties: true,
          },
        },
        required: ['id', 'at'],
        additionalProperties: true,
      },
      metadata: [
        root({
          inclusion: 'available',
          'selected-by-default': true,
          'table-key-properties': ['id'],
          'forced-replication-method': 'INCREMENTAL',
          'valid-replication-keys': ['at'],
        }),
        at('id', { inclusion: 'automatic' }),
        at('at', { inclusion: 'automatic' }),
        at('text', { inclusion: 'available', 'selected-by-default': true }),
        at('place', { inclusion: 'available', 'selected-by-default': true }),
      ],
    })
  })
})

const noMethod = (method: string): string =>
  `reviews: replication-method ${method} has no effect: the stream has INCREMENTAL and FULL_TABLE, ` +
  'and INCREMENTAL is used.'

describe('decodeSingerCatalog', () => {
  it('selects everything in the catalog that discovery printed', () => {
    const value = JSON.parse(formatSingerCatalog([reviews]))
    expect(asked(value).catalog).toEqual([{ name: 'reviews', syncMode: 'incremental', attributes: O.none }])
    expect(asked(value).schemas.get('reviews')).toEqual(describeSingerStream(reviews).schema)
  })

  it.each<[string, object, boolean]>([
    ['selected', root({ selected: true }), true],
    ['selected as text', root({ selected: 'true' }), true],
    ['deselected over its default', root({ selected: false, 'selected-by-default': true }), false],
    ['deselected as text', root({ selected: 'false', 'selected-by-default': true }), false],
    ['selected by default', root({ 'selected-by-default': true }), true],
    ['neither', root({}), false],
    ['unsupported', root({ inclusion: 'unsupported', selected: true }), false],
    ['automatic', root({ inclusion: 'automatic' }), true],
  ])('reads a stream that is %s', (_, metadata, selected) => {
    expect(asked(catalog([metadata as Metadata])).catalog).toHaveLength(selected ? 1 : 0)
  })

  it('reads the older form, beside and inside the schema', () => {
    const schema = { ...describeSingerStream(reviews).schema, selected: true }
    expect(asked(catalog([], { schema })).catalog).toHaveLength(1)
    expect(asked(catalog([], { selected: 'true' })).catalog).toHaveLength(1)
  })

  it.each<[string, object, object, string]>([
    ['the metadata', { 'replication-method': 'FULL_TABLE' }, { replication_method: 'INCREMENTAL' }, 'full_refresh'],
    ['the metadata', { 'replication-method': 'INCREMENTAL' }, { replication_method: 'FULL_TABLE' }, 'incremental'],
    ['what stands beside the stream', {}, { replication_method: 'FULL_TABLE' }, 'full_refresh'],
    ['what stands beside the stream', {}, { replication_method: 'INCREMENTAL' }, 'incremental'],
    ['nothing', {}, {}, 'incremental'],
  ])('takes the replication method from %s: %j %j', (_, metadata, beside, mode) => {
    expect(asked(catalog([root({ selected: true, ...metadata })], beside)).catalog[0]?.syncMode).toBe(mode)
  })

  it.each<[object, object, ReadonlyArray<string>]>([
    [{}, { replication_method: 'INCREMENTAL', replication_key: 'at', key_properties: ['id'] }, []],
    [{ 'replication-key': 'at', 'table-key-properties': ['id'], 'replication-method': 'FULL_TABLE' }, {}, []],
    [{ 'replication-key': 'text' }, {}, ['reviews: replication-key text has no effect: it uses at.']],
    [{}, { replication_key: 'text' }, ['reviews: replication-key text has no effect: it uses at.']],
    [
      { 'table-key-properties': ['text', 'at'] },
      {},
      ['reviews: table-key-properties text, at have no effect: they are id.'],
    ],
    [{ 'replication-method': 'LOG_BASED' }, {}, [noMethod('LOG_BASED')]],
    [{ 'replication-method': 'full_table' }, {}, [noMethod('full_table')]],
  ])('names what has no effect: %j %j', (metadata, beside, messages) => {
    const { ineffectiveSettings } = asked(catalog([root({ selected: true, ...metadata })], beside))
    expect(ineffectiveSettings.map(({ message }) => message)).toEqual(messages)
  })

  it('declares keys and cursor that the schema lacks, and everything where it declares nothing', () => {
    const own = describeSingerStream(reviews).schema as { readonly properties: Readonly<Record<string, unknown>> }
    const schemaOf = (schema: object) =>
      asked(catalog([root({ selected: true })], { schema })).schemas.get('reviews')?.properties
    const text = { type: ['null', 'string'] }
    expect(schemaOf({ properties: { text } })).toEqual({ text, id: own.properties.id, at: own.properties.at })
    expect(schemaOf({})).toEqual(own.properties)
    expect(attributes(catalog([root({ selected: true })], { schema: {} }))).toBe('all')
  })

  it.each<[string, Metadata[], unknown]>([
    ['nothing is deselected', [], 'all'],
    ['one is', [at('text', { selected: false })], ['at', 'id', 'place']],
    ['one is, as text', [at('text', { selected: 'False' })], ['at', 'id', 'place']],
    ['one is by default', [at('text', { 'selected-by-default': false })], ['at', 'id', 'place']],
    ['one is unsupported', [at('text', { inclusion: 'unsupported', selected: true })], ['at', 'id', 'place']],
    ['keys and cursor are', [at('id', { selected: false }), at('at', { selected: false })], 'all'],
    ['an automatic one is', [at('text', { inclusion: 'automatic', selected: false })], 'all'],
  ])('keeps the right attributes where %s', (_, metadata, kept) => {
    expect(attributes(catalog([root({ selected: true }), ...metadata]))).toEqual(kept)
  })

  it.each<[string, Metadata[], ReadonlyArray<string>]>([
    ['a part of an object', [at('place.name', { selected: false })], ['place.name']],
    ['a part of an object, as text', [at('place.name', { selected: 'false' })], ['place.name']],
    ['a part that is not selected by default', [at('place.name', { 'selected-by-default': false })], ['place.name']],
    ['a part of a deselected object', [at('place', { selected: false }), at('place.name', { selected: false })], []],
    ['a part that the stream does not have', [at('place.other', { selected: false })], []],
    ['a selected part', [at('place.name', { selected: true })], []],
  ])('warns that a deselected part of a selected object is sent with it: %s', (_, metadata, expected) => {
    const { nestedDeselections } = asked(catalog([root({ selected: true }), ...metadata]))
    expect(nestedDeselections.map(({ path }) => path.join('.'))).toEqual(expected)
  })

  it('takes a deselected attribute out of SCHEMA and required', () => {
    const schema = { ...describeSingerStream(reviews).schema, required: ['id', 'text'] }
    const value = catalog([root({ selected: true }), at('text', { selected: false })], { schema })
    expect(asked(value).schemas.get('reviews')).toMatchObject({ required: ['id'] })
    expect(Object.keys((asked(value).schemas.get('reviews')?.properties ?? {}) as object)).toEqual([
      'id',
      'at',
      'place',
    ])
  })

  it('takes the schema of the catalog with the cursor, and sends only what it declares', () => {
    const schema = { type: 'object', properties: { id: { type: ['string'] }, text: { type: ['null', 'string'] } } }
    const value = catalog([root({ selected: true })], { schema })
    const { properties } = describeSingerStream(reviews).schema as { readonly properties: { readonly at: object } }
    const declared = { ...schema, properties: { ...schema.properties, at: properties.at } }
    expect(asked(value).schemas.get('reviews')).toEqual(declared)
    expect(attributes(value)).toEqual(['at', 'id', 'text'])
  })

  it('warns the same of a part of the objects in a list', () => {
    const visits = {
      ...reviews,
      name: 'visits',
      schema: toJsonSchema(t.type({ id: t.number, nurses: t.array(t.type({ name: t.string })) })),
    }
    const [entry] = JSON.parse(formatSingerCatalog([visits])).streams
    const metadata = [
      root({ selected: true }),
      { breadcrumb: ['properties', 'nurses', 'items', 'properties', 'name'], metadata: { selected: false } },
    ]
    const result = decodeSingerCatalog([visits])({ streams: [{ ...entry, metadata }] })
    expect(E.isRight(result) && result.right.nestedDeselections).toEqual([
      { stream: 'visits', path: ['nurses', 'name'] },
    ])
  })

  it('reads a chosen full table', () => {
    const value = catalog([root({ selected: true, 'replication-method': 'FULL_TABLE' })])
    expect(asked(value).catalog[0]?.syncMode).toBe('full_refresh')
  })

  it('keeps a stream that does not exist, so that the run reports it', () => {
    const value = { streams: [{ tap_stream_id: 'nope', schema: {}, metadata: [root({ selected: true })] }] }
    expect(asked(value).catalog.map(({ name }) => name)).toEqual(['nope'])
  })

  it.each<[string, unknown, string]>([
    ['no streams', {}, 'streams is missing'],
    ['a nameless stream', { streams: [{ schema: {} }] }, 'streams.0.tap_stream_id is missing'],
    ['no schema', { streams: [{ tap_stream_id: 'a' }] }, 'streams.0.schema is missing'],
  ])('refuses %s by key path', (_, value, message) => {
    const result = decodeSingerCatalog([reviews])(value)
    expect(E.isLeft(result) && result.left.message).toContain(message)
  })
})
