import { type ConfiguredStream, type Definition, type Descriptor, findStream, type Json } from './connection'

/** What the platform does with a message from a source: pass it on, drop it silently, or end the sync. */
export type Screened =
  | { readonly verdict: 'pass'; readonly message: Json }
  | { readonly verdict: 'drop' }
  | { readonly verdict: 'fail'; readonly reason: string }

const drop: Screened = { verdict: 'drop' }
const fail = (reason: string): Screened => ({ verdict: 'fail', reason })

/** Only top-level attributes that the catalogue's schema has. airbyte-platform: FieldSelector. */
export const selectFields = ({ stream }: ConfiguredStream, data: Json): Json => {
  const { properties } = stream.json_schema
  if (properties === undefined || properties === null) return data
  return Object.fromEntries(Object.entries(data).filter(([name]) => name in (properties as Json)))
}

const isDefined = (value: unknown): boolean => value !== undefined && value !== null

const screenRecord = (streams: ReadonlyArray<ConfiguredStream>, message: Json): Screened => {
  const record = message.record as Json
  const configured = findStream(streams, { name: String(record.stream), namespace: record.namespace as string })
  if (configured === undefined) return fail(`a record of ${record.stream}, which the catalogue does not have`)
  const data = (record.data ?? {}) as Json
  if (Object.keys(data).length === 0) return drop
  const { primary_key: keys = [], destination_sync_mode: mode } = configured
  if (mode === 'append_dedup' && keys.length > 0 && keys.every(([column = '']) => !isDefined(data[column])))
    return fail(`a record of ${record.stream} without a primary key`)
  return { verdict: 'pass', message: { ...message, record: { ...record, data: selectFields(configured, data) } } }
}

/** airbyte-platform: BasicAirbyteMessageValidator, StreamStatusCompletionTracker. */
export const screenMessage = (
  { definition, streams }: { readonly definition: Definition; readonly streams: ReadonlyArray<ConfiguredStream> },
  message: Json,
): Screened => {
  if (message.type === 'RECORD') return screenRecord(streams, message)
  if (message.type === 'STATE')
    return ['STREAM', 'GLOBAL'].includes(String((message.state as Json).type))
      ? { verdict: 'pass', message }
      : fail('a LEGACY state')
  if (message.type !== 'TRACE') return { verdict: 'pass', message }
  const trace = message.trace as Json
  if (!isDefined(trace.emitted_at)) return drop
  const status = trace.stream_status as Json | undefined
  return status?.status === 'COMPLETE' &&
    definition === 'refreshes' &&
    findStream(streams, status.stream_descriptor as Descriptor) === undefined
    ? fail('COMPLETE for a stream that the catalogue does not have')
    : { verdict: 'pass', message }
}
