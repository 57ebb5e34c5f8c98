import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import type { Catalog, StreamSelection } from '../catalog'
import { configFailure, type Failure } from '../failure'
import { decodeValue } from '../json/decode'
import type { SyncMode } from '../message'
import { annotate, type JsonSchema } from '../schema'
import type { Stream } from '../stream'

const mapProperties = (properties: unknown, f: (schema: JsonSchema) => JsonSchema): JsonSchema =>
  Object.fromEntries(
    Object.entries(t.UnknownRecord.is(properties) ? properties : {}).map(([key, inner]) => [
      key,
      t.UnknownRecord.is(inner) ? f(inner) : {},
    ]),
  )

/** The schema as Singer targets want it: each `type` an array at every depth, none of Airbyte's own keywords. */
export const toSingerSchema = ({ airbyte_type: _, ...schema }: JsonSchema): JsonSchema => ({
  ...schema,
  ...('type' in schema ? { type: [schema.type].flat() } : {}),
  ...('properties' in schema ? { properties: mapProperties(schema.properties, toSingerSchema) } : {}),
  ...(t.UnknownRecord.is(schema.items) ? { items: toSingerSchema(schema.items) } : {}),
})

/** The attributes that a schema declares at its top level. */
export const schemaAttributes = (schema: JsonSchema): ReadonlyArray<string> =>
  t.UnknownRecord.is(schema.properties) ? Object.keys(schema.properties) : []

/** The schema with only these top-level attributes, left out of `required` too. */
export const selectSchemaAttributes = (schema: JsonSchema, kept: ReadonlySet<string>): JsonSchema => {
  const { properties, required, ...rest } = schema
  const still = Array.isArray(required) ? required.filter((name) => kept.has(name)) : []
  return {
    ...rest,
    properties: Object.fromEntries(
      Object.entries(t.UnknownRecord.is(properties) ? properties : {}).filter(([name]) => kept.has(name)),
    ),
    ...(still.length === 0 ? {} : { required: still }),
  }
}

/** What leaves with every record, selected or not: the primary key and the cursor. */
export const automaticAttributes = <Env>({ primaryKey, cursor }: Stream<Env>): ReadonlySet<string> =>
  new Set([...primaryKey, ...(O.isSome(cursor) ? [cursor.value] : [])])

/** A stream as `--discover` shows it. Attributes are selected whole: those inside an object go with it. */
export const describeSingerStream = <Env>(stream: Stream<Env>) => {
  const { name, schema, primaryKey, cursor } = stream
  const always = automaticAttributes(stream)
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
        metadata: always.has(attribute)
          ? { inclusion: 'automatic' }
          : { inclusion: 'available', 'selected-by-default': true },
      })),
    ],
  }
}

/** What `--discover` prints. */
export const formatSingerCatalog = <Env>(streams: ReadonlyArray<Stream<Env>>): string =>
  `${JSON.stringify({ streams: streams.map(describeSingerStream) }, null, 2)}\n`

/** What a Singer catalog asks for. */
export type SingerSelection = {
  readonly catalog: Catalog
  /** What SCHEMA says of each stream: the catalog's own schema, less what is not selected. */
  readonly schemas: ReadonlyMap<string, JsonSchema>
  /** Attributes inside selected objects that are deselected alone, which cannot be: `reviews.location.name`. */
  readonly nestedDeselections: ReadonlyArray<string>
}

const ObjectCodec = annotate({ type: 'object' })(t.UnknownRecord)
const nullish = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
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

/** A Singer catalog (`--catalog`); a failure names the key path. Streams that do not exist stay in it for the run to name. */
export const decodeSingerCatalog =
  <Env>(streams: ReadonlyArray<Stream<Env>>) =>
  (value: unknown): E.Either<Failure, SingerSelection> =>
    pipe(
      decodeValue(SingerCatalogCodec, value),
      E.bimap(
        (wrong) =>
          configFailure(
            `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
          ),
        (catalog) => {
          const chosen = catalog.streams.filter(isSelected).map((entry) =>
            selectEntry(
              entry,
              streams.find(({ name }) => name === entry.tap_stream_id),
            ),
          )
          return {
            catalog: chosen.map(({ selection }) => selection),
            schemas: new Map(chosen.map(({ selection, schema }) => [selection.name, schema])),
            nestedDeselections: chosen.flatMap((each) => each.nestedDeselections),
          }
        },
      ),
    )

/** Metadata of a breadcrumb; what stands beside or inside the schema itself is the older way to say the same. */
const metadataAt = (entry: CatalogEntry, path: ReadonlyArray<string>): Readonly<Record<string, unknown>> => {
  const properties = t.UnknownRecord.is(entry.schema.properties) ? entry.schema.properties : {}
  const older = path.length === 0 ? [entry.schema, entry] : [properties[path[1] ?? '']]
  const said = (entry.metadata ?? []).filter(({ breadcrumb }) => breadcrumb.join('\0') === path.join('\0'))
  return Object.assign({}, ...older, ...said.map(({ metadata }) => metadata ?? {}))
}

/** Clients write booleans as strings too. */
const parseFlag = (value: unknown): boolean | undefined =>
  /^(true|false)$/i.test(String(value)) ? /^true$/i.test(String(value)) : undefined

const selectedFlag = (metadata: Readonly<Record<string, unknown>>, otherwise: boolean): boolean =>
  parseFlag(metadata.selected) ?? parseFlag(metadata['selected-by-default']) ?? otherwise

const isSelected = (entry: CatalogEntry): boolean => {
  const metadata = metadataAt(entry, [])
  return metadata.inclusion !== 'unsupported' && (metadata.inclusion === 'automatic' || selectedFlag(metadata, false))
}

const isAttributeSelected = (entry: CatalogEntry, always: ReadonlySet<string>, attribute: string): boolean => {
  const metadata = metadataAt(entry, ['properties', attribute])
  return (
    always.has(attribute) ||
    metadata.inclusion === 'automatic' ||
    (metadata.inclusion !== 'unsupported' && selectedFlag(metadata, true))
  )
}

const replicationModeOf = (entry: CatalogEntry): SyncMode =>
  metadataAt(entry, [])['replication-method'] === 'FULL_TABLE' ? 'full_refresh' : 'incremental'

const selectEntry = <Env>(
  entry: CatalogEntry,
  stream: Stream<Env> | undefined,
): {
  readonly selection: StreamSelection
  readonly schema: JsonSchema
  readonly nestedDeselections: ReadonlyArray<string>
} => {
  const always = stream === undefined ? new Set<string>() : automaticAttributes(stream)
  const kept = new Set(
    schemaAttributes(entry.schema).filter((attribute) => isAttributeSelected(entry, always, attribute)),
  )
  const all = stream !== undefined && schemaAttributes(stream.schema).every((attribute) => kept.has(attribute))
  return {
    selection: {
      name: entry.tap_stream_id,
      syncMode: replicationModeOf(entry),
      attributes: all ? O.none : O.some(new Set([...kept, ...always])),
    },
    schema: selectSchemaAttributes(entry.schema, kept),
    nestedDeselections: (entry.metadata ?? []).flatMap(({ breadcrumb, metadata }) => {
      const path = breadcrumb.filter((part) => part !== 'properties')
      return breadcrumb.length > 2 && kept.has(path[0] ?? '') && parseFlag(metadata?.selected) === false
        ? [`${entry.tap_stream_id}.${path.join('.')}`]
        : []
    }),
  }
}
