import * as O from 'fp-ts/Option'
import { defined } from '../defined'
import type { Failure } from '../failure'
import { jsonLine, type OutputText, wrapRows } from '../lines'
import type { LogLevel, Message } from '../message'
import type { JsonSchema } from '../schema'
import type { Stream } from '../stream'

/** Airbyte protocol version spoken (airbyte_protocol.yaml). */
const protocolVersion = '0.18.0'

/** What `spec` prints. */
export const sourceSpecLine = (connectionSpecification: JsonSchema, documentationUrl: string): string =>
  jsonLine({
    type: 'SPEC',
    spec: { documentationUrl, connectionSpecification, supportsIncremental: true, protocol_version: protocolVersion },
  })

/** What `check` prints: a config problem is FAILED; anything else is a trace. */
export const connectionStatusLine = (status: 'SUCCEEDED' | 'FAILED', message?: string): string =>
  jsonLine({ type: 'CONNECTION_STATUS', connectionStatus: { status, ...defined({ message }) } })

/** A stream as `discover` and a configured catalog show it. */
export const describeAirbyteStream = <Env>({ name, schema, primaryKey, cursor, syncModes }: Stream<Env>) => ({
  name,
  json_schema: { $schema: 'http://json-schema.org/draft-07/schema#', ...schema },
  supported_sync_modes: syncModes,
  source_defined_cursor: true,
  ...(O.isSome(cursor) ? { default_cursor_field: [cursor.value] } : {}),
  source_defined_primary_key: primaryKey.map((key) => [key]),
  is_resumable: O.isSome(cursor),
})

/** What `discover` prints. */
export const sourceCatalogLine = <Env>(streams: ReadonlyArray<Stream<Env>>): string =>
  jsonLine({ type: 'CATALOG', catalog: { streams: streams.map(describeAirbyteStream) } })

/** The configured catalog that `read` wants, with all of `streams` selected. */
export const selectAllStreams = <Env>(streams: ReadonlyArray<Stream<Env>>) => ({
  streams: streams.map((stream) => ({
    stream: describeAirbyteStream(stream),
    sync_mode: O.isSome(stream.cursor) ? 'incremental' : 'full_refresh',
    destination_sync_mode: O.isSome(stream.cursor) ? 'append_dedup' : 'overwrite',
    cursor_field: O.isSome(stream.cursor) ? [stream.cursor.value] : [],
    primary_key: stream.primaryKey.map((key) => [key]),
  })),
})

const failureTypes = { Config: 'config_error', Transient: 'transient_error', System: 'system_error' } as const
const airbyteLogLevels: Record<LogLevel, string> = { error: 'ERROR', warn: 'WARN', info: 'INFO', debug: 'DEBUG' }

/** Each message as lines on stdout. `now`: milliseconds, stamped on traces. */
export const encodeAirbyte =
  (now: () => number) =>
  (message: Message): ReadonlyArray<OutputText> => {
    const status = (name: string, value: string, reasons?: unknown) =>
      jsonLine({
        type: 'TRACE',
        trace: {
          type: 'STREAM_STATUS',
          emitted_at: Math.trunc(now()),
          stream_status: {
            stream_descriptor: { name },
            status: value,
            ...(reasons === undefined ? {} : { reasons: [reasons] }),
          },
        },
      })
    switch (message._tag) {
      case 'Started':
        return [status(message.stream.name, 'STARTED')]
      case 'Running':
        return [status(message.stream, 'RUNNING')]
      case 'Records':
        return [
          wrapRows(
            message.rows,
            `{"type":"RECORD","record":{"stream":${JSON.stringify(message.stream)},"data":`,
            ({ changes }) =>
              `,"emitted_at":${Math.trunc(message.at)}${changes === undefined ? '' : `,"meta":${JSON.stringify({ changes })}`}}}`,
          ),
        ]
      case 'Checkpoint':
        return [streamStateLine(message.stream, message.state, message.count)]
      case 'Finished':
        return [status(message.stream, 'COMPLETE')]
      case 'Failed':
        return [
          errorTraceLine(now, message.failure, message.stream),
          ...(message.stream === undefined ? [] : [status(message.stream, 'INCOMPLETE')]),
        ]
      case 'Waiting':
        return [
          status(message.stream, 'RUNNING', {
            type: 'RATE_LIMITED',
            rate_limited: { quota_reset: Math.trunc(message.until) },
          }),
        ]
      case 'Log':
        return [jsonLine({ type: 'LOG', log: { level: airbyteLogLevels[message.level], message: message.message } })]
    }
  }

/** `recordCount` is a double, and must be printed as one. */
const streamStateLine = (name: string, state: unknown, count: number): string =>
  `{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":${JSON.stringify({ name })},"stream_state":${JSON.stringify(state)}},"sourceStats":{"recordCount":${count.toFixed(1)}}}}\n`

/** A state file as `read --state` takes it: a JSON array of state messages, one a line. `state`: JSON text, which is kept as it is. */
export const formatStateFile = (states: ReadonlyArray<{ readonly stream: string; readonly state: string }>): string => {
  const messages = states.map(
    ({ stream, state }) =>
      `{"type":"STREAM","stream":{"stream_descriptor":${JSON.stringify({ name: stream })},"stream_state":${state}}}`,
  )
  return messages.length === 0 ? '[]\n' : `[\n${messages.join(',\n')}\n]\n`
}

/** A failure as a trace, for the whole run or one stream. */
export const errorTraceLine = (now: () => number, { _tag, message, detail }: Failure, stream?: string): string =>
  jsonLine({
    type: 'TRACE',
    trace: {
      type: 'ERROR',
      emitted_at: Math.trunc(now()),
      error: {
        message,
        ...(detail === undefined ? {} : { internal_message: detail.split('\n')[0] }),
        ...(detail?.includes('\n') === true ? { stack_trace: detail } : {}),
        failure_type: failureTypes[_tag],
        ...(stream === undefined ? {} : { stream_descriptor: { name: stream } }),
      },
    },
  })
