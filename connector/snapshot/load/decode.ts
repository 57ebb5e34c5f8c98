import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import {
  CommandError,
  configFailure,
  type JsonSchema,
  JsonText,
  numberAt,
  type Row,
  readMembersAt,
  readObjectMembers,
  splitLines,
  stringAt,
  valueAt,
} from '../../cdk'
import type { ExpectedStreams } from './configured-catalog'
import {
  createAirbyteLineDecoder,
  type DecodedMessage,
  type LineDecoder,
  type LoadMessage,
  type MessageLine,
  warningMessage,
} from './decode-airbyte'

const SchemaBody = t.intersection([
  t.type({ schema: t.UnknownRecord }),
  t.partial({ key_properties: t.readonlyArray(t.string), bookmark_properties: t.readonlyArray(t.string) }),
])

/**
 * SCHEMA, RECORD and STATE lines. Singer has no end of a stream: at the end of the input the streams are complete, unless the
 * last state names one as being synced. `now`: for records that do not say when they were extracted.
 */
export const createSingerLineDecoder = (now: () => number): LineDecoder => {
  const open = new Set<string>()
  const bookmarks = new Map<string, string>()
  const versions = new Map<string, number>()
  let syncing: unknown = null

  const schema = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const stream = stringAt(bytes, members.get('stream'))
    const value = {
      schema: valueAt(bytes, members.get('schema')),
      key_properties: valueAt(bytes, members.get('key_properties')) ?? [],
      bookmark_properties: valueAt(bytes, members.get('bookmark_properties')) ?? [],
    }
    if (stream === undefined || !SchemaBody.is(value))
      throw new CommandError(
        configFailure(
          `The SCHEMA line of ${stream ?? 'a stream'} is wrong: it wants stream, schema and key_properties.`,
        ),
      )
    open.add(stream)
    return [
      {
        _tag: 'Started',
        stream: {
          name: stream,
          schema: value.schema as JsonSchema,
          primaryKey: value.key_properties ?? [],
          cursor: O.fromNullable(value.bookmark_properties?.[0]),
          syncMode: 'incremental',
        },
      },
    ]
  }

  const record = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const stream = stringAt(bytes, members.get('stream'))
    const data = members.get('record')
    if (stream === undefined || data === undefined)
      return [warningMessage('A RECORD without stream or record is passed over.')]
    if (!open.has(stream))
      throw new CommandError(
        configFailure(`A RECORD of the stream ${stream} comes before its SCHEMA. The tap is at fault.`),
      )
    const extracted = Date.parse(stringAt(bytes, members.get('time_extracted')) ?? '')
    const at = Number.isNaN(extracted) ? now() : extracted
    const version = numberAt(bytes, members.get('version'))
    const changed = Number.isSafeInteger(version) && versions.get(stream) !== version
    if (changed) versions.set(stream, version)
    return [
      ...(changed ? [{ _tag: 'Version', stream, version, active: false } as const] : []),
      { _tag: 'Record', stream, json: bytes.subarray(data.start, data.end), at: Math.trunc(at) },
    ]
  }

  const state = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const value = readMembersAt(bytes, members.get('value'))
    syncing = valueAt(bytes, value?.get('currently_syncing')) ?? null
    const held = readMembersAt(bytes, value?.get('bookmarks')) ?? new Map()
    return [...held].flatMap(([stream, span]): ReadonlyArray<DecodedMessage> => {
      const text = bytes.toString('utf8', span.start, span.end)
      if (!open.has(stream) || bookmarks.get(stream) === text) return []
      bookmarks.set(stream, text)
      return [{ _tag: 'Checkpoint', stream, state: new JsonText(text), count: Number.NaN }]
    })
  }

  const batch = ({ bytes, members }: MessageLine): never => {
    throw new CommandError(
      configFailure(
        `The stream ${stringAt(bytes, members.get('stream'))} comes in BATCH messages, whose files are not read. Take batch_config out of the tap's config, so that it sends records.`,
      ),
    )
  }

  const activate = ({ bytes, members }: MessageLine): ReadonlyArray<DecodedMessage> => {
    const stream = stringAt(bytes, members.get('stream'))
    const version = numberAt(bytes, members.get('version'))
    return stream !== undefined && open.has(stream) && Number.isSafeInteger(version)
      ? [{ _tag: 'Version', stream, version, active: true }]
      : [warningMessage('An ACTIVATE_VERSION of no known stream or version is passed over.')]
  }

  return {
    decoders: { SCHEMA: schema, RECORD: record, STATE: state, BATCH: batch, ACTIVATE_VERSION: activate },
    end: () => (syncing === null ? [...open].map((stream) => ({ _tag: 'Finished', stream })) : []),
  }
}

export type DecodeInputOptions = {
  /** The run's configured catalog, before any that the input holds; Singer needs none. */
  readonly expected?: ExpectedStreams | undefined
  /** What is known without a catalog. */
  readonly own?: ExpectedStreams
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Lines of the Airbyte or the Singer protocol as the messages they were made from. A line that is not JSON is passed over with a warning. */
export async function* decodeInput(
  input: AsyncIterable<Uint8Array>,
  { expected, own = new Map(), now }: DecodeInputOptions,
): AsyncIterable<LoadMessage> {
  let protocol: LineDecoder | undefined
  let count = 0
  for await (const lines of splitLines(input)) {
    const said: Array<DecodedMessage> = []
    for (const bytes of lines) {
      count += 1
      if (bytes.length === 0) continue
      const members = readObjectMembers(bytes, 'record')
      const type = members && stringAt(bytes, members.get('type'))
      if (members === undefined || type === undefined) {
        said.push(warningMessage(`Line ${count} of the input is no message and is passed over.`))
        continue
      }
      protocol ??=
        type === 'SCHEMA' || members.has('value')
          ? createSingerLineDecoder(now)
          : createAirbyteLineDecoder(expected, own)
      said.push(...(protocol.decoders[type]?.({ bytes, members }) ?? []))
    }
    yield* groupRecords(said)
  }
  yield* groupRecords(protocol?.end() ?? [])
}

/** Records of one stream and time that follow one another become one message. */
function* groupRecords(said: ReadonlyArray<DecodedMessage>): Iterable<LoadMessage> {
  let rows: Array<Row> = []
  let last: { readonly stream: string; readonly at: number } | undefined
  for (const one of said) {
    const goesOn = one._tag === 'Record' && one.stream === last?.stream && one.at === last.at
    if (!goesOn && last !== undefined) {
      yield { _tag: 'Records', ...last, rows }
      rows = []
      last = undefined
    }
    if (one._tag === 'Record') {
      const { stream, at, json, changes } = one
      rows.push(changes === undefined ? { json } : { json, changes })
      last = { stream, at }
    } else yield one
  }
  if (last !== undefined) yield { _tag: 'Records', ...last, rows }
}
