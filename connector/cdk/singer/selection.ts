import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import type { Catalog, Selection } from '../catalog'
import { configFailure, type Failure } from '../failure'
import { decode } from '../json'
import type { SyncMode } from '../message'
import { annotate, type JsonSchema } from '../schema'
import type { Stream } from '../stream'
import { automatic } from './discover'
import { attributesOf, onlyAttributes } from './schema'

/** What a Singer catalog asks for. */
export type Asked = {
  readonly catalog: Catalog
  /** What SCHEMA says of each stream: the catalog's own schema, less what is not selected. */
  readonly schemas: ReadonlyMap<string, JsonSchema>
  /** Attributes inside selected objects that are deselected alone, which cannot be: `reviews.location.name`. */
  readonly inseparable: ReadonlyArray<string>
}

const record = annotate({ type: 'object' })(t.UnknownRecord)
const maybe = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
const Entry = t.intersection([
  t.type({
    tap_stream_id: annotate({ type: 'string', examples: ['reviews'] })(t.string),
    schema: record,
    metadata: maybe(
      annotate({ type: 'array' })(
        t.readonlyArray(t.type({ breadcrumb: t.readonlyArray(t.string), metadata: maybe(record) })),
      ),
    ),
  }),
  t.UnknownRecord,
])
type Entry = t.TypeOf<typeof Entry>
const SingerCatalog = t.type({ streams: annotate({ type: 'array' })(t.readonlyArray(Entry)) })

/** A Singer catalog (`--catalog`); a failure names the key path. Streams that do not exist stay in it for the run to name. */
export const readCatalog =
  <Env>(streams: ReadonlyArray<Stream<Env>>) =>
  (value: unknown): E.Either<Failure, Asked> =>
    pipe(
      decode(SingerCatalog, value),
      E.bimap(
        (wrong) =>
          configFailure(
            `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
          ),
        (catalog) => {
          const chosen = catalog.streams.filter(isSelected).map((entry) =>
            ask(
              entry,
              streams.find(({ name }) => name === entry.tap_stream_id),
            ),
          )
          return {
            catalog: chosen.map(({ selection }) => selection),
            schemas: new Map(chosen.map(({ selection, schema }) => [selection.name, schema])),
            inseparable: chosen.flatMap((each) => each.inseparable),
          }
        },
      ),
    )

/** Metadata of a breadcrumb; what stands beside or inside the schema itself is the older way to say the same. */
const metadataAt = (entry: Entry, path: ReadonlyArray<string>): Readonly<Record<string, unknown>> => {
  const properties = t.UnknownRecord.is(entry.schema.properties) ? entry.schema.properties : {}
  const older = path.length === 0 ? [entry.schema, entry] : [properties[path[1] ?? '']]
  const said = (entry.metadata ?? []).filter(({ breadcrumb }) => breadcrumb.join('\0') === path.join('\0'))
  return Object.assign({}, ...older, ...said.map(({ metadata }) => metadata ?? {}))
}

/** Clients write booleans as strings too. */
const flag = (value: unknown): boolean | undefined =>
  /^(true|false)$/i.test(String(value)) ? /^true$/i.test(String(value)) : undefined

const selectedIn = (metadata: Readonly<Record<string, unknown>>, otherwise: boolean): boolean =>
  flag(metadata.selected) ?? flag(metadata['selected-by-default']) ?? otherwise

const isSelected = (entry: Entry): boolean => {
  const metadata = metadataAt(entry, [])
  return metadata.inclusion !== 'unsupported' && (metadata.inclusion === 'automatic' || selectedIn(metadata, false))
}

const isKept = (entry: Entry, always: ReadonlySet<string>, attribute: string): boolean => {
  const metadata = metadataAt(entry, ['properties', attribute])
  return (
    always.has(attribute) ||
    metadata.inclusion === 'automatic' ||
    (metadata.inclusion !== 'unsupported' && selectedIn(metadata, true))
  )
}

const modeOf = (entry: Entry): SyncMode =>
  metadataAt(entry, [])['replication-method'] === 'FULL_TABLE' ? 'full_refresh' : 'incremental'

const ask = <Env>(
  entry: Entry,
  stream: Stream<Env> | undefined,
): { readonly selection: Selection; readonly schema: JsonSchema; readonly inseparable: ReadonlyArray<string> } => {
  const always = stream === undefined ? new Set<string>() : automatic(stream)
  const kept = new Set(attributesOf(entry.schema).filter((attribute) => isKept(entry, always, attribute)))
  const all = stream !== undefined && attributesOf(stream.schema).every((attribute) => kept.has(attribute))
  return {
    selection: {
      name: entry.tap_stream_id,
      syncMode: modeOf(entry),
      attributes: all ? O.none : O.some(new Set([...kept, ...always])),
    },
    schema: onlyAttributes(entry.schema, kept),
    inseparable: (entry.metadata ?? []).flatMap(({ breadcrumb, metadata }) => {
      const path = breadcrumb.filter((part) => part !== 'properties')
      return breadcrumb.length > 2 && kept.has(path[0] ?? '') && flag(metadata?.selected) === false
        ? [`${entry.tap_stream_id}.${path.join('.')}`]
        : []
    }),
  }
}
