import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { createParsedRow, type MessageLine, type ParsedMessage, parseMessage, readMessageLine } from '../input'
import { JsonText } from '../json/exact'
import { numberAt, readMembersAt, stringAt, valueAt } from '../json/members'
import { createLossGuard, refuseLine, skipLine } from '../loss-guard'
import type { Message, Row } from '../message'
import type { DecodedLine, DecodeOptions, InputLine, LineDecoder } from '../protocol'

/** A stream that a SCHEMA has declared. */
type DeclaredStream = {
  /** Its SCHEMA names a bookmark, so that a run brings only what changed. */
  readonly incremental: boolean
  /** Whether a STATE or ACTIVATE_VERSION came after its last record. */
  covered: boolean
  /** The text of its last bookmark. */
  bookmark?: string
  /** The table version of its last record. */
  version?: number
}

const PropertyNames = t.union([t.readonlyArray(t.string), t.null, t.undefined])
const SchemaBody = t.type({
  schema: t.UnknownRecord,
  key_properties: PropertyNames,
  bookmark_properties: PropertyNames,
})

const noMessages: DecodedLine = E.right([])

/** `time_extracted` in milliseconds since 1970, in UTC where it names no zone. */
const parseExtracted = (time: string): number =>
  Date.parse(/T[\d:.]+$/.test(time.replace(' ', 'T')) ? `${time.replace(' ', 'T')}Z` : time)

/**
 * SCHEMA, RECORD, STATE and ACTIVATE_VERSION lines as messages. Singer does not say that a stream is complete: at the
 * end of the input all are, unless the last STATE names one as `currently_syncing`. A stream brought everything if its
 * SCHEMA names no bookmark and a STATE came after its last record.
 */
export const createSingerDecoder = (options: DecodeOptions): LineDecoder => {
  const { purpose, now } = options
  const streams = new Map<string, DeclaredStream>()
  const { rejectLine, passLine, hasLoss, omitState } = createLossGuard(options)
  let isSyncing = false

  const decodeSchema = (line: MessageLine): DecodedLine => {
    const { bytes, members } = line
    const stream = stringAt(bytes, members.get('stream'))
    const body = {
      schema: valueAt(bytes, members.get('schema')),
      key_properties: valueAt(bytes, members.get('key_properties')),
      bookmark_properties: valueAt(bytes, members.get('bookmark_properties')),
    }
    if (stream === undefined || !SchemaBody.is(body))
      return refuseLine(line, 'is a SCHEMA that lacks stream or schema, or whose keys are no list of names')
    const { schema, key_properties, bookmark_properties } = body
    const cursor = O.fromNullable(bookmark_properties?.[0])
    streams.set(stream, { ...streams.get(stream), incremental: O.isSome(cursor), covered: false })
    return E.right([
      {
        _tag: 'Started',
        stream: { name: stream, schema, primaryKey: key_properties ?? [], cursor, syncMode: 'incremental' },
      },
    ])
  }

  /** `version`: NaN where the record has none. */
  const toRecords = (line: InputLine, stream: string, row: Row, extracted: unknown, version: number): DecodedLine => {
    const declared = streams.get(stream)
    if (declared === undefined) return refuseLine(line, `is a RECORD of ${stream} before its SCHEMA`)
    declared.covered = false
    const extractedAt = typeof extracted === 'string' ? parseExtracted(extracted) : Number.NaN
    const at = Math.trunc(Number.isNaN(extractedAt) ? now() : extractedAt)
    const records: Message = { _tag: 'Records', stream, rows: [row], at }
    if (!Number.isSafeInteger(version) || declared.version === version) return E.right([records])
    declared.version = version
    return E.right([{ _tag: 'TableVersion', stream, version, active: false }, records])
  }

  /** A record for a destination, which needs its value: to parse the line whole is faster than to scan it first. */
  const decodeParsedRecord = (line: InputLine, message: ParsedMessage): DecodedLine => {
    const { stream, record, time_extracted, version } = message
    return typeof stream === 'string' && t.UnknownRecord.is(record)
      ? toRecords(
          line,
          stream,
          createParsedRow(record, line, 'record'),
          time_extracted,
          typeof version === 'number' ? version : Number.NaN,
        )
      : rejectLine(line, 'is a RECORD without stream or record')
  }

  const decodeRecord = (line: MessageLine): DecodedLine => {
    const { bytes, members } = line
    const stream = stringAt(bytes, members.get('stream'))
    const data = members.get('record')
    if (stream === undefined || data === undefined) return rejectLine(line, 'is a RECORD without stream or record')
    const row = { json: bytes.subarray(data.from, data.to) }
    const extracted = stringAt(bytes, members.get('time_extracted'))
    return toRecords(line, stream, row, extracted, numberAt(bytes, members.get('version')))
  }

  const decodeState = (line: MessageLine): DecodedLine => {
    const { bytes, members } = line
    const value = members.get('value')
    if (value === undefined) return (purpose === 'deliver' ? refuseLine : skipLine)(line, 'is a STATE without a value')
    if (hasLoss()) return omitState()
    const state = readMembersAt(bytes, value)
    isSyncing = typeof valueAt(bytes, state?.get('currently_syncing')) === 'string'
    for (const declared of streams.values()) declared.covered = true
    const states = [...(readMembersAt(bytes, state?.get('bookmarks')) ?? [])].flatMap(([stream, span]) => {
      const text = bytes.toString('utf8', span.from, span.to)
      const declared = streams.get(stream)
      if (declared === undefined || declared.bookmark === text) return []
      declared.bookmark = text
      return [{ stream, state: new JsonText(text) }]
    })
    if (purpose === 'deliver')
      return E.right([{ _tag: 'SharedCheckpoint', states, received: bytes.subarray(value.from, value.to) }])
    return states.length === 0 ? noMessages : E.right([{ _tag: 'SharedCheckpoint', states }])
  }

  const refuseBatch = (line: MessageLine): DecodedLine =>
    refuseLine(
      line,
      `is a BATCH of the stream ${stringAt(line.bytes, line.members.get('stream'))}, whose files are not read`,
      "Take batch_config out of the tap's config, so that it sends records.",
    )

  const decodeActivation = (line: MessageLine): DecodedLine => {
    const { bytes, members } = line
    const stream = stringAt(bytes, members.get('stream'))
    const version = numberAt(bytes, members.get('version'))
    const declared = stream === undefined ? undefined : streams.get(stream)
    if (hasLoss()) return noMessages
    if (declared !== undefined) declared.covered = true
    if (stream === undefined || declared === undefined || !Number.isSafeInteger(version))
      return purpose === 'deliver' ? noMessages : skipLine(line, 'is an ACTIVATE_VERSION of no known stream or version')
    return E.right([{ _tag: 'TableVersion', stream, version, active: true }])
  }

  const decoders = new Map([
    ['SCHEMA', decodeSchema],
    ['RECORD', decodeRecord],
    ['STATE', decodeState],
    ['BATCH', refuseBatch],
    ['ACTIVATE_VERSION', decodeActivation],
  ])
  return {
    decode: (line) => {
      const parsed = purpose === 'deliver' ? parseMessage(line) : undefined
      if (parsed?.type === 'RECORD') return decodeParsedRecord(line, parsed)
      const message = purpose === 'deliver' && parsed === undefined ? undefined : readMessageLine(line)
      if (message === undefined)
        return purpose === 'deliver' ? refuseLine(line, 'is no Singer message') : passLine(line)
      const decode = decoders.get(message.type)
      if (decode !== undefined) return decode(message)
      if (/^record$/i.test(message.type)) return rejectLine(line, 'has a type that is not quite RECORD')
      return purpose === 'deliver'
        ? refuseLine(line, `has the type ${message.type}, which a target does not take`)
        : noMessages
    },
    end: () =>
      [...streams].map(
        ([stream, { incremental, covered }]): Message => ({
          _tag: 'Finished',
          stream,
          extent: isSyncing || hasLoss() ? 'unknown' : covered && !incremental ? 'everything' : 'changes',
        }),
      ),
  }
}
