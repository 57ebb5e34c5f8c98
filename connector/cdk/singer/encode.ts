import type { SourceState } from '../catalog'
import type { Failure } from '../failure'
import { jsonLine, wrapRows } from '../lines'
import type { Message, Row } from '../message'
import { type EncodeOptions, emptyOutput, type LogEntry, type MessageEncoder, type ProtocolOutput } from '../protocol'
import type { JsonSchema } from '../schema'
import { toSingerSchema } from './catalog'
import { metricLogEntry } from './log'
import { replaceBookmarks, type SingerState } from './state'

type OpenStream = {
  readonly name: string
  readonly startedAt: number
  /** Records since the last count was logged, and whether one was. */
  readonly uncountedRecords: number
  readonly hasCounted: boolean
}

/** What the face remembers between two messages. */
export type SingerEncoderState = {
  readonly bookmarks: SourceState
  /** Streams under way, the first of them named as `currently_syncing`. */
  readonly openStreams: ReadonlyArray<OpenStream>
  /** Attributes already logged as left out, such as `reviews.rating`. */
  readonly nulledFields: ReadonlySet<string>
}

export type SingerEncoder = {
  readonly initialState: SingerEncoderState
  readonly encodeMessage: (book: SingerEncoderState, message: Message) => readonly [SingerEncoderState, ProtocolOutput]
  /** The last line of a run: a STATE, however it ended. */
  readonly finalLine: (book: SingerEncoderState) => string
}

/**
 * The Singer face. `schemas`: what the caller's catalog says of a stream, over our own. `given`: carried forward in every
 * STATE, since whoever keeps it overwrites. `now`: milliseconds.
 */
export const encodeSinger = (
  schemas: ReadonlyMap<string, JsonSchema>,
  given: Pick<SingerState, 'value'>,
  now: () => number,
): SingerEncoder => {
  const stateLine = ({ bookmarks, openStreams }: SingerEncoderState): string =>
    jsonLine({ type: 'STATE', value: replaceBookmarks(given.value, bookmarks, openStreams[0]?.name) })
  const close = (
    book: SingerEncoderState,
    name: string,
    status: 'succeeded' | 'failed',
  ): readonly [SingerEncoderState, ReadonlyArray<LogEntry>] => {
    const {
      startedAt = now(),
      uncountedRecords = 0,
      hasCounted = false,
    } = book.openStreams.find((each) => each.name === name) ?? {}
    return [
      { ...book, openStreams: book.openStreams.filter((each) => each.name !== name) },
      [
        ...(hasCounted && uncountedRecords === 0
          ? []
          : [metricLogEntry('counter', 'record_count', uncountedRecords, { stream: name })]),
        metricLogEntry('timer', 'sync_duration', (now() - startedAt) / 1000, { stream: name, status }),
      ],
    ]
  }
  const change = (book: SingerEncoderState, name: string, f: (open: OpenStream) => OpenStream): SingerEncoderState => ({
    ...book,
    openStreams: book.openStreams.map((each) => (each.name === name ? f(each) : each)),
  })

  const step: SingerEncoder['encodeMessage'] = (book, message) => {
    switch (message._tag) {
      case 'Started': {
        const { name, schema, primaryKey, cursor } = message.stream
        const next = {
          ...book,
          openStreams: [...book.openStreams, { name, startedAt: now(), uncountedRecords: 0, hasCounted: false }],
        }
        const schemaLine = jsonLine({
          type: 'SCHEMA',
          stream: name,
          schema: schemas.get(name) ?? toSingerSchema(schema),
          key_properties: primaryKey,
          ...(cursor._tag === 'Some' ? { bookmark_properties: [cursor.value] } : {}),
        })
        return [next, { lines: book.openStreams.length === 0 ? [schemaLine, stateLine(next)] : [schemaLine], log: [] }]
      }
      case 'Running':
        return [book, emptyOutput]
      case 'Records': {
        const { stream, rows, at } = message
        const [nulled, log] = findNulledFields(book.nulledFields, stream, rows)
        const lines = wrapRows(
          rows,
          `{"type":"RECORD","stream":${JSON.stringify(stream)},"record":`,
          () => `,"time_extracted":"${new Date(at).toISOString()}"}`,
        )
        const next = change({ ...book, nulledFields: nulled }, stream, (open) => ({
          ...open,
          uncountedRecords: open.uncountedRecords + rows.length,
        }))
        return [next, { lines: [lines], log }]
      }
      case 'Checkpoint': {
        const { stream, state, received } = message
        if (received !== undefined) return [book, { lines: [`${Buffer.from(received)}\n`], log: [] }]
        const { uncountedRecords = 0 } = book.openStreams.find(({ name }) => name === stream) ?? {}
        const next = change({ ...book, bookmarks: { ...book.bookmarks, [stream]: state } }, stream, (open) => ({
          ...open,
          uncountedRecords: 0,
          hasCounted: open.hasCounted || uncountedRecords > 0,
        }))
        return [
          next,
          {
            lines: [stateLine(next)],
            log:
              uncountedRecords === 0 ? [] : [metricLogEntry('counter', 'record_count', uncountedRecords, { stream })],
          },
        ]
      }
      case 'SharedCheckpoint': {
        if (message.received !== undefined) return [book, { lines: [`${Buffer.from(message.received)}\n`], log: [] }]
        const states = Object.fromEntries(message.states.map(({ stream, state }) => [stream, state]))
        const next = { ...book, bookmarks: { ...book.bookmarks, ...states } }
        return [next, { lines: [stateLine(next)], log: [] }]
      }
      case 'Finished': {
        const [next, log] = close(book, message.stream, 'succeeded')
        return [next, { lines: [], log }]
      }
      case 'Failed': {
        const { stream, failure } = message
        if (stream === undefined) return [book, { lines: [], log: failureLogEntries(failure) }]
        const [next, log] = close(book, stream, 'failed')
        return [next, { lines: [], log: [...failureLogEntries(failure, stream), ...log] }]
      }
      case 'Waiting': {
        const text = `The service makes ${message.stream} wait until ${new Date(message.until).toISOString()}.`
        return [book, { lines: [], log: [{ level: 'info', message: text, stream: message.stream }] }]
      }
      case 'Log':
        return [book, { lines: [], log: [{ level: message.level, message: message.message }] }]
      case 'TableVersion':
        return [book, emptyOutput]
    }
  }
  return {
    initialState: { bookmarks: {}, openStreams: [], nulledFields: new Set() },
    encodeMessage: step,
    finalLine: stateLine,
  }
}

/** Prints messages as lines on stdout and entries of the log; at the end the last STATE. */
export const createSingerEncoder = ({ now, schemas = new Map(), givenState = {} }: EncodeOptions): MessageEncoder => {
  const { initialState, encodeMessage, finalLine } = encodeSinger(schemas, { value: givenState }, now)
  let state = initialState
  return {
    encode: (message) => {
      const [next, output] = encodeMessage(state, message)
      state = next
      return output
    },
    end: () => ({ lines: [finalLine(state)], log: [] }),
  }
}

/** Why something ended, for the log: what to do first, then what helps us. */
export const failureLogEntries = ({ message, detail }: Failure, stream?: string): ReadonlyArray<LogEntry> => {
  const where = stream === undefined ? {} : { stream }
  return [
    { level: 'error', message: stream === undefined ? message : `${stream}: ${message}`, ...where },
    ...(detail === undefined ? [] : [{ level: 'error' as const, message: detail, ...where }]),
  ]
}

/** A record has no place to say that a value had to be left out: each attribute is logged once a run. */
const findNulledFields = (
  known: ReadonlySet<string>,
  stream: string,
  rows: ReadonlyArray<Row>,
): readonly [ReadonlySet<string>, ReadonlyArray<LogEntry>] => {
  const fields = rows.flatMap(({ changes = [] }) => changes.map(({ field }) => `${stream}.${field}`))
  const fresh = [...new Set(fields)].filter((field) => !known.has(field))
  return [
    fresh.length === 0 ? known : new Set([...known, ...fresh]),
    fresh.map((field) => ({
      level: 'warn',
      message: `${field} has values of another type than declared; they are sent as null.`,
      stream,
    })),
  ]
}
