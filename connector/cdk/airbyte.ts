import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import * as t from 'io-ts'
import { bookmarksOf, singerValue } from './bookmarks'
import type { Catalog, State } from './catalog'
import { configFailure, type Failure } from './failure'
import { decode } from './json'
import { line, type Text, wrap } from './lines'
import type { Level, Message } from './message'
import { annotate, type JsonSchema } from './schema'
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

const text = annotate({ examples: ['reviews'] })(t.string)
const ConfiguredCatalog = t.type({
  streams: annotate({ type: 'array' })(
    t.readonlyArray(
      t.intersection([
        t.type({ stream: annotate({ type: 'object' })(t.intersection([t.type({ name: text }), t.UnknownRecord])) }),
        t.partial({
          sync_mode: t.union([
            annotate({ enum: ['full_refresh', 'incremental'] })(t.keyof({ full_refresh: null, incremental: null })),
            t.null,
          ]),
        }),
      ]),
    ),
  ),
})

/** A configured catalog as the platform writes it; a failure names the key path. */
export const readCatalog = (value: unknown): E.Either<Failure, Catalog> =>
  pipe(
    decode(ConfiguredCatalog, value),
    E.bimap(
      (wrong) =>
        configFailure(
          `The catalog is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
        ),
      ({ streams }) =>
        streams.map(({ stream, sync_mode }) => ({
          name: stream.name,
          syncMode: sync_mode ?? ('full_refresh' as const),
          attributes: O.none,
        })),
    ),
  )

const Descriptor = t.type({ name: t.string })
const StreamState = t.type({ stream_descriptor: Descriptor })
const nullish = <C extends t.Mixed>(codec: C) => t.union([codec, t.null, t.undefined])
const StateMessage = t.type({
  stream: nullish(StreamState),
  global: nullish(t.type({ stream_states: nullish(t.readonlyArray(nullish(StreamState))) })),
  global_: nullish(t.type({ stream_states: nullish(t.readonlyArray(nullish(StreamState))) })),
  data: nullish(t.UnknownRecord),
})

/**
 * A state file: an array of state messages (STREAM, GLOBAL or LEGACY), one such message, printed STATE lines,
 * LEGACY's bare object of streams, or a state of the Singer tap. Empty forms and nulls mean no state.
 */
export const readState = (value: unknown): E.Either<Failure, State> => {
  if (value === null || value === undefined) return E.right({})
  const list = Array.isArray(value) ? value : [value]
  return pipe(
    list,
    RA.filter((item) => item !== null),
    E.traverseArray(stateOf),
    E.map((states) => Object.assign({}, ...states) as State),
  )
}

/** States by their streams' names and nothing around them. */
const legacyState = (value: Readonly<Record<string, unknown>>): E.Either<Failure, State> => {
  const strange = Object.keys(value).find((name) => value[name] !== null && !t.UnknownRecord.is(value[name]))
  return strange === undefined
    ? E.right(value)
    : E.left(
        configFailure(
          `The state is wrong: ${strange} is no state of a stream. Give what a run has printed, or what feedback state export writes.`,
        ),
      )
}

const stateOf = (value: unknown): E.Either<Failure, State> => {
  const singer = singerValue(value)
  if (O.isSome(singer)) return E.right(bookmarksOf(singer.value))
  const printed = t.type({ type: t.literal('STATE'), state: t.UnknownRecord }).decode(value)
  const message = E.isRight(printed) ? printed.right.state : value
  if (!t.UnknownRecord.is(message))
    return E.left(configFailure('The state is wrong: each item must be an object with a state message.'))
  if (!['stream', 'global', 'global_', 'data', 'type', 'state_type'].some((key) => key in message))
    return legacyState(message)
  return pipe(
    decode(StateMessage, message),
    E.bimap(
      (wrong) =>
        configFailure(`The state is wrong: ${wrong.map(({ path, problem }) => `${path} ${problem}`).join('; ')}.`),
      ({ stream, global, global_, data }) => ({
        ...(data ?? {}),
        ...Object.fromEntries(
          [stream, ...(global?.stream_states ?? []), ...(global_?.stream_states ?? [])].flatMap((item) => {
            const state = (item as { stream_state?: unknown } | null | undefined)?.stream_state
            return item === null || item === undefined || !t.UnknownRecord.is(state) || Object.keys(state).length === 0
              ? []
              : [[item.stream_descriptor.name, state]]
          }),
        ),
      }),
    ),
  )
}
