import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { membersIn, numberOf, textAt, valueAt } from '../cdk/json-span'
import type { JsonSchema } from '../cdk/schema'
import { type Line, type Protocol, type Said, warning } from './incoming-line'
import { JsonText } from './json-text'

const Schema = t.intersection([
  t.type({ schema: t.UnknownRecord }),
  t.partial({ key_properties: t.readonlyArray(t.string), bookmark_properties: t.readonlyArray(t.string) }),
])

/**
 * SCHEMA, RECORD and STATE lines. Singer has no end of a stream: at the end of the input the streams are complete, unless the
 * last state names one as being synced. `now`: for records that do not say when they were extracted.
 */
export const singerLines = (now: () => number): Protocol => {
  const open = new Set<string>()
  const bookmarks = new Map<string, string>()
  const versions = new Map<string, number>()
  let syncing: unknown = null

  const schema = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const stream = textAt(bytes, members.get('stream'))
    const value = {
      schema: valueAt(bytes, members.get('schema')),
      key_properties: valueAt(bytes, members.get('key_properties')) ?? [],
      bookmark_properties: valueAt(bytes, members.get('bookmark_properties')) ?? [],
    }
    if (stream === undefined || !Schema.is(value))
      throw new Stopped(
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

  const record = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const stream = textAt(bytes, members.get('stream'))
    const data = members.get('record')
    if (stream === undefined || data === undefined)
      return [warning('A RECORD without stream or record is passed over.')]
    if (!open.has(stream))
      throw new Stopped(configFailure(`A RECORD of the stream ${stream} comes before its SCHEMA. The tap is at fault.`))
    const extracted = Date.parse(textAt(bytes, members.get('time_extracted')) ?? '')
    const at = Number.isNaN(extracted) ? now() : extracted
    const version = numberOf(bytes, members.get('version'))
    const changed = Number.isSafeInteger(version) && versions.get(stream) !== version
    if (changed) versions.set(stream, version)
    return [
      ...(changed ? [{ _tag: 'Version', stream, version, active: false } as const] : []),
      { _tag: 'Record', stream, json: bytes.subarray(data.start, data.end), at: Math.trunc(at) },
    ]
  }

  const state = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const value = membersIn(bytes, members.get('value'))
    syncing = valueAt(bytes, value?.get('currently_syncing')) ?? null
    const held = membersIn(bytes, value?.get('bookmarks')) ?? new Map()
    return [...held].flatMap(([stream, span]): ReadonlyArray<Said> => {
      const text = bytes.toString('utf8', span.start, span.end)
      if (!open.has(stream) || bookmarks.get(stream) === text) return []
      bookmarks.set(stream, text)
      return [{ _tag: 'Checkpoint', stream, state: new JsonText(text), count: Number.NaN }]
    })
  }

  const batch = ({ bytes, members }: Line): never => {
    throw new Stopped(
      configFailure(
        `The stream ${textAt(bytes, members.get('stream'))} comes in BATCH messages, whose files are not read. Take batch_config out of the tap's config, so that it sends records.`,
      ),
    )
  }

  const activate = ({ bytes, members }: Line): ReadonlyArray<Said> => {
    const stream = textAt(bytes, members.get('stream'))
    const version = numberOf(bytes, members.get('version'))
    return stream !== undefined && open.has(stream) && Number.isSafeInteger(version)
      ? [{ _tag: 'Version', stream, version, active: true }]
      : [warning('An ACTIVATE_VERSION of no known stream or version is passed over.')]
  }

  return {
    read: { SCHEMA: schema, RECORD: record, STATE: state, BATCH: batch, ACTIVATE_VERSION: activate },
    end: () => (syncing === null ? [...open].map((stream) => ({ _tag: 'Finished', stream })) : []),
  }
}
