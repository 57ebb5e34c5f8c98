import * as t from 'io-ts'
import type { Failure } from '../failure'
import { jsonLine, wrapRows } from '../lines'
import type { Message, Row, StreamInfo } from '../message'
import {
  type EncodeOptions,
  emptyOutput,
  type LogEntry,
  type MessageEncoder,
  type ProtocolOutput,
  printLines,
} from '../protocol'
import { replaceBookmarks, type SingerState } from '../state-file'
import { toSingerSchema } from './catalog'

/** A stream that has started but not ended. */
type OpenStream = {
  readonly startedAt: number
  /** Records since the last logged count. */
  uncountedRecords: number
  hasLoggedCount: boolean
}

/** A run, as far as it has been printed. */
type SingerRun = Required<Pick<EncodeOptions, 'now' | 'schemas'>> & {
  /**
   * The state given to the run, without its table versions. Each STATE repeats it, because each replaces the one
   * before.
   */
  readonly givenState: SingerState['value']
  readonly sendsTableVersions: boolean
  /** The last state of each stream in this run. */
  readonly bookmarks: Map<string, unknown>
  /** In starting order. The first one is `currently_syncing`. */
  readonly openStreams: Map<string, OpenStream>
  /** Attributes already logged as left out, such as `reviews.rating`. */
  readonly nulledFields: Set<string>
  /** The table version of each unfinished full refresh, by stream. */
  readonly tableVersions: Map<string, number>
}

/** The member of a state that holds the versions, beside `bookmarks`. */
const versionsKey = 'table_versions'

/** The table versions of full refreshes that earlier runs did not finish. */
export const tableVersionsOf = ({ [versionsKey]: versions }: SingerState['value']): ReadonlyMap<string, number> =>
  new Map(
    Object.entries(t.UnknownRecord.is(versions) ? versions : {}).filter((entry): entry is [string, number] =>
      Number.isSafeInteger(entry[1]),
    ),
  )

/**
 * Prints messages as Singer lines on stdout and as log entries. The last line of a run, even a failed one, is a STATE.
 * With `tableVersions`, each record of a full refresh has a version, and a final ACTIVATE_VERSION lets a target delete
 * all other rows. The state keeps the version, so that a run that continues the refresh uses the same one.
 */
export const createSingerEncoder = ({
  now,
  schemas = new Map(),
  givenState = {},
  tableVersions = false,
}: EncodeOptions): MessageEncoder => {
  const { [versionsKey]: _, ...givenWithoutVersions } = givenState
  const run: SingerRun = {
    now,
    schemas,
    givenState: givenWithoutVersions,
    sendsTableVersions: tableVersions,
    bookmarks: new Map(),
    openStreams: new Map(),
    nulledFields: new Set(),
    tableVersions: new Map(tableVersionsOf(givenState)),
  }
  return { encode: (message) => encodeMessage(run, message), end: () => printLines(stateLine(run)) }
}

const encodeMessage = (run: SingerRun, message: Message): ProtocolOutput => {
  switch (message._tag) {
    case 'Started':
      return encodeStart(run, message.stream)
    case 'Records':
      return encodeRecords(run, message)
    case 'Checkpoint':
      return message.received === undefined ? encodeState(run, message) : printReceived(message.received)
    case 'SharedCheckpoint':
      if (message.received !== undefined) return printReceived(message.received)
      for (const { stream, state } of message.states) run.bookmarks.set(stream, state)
      return printLines(stateLine(run))
    case 'Finished':
      return encodeEnd(run, message.stream)
    case 'Failed':
      return encodeFailure(run, message)
    case 'Waiting': {
      const text = `The service makes ${message.stream} wait until ${new Date(message.until).toISOString()}.`
      return { lines: [], log: [{ level: 'info', message: text, stream: message.stream }] }
    }
    case 'Log':
      return { lines: [], log: [{ level: message.level, message: message.message }] }
    case 'Running':
    case 'SharedRecords':
    case 'TableVersion':
      return emptyOutput
  }
}

const stateLine = ({ givenState, bookmarks, openStreams, tableVersions }: SingerRun): string => {
  const [syncing] = openStreams.keys()
  const value = replaceBookmarks(givenState, Object.fromEntries(bookmarks), syncing)
  const versions = tableVersions.size === 0 ? {} : { [versionsKey]: Object.fromEntries(tableVersions) }
  return jsonLine({ type: 'STATE', value: { ...value, ...versions } })
}

/** A received state, printed back unchanged. */
const printReceived = (received: Uint8Array): ProtocolOutput => printLines(`${Buffer.from(received)}\n`)

const encodeStart = (run: SingerRun, { name, schema, primaryKey, cursor, syncMode }: StreamInfo): ProtocolOutput => {
  const version = run.tableVersions.get(name)
  run.tableVersions.delete(name)
  if (run.sendsTableVersions && syncMode === 'full_refresh') run.tableVersions.set(name, version ?? run.now())
  const isFirst = run.openStreams.size === 0
  run.openStreams.set(name, { startedAt: run.now(), uncountedRecords: 0, hasLoggedCount: false })
  const schemaLine = jsonLine({
    type: 'SCHEMA',
    stream: name,
    schema: run.schemas.get(name) ?? toSingerSchema(schema),
    key_properties: primaryKey,
    ...(cursor._tag === 'Some' ? { bookmark_properties: [cursor.value] } : {}),
  })
  return isFirst ? printLines(schemaLine, stateLine(run)) : printLines(schemaLine)
}

const encodeRecords = (
  { tableVersions, openStreams, nulledFields }: SingerRun,
  { stream, rows, at }: Extract<Message, { _tag: 'Records' }>,
): ProtocolOutput => {
  const version = tableVersions.get(stream)
  const versionMember = version === undefined ? '' : `,"version":${version}`
  const open = openStreams.get(stream)
  if (open !== undefined) open.uncountedRecords += rows.length
  const lines = wrapRows(
    rows,
    `{"type":"RECORD","stream":${JSON.stringify(stream)},"record":`,
    () => `${versionMember},"time_extracted":"${new Date(at).toISOString()}"}`,
  )
  return { lines: [lines], log: logNulledFields(nulledFields, stream, rows) }
}

const encodeState = (
  run: SingerRun,
  { stream, state }: Extract<Message, { readonly _tag: 'Checkpoint' }>,
): ProtocolOutput => {
  run.bookmarks.set(stream, state)
  const lines = [stateLine(run)]
  const open = run.openStreams.get(stream)
  if (open === undefined || open.uncountedRecords === 0) return { lines, log: [] }
  const log = [recordCountEntry(stream, open.uncountedRecords)]
  open.uncountedRecords = 0
  open.hasLoggedCount = true
  return { lines, log }
}

const encodeEnd = (run: SingerRun, stream: string): ProtocolOutput => {
  const version = run.tableVersions.get(stream)
  run.tableVersions.delete(stream)
  const log = closeStream(run, stream, 'succeeded')
  return version === undefined
    ? { lines: [], log }
    : { lines: [jsonLine({ type: 'ACTIVATE_VERSION', stream, version }), stateLine(run)], log }
}

const encodeFailure = (
  run: SingerRun,
  { stream, failure, isRepeated }: Extract<Message, { readonly _tag: 'Failed' }>,
): ProtocolOutput => ({
  lines: [],
  log: [
    ...(isRepeated === true ? [] : failureLogEntries(failure, stream)),
    ...(stream === undefined ? [] : closeStream(run, stream, 'failed')),
  ],
})

/** Removes a stream from the open ones. Logs its remaining count and how long it took. */
const closeStream = (
  { openStreams, now }: SingerRun,
  stream: string,
  status: 'succeeded' | 'failed',
): ReadonlyArray<LogEntry> => {
  const { startedAt = now(), uncountedRecords = 0, hasLoggedCount = false } = openStreams.get(stream) ?? {}
  openStreams.delete(stream)
  return [
    ...(hasLoggedCount && uncountedRecords === 0 ? [] : [recordCountEntry(stream, uncountedRecords)]),
    metricLogEntry('timer', 'sync_duration', (now() - startedAt) / 1000, { stream, status }),
  ]
}

const recordCountEntry = (stream: string, count: number): LogEntry =>
  metricLogEntry('counter', 'record_count', count, { stream })

/** A metric, as singer-python and the Meltano SDK write it. */
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

/** A failure as log entries: first what to do, then the detail for the maintainers. */
export const failureLogEntries = ({ message, detail }: Failure, stream?: string): ReadonlyArray<LogEntry> => {
  const where = stream === undefined ? {} : { stream }
  return [
    { level: 'error', message: stream === undefined ? message : `${stream}: ${message}`, ...where },
    ...(detail === undefined ? [] : [{ level: 'error' as const, message: detail, ...where }]),
  ]
}

/** Logs each attribute whose values were left out, once per run. A Singer record has no place for that. */
const logNulledFields = (known: Set<string>, stream: string, rows: ReadonlyArray<Row>): ReadonlyArray<LogEntry> => {
  const fields = rows.flatMap(({ changes = [] }) => changes.map(({ field }) => `${stream}.${field}`))
  const newFields = [...new Set(fields)].filter((field) => !known.has(field))
  for (const field of newFields) known.add(field)
  return newFields.map((field) => ({
    level: 'warn',
    message: `${field} has values that do not match its declared type; they are sent as null.`,
    stream,
  }))
}
