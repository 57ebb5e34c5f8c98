import * as t from 'io-ts'
import type { SourceState } from '../catalog'
import type { Failure } from '../failure'
import { jsonLine, wrapRows } from '../lines'
import type { Message, Row } from '../message'
import { type EncodeOptions, emptyOutput, type LogEntry, type MessageEncoder, type ProtocolOutput } from '../protocol'
import type { JsonSchema } from '../schema'
import { replaceBookmarks, type SingerState } from '../state-file'
import { toSingerSchema } from './catalog'

type OpenStream = {
  readonly name: string
  readonly startedAt: number
  /** Records since the last logged count, and whether a count was logged. */
  readonly uncountedRecords: number
  readonly hasCounted: boolean
}

/** What the encoder remembers between two messages. */
type SingerEncoderState = {
  readonly bookmarks: SourceState
  /** The streams that have started and not ended; the first of them is `currently_syncing`. */
  readonly openStreams: ReadonlyArray<OpenStream>
  /** Attributes already logged as left out, such as `reviews.rating`. */
  readonly nulledFields: ReadonlySet<string>
  /** The table version of each full refresh that has not reached its end. */
  readonly tableVersions: TableVersions
}

type TableVersions = Readonly<Record<string, number>>

/** Where a state keeps the versions, beside `bookmarks`. */
const versionsKey = 'table_versions'

/** The versions of the full refreshes that the runs before have not finished. */
export const tableVersionsOf = ({ [versionsKey]: versions }: SingerState['value']): TableVersions =>
  Object.fromEntries(
    Object.entries(t.UnknownRecord.is(versions) ? versions : {}).filter((entry): entry is [string, number] =>
      Number.isSafeInteger(entry[1]),
    ),
  )

export type SingerEncoder = {
  readonly initialState: SingerEncoderState
  readonly encodeMessage: (
    encoderState: SingerEncoderState,
    message: Message,
  ) => readonly [SingerEncoderState, ProtocolOutput]
  /** The last line of a run, also of one that failed: a STATE. */
  readonly finalLine: (encoderState: SingerEncoderState) => string
}

/**
 * Encodes messages as Singer lines. `schemas`: the schemas of the caller's catalog, which replace our own. `given`: the
 * state that the run was given; every STATE repeats it, since each STATE replaces the one before. `now`: milliseconds
 * since 1970. `withVersions`: each record of a full refresh has a version, and ACTIVATE_VERSION at its end lets a
 * target delete all others. The state keeps the version, so that a run that goes on with the refresh uses the same.
 */
export const encodeSinger = (
  schemas: ReadonlyMap<string, JsonSchema>,
  given: Pick<SingerState, 'value'>,
  now: () => number,
  withVersions = false,
): SingerEncoder => {
  const { [versionsKey]: _, ...givenWithoutVersions } = given.value
  const stateLine = ({ bookmarks, openStreams, tableVersions }: SingerEncoderState): string => {
    const versions = Object.keys(tableVersions).length === 0 ? {} : { [versionsKey]: tableVersions }
    const value = replaceBookmarks(givenWithoutVersions, bookmarks, openStreams[0]?.name)
    return jsonLine({ type: 'STATE', value: { ...value, ...versions } })
  }
  const close = (
    encoderState: SingerEncoderState,
    name: string,
    status: 'succeeded' | 'failed',
  ): readonly [SingerEncoderState, ReadonlyArray<LogEntry>] => {
    const {
      startedAt = now(),
      uncountedRecords = 0,
      hasCounted = false,
    } = encoderState.openStreams.find((open) => open.name === name) ?? {}
    return [
      { ...encoderState, openStreams: encoderState.openStreams.filter((open) => open.name !== name) },
      [
        ...(hasCounted && uncountedRecords === 0
          ? []
          : [metricLogEntry('counter', 'record_count', uncountedRecords, { stream: name })]),
        metricLogEntry('timer', 'sync_duration', (now() - startedAt) / 1000, { stream: name, status }),
      ],
    ]
  }
  const change = (
    encoderState: SingerEncoderState,
    name: string,
    f: (open: OpenStream) => OpenStream,
  ): SingerEncoderState => ({
    ...encoderState,
    openStreams: encoderState.openStreams.map((open) => (open.name === name ? f(open) : open)),
  })

  const step: SingerEncoder['encodeMessage'] = (encoderState, message) => {
    switch (message._tag) {
      case 'Started': {
        const { name, schema, primaryKey, cursor, syncMode } = message.stream
        const { [name]: openVersion, ...otherVersions } = encoderState.tableVersions
        const next = {
          ...encoderState,
          tableVersions:
            withVersions && syncMode === 'full_refresh'
              ? { ...otherVersions, [name]: openVersion ?? now() }
              : otherVersions,
          openStreams: [
            ...encoderState.openStreams,
            { name, startedAt: now(), uncountedRecords: 0, hasCounted: false },
          ],
        }
        const schemaLine = jsonLine({
          type: 'SCHEMA',
          stream: name,
          schema: schemas.get(name) ?? toSingerSchema(schema),
          key_properties: primaryKey,
          ...(cursor._tag === 'Some' ? { bookmark_properties: [cursor.value] } : {}),
        })
        return [
          next,
          { lines: encoderState.openStreams.length === 0 ? [schemaLine, stateLine(next)] : [schemaLine], log: [] },
        ]
      }
      case 'Running':
        return [encoderState, emptyOutput]
      case 'Records': {
        const { stream, rows, at } = message
        const version = encoderState.tableVersions[stream]
        const versionMember = version === undefined ? '' : `,"version":${version}`
        const [nulled, log] = findNulledFields(encoderState.nulledFields, stream, rows)
        const lines = wrapRows(
          rows,
          `{"type":"RECORD","stream":${JSON.stringify(stream)},"record":`,
          () => `${versionMember},"time_extracted":"${new Date(at).toISOString()}"}`,
        )
        const next = change({ ...encoderState, nulledFields: nulled }, stream, (open) => ({
          ...open,
          uncountedRecords: open.uncountedRecords + rows.length,
        }))
        return [next, { lines: [lines], log }]
      }
      case 'Checkpoint': {
        const { stream, state, received } = message
        if (received !== undefined) return [encoderState, { lines: [`${Buffer.from(received)}\n`], log: [] }]
        const { uncountedRecords = 0 } = encoderState.openStreams.find(({ name }) => name === stream) ?? {}
        const next = change(
          { ...encoderState, bookmarks: { ...encoderState.bookmarks, [stream]: state } },
          stream,
          (open) => ({
            ...open,
            uncountedRecords: 0,
            hasCounted: open.hasCounted || uncountedRecords > 0,
          }),
        )
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
        if (message.received !== undefined)
          return [encoderState, { lines: [`${Buffer.from(message.received)}\n`], log: [] }]
        const states = Object.fromEntries(message.states.map(({ stream, state }) => [stream, state]))
        const next = { ...encoderState, bookmarks: { ...encoderState.bookmarks, ...states } }
        return [next, { lines: [stateLine(next)], log: [] }]
      }
      case 'Finished': {
        const { stream } = message
        const { [stream]: version, ...tableVersions } = encoderState.tableVersions
        const [next, log] = close({ ...encoderState, tableVersions }, stream, 'succeeded')
        const activate = version === undefined ? [] : [jsonLine({ type: 'ACTIVATE_VERSION', stream, version })]
        return [next, { lines: [...activate, ...activate.map(() => stateLine(next))], log }]
      }
      case 'Failed': {
        const { stream, failure, isTold } = message
        if (stream === undefined) return [encoderState, { lines: [], log: failureLogEntries(failure) }]
        const [next, log] = close(encoderState, stream, 'failed')
        return [next, { lines: [], log: [...(isTold === true ? [] : failureLogEntries(failure, stream)), ...log] }]
      }
      case 'Waiting': {
        const text = `The service makes ${message.stream} wait until ${new Date(message.until).toISOString()}.`
        return [encoderState, { lines: [], log: [{ level: 'info', message: text, stream: message.stream }] }]
      }
      case 'Log':
        return [encoderState, { lines: [], log: [{ level: message.level, message: message.message }] }]
      case 'SharedRecords':
      case 'TableVersion':
        return [encoderState, emptyOutput]
    }
  }
  return {
    initialState: {
      bookmarks: {},
      openStreams: [],
      nulledFields: new Set(),
      tableVersions: tableVersionsOf(given.value),
    },
    encodeMessage: step,
    finalLine: stateLine,
  }
}

/** Prints messages as lines on stdout and entries of the log; at the end the last STATE. */
export const createSingerEncoder = ({
  now,
  schemas = new Map(),
  givenState = {},
  tableVersions = false,
}: EncodeOptions): MessageEncoder => {
  const { initialState, encodeMessage, finalLine } = encodeSinger(schemas, { value: givenState }, now, tableVersions)
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

/** A measurement, as singer-python and the Meltano SDK write it. */
export const metricLogEntry = (
  type: 'counter' | 'timer',
  name: 'record_count' | 'http_request_duration' | 'sync_duration',
  value: number,
  tags: Readonly<Record<string, string | number>>,
): LogEntry => ({
  level: 'info',
  message: `METRIC: ${JSON.stringify({ type, metric: name, value, tags })}`,
  ...(typeof tags.stream === 'string' ? { stream: tags.stream } : {}),
})

/** A failure as entries of the log: what to do, then the detail for the maintainers. */
export const failureLogEntries = ({ message, detail }: Failure, stream?: string): ReadonlyArray<LogEntry> => {
  const where = stream === undefined ? {} : { stream }
  return [
    { level: 'error', message: stream === undefined ? message : `${stream}: ${message}`, ...where },
    ...(detail === undefined ? [] : [{ level: 'error' as const, message: detail, ...where }]),
  ]
}

/** The attributes with values that were left out, logged once a run: a Singer record has no place for that. */
const findNulledFields = (
  known: ReadonlySet<string>,
  stream: string,
  rows: ReadonlyArray<Row>,
): readonly [ReadonlySet<string>, ReadonlyArray<LogEntry>] => {
  const fields = rows.flatMap(({ changes = [] }) => changes.map(({ field }) => `${stream}.${field}`))
  const newFields = [...new Set(fields)].filter((field) => !known.has(field))
  return [
    newFields.length === 0 ? known : new Set([...known, ...newFields]),
    newFields.map((field) => ({
      level: 'warn',
      message: `${field} has values of another type than declared; they are sent as null.`,
      stream,
    })),
  ]
}
