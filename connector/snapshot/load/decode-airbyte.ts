import * as t from 'io-ts'
import {
  CommandError,
  configFailure,
  type Failure,
  type JsonSpan,
  JsonText,
  type Message,
  numberAt,
  type RecordChange,
  readMembersAt,
  stringAt,
  transientFailure,
  valueAt,
} from '../../cdk'
import { decodeDiscoveredStreams, type ExpectedStreams, tableNameOf } from './configured-catalog'

/** Singer's way to replace a table: what follows is of this version; once `active`, rows of older ones go. */
export type TableVersion = {
  readonly _tag: 'Version'
  readonly stream: string
  readonly version: number
  readonly active: boolean
}

/** What comes in: what a run says, and what only foreign taps do. */
export type LoadMessage = Message | TableVersion

/** What one line of a protocol says. Records stay single here; `incoming` puts those that follow one another together. */
export type DecodedMessage =
  | LoadMessage
  | {
      readonly _tag: 'Record'
      readonly stream: string
      readonly json: Uint8Array
      /** Milliseconds since 1970. */
      readonly at: number
      readonly changes?: ReadonlyArray<RecordChange>
    }

/** A line whose members are known; those of `record` as `record.name`. */
export type MessageLine = { readonly bytes: Buffer; readonly members: ReadonlyMap<string, JsonSpan> }

/** A protocol being read: how it understands each type of line, and what the end of the input says. */
export type LineDecoder = {
  readonly decoders: Readonly<Record<string, (line: MessageLine) => ReadonlyArray<DecodedMessage>>>
  readonly end: () => ReadonlyArray<DecodedMessage>
}

export const warningMessage = (message: string): DecodedMessage => ({ _tag: 'Log', level: 'warn', message })

const StreamDescriptor = t.intersection([
  t.type({ name: t.string }),
  t.partial({ namespace: t.union([t.string, t.null, t.undefined]) }),
])
const StatusTrace = t.type({ stream_status: t.type({ stream_descriptor: StreamDescriptor, status: t.string }) })
const ErrorTrace = t.type({ error: t.type({ message: t.string }) })
const SharedState = t.type({
  stream_states: t.readonlyArray(t.type({ stream_descriptor: StreamDescriptor, stream_state: t.UnknownRecord })),
})
const RecordMeta = t.type({ changes: t.readonlyArray(t.type({ field: t.string, change: t.string, reason: t.string })) })
const LogLine = t.type({ level: t.string, message: t.string })

/**
 * RECORD, STATE, TRACE and CATALOG lines as the messages they came from; a stream that no trace has started starts with its
 * first record. A state whose source does not count has the count NaN.
 */
export const createAirbyteLineDecoder = (
  configured: ExpectedStreams | undefined,
  own: ExpectedStreams,
): LineDecoder => {
  let expected = configured ?? own
  const started = new Set<string>()

  const start = (stream: string): ReadonlyArray<DecodedMessage> => {
    if (started.has(stream)) return []
    const known = expected.get(stream)
    if (known === undefined) throw new CommandError(unexpectedStreamFailure(stream, configured !== undefined))
    started.add(stream)
    return [{ _tag: 'Started', stream: known.info }]
  }

  const record = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const name = stringAt(bytes, members.get('record.stream'))
    const data = members.get('record.data')
    if (name === undefined || data === undefined)
      return [warningMessage('A RECORD without stream or data is passed over.')]
    const stream = tableNameOf(expected, { name, namespace: stringAt(bytes, members.get('record.namespace')) })
    const meta = valueAt(bytes, members.get('record.meta'))
    const at = numberAt(bytes, members.get('record.emitted_at'))
    return [
      ...start(stream),
      {
        _tag: 'Record',
        stream,
        json: bytes.subarray(data.start, data.end),
        at: Number.isFinite(at) ? Math.trunc(at) : 0,
        ...(RecordMeta.is(meta) && meta.changes.length > 0
          ? { changes: meta.changes as ReadonlyArray<RecordChange> }
          : {}),
      },
    ]
  }

  const checkpoint = (stream: string, state: unknown, count: number): ReadonlyArray<DecodedMessage> => [
    ...start(stream),
    { _tag: 'Checkpoint', stream, state, count },
  ]

  const state = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const inside = readMembersAt(bytes, members.get('state'))
    const single = readMembersAt(bytes, inside?.get('stream'))
    if (single === undefined) {
      const shared = valueAt(bytes, inside?.get('global') ?? inside?.get('global_'))
      if (!SharedState.is(shared)) return [warningMessage('A STATE that names no stream is passed over.')]
      return shared.stream_states.flatMap((one) =>
        checkpoint(tableNameOf(expected, one.stream_descriptor), one.stream_state, Number.NaN),
      )
    }
    const stream = valueAt(bytes, single.get('stream_descriptor'))
    const value = single.get('stream_state')
    const count = numberAt(bytes, readMembersAt(bytes, inside?.get('sourceStats'))?.get('recordCount'))
    return !StreamDescriptor.is(stream) || value === undefined
      ? [warningMessage('A STATE without stream or state is passed over.')]
      : checkpoint(tableNameOf(expected, stream), new JsonText(bytes.toString('utf8', value.start, value.end)), count)
  }

  const trace = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const value = valueAt(bytes, members.get('trace'))
    if (ErrorTrace.is(value)) return [{ _tag: 'Log', level: 'error', message: value.error.message }]
    if (!StatusTrace.is(value)) return []
    const { status } = value.stream_status
    const stream = tableNameOf(expected, value.stream_status.stream_descriptor)
    if (status === 'STARTED') return expected.has(stream) ? start(stream) : []
    if (status === 'COMPLETE') return [...start(stream), { _tag: 'Finished', stream }]
    return status === 'INCOMPLETE'
      ? [{ _tag: 'Failed', stream, failure: transientFailure(`The source did not complete ${stream}.`) }]
      : []
  }

  const log = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const value = valueAt(bytes, members.get('log'))
    return LogLine.is(value) && ['ERROR', 'FATAL'].includes(value.level)
      ? [{ _tag: 'Log', level: 'error', message: value.message }]
      : []
  }

  const catalog = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    if (configured === undefined) expected = decodeDiscoveredStreams(valueAt(bytes, members.get('catalog')))
    return []
  }

  return { decoders: { RECORD: record, STATE: state, TRACE: trace, LOG: log, CATALOG: catalog }, end: () => [] }
}

const unexpectedStreamFailure = (stream: string, configured: boolean): Failure =>
  configFailure(
    !configured
      ? `Airbyte records do not say their schema, and ${stream} is no stream of ours: give the configured catalog of the run with --catalog.`
      : `The input has the stream ${stream}, which the catalog does not have. Give the catalog of that run with --catalog.`,
  )
