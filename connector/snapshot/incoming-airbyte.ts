import * as t from 'io-ts'
import { Stopped } from '../cdk/cli'
import { configFailure, type Failure, transientFailure } from '../cdk/failure'
import { membersIn, numberOf, textAt, valueAt } from '../cdk/json-span'
import type { Change } from '../cdk/message'
import { discoveredStreams, type ExpectedStreams, tableOf } from './configured-catalog'
import { type Line, type Protocol, type Said, warning } from './incoming-line'
import { JsonText } from './json-text'

const Descriptor = t.intersection([
  t.type({ name: t.string }),
  t.partial({ namespace: t.union([t.string, t.null, t.undefined]) }),
])
const StatusTrace = t.type({ stream_status: t.type({ stream_descriptor: Descriptor, status: t.string }) })
const ErrorTrace = t.type({ error: t.type({ message: t.string }) })
const SharedState = t.type({
  stream_states: t.readonlyArray(t.type({ stream_descriptor: Descriptor, stream_state: t.UnknownRecord })),
})
const Meta = t.type({ changes: t.readonlyArray(t.type({ field: t.string, change: t.string, reason: t.string })) })
const LogLine = t.type({ level: t.string, message: t.string })

/**
 * RECORD, STATE, TRACE and CATALOG lines as the messages they came from; a stream that no trace has started starts with its
 * first record. A state whose source does not count has the count NaN.
 */
export const airbyteLines = (configured: ExpectedStreams | undefined, own: ExpectedStreams): Protocol => {
  let expected = configured ?? own
  const started = new Set<string>()

  const start = (stream: string): ReadonlyArray<Said> => {
    if (started.has(stream)) return []
    const known = expected.get(stream)
    if (known === undefined) throw new Stopped(unknownStream(stream, configured !== undefined))
    started.add(stream)
    return [{ _tag: 'Started', stream: known.info }]
  }

  const record = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const name = textAt(bytes, members.get('record.stream'))
    const data = members.get('record.data')
    if (name === undefined || data === undefined) return [warning('A RECORD without stream or data is passed over.')]
    const stream = tableOf(expected, { name, namespace: textAt(bytes, members.get('record.namespace')) })
    const meta = valueAt(bytes, members.get('record.meta'))
    const at = numberOf(bytes, members.get('record.emitted_at'))
    return [
      ...start(stream),
      {
        _tag: 'Record',
        stream,
        json: bytes.subarray(data.start, data.end),
        at: Number.isFinite(at) ? Math.trunc(at) : 0,
        ...(Meta.is(meta) && meta.changes.length > 0 ? { changes: meta.changes as ReadonlyArray<Change> } : {}),
      },
    ]
  }

  const checkpoint = (stream: string, state: unknown, count: number): ReadonlyArray<Said> => [
    ...start(stream),
    { _tag: 'Checkpoint', stream, state, count },
  ]

  const state = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const inside = membersIn(bytes, members.get('state'))
    const single = membersIn(bytes, inside?.get('stream'))
    if (single === undefined) {
      const shared = valueAt(bytes, inside?.get('global') ?? inside?.get('global_'))
      if (!SharedState.is(shared)) return [warning('A STATE that names no stream is passed over.')]
      return shared.stream_states.flatMap((one) =>
        checkpoint(tableOf(expected, one.stream_descriptor), one.stream_state, Number.NaN),
      )
    }
    const stream = valueAt(bytes, single.get('stream_descriptor'))
    const value = single.get('stream_state')
    const count = numberOf(bytes, membersIn(bytes, inside?.get('sourceStats'))?.get('recordCount'))
    return !Descriptor.is(stream) || value === undefined
      ? [warning('A STATE without stream or state is passed over.')]
      : checkpoint(tableOf(expected, stream), new JsonText(bytes.toString('utf8', value.start, value.end)), count)
  }

  const trace = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const value = valueAt(bytes, members.get('trace'))
    if (ErrorTrace.is(value)) return [{ _tag: 'Log', level: 'error', message: value.error.message }]
    if (!StatusTrace.is(value)) return []
    const { status } = value.stream_status
    const stream = tableOf(expected, value.stream_status.stream_descriptor)
    if (status === 'STARTED') return expected.has(stream) ? start(stream) : []
    if (status === 'COMPLETE') return [...start(stream), { _tag: 'Finished', stream }]
    return status === 'INCOMPLETE'
      ? [{ _tag: 'Failed', stream, failure: transientFailure(`The source did not complete ${stream}.`) }]
      : []
  }

  const log = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const value = valueAt(bytes, members.get('log'))
    return LogLine.is(value) && ['ERROR', 'FATAL'].includes(value.level)
      ? [{ _tag: 'Log', level: 'error', message: value.message }]
      : []
  }

  const catalog = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    if (configured === undefined) expected = discoveredStreams(valueAt(bytes, members.get('catalog')))
    return []
  }

  return { read: { RECORD: record, STATE: state, TRACE: trace, LOG: log, CATALOG: catalog }, end: () => [] }
}

const unknownStream = (stream: string, configured: boolean): Failure =>
  configFailure(
    !configured
      ? `Airbyte records do not say their schema, and ${stream} is no stream of ours: give the configured catalog of the run with --catalog.`
      : `The input has the stream ${stream}, which the catalog does not have. Give the catalog of that run with --catalog.`,
  )
