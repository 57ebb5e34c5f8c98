import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { decodeConfiguredCatalog } from '../../connector/cdk/airbyte/catalog'
import type { Message } from '../../connector/cdk/message'
import { decodeForSnapshot, inChunks } from '../support/decoded-input'
import { draws } from '../support/draws'

const catalog = decodeConfiguredCatalog('snapshot')({
  streams: [
    { stream: { name: 's', json_schema: { type: 'object' } }, sync_mode: 'incremental', primary_key: [['id']] },
  ],
})
if (E.isLeft(catalog)) throw new Error(catalog.left.message)

/** The messages of an input, or why it was refused; whatever is thrown is a crash. */
const read = async (bytes: Uint8Array, size: number): Promise<ReadonlyArray<Message> | string> => {
  const { messages, refused } = await decodeForSnapshot(inChunks(bytes, size), catalog.right)
  return refused?.message ?? messages
}

/** Values with what readers stumble over: huge numbers, lone surrogates, keys that repeat, depth. */
const awkward = fc.oneof(
  { weight: 4, arbitrary: fc.json({ maxDepth: 3 }) },
  fc.constantFrom('9007199254740993', '-1e400', '123456789012345678901234567890', '0.1e-999', '"\\ud800"', '"\\u0000"'),
  fc.constantFrom('{"id":1,"id":2}', '{"data":{"id":9}}', '{"":{}}', '" \\\\\\" }"', '"}{]["'),
  fc.integer({ min: 1, max: 3000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
)

const record = fc.tuple(awkward, awkward, fc.boolean()).map(([value, meta, spaced]) => {
  const blank = spaced ? ' ' : ''
  const data = `{"id":1,${blank}"value":${value}}`
  return {
    data,
    line:
      `{"type":${blank}"RECORD","meta":${meta},` +
      `"record":{"stream":"s",${blank}"data":${blank}${data},"emitted_at":5}${blank}}`,
  }
})

const damage = fc.tuple(
  fc.nat(),
  fc.constantFrom(...Buffer.from('{}[]",:\\\n0a'), 0, 0x80, 0xc3, 0xff),
  fc.constantFrom('put', 'drop', 'cut'),
)

const damaged = (bytes: Uint8Array, [at, byte, how]: readonly [number, number, string]): Uint8Array => {
  const place = at % (bytes.length + 1)
  const tail = bytes.subarray(how === 'drop' ? place + 1 : place)
  return how === 'cut'
    ? bytes.subarray(0, place)
    : Buffer.concat([bytes.subarray(0, place), ...(how === 'put' ? [Buffer.of(byte)] : []), tail])
}

describe('a snapshot reading messages', () => {
  it('passes each record on byte for byte, in whatever pieces the input comes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 5 }), fc.integer({ min: 1, max: 5000 }), async (records, size) => {
        const messages = await read(Buffer.from(records.map(({ line }) => `${line}\n`).join('')), size)
        const rows =
          typeof messages === 'string'
            ? [messages]
            : messages.flatMap((message) => (message._tag === 'Records' ? message.rows : []))
        expect(rows.map((row) => (typeof row === 'string' ? row : Buffer.from(row.json).toString()))).toEqual(
          records.map(({ data }) => data),
        )
      }),
      draws(400),
    )
  })

  it('skips, refuses or takes a damaged line, never crashes, and takes undamaged records as they are', async () => {
    const other = fc.constantFrom(
      '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"s"},' +
        '"stream_state":{"a":1}},"sourceStats":{"recordCount":1.0}}}',
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS",' +
        '"stream_status":{"stream_descriptor":{"name":"s"},"status":"COMPLETE"}}}',
      '{"type":"SCHEMA","stream":"s","schema":{"properties":{}},"key_properties":["id"]}',
      '{"type":"STATE","value":{"bookmarks":{"s":{"a":1}},"currently_syncing":null}}',
      '{"type":"LOG","log":{"level":"ERROR","message":"x"}}',
      'null',
      '[]',
      '"RECORD"',
    )
    const counts = { records: 0, refused: 0 }
    const whole = record.map(({ line }) => line)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(whole, other), { maxLength: 4 }),
        fc.array(damage, { maxLength: 3 }),
        async (lines, damages) => {
          const bytes = damages.reduce(damaged, Buffer.from(`${lines.join('\n')}\n`) as Uint8Array)
          const messages = await read(bytes, 1000)
          if (typeof messages === 'string') {
            counts.refused += 1
            expect(messages).toMatch(/\.$/)
            return
          }
          const taken = messages.flatMap((message) => (message._tag === 'Records' ? message.rows : []))
          counts.records += taken.length
          for (const { json } of taken) expect(Buffer.from(bytes).includes(Buffer.from(json))).toBe(true)
        },
      ),
      draws(1500),
    )
    expect(counts.records).toBeGreaterThan(300)
    expect(counts.refused).toBeGreaterThan(0)
  })

  it('skips a line of a million brackets', async () => {
    for (const text of ['['.repeat(1_000_000), `${'{"a":'.repeat(200_000)}1`, '{"record":'.repeat(100_000)])
      expect(await read(Buffer.from(`${text}\n`), 65_536)).toMatchObject([{ _tag: 'Log', level: 'warn' }])
  })
})
