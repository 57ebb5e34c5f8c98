import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import {
  automaticAttributes,
  type Catalog,
  chooseAttributes,
  type StreamSelection,
  schemaAttributes,
  wrongCatalogFailure,
} from '../catalog'
import type { Failure } from '../failure'
import { decodeValue } from '../json/validate'
import type { SyncMode } from '../message'
import { annotate, declaredProperties, type JsonSchema, nullish } from '../schema'
import type { Stream } from '../stream'

const mapProperties = (properties: unknown, f: (schema: JsonSchema) => JsonSchema): JsonSchema =>
  Object.fromEntries(
    Object.entries(t.UnknownRecord.is(properties) ? properties : {}).map(([key, inner]) => [
      key,
      t.UnknownRecord.is(inner) ? f(inner) : {},
    ]),
  )

/**
 * The schema in the form that Singer targets expect: each `type` is an array, and Airbyte's own keywords are left out.
 */
export const toSingerSchema = ({ airbyte_type: _, ...schema }: JsonSchema): JsonSchema => ({
  ...schema,
  ...('type' in schema ? { type: [schema.type].flat() } : {}),
  ...('properties' in schema ? { properties: mapProperties(schema.properties, toSingerSchema) } : {}),
  ...(t.UnknownRecord.is(schema.items) ? { items: toSingerSchema(schema.items) } : {}),
})

/** The schema with only these top-level attributes, also in `required`. */
const selectSchemaAttributes = (schema: JsonSchema, kept: ReadonlySet<string>): JsonSchema => {
  const { properties, required, ...rest } = schema
  const remaining = Array.isArray(required) ? required.filter((name) => kept.has(name)) : []
  return {
    ...rest,
    properties: Object.fromEntries(
      Object.entries(t.UnknownRecord.is(properties) ? properties : {}).filter(([name]) => kept.has(name)),
    ),
    ...(remaining.length === 0 ? {} : { required: remaining }),
  }
}

/**
 * A stream in the output of `--discover`. Only top-level attributes can be selected; an object is always sent whole.
 */
export const describeSingerStream = <Env>(stream: Stream<Env>) => {
  const { name, schema, primaryKey, cursor } = stream
  const automatic = automaticAttributes(stream)
  const method = O.isSome(cursor) ? 'INCREMENTAL' : 'FULL_TABLE'
  return {
    tap_stream_id: name,
    stream: name,
    key_properties: primaryKey,
    replication_method: method,
    ...(O.isSome(cursor) ? { replication_key: cursor.value } : {}),
    schema: toSingerSchema(schema),
    metadata: [
      {
        breadcrumb: [],
        metadata: {
          inclusion: 'available',
          'selected-by-default': true,
          'table-key-properties': primaryKey,
          'forced-replication-method': method,
          ...(O.isSome(cursor) ? { 'valid-replication-keys': [cursor.value] } : {}),
        },
      },
      ...schemaAttributes(schema).map((attribute) => ({
        breadcrumb: ['properties', attribute],
        metadata: automatic.has(attribute)
          ? { inclusion: 'automatic' }
          : { inclusion: 'available', 'selected-by-default': true },
      })),
    ],
  }
}

/** The output of `--discover`. */
export const formatSingerCatalog = <Env>(streams: ReadonlyArray<Stream<Env>>): string =>
  `${JSON.stringify({ streams: streams.map(describeSingerStream) }, null, 2)}\n`

/** What a Singer catalog selects. */
export type SingerSelection = {
  readonly catalog: Catalog
  /** The SCHEMA of each stream: the catalog's schema without deselected attributes. */
  readonly schemas: ReadonlyMap<string, JsonSchema>
  /** Deselected attributes inside selected objects. They are still sent. */
  readonly nestedDeselections: ReadonlyArray<NestedDeselection>
  /** Settings of the catalog that are ignored. */
  readonly ineffectiveSettings: ReadonlyArray<IneffectiveSetting>
}

/** An ignored setting of a stream, such as a different replication key. */
type IneffectiveSetting = { readonly stream: string; readonly message: string }

/** An attribute inside an object, such as `location.name` of `reviews`. */
type NestedDeselection = { readonly stream: string; readonly path: ReadonlyArray<string> }

const ObjectCodec = annotate({ type: 'object' })(t.UnknownRecord)
const CatalogEntry = t.intersection([
  t.type({
    tap_stream_id: annotate({ type: 'string', examples: ['reviews'] })(t.string),
    schema: ObjectCodec,
    metadata: nullish(
      annotate({ type: 'array' })(
        t.readonlyArray(t.type({ breadcrumb: t.readonlyArray(t.string), metadata: nullish(ObjectCodec) })),
      ),
    ),
  }),
  t.UnknownRecord,
])

type CatalogEntry = t.TypeOf<typeof CatalogEntry>
const SingerCatalogCodec = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(CatalogEntry)) })

/** A Singer catalog (`--catalog`). A failure names the key path. Unknown streams stay in it; the run reports them. */
export const decodeSingerCatalog =
  <Env>(streams: ReadonlyArray<Stream<Env>>) =>
  (value: unknown): E.Either<Failure, SingerSelection> =>
    pipe(
      decodeValue(SingerCatalogCodec, value),
      E.bimap(wrongCatalogFailure, (catalog) => {
        const selected = catalog.streams.filter(isSelected).map((entry) =>
          selectEntry(
            entry,
            streams.find(({ name }) => name === entry.tap_stream_id),
          ),
        )
        return {
          catalog: selected.map(({ selection }) => selection),
          schemas: new Map(selected.map(({ selection, schema }) => [selection.name, schema])),
          nestedDeselections: selected.flatMap((each) => each.nestedDeselections),
          ineffectiveSettings: selected.flatMap((each) => each.ineffectiveSettings),
        }
      }),
    )

/** The metadata of a breadcrumb. In older catalogs it is beside or inside the schema. */
const metadataAt = (entry: CatalogEntry, path: ReadonlyArray<string>): Readonly<Record<string, unknown>> => {
  const properties = t.UnknownRecord.is(entry.schema.properties) ? entry.schema.properties : {}
  const older = path.length === 0 ? [entry.schema, entry] : [properties[path[1] ?? '']]
  const matching = (entry.metadata ?? []).filter(({ breadcrumb }) => breadcrumb.join('\0') === path.join('\0'))
  return Object.assign({}, ...older, ...matching.map(({ metadata }) => metadata ?? {}))
}

/** A boolean; some clients write it as a string. */
const parseFlag = (value: unknown): boolean | undefined =>
  /^(true|false)$/i.test(String(value)) ? /^true$/i.test(String(value)) : undefined

const selectedFlag = (metadata: Readonly<Record<string, unknown>>, defaultFlag: boolean): boolean =>
  parseFlag(metadata.selected) ?? parseFlag(metadata['selected-by-default']) ?? defaultFlag

const isSelected = (entry: CatalogEntry): boolean => {
  const metadata = metadataAt(entry, [])
  return metadata.inclusion !== 'unsupported' && (metadata.inclusion === 'automatic' || selectedFlag(metadata, false))
}

const isAttributeSelected = (entry: CatalogEntry, automatic: ReadonlySet<string>, attribute: string): boolean => {
  const metadata = metadataAt(entry, ['properties', attribute])
  return (
    automatic.has(attribute) ||
    metadata.inclusion === 'automatic' ||
    (metadata.inclusion !== 'unsupported' && selectedFlag(metadata, true))
  )
}

/**
 * A stream's setting: from the metadata, or else from the member with underscores that discovery prints beside the
 * stream.
 */
const settingOf = (entry: CatalogEntry, name: string, shownName: string): unknown =>
  metadataAt(entry, [])[name] ?? entry[shownName] ?? undefined

const replicationMethodOf = (entry: CatalogEntry): unknown =>
  settingOf(entry, 'replication-method', 'replication_method')

const replicationModeOf = (entry: CatalogEntry): SyncMode =>
  replicationMethodOf(entry) === 'FULL_TABLE' ? 'full_refresh' : 'incremental'

const findIneffectiveSettings = <Env>(
  entry: CatalogEntry,
  { name, primaryKey, cursor, syncModes }: Stream<Env>,
): ReadonlyArray<IneffectiveSetting> => {
  const methods = [...(syncModes.includes('incremental') ? ['INCREMENTAL'] : []), 'FULL_TABLE']
  const key = settingOf(entry, 'replication-key', 'replication_key')
  const tableKey = settingOf(entry, 'table-key-properties', 'key_properties')
  const method = replicationMethodOf(entry)
  const own = O.toUndefined(cursor)
  const isOwnKey = JSON.stringify([tableKey].flat()) === JSON.stringify(primaryKey)
  const problems = [
    ...(key === undefined || key === own
      ? []
      : [`replication-key ${key} has no effect: ${own === undefined ? 'the stream has none' : `it uses ${own}`}`]),
    ...(tableKey === undefined || isOwnKey
      ? []
      : [`table-key-properties ${[tableKey].flat().join(', ')} have no effect: they are ${primaryKey.join(', ')}`]),
    ...(method === undefined || methods.includes(String(method))
      ? []
      : [
          `replication-method ${method} has no effect: the stream ` +
            `has ${methods.join(' and ')}, and ${methods[0]} is used`,
        ]),
  ]
  return problems.map((problem) => ({ stream: name, message: `${name}: ${problem}.` }))
}

/**
 * Adds the attributes that every record has to the schema, because targets reject keys that their SCHEMA does not
 * declare.
 */
const declareAutomatic = <Env>(schema: JsonSchema, stream: Stream<Env> | undefined): JsonSchema => {
  if (stream === undefined) return schema
  const own = toSingerSchema(stream.schema)
  if (schemaAttributes(schema).length === 0) return own
  const declared = declaredProperties(own)
  const missing = [...automaticAttributes(stream)].filter((name) => !schemaAttributes(schema).includes(name))
  return missing.length === 0
    ? schema
    : {
        ...schema,
        properties: {
          ...declaredProperties(schema),
          ...Object.fromEntries(missing.map((name) => [name, declared[name]])),
        },
      }
}

/** The names in a breadcrumb. It has `properties` before each name and `items` for a step into a list. */
const attributePath = (breadcrumb: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [step, name, ...rest] = breadcrumb
  if (step === 'properties') return name === undefined ? [] : [name, ...attributePath(rest)]
  return step === undefined ? [] : attributePath(breadcrumb.slice(1))
}

/** True if a schema declares the attribute at a path, also within lists. */
const declaresAttribute = (schema: unknown, path: ReadonlyArray<string>): boolean => {
  if (!t.UnknownRecord.is(schema)) return false
  if (t.UnknownRecord.is(schema.items)) return declaresAttribute(schema.items, path)
  const [name = '', ...rest] = path
  const inner = t.UnknownRecord.is(schema.properties) ? schema.properties[name] : undefined
  return inner !== undefined && (rest.length === 0 || declaresAttribute(inner, rest))
}

const selectEntry = <Env>(
  given: CatalogEntry,
  stream: Stream<Env> | undefined,
): {
  readonly selection: StreamSelection
  readonly schema: JsonSchema
  readonly nestedDeselections: ReadonlyArray<NestedDeselection>
  readonly ineffectiveSettings: ReadonlyArray<IneffectiveSetting>
} => {
  const entry = { ...given, schema: declareAutomatic(given.schema, stream) }
  const automatic = stream === undefined ? new Set<string>() : automaticAttributes(stream)
  const kept = new Set(
    schemaAttributes(entry.schema).filter((attribute) => isAttributeSelected(entry, automatic, attribute)),
  )
  return {
    selection: {
      name: entry.tap_stream_id,
      syncMode: replicationModeOf(entry),
      attributes: stream === undefined ? O.none : chooseAttributes(stream, kept),
    },
    schema: selectSchemaAttributes(entry.schema, kept),
    ineffectiveSettings: stream === undefined ? [] : findIneffectiveSettings(entry, stream),
    nestedDeselections: (entry.metadata ?? []).flatMap(({ breadcrumb, metadata }) => {
      const path = attributePath(breadcrumb)
      return path.length > 1 &&
        kept.has(path[0] ?? '') &&
        !selectedFlag(metadata ?? {}, true) &&
        declaresAttribute(stream?.schema ?? entry.schema, path)
        ? [{ stream: entry.tap_stream_id, path }]
        : []
    }),
  }
}
