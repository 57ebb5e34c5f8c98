import * as O from 'fp-ts/Option'
import type { Failure } from './failure'
import { line, type Text, wrap } from './lines'
import type { Level, Message } from './message'
import type { JsonSchema } from './schema'
import type { Stream } from './stream'

/** Airbyte protocol version spoken (airbyte_protocol.yaml). */
const protocolVersion = '0.18.0'

/** What `spec` prints. */
export const specLine = (connectionSpecification: JsonSchema, documentationUrl: string): string =>
  line({
    type: 'SPEC',
    spec: { documentationUrl, connectionSpecification, supportsIncremental: true, protocol_version: protocolVersion },
  })

/** What `check` prints: a config problem is FAILED; anything else is a trace. */
export const statusLine = (status: 'SUCCEEDED' | 'FAILED', message?: string): string =>
  line({ type: 'CONNECTION_STATUS', connectionStatus: { status, ...(message === undefined ? {} : { message }) } })

/** A stream as `discover` and a configured catalog show it. */
export const describeStream = <Env>({ name, schema, primaryKey, cursor, syncModes }: Stream<Env>) => ({
  name,
  json_schema: { $schema: 'http://json-schema.org/draft-07/schema#', ...schema },
  supported_sync_modes: syncModes,
  source_defined_cursor: true,
  ...(O.isSome(cursor) ? { default_cursor_field: [cursor.value] } : {}),
  source_defined_primary_key: primaryKey.map((key) => [key]),
  is_resumable: O.isSome(cursor),
})

/** What `discover` prints. */
export const catalogLine = <Env>(streams: ReadonlyArray<Stream<Env>>): string =>
  line({ type: 'CATALOG', catalog: { streams: streams.map(describeStream) } })

/** The configured catalog that `read` wants, with all of `streams` selected. */
export const configuredCatalog = <Env>(streams: ReadonlyArray<Stream<Env>>) => ({
  streams: streams.map((stream) => ({
    stream: describeStream(stream),
    sync_mode: O.isSome(stream.cursor) ? 'incremental' : 'full_refresh',
    destination_sync_mode: O.isSome(stream.cursor) ? 'append_dedup' : 'overwrite',
    cursor_field: O.isSome(stream.cursor) ? [stream.cursor.value] : [],
    primary_key: stream.primaryKey.map((key) => [key]),
  })),
})

const failureTypes = { Config: 'config_error', Transient: 'transient_error', System: 'system_error' } as const
const levels: Record<Level, string> = { error: 'ERROR', warn: 'WARN', info: 'INFO', debug: 'DEBUG' }

/** Each message as lines on stdout. `now`: milliseconds, stamped on traces. */
export const encode =
  (now: () => number) =>
  (message: Message): ReadonlyArray<Text> => {
    const status = (name: string, value: string, reasons?: unknown) =>
      line({
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
          wrap(
            message.rows,
            `{"type":"RECORD","record":{"stream":${JSON.stringify(message.stream)},"data":`,
            ({ changes }) =>
              `,"emitted_at":${Math.trunc(message.at)}${changes === undefined ? '' : `,"meta":${JSON.stringify({ changes })}`}}}`,
          ),
        ]
      case 'Checkpoint':
        return [stateLine(message.stream, message.state, message.count)]
      case 'Finished':
        return [status(message.stream, 'COMPLETE')]
      case 'Failed':
        return [
          errorLine(now, message.failure, message.stream),
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
        return [line({ type: 'LOG', log: { level: levels[message.level], message: message.message } })]
    }
  }

/** `recordCount` is a double, and must be printed as one. */
const stateLine = (name: string, state: unknown, count: number): string =>
  `{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":${JSON.stringify({ name })},"stream_state":${JSON.stringify(state)}},"sourceStats":{"recordCount":${count.toFixed(1)}}}}\n`

/** A state file as `read --state` takes it: a JSON array of state messages, one a line. `state`: JSON text, which is kept as it is. */
export const stateFile = (states: ReadonlyArray<{ readonly stream: string; readonly state: string }>): string => {
  const messages = states.map(
    ({ stream, state }) =>
      `{"type":"STREAM","stream":{"stream_descriptor":${JSON.stringify({ name: stream })},"stream_state":${state}}}`,
  )
  return messages.length === 0 ? '[]\n' : `[\n${messages.join(',\n')}\n]\n`
}

/** A failure as a trace, for the whole run or one stream. */
export const errorLine = (now: () => number, { _tag, message, detail }: Failure, stream?: string): string =>
  line({
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
