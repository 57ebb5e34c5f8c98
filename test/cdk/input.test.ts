import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeAirbyte } from '../../connector/cdk/airbyte/encode'
import { type ConfiguredCatalog, findStreamByTable } from '../../connector/cdk/catalog'
import { printJsonText } from '../../connector/cdk/json/exact'
import { joinText } from '../../connector/cdk/lines'
import type { Message } from '../../connector/cdk/message'
import { CommandError } from '../../connector/cdk/program/error'
import { snapshotCatalog } from '../support/catalogs'
import { decodeForSnapshot } from '../support/decoded-input'
import { draws } from '../support/draws'

/** The text cut into chunks at the given places. */
async function* chunks(text: string, cuts: ReadonlyArray<number> = []): AsyncIterable<Uint8Array> {
  const bytes = Buffer.from(text)
  const places = [0, ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  for (const [i, from] of places.slice(0, -1).entries()) yield new Uint8Array(bytes.subarray(from, places[i + 1]))
}

const read = async (
  text: string,
  cuts: ReadonlyArray<number> = [],
  given: ConfiguredCatalog | undefined = snapshotCatalog(),
): Promise<ReadonlyArray<Message>> => {
  const { messages, refused } = await decodeForSnapshot(chunks(text, cuts), given)
  if (refused !== undefined) throw new CommandError(refused)
  return messages
}

const records = (messages: ReadonlyArray<Message>) =>
  messages.flatMap((message) =>
    message._tag === 'Records' ? message.rows.map(({ json }) => Buffer.from(json).toString()) : [],
  )
const tags = (messages: ReadonlyArray<Message>) => messages.map(({ _tag }) => _tag)

describe('Airbyte lines', () => {
  it('are decoded into the messages that our encoder printed', async () => {
    const written: ReadonlyArray<Message> = [
      { _tag: 'Started', stream: findStreamByTable(snapshotCatalog())({ name: 'reviews' }) as never },
      { _tag: 'Records', stream: 'reviews', at: 5, rows: [{ json: Buffer.from('{"id":9007199254740993}') }] },
      {
        _tag: 'Records',
        stream: 'reviews',
        at: 6,
        rows: [
          {
            json: Buffer.from('{"id":2,"text":"a \\"}{[ é"}'),
            changes: [{ field: 'rating', change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' }],
          },
        ],
      },
      { _tag: 'Checkpoint', stream: 'reviews', state: { recent: [{ id: '1' }] }, count: 2 },
      { _tag: 'Finished', stream: 'reviews', extent: 'changes' },
    ]
    const lines = written.flatMap(encodeAirbyte(() => 1)).map(joinText)
    const decoded = await read(lines.join(''))
    expect(
      decoded.map((message) =>
        message._tag === 'Checkpoint' ? { ...message, state: JSON.parse(printJsonText(message.state)) } : message,
      ),
    ).toEqual(written)
  })

  it('keep the text of every record, whatever the order of members, the spaces and the chunks', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { minLength: 1 }),
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.boolean(),
        async (values, cuts, spaced) => {
          const texts = values.map((value) => JSON.stringify(value))
          const b = spaced ? ' ' : ''
          const lines = texts.map((text) =>
            spaced
              ? `{ "record" : { "emitted_at" : 3 , "data" : ${text} , "stream" : "reviews" } , "type" : "RECORD" }\r`
              : `{"type":"RECORD","record":{"stream":"reviews","data":${text},"emitted_at":3}}`,
          )
          expect(records(await read(`${lines.join(`\n${b}\n`)}\n`, cuts))).toEqual(texts)
        },
      ),
      draws(100),
    ))

  it('start a stream with its first record where no trace does, once', async () => {
    const line = '{"type":"RECORD","record":{"stream":"reviews","data":{"id":1},"emitted_at":3}}\n'
    expect(tags(await read(line + line))).toEqual(['Started', 'Records'])
  })

  it('that are cut short or no messages are skipped and reported by number', async () => {
    const messages = await read(
      'hello\n{"type":"RECORD","record":{"stream":"reviews","data":{"id":1},' +
        '"emitted_at":3}}\n{"type":"RECORD","record":{"stream":"rev',
    )
    expect(messages.flatMap((message) => (message._tag === 'Log' ? [message.message] : []))).toEqual([
      'Line 1 of the input is not a message and is skipped.',
      'Line 3 of the input is not a message and is skipped.',
    ])
    expect(records(messages)).toEqual(['{"id":1}'])
  })

  it('of a stream outside the catalog, or without a catalog, end the run with advice', async () => {
    const line = '{"type":"RECORD","record":{"stream":"other","data":{"id":1},"emitted_at":3}}\n'
    await expect(read(line)).rejects.toThrow(/the stream other, which the catalog does not have/)
    expect((await decodeForSnapshot(chunks(line), undefined)).refused?._tag).toBe('Config')
  })

  it('take the schema of a stream from a CATALOG line', async () => {
    const lines = [
      {
        type: 'CATALOG',
        catalog: {
          streams: [{ name: 'other', json_schema: { properties: {} }, source_defined_primary_key: [['a'], ['b']] }],
        },
      },
      { type: 'RECORD', record: { stream: 'other', data: { a: 1 }, emitted_at: 3 } },
    ]
    const text = lines.map((line) => JSON.stringify(line)).join('\n')
    const { messages } = await decodeForSnapshot(chunks(text), undefined)
    expect(messages[0]).toMatchObject({
      _tag: 'Started',
      stream: { name: 'other', primaryKey: ['a', 'b'], syncMode: 'full_refresh' },
    })
  })

  it('report a failed stream: its INCOMPLETE status and its error', async () => {
    const messages = await read(
      [
        {
          type: 'TRACE',
          trace: { type: 'ERROR', error: { message: 'The token is wrong.', stream_descriptor: { name: 'reviews' } } },
        },
        {
          type: 'TRACE',
          trace: {
            type: 'STREAM_STATUS',
            stream_status: { stream_descriptor: { name: 'reviews' }, status: 'INCOMPLETE' },
          },
        },
      ]
        .map((line) => JSON.stringify(line))
        .join('\n'),
    )
    expect(messages).toMatchObject([
      { _tag: 'Log', level: 'error', message: 'The token is wrong.' },
      { _tag: 'Failed', stream: 'reviews' },
    ])
  })
})

it('a state of all streams is one of another source, and refused by a snapshot', async () => {
  const state = { type: 'GLOBAL', global: { stream_states: [] } }
  await expect(read(JSON.stringify({ type: 'STATE', state }))).rejects.toThrow(
    'Line 1 of the input is a STATE of all streams or of none',
  )
})

describe('Singer lines', () => {
  const schema =
    '{"type":"SCHEMA","stream":"reviews","schema":{"properties":{"id":{"type":["integer"]}}},' +
    '"key_properties":["id"],"bookmark_properties":["modifiedTime"]}\n'
  const record =
    '{"type":"RECORD","stream":"reviews","record":{"id":9007199254740993},"time_extracted":"2026-01-01T00:00:00Z"}\n'
  const state = (bookmark: string, syncing = 'null') =>
    `{"type":"STATE","value":{"bookmarks":{"reviews":${bookmark},"other":{}},"currently_syncing":${syncing}}}\n`

  it('become schema, records and the bookmarks that changed; the end of the input completes the stream', async () => {
    const messages = await read(schema + state('{"a":1}') + record + state('{"a":1}') + state('{"a":2}'))
    expect(tags(messages)).toEqual(['Started', 'SharedCheckpoint', 'Records', 'SharedCheckpoint', 'Finished'])
    expect(messages[0]).toMatchObject({
      stream: { name: 'reviews', primaryKey: ['id'], cursor: { value: 'modifiedTime' } },
    })
    expect(messages[2]).toMatchObject({ at: Date.parse('2026-01-01T00:00:00Z') })
    expect(records(messages)).toEqual(['{"id":9007199254740993}'])
  })

  it('are not complete while the last state names a stream', async () => {
    const messages = await read(schema + record + state('{"a":1}', '"reviews"'))
    expect(messages.at(-1)).toEqual({ _tag: 'Finished', stream: 'reviews', extent: 'unknown' })
  })

  it('must have the SCHEMA before the records', async () => {
    await expect(read(state('{}') + record)).rejects.toThrow(/RECORD of reviews before its SCHEMA/)
  })
})
