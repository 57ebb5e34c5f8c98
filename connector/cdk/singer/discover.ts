import * as O from 'fp-ts/Option'
import type { Stream } from '../stream'
import { schemaAttributes, toSingerSchema } from './schema'

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
