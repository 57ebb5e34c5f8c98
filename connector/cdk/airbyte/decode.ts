import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { findStreamByTable, type StreamDescriptor } from '../catalog'
import { configFailure, transientFailure } from '../failure'
import { createParsedRow, type MessageLine, type ParsedMessage, parseMessage, readMessageLine } from '../input'
import { JsonText } from '../json/exact'
import { numberAt, readMembersAt, stringAt, valueAt } from '../json/members'
import { createLossGuard, skipLine } from '../loss-guard'
import type { CheckpointMessage, Message, RecordChange, Row, StreamInfo } from '../message'
import type { DecodedLine, DecodeOptions, InputLine, LineDecoder } from '../protocol'
import { decodeDiscoveredCatalog } from './catalog'

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

/** A platform asks for a stream to be cleared by a state without a value. */
const clearedNote = (stream: string): Message => ({
  _tag: 'Log',
  level: 'info',
  message: `${stream}: cleared at the platform; nothing is changed at the service.`,
})

/** Counts records as they come, to hold the counts of the source (`sourceStats.recordCount`) against them. */
const createRecordCounter = () => {
  const counts = new Map<string, number>()
  let hasStreamStates = false
  const compare = (counted: number, came: number, of: string): string | undefined =>
    Number.isFinite(counted) && counted !== came
      ? `is a state whose source counted ${counted} records${of} since the state before; ${came} came`
      : undefined
  return {
    add: (stream: string): void => {
      counts.set(stream, (counts.get(stream) ?? 0) + 1)
    },
    /** What is wrong with the count of a stream's state, if anything is. */
    check: (stream: string, counted: number): string | undefined => {
      hasStreamStates = true
      const came = counts.get(stream) ?? 0
      counts.delete(stream)
      return compare(counted, came, ` of ${stream}`)
    },
    /** The same for a state of all streams. Beside states of single streams nothing says which records it counts. */
    checkAll: (counted: number): string | undefined => {
      let came = 0
      for (const count of counts.values()) came += count
      counts.clear()
      return hasStreamStates ? undefined : compare(counted, came, '')
    },
  }
}

/**
 * RECORD, STATE, TRACE, LOG and CATALOG lines as messages. A stream that no trace has started starts with its first
 * record or state. Lines that are no messages are skipped, since sources print other text too.
 */
export const createAirbyteDecoder = (options: DecodeOptions): LineDecoder => {
  const { purpose, missingStreamFailure = defaultMissingStreamFailure } = options
  let { findStream = () => undefined } = options
  const started = new Set<string>()
  const { rejectLine, passLine, reportLoss, hasLoss, omitState } = createLossGuard(options)
  const counter = createRecordCounter()
  /** The streams that brought more or fewer records than their source counted. */
  const miscounted = new Set<string>()

  const start = (info: StreamInfo): ReadonlyArray<Message> => {
    if (started.has(info.name)) return []
    started.add(info.name)
    return [{ _tag: 'Started', stream: info }]
  }
  const missing = ({ name }: StreamDescriptor): DecodedLine => E.left(missingStreamFailure(name))

  const toRecords = (descriptor: StreamDescriptor, row: Row, at: number): DecodedLine => {
    const info = findStream(descriptor)
    if (info === undefined) return missing(descriptor)
    counter.add(info.name)
    return E.right([
      ...start(info),
      { _tag: 'Records', stream: info.name, rows: [row], at: Number.isFinite(at) ? Math.trunc(at) : 0 },
    ])
  }

  /** A record for a destination, which needs its value: to parse the line whole is faster than to scan it first. */
  const decodeParsedRecord = (line: InputLine, { record }: ParsedMessage): DecodedLine =>
    RecordBody.is(record)
      ? toRecords(
          { name: record.stream, namespace: record.namespace },
          createParsedRow(record.data, line, 'record.data'),
          Number(record.emitted_at),
        )
      : rejectLine(line, 'is a RECORD without stream or data')

  const decodeRecord = (line: MessageLine): DecodedLine => {
    const { bytes, members } = line
    const name = stringAt(bytes, members.get('record.stream'))
    const data = members.get('record.data')
    if (name === undefined || data === undefined) return rejectLine(line, 'is a RECORD without stream or data')
    const json = bytes.subarray(data.from, data.to)
    const meta = members.has('record.meta') ? valueAt(bytes, members.get('record.meta')) : undefined
    const row =
      RecordMeta.is(meta) && meta.changes.length > 0
        ? { json, changes: meta.changes as ReadonlyArray<RecordChange> }
        : { json }
    return toRecords(
      { name, namespace: stringAt(bytes, members.get('record.namespace')) },
      row,
      numberAt(bytes, members.get('record.emitted_at')),
    )
  }

  const decodeState = (line: MessageLine): DecodedLine => {
    const { bytes, members } = line
    const body = readMembersAt(bytes, members.get('state'))
    if (body === undefined) return skipLine(line, 'is a STATE without a state')
    const received = purpose === 'deliver' ? { received: bytes } : {}
    const single = readMembersAt(bytes, body.get('stream'))
    const descriptor = valueAt(bytes, single?.get('stream_descriptor'))
    const info = Descriptor.is(descriptor) ? findStream(descriptor) : undefined
    const value = single?.get('stream_state')
    const state = new JsonText(value === undefined ? 'null' : bytes.toString('utf8', value.from, value.to))
    const count = numberAt(bytes, readMembersAt(bytes, body.get('sourceStats'))?.get('recordCount'))
    const problem = single === undefined ? counter.checkAll(count) : info && counter.check(info.name, count)
    const isCountedByPlatform = purpose === 'deliver' && Number.isInteger(numberAt(bytes, body.get('id')))
    if (problem !== undefined && !isCountedByPlatform) return reportLoss(line, problem)
    if (hasLoss()) return omitState()
    const notes = problem === undefined ? [] : [miscount(line, problem, info)]
    if (info !== undefined && (value !== undefined || purpose === 'deliver'))
      return E.right([
        ...notes,
        ...start(info),
        ...(state.text === 'null' ? [clearedNote(info.name)] : []),
        { _tag: 'Checkpoint', stream: info.name, state, count, ...received },
      ])
    if (single !== undefined && purpose === 'store')
      return Descriptor.is(descriptor) && value !== undefined
        ? missing(descriptor)
        : skipLine(line, 'is a STATE without stream or state')
    if (purpose === 'store') return E.left(sharedStateFailure(line))
    const global = valueAt(bytes, body.get('global') ?? body.get('global_'))
    return E.right([...notes, ...globalMessages(GlobalState.is(global) ? global : undefined, received)])
  }

  /**
   * A platform drops records, such as empty ones, and passes on the source's count. It compares what was delivered with
   * its own.
   */
  const miscount = ({ number }: InputLine, problem: string, info: StreamInfo | undefined): Message => {
    for (const name of info === undefined ? started : [info.name]) miscounted.add(name)
    return {
      _tag: 'Log',
      level: 'warn',
      message: `Line ${number} of the input ${problem}. No list is taken as complete because of it.`,
    }
  }

  /** A state of all streams, which a destination prints back. */
  const globalMessages = (
    global: t.TypeOf<typeof GlobalState> | undefined,
    received: Pick<CheckpointMessage, 'received'>,
  ): ReadonlyArray<Message> => {
    const known = (global?.stream_states ?? []).flatMap(({ stream_descriptor, stream_state }) => {
      const info = findStream(stream_descriptor)
      return info === undefined ? [] : [{ info, state: stream_state }]
    })
    return [
      ...known.flatMap(({ info, state }) => [...start(info), ...(state == null ? [clearedNote(info.name)] : [])]),
      {
        _tag: 'SharedCheckpoint',
        states: known.map(({ info, state }) => ({ stream: info.name, state })),
        ...received,
      },
    ]
  }

  const decodeTrace = ({ bytes, members }: MessageLine): DecodedLine => {
    const trace = valueAt(bytes, members.get('trace'))
    if (ErrorTrace.is(trace)) return E.right([{ _tag: 'Log', level: 'error', message: trace.error.message }])
    if (!StatusTrace.is(trace)) return noMessages
    const { status, stream_descriptor } = trace.stream_status
    const info = findStream(stream_descriptor)
    switch (status) {
      case 'STARTED':
        return info === undefined ? noMessages : E.right(start(info))
      case 'COMPLETE': {
        if (info === undefined) return purpose === 'store' ? missing(stream_descriptor) : noMessages
        if (hasLoss())
          return E.right([...start(info), failedStream(info.name, `The input lacks records of ${info.name}.`)])
        const extent = info.syncMode === 'full_refresh' && !miscounted.has(info.name) ? 'everything' : 'changes'
        return E.right([...start(info), { _tag: 'Finished', stream: info.name, extent }])
      }
      case 'INCOMPLETE': {
        const stream = info?.name ?? stream_descriptor.name
        return E.right([failedStream(stream, `The source did not complete ${stream}.`)])
      }
      default:
        return noMessages
    }
  }

  const decodeLog = ({ bytes, members }: MessageLine): DecodedLine => {
    const log = valueAt(bytes, members.get('log'))
    return LogBody.is(log) && ['ERROR', 'FATAL'].includes(log.level)
      ? E.right([{ _tag: 'Log', level: 'error', message: log.message }])
      : noMessages
  }

  const takeCatalog = ({ bytes, members }: MessageLine): DecodedLine => {
    if (options.acceptsCatalog === true)
      findStream = findStreamByTable(decodeDiscoveredCatalog(valueAt(bytes, members.get('catalog'))) ?? [])
    return noMessages
  }

  const decoders = new Map([
    ['RECORD', decodeRecord],
    ['STATE', decodeState],
    ['TRACE', decodeTrace],
    ['LOG', decodeLog],
    ['CATALOG', takeCatalog],
  ])
  return {
    decode: (line) => {
      const parsed = purpose === 'deliver' ? parseMessage(line) : undefined
      if (parsed?.type === 'RECORD') return decodeParsedRecord(line, parsed)
      const message = purpose === 'deliver' && parsed === undefined ? undefined : readMessageLine(line)
      if (message === undefined) return passLine(line)
      const decode = decoders.get(message.type)
      if (decode !== undefined) return decode(message)
      return /^record$/i.test(message.type) ? rejectLine(line, 'has a type that is not quite RECORD') : noMessages
    },
    end: () => [],
  }
}

const sharedStateFailure = ({ number }: InputLine) =>
  configFailure(
    `Line ${number} of the input is a STATE of all streams or of none, as other sources send them: ` +
      'ours says how far each stream has come.',
  )

const defaultMissingStreamFailure = (stream: string) =>
  configFailure(
    `The input has a record of the stream ${stream}, which the catalog does not have. Add it to the catalog.`,
  )
