export type Json = Readonly<Record<string, unknown>>

/**
 * How the platform knows a connector. `custom`: added by its image name. `refreshes`: from a registry entry with
 * supportsRefreshes; only then does the platform send ids and statuses.
 */
export type Definition = 'custom' | 'refreshes'

export type Descriptor = { readonly name: string; readonly namespace?: string | undefined }

/** A stream as the connection, and with its ids the catalogue of a job, configures it. */
export type ConfiguredStream = {
  readonly stream: Descriptor & { readonly json_schema: Json; readonly is_resumable?: boolean }
  readonly sync_mode: 'full_refresh' | 'incremental'
  readonly destination_sync_mode: 'append' | 'append_dedup' | 'overwrite' | 'overwrite_dedup' | 'update' | 'soft_delete'
  readonly primary_key?: ReadonlyArray<ReadonlyArray<string>>
  readonly cursor_field?: ReadonlyArray<string>
  readonly destination_object_name?: string
  readonly generation_id?: number
  readonly minimum_generation_id?: number
  readonly sync_id?: number
}

/** What a user may do to the records of a stream on their way. */
export type Mapper = { readonly stream: string } & (
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  | { readonly kind: 'hash'; readonly column: string }
  | { readonly kind: 'filter'; readonly keep: (data: Json) => boolean }
)

export type Connection = {
  readonly definition: Definition
  readonly streams: ReadonlyArray<ConfiguredStream>
  readonly prefix?: string
  /** Replaces the source's namespace. */
  readonly namespace?: string
  readonly mappers?: ReadonlyArray<Mapper>
}

/** What identifies a stream. */
export const streamKey = ({ name, namespace }: Descriptor): string =>
  namespace === undefined || namespace === null ? name : `${namespace}.${name}`

export const findStream = (
  streams: ReadonlyArray<ConfiguredStream>,
  descriptor: Descriptor,
): ConfiguredStream | undefined => streams.find(({ stream }) => streamKey(stream) === streamKey(descriptor))
