import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { CommandError } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { numberAt, readMembersAt, stringAt, valueAt } from '../cdk/json-span'
import type { JsonSchema } from '../cdk/schema'
import { type DecodedMessage, type LineDecoder, type MessageLine, warningMessage } from './incoming-line'
import { JsonText } from './json-text'

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
