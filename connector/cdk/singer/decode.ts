import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { JsonText } from '../json/exact'
import { numberAt, readMembersAt, stringAt, valueAt } from '../json/members'
import { createLossGuard, type LossGuard, refuseLine, skipLine } from '../loss-guard'
import type { Message, Row } from '../message'
import { createParsedRow, dispatchLine, type MessageLine, type ParsedMessage } from '../message-line'
import type { DecodedLine, DecodeOptions, InputLine, LineDecoder } from '../protocol'

/** A stream that a SCHEMA has declared. */
type DeclaredStream = {
  /** Its SCHEMA names a bookmark, so a run sends only what changed. */
  readonly isIncremental: boolean
  /** A STATE or ACTIVATE_VERSION came after its last record. */
  isCovered: boolean
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

/** `time_extracted` in milliseconds since 1970, in UTC if it has no zone. */
const parseExtracted = (time: string): number =>
  Date.parse(/T[\d:.]+$/.test(time.replace(' ', 'T')) ? `${time.replace(' ', 'T')}Z` : time)

/** An input of Singer messages, as far as it has been read. */
type SingerInput = Pick<DecodeOptions, 'purpose' | 'now'> & {
  /** By stream name. */
  readonly streams: Map<string, DeclaredStream>
  readonly losses: LossGuard
  /** The last STATE names a stream as `currently_syncing`. */
  isSyncing: boolean
}

/**
 * Decodes SCHEMA, RECORD, STATE and ACTIVATE_VERSION lines. Singer does not mark a stream as complete: at the end of
 * the input all are, unless the last STATE names one as `currently_syncing`. A stream sent everything if its SCHEMA
 * names no bookmark and a STATE came after its last record.
 */
export const createSingerDecoder = (options: DecodeOptions): LineDecoder => {
  const { purpose, now } = options
  const losses = createLossGuard(options)
  const input: SingerInput = { purpose, now, streams: new Map(), losses, isSyncing: false }
  const isTarget = purpose === 'deliver'
  return {
    decode: dispatchLine(options, losses, {
      parsedRecord: (line, message) => decodeParsedRecord(input, line, message),
      byType: new Map([
        ['SCHEMA', (line) => decodeSchema(input, line)],
        ['RECORD', (line) => decodeRecord(input, line)],
        ['STATE', (line) => decodeState(input, line)],
        ['BATCH', refuseBatch],
        ['ACTIVATE_VERSION', (line) => decodeActivation(input, line)],
      ]),
      otherType: (line) =>
        isTarget ? refuseLine(line, `has the type ${line.type}, which a target does not take`) : noMessages,
      noMessage: (line) => (isTarget ? refuseLine(line, 'is not a Singer message') : losses.passLine(line)),
    }),
    end: () => [...input.streams].map(([name, stream]) => endOfStream(input, name, stream)),
  }
}

const endOfStream = ({ isSyncing, losses }: SingerInput, stream: string, declared: DeclaredStream): Message => {
  const bringsEverything = declared.isCovered && !declared.isIncremental
  const extent = isSyncing || losses.hasLoss() ? 'unknown' : bringsEverything ? 'everything' : 'changes'
  return { _tag: 'Finished', stream, extent }
}

const decodeSchema = ({ streams }: SingerInput, line: MessageLine): DecodedLine => {
  const { bytes, members } = line
  const name = stringAt(bytes, members.get('stream'))
  const body = {
    schema: valueAt(bytes, members.get('schema')),
    key_properties: valueAt(bytes, members.get('key_properties')),
    bookmark_properties: valueAt(bytes, members.get('bookmark_properties')),
  }
  if (name === undefined || !SchemaBody.is(body))
    return refuseLine(line, 'is a SCHEMA that lacks stream or schema, or whose keys are not a list of names')
  const cursor = O.fromNullable(body.bookmark_properties?.[0])
  streams.set(name, { ...streams.get(name), isIncremental: O.isSome(cursor), isCovered: false })
  const primaryKey = body.key_properties ?? []
  return E.right([
    { _tag: 'Started', stream: { name, schema: body.schema, primaryKey, cursor, syncMode: 'incremental' } },
  ])
}

/** `version`: NaN if the record has none. */
const toRecords = (
  { streams, now }: SingerInput,
  line: InputLine,
  stream: string,
  row: Row,
  extracted: unknown,
  version: number,
): DecodedLine => {
  const declared = streams.get(stream)
  if (declared === undefined) return refuseLine(line, `is a RECORD of ${stream} before its SCHEMA`)
  declared.isCovered = false
  const extractedAt = typeof extracted === 'string' ? parseExtracted(extracted) : Number.NaN
  const at = Math.trunc(Number.isNaN(extractedAt) ? now() : extractedAt)
  const records: Message = { _tag: 'Records', stream, rows: [row], at }
  if (!Number.isSafeInteger(version) || declared.version === version) return E.right([records])
  declared.version = version
  return E.right([{ _tag: 'TableVersion', stream, version, active: false }, records])
}

const rejectRecord = ({ losses }: SingerInput, line: InputLine): DecodedLine =>
  losses.rejectLine(line, 'is a RECORD without stream or record')

const decodeParsedRecord = (input: SingerInput, line: InputLine, message: ParsedMessage): DecodedLine => {
  const { stream, record, time_extracted, version } = message
  if (typeof stream !== 'string' || !t.UnknownRecord.is(record)) return rejectRecord(input, line)
  const row = createParsedRow(record, line, 'record')
  return toRecords(input, line, stream, row, time_extracted, typeof version === 'number' ? version : Number.NaN)
}

const decodeRecord = (input: SingerInput, line: MessageLine): DecodedLine => {
  const { bytes, members } = line
  const stream = stringAt(bytes, members.get('stream'))
  const data = members.get('record')
  if (stream === undefined || data === undefined) return rejectRecord(input, line)
  const row = { json: bytes.subarray(data.from, data.to) }
  const extracted = stringAt(bytes, members.get('time_extracted'))
  return toRecords(input, line, stream, row, extracted, numberAt(bytes, members.get('version')))
}

const decodeState = (input: SingerInput, line: MessageLine): DecodedLine => {
  const { purpose, streams, losses } = input
  const { bytes, members } = line
  const value = members.get('value')
  if (value === undefined) return (purpose === 'deliver' ? refuseLine : skipLine)(line, 'is a STATE without a value')
  if (losses.hasLoss()) return losses.omitState()
  const state = readMembersAt(bytes, value)
  input.isSyncing = typeof valueAt(bytes, state?.get('currently_syncing')) === 'string'
  for (const declared of streams.values()) declared.isCovered = true
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
    "Remove batch_config from the tap's config, so that it sends records.",
  )

const decodeActivation = ({ purpose, streams, losses }: SingerInput, line: MessageLine): DecodedLine => {
  const { bytes, members } = line
  const stream = stringAt(bytes, members.get('stream'))
  const version = numberAt(bytes, members.get('version'))
  const declared = stream === undefined ? undefined : streams.get(stream)
  if (losses.hasLoss()) return noMessages
  if (declared !== undefined) declared.isCovered = true
  if (stream === undefined || declared === undefined || !Number.isSafeInteger(version))
    return purpose === 'deliver' ? noMessages : skipLine(line, 'is an ACTIVATE_VERSION of an unknown stream or version')
  return E.right([{ _tag: 'TableVersion', stream, version, active: true }])
}
