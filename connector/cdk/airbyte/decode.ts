import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { type FindStream, findStreamByTable, type StreamDescriptor } from '../catalog'
import { configFailure, transientFailure } from '../failure'
import { JsonText } from '../json/exact'
import { numberAt, readMembersAt, stringAt, valueAt } from '../json/members'
import { createLossGuard, type LossGuard, skipLine } from '../loss-guard'
import type { Message, RecordChange, Row, StreamInfo } from '../message'
import { createParsedRow, dispatchLine, type MessageLine, type ParsedMessage } from '../message-line'
import type { DecodedLine, DecodeOptions, InputLine, LineDecoder } from '../protocol'
import { decodeDiscoveredCatalog } from './catalog'
import {
  checkStreamCount,
  checkTotalCount,
  countRecord,
  createRecordCounter,
  type RecordCounter,
} from './record-counter'

const Descriptor = t.intersection([
  t.type({ name: t.string }),
  t.partial({ namespace: t.union([t.string, t.null, t.undefined]) }),
])

const StatusTrace = t.type({ stream_status: t.type({ stream_descriptor: Descriptor, status: t.string }) })
const ErrorTrace = t.type({ error: t.type({ message: t.string }) })
const GlobalState = t.type({
  stream_states: t.readonlyArray(
    t.intersection([
      t.type({ stream_descriptor: Descriptor }),
      t.partial({ stream_state: t.union([t.UnknownRecord, t.null]) }),
    ]),
  ),
})

const RecordMeta = t.type({ changes: t.readonlyArray(t.type({ field: t.string, change: t.string, reason: t.string })) })
const RecordBody = t.intersection([
  t.type({ stream: t.string, data: t.UnknownRecord }),
  t.partial({ namespace: t.union([t.string, t.null]), emitted_at: t.unknown }),
])

const LogBody = t.type({ level: t.string, message: t.string })

const noMessages: DecodedLine = E.right([])

const failedStream = (stream: string, problem: string): Message => ({
  _tag: 'Failed',
  stream,
  failure: transientFailure(problem),
})

/** A state without a value is a platform's request to clear the stream. */
const clearedNote = (stream: string): Message => ({
  _tag: 'Log',
  level: 'info',
  message: `${stream}: cleared on the platform; nothing changes at the service.`,
})

/** An input of Airbyte messages, as far as it has been read. */
type AirbyteInput = Required<Pick<DecodeOptions, 'purpose' | 'missingStreamFailure'>> & {
  findStream: FindStream
  /** The streams that have sent `Started`. */
  readonly started: Set<string>
  readonly losses: LossGuard
  readonly counter: RecordCounter
  /** The streams that sent more or fewer records than their source counted. */
  readonly miscounted: Set<string>
}

/**
 * Decodes RECORD, STATE, TRACE, LOG and CATALOG lines. A stream that no trace has started starts with its first record
 * or state. Other lines are skipped, since sources also print other text.
 */
export const createAirbyteDecoder = (options: DecodeOptions): LineDecoder => {
  const { purpose, findStream = () => undefined, missingStreamFailure = defaultMissingStreamFailure } = options
  const losses = createLossGuard(options)
  const input: AirbyteInput = {
    purpose,
    missingStreamFailure,
    findStream,
    started: new Set(),
    losses,
    counter: createRecordCounter(),
    miscounted: new Set(),
  }
  return {
    decode: dispatchLine(options, losses, {
      parsedRecord: (line, message) => decodeParsedRecord(input, line, message),
      byType: new Map([
        ['RECORD', (line) => decodeRecord(input, line)],
        ['STATE', (line) => decodeState(input, line)],
        ['TRACE', (line) => decodeTrace(input, line)],
        ['LOG', decodeLog],
        ['CATALOG', (line) => (options.acceptsCatalog === true ? takeCatalog(input, line) : noMessages)],
      ]),
      otherType: () => noMessages,
      noMessage: losses.passLine,
    }),
    end: () => [],
  }
}

const startStream = ({ started }: AirbyteInput, info: StreamInfo): ReadonlyArray<Message> => {
  if (started.has(info.name)) return []
  started.add(info.name)
  return [{ _tag: 'Started', stream: info }]
}

const missingStream = ({ missingStreamFailure }: AirbyteInput, { name }: StreamDescriptor): DecodedLine =>
  E.left(missingStreamFailure(name))

const toRecords = (input: AirbyteInput, descriptor: StreamDescriptor, row: Row, at: number): DecodedLine => {
  const info = input.findStream(descriptor)
  if (info === undefined) return missingStream(input, descriptor)
  countRecord(input.counter, info.name)
  return E.right([
    ...startStream(input, info),
    { _tag: 'Records', stream: info.name, rows: [row], at: Number.isFinite(at) ? Math.trunc(at) : 0 },
  ])
}

const rejectRecord = ({ losses }: AirbyteInput, line: InputLine): DecodedLine =>
  losses.rejectLine(line, 'is a RECORD without stream or data')

const decodeParsedRecord = (input: AirbyteInput, line: InputLine, { record }: ParsedMessage): DecodedLine =>
  RecordBody.is(record)
    ? toRecords(
        input,
        { name: record.stream, namespace: record.namespace },
        createParsedRow(record.data, line, 'record.data'),
        Number(record.emitted_at),
      )
    : rejectRecord(input, line)

const decodeRecord = (input: AirbyteInput, line: MessageLine): DecodedLine => {
  const { bytes, members } = line
  const name = stringAt(bytes, members.get('record.stream'))
  const data = members.get('record.data')
  if (name === undefined || data === undefined) return rejectRecord(input, line)
  const json = bytes.subarray(data.from, data.to)
  const meta = members.has('record.meta') ? valueAt(bytes, members.get('record.meta')) : undefined
  const row =
    RecordMeta.is(meta) && meta.changes.length > 0
      ? { json, changes: meta.changes as ReadonlyArray<RecordChange> }
      : { json }
  return toRecords(
    input,
    { name, namespace: stringAt(bytes, members.get('record.namespace')) },
    row,
    numberAt(bytes, members.get('record.emitted_at')),
  )
}

/** The content of a STATE line. */
type StateLine = {
  /** A state of one stream, or a stream descriptor alone. */
  readonly isOfStream: boolean
  readonly descriptor: StreamDescriptor | undefined
  /** Undefined if the stream's state has no value. */
  readonly value: JsonText | undefined
  /** The members of a state of all streams; undefined for any other state. */
  readonly global: t.TypeOf<typeof GlobalState> | undefined
  /** The source's count of records; NaN if it did not count. */
  readonly count: number
  /** A platform numbered the state. It then counts the records itself. */
  readonly isNumbered: boolean
}

/** Undefined for a STATE without a state. */
const readState = ({ bytes, members }: MessageLine): StateLine | undefined => {
  const body = readMembersAt(bytes, members.get('state'))
  if (body === undefined) return undefined
  const stream = readMembersAt(bytes, body.get('stream'))
  const descriptor = valueAt(bytes, stream?.get('stream_descriptor'))
  const value = stream?.get('stream_state')
  const global = valueAt(bytes, body.get('global') ?? body.get('global_'))
  return {
    isOfStream: stream !== undefined,
    descriptor: Descriptor.is(descriptor) ? descriptor : undefined,
    value: value && new JsonText(bytes.toString('utf8', value.from, value.to)),
    global: GlobalState.is(global) ? global : undefined,
    count: numberAt(bytes, readMembersAt(bytes, body.get('sourceStats'))?.get('recordCount')),
    isNumbered: Number.isInteger(numberAt(bytes, body.get('id'))),
  }
}

const decodeState = (input: AirbyteInput, line: MessageLine): DecodedLine => {
  const { purpose, losses, counter } = input
  const state = readState(line)
  if (state === undefined) return skipLine(line, 'is a STATE without a state')
  const { isOfStream, descriptor, value, count } = state
  const info = descriptor && input.findStream(descriptor)
  const problem = isOfStream ? info && checkStreamCount(counter, info.name, count) : checkTotalCount(counter, count)
  const isCountedByPlatform = purpose === 'deliver' && state.isNumbered
  if (problem !== undefined && !isCountedByPlatform) return losses.reportLoss(line, problem)
  if (losses.hasLoss()) return losses.omitState()
  const notes = problem === undefined ? [] : [noteMiscount(input, line, problem, info)]
  if (info !== undefined && (value !== undefined || purpose === 'deliver'))
    return E.right([...notes, ...streamState(input, line, info, state)])
  if (purpose === 'deliver') return E.right([...notes, ...sharedState(input, line, state)])
  if (!isOfStream) return E.left(sharedStateFailure(line))
  return descriptor === undefined || value === undefined
    ? skipLine(line, 'is a STATE without stream or state')
    : missingStream(input, descriptor)
}

/**
 * A platform drops some records, such as empty ones, but passes on the source's count. So only the platform's own count
 * can be compared with what it delivered.
 */
const noteMiscount = (
  { started, miscounted }: AirbyteInput,
  { number }: InputLine,
  problem: string,
  info: StreamInfo | undefined,
): Message => {
  for (const name of info === undefined ? started : [info.name]) miscounted.add(name)
  return {
    _tag: 'Log',
    level: 'warn',
    message: `Line ${number} of the input ${problem}. No list counts as complete because of this.`,
  }
}

/** A destination prints a state back unchanged. */
const receivedBytes = ({ purpose }: AirbyteInput, { bytes }: InputLine) =>
  purpose === 'deliver' ? { received: bytes } : {}

const streamState = (
  input: AirbyteInput,
  line: InputLine,
  info: StreamInfo,
  { value = new JsonText('null'), count }: StateLine,
): ReadonlyArray<Message> => [
  ...startStream(input, info),
  ...(value.text === 'null' ? [clearedNote(info.name)] : []),
  { _tag: 'Checkpoint', stream: info.name, state: value, count, ...receivedBytes(input, line) },
]

/** A state of all streams. Only a destination accepts it. */
const sharedState = (input: AirbyteInput, line: InputLine, { global }: StateLine): ReadonlyArray<Message> => {
  const known = (global?.stream_states ?? []).flatMap(({ stream_descriptor, stream_state }) => {
    const info = input.findStream(stream_descriptor)
    return info === undefined ? [] : [{ info, state: stream_state }]
  })
  return [
    ...known.flatMap(({ info, state }) => [
      ...startStream(input, info),
      ...(state == null ? [clearedNote(info.name)] : []),
    ]),
    {
      _tag: 'SharedCheckpoint',
      states: known.map(({ info, state }) => ({ stream: info.name, state })),
      ...receivedBytes(input, line),
    },
  ]
}

const decodeTrace = (input: AirbyteInput, { bytes, members }: MessageLine): DecodedLine => {
  const trace = valueAt(bytes, members.get('trace'))
  if (ErrorTrace.is(trace)) return E.right([{ _tag: 'Log', level: 'error', message: trace.error.message }])
  if (!StatusTrace.is(trace)) return noMessages
  const { status, stream_descriptor } = trace.stream_status
  const info = input.findStream(stream_descriptor)
  switch (status) {
    case 'STARTED':
      return info === undefined ? noMessages : E.right(startStream(input, info))
    case 'COMPLETE':
      if (info !== undefined) return E.right([...startStream(input, info), endOfStream(input, info)])
      return input.purpose === 'store' ? missingStream(input, stream_descriptor) : noMessages
    case 'INCOMPLETE': {
      const stream = info?.name ?? stream_descriptor.name
      return E.right([failedStream(stream, `The source did not complete ${stream}.`)])
    }
    default:
      return noMessages
  }
}

/** The ending of a stream that its source calls complete. */
const endOfStream = ({ losses, miscounted }: AirbyteInput, { name, syncMode }: StreamInfo): Message => {
  if (losses.hasLoss()) return failedStream(name, `Records of ${name} are missing from the input.`)
  const extent = syncMode === 'full_refresh' && !miscounted.has(name) ? 'everything' : 'changes'
  return { _tag: 'Finished', stream: name, extent }
}

const decodeLog = ({ bytes, members }: MessageLine): DecodedLine => {
  const log = valueAt(bytes, members.get('log'))
  return LogBody.is(log) && ['ERROR', 'FATAL'].includes(log.level)
    ? E.right([{ _tag: 'Log', level: 'error', message: log.message }])
    : noMessages
}

/** From here on, the catalog in the input replaces the caller's. */
const takeCatalog = (input: AirbyteInput, { bytes, members }: MessageLine): DecodedLine => {
  input.findStream = findStreamByTable(decodeDiscoveredCatalog(valueAt(bytes, members.get('catalog'))) ?? [])
  return noMessages
}

const sharedStateFailure = ({ number }: InputLine) =>
  configFailure(
    `Line ${number} of the input is a STATE of all streams or of none, as some sources send. ` +
      'This command needs the state of each stream.',
  )

const defaultMissingStreamFailure = (stream: string) =>
  configFailure(
    `The input has a record of the stream ${stream}, which the catalog does not have. Add it to the catalog.`,
  )
