import { type ConfiguredStream, type Connection, type Json, streamKey } from './connection'
import { mapRecord, renameState, toDestinationName } from './mappers'

const withoutNulls = (members: Json): Json =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null))

/** A record as the destination gets it; undefined if a row filter drops it. */
export const toDestinationRecord = (connection: Connection, { record: given }: Json): Json | undefined => {
  const record = given as Json
  const name = String(record.stream)
  const data = mapRecord(connection, name, record.data as Json)
  if (data === undefined) return undefined
  const there = toDestinationName(connection, { name, namespace: record.namespace as string | undefined })
  return {
    type: 'RECORD',
    record: withoutNulls({
      namespace: there.namespace,
      stream: there.name,
      data,
      emitted_at: record.emitted_at,
      meta: record.meta,
    }),
  }
}

/** How many records the platform saw since the stream's state before, and how many of these a row filter dropped. */
export type Counted = { readonly records: number; readonly filtered: number }

/**
 * A state as the destination gets it: with an integer `id`, and with `sourceStats`, which are the source's own or the
 * platform's count, less what a row filter dropped. airbyte-platform: StateEnricher.
 */
export const toDestinationState = (
  connection: Connection,
  { state: given }: Json,
  { id, records, filtered }: Counted & { readonly id: number },
): Json => {
  const { sourceStats, ...state } = given as Json
  const count = Number((sourceStats as Json | undefined)?.recordCount ?? records)
  return {
    type: 'STATE',
    state: {
      ...renameState(state, (descriptor) => toDestinationName(connection, descriptor)),
      sourceStats: { recordCount: count - filtered },
      id,
    },
  }
}

/**
 * The state `{}` of each full refresh that cannot be resumed and sent none. A stream that the source skipped gets one
 * too. airbyte-platform: MissingStateInjector.
 */
export const missingStates = (
  streams: ReadonlyArray<ConfiguredStream>,
  streamsWithState: ReadonlySet<string>,
): ReadonlyArray<Json> =>
  streams
    .filter(({ sync_mode, stream }) => sync_mode === 'full_refresh' && stream.is_resumable !== true)
    .filter(({ stream }) => !streamsWithState.has(streamKey(stream)))
    .map(({ stream: { name, namespace } }) => ({
      type: 'STATE',
      state: {
        type: 'STREAM',
        stream: { stream_descriptor: withoutNulls({ name, namespace }), stream_state: {} },
      },
    }))

/**
 * After a source that exited with 0: COMPLETE for every stream, whatever the source said about it. The time is printed
 * as a Java double. airbyte-platform: ReplicationWorkerHelper.
 */
export const completeLines = (
  connection: Connection,
  streams: ReadonlyArray<ConfiguredStream>,
  emittedAt: number,
): ReadonlyArray<string> =>
  connection.definition === 'custom'
    ? []
    : streams.map(({ stream: { name, namespace } }) => {
        const descriptor = JSON.stringify(toDestinationName(connection, { name, namespace }))
        const status = `"stream_status":{"stream_descriptor":${descriptor},"status":"COMPLETE"}`
        const time = emittedAt.toExponential().replace('e+', 'E')
        return `{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":${time},${status}}}`
      })

export const blockCharacters = 8192

/**
 * Text leaves in blocks, not per message: what does not fill one waits. airbyte-platform: AirbyteMessageBufferedWriter.
 */
export const takeBlocks = (text: string): { readonly blocks: string; readonly rest: string } => {
  const full = text.length - (text.length % blockCharacters)
  return { blocks: text.slice(0, full), rest: text.slice(full) }
}
