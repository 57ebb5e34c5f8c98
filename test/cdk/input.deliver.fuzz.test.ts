import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { decodeConfiguredCatalog } from '../../connector/cdk/airbyte/catalog'
import type { Message } from '../../connector/cdk/message'
import type { Protocol } from '../../connector/cdk/protocol'
import { protocols } from '../../connector/cdk/protocols'
import { decodeForDestination, printBack } from '../support/decoded-input'
import { draws } from '../support/draws'

const catalog = decodeConfiguredCatalog('destination')({
  streams: [
    {
      stream: { name: 's', json_schema: {} },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
      destination_object_name: 'locations',
    },
  ],
})
if (E.isLeft(catalog)) throw new Error(catalog.left.message)

type Face = {
  readonly protocol: Protocol
  readonly before: ReadonlyArray<string>
  readonly record: (data: string, blank: string) => string
  readonly state: (data: string) => string
}

const faces: ReadonlyArray<readonly [string, Face]> = [
  [
    'Airbyte',
    {
      protocol: protocols.airbyte,
      before: [],
      record: (data, blank) =>
        `{"type":${blank}"RECORD","record":{"stream":"s",${blank}"data":${blank}${data},"emitted_at":5}${blank}}`,
      state: (data) =>
        `{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"s"},"stream_state":${data}}}}`,
    },
  ],
  [
    'Singer',
    {
      protocol: protocols.singer,
      before: ['{"type":"SCHEMA","stream":"s","schema":{"properties":{}},"key_properties":["id"]}'],
      record: (data, blank) => `{"type":"RECORD",${blank}"stream":"s","record":${blank}${data}${blank}}`,
      state: (data) => `{"type":"STATE","value":${data}}`,
    },
  ],
]

/** Values with what readers stumble over: huge numbers, lone surrogates, keys that repeat, depth. */
const awkward = fc.oneof(
  { weight: 4, arbitrary: fc.json({ maxDepth: 3 }) },
  fc.constantFrom('9007199254740993', '-1e400', '123456789012345678901234567890', '0.1e-999', '"\\ud800"', '"\\u0000"'),
  fc.constantFrom('{"id":1,"id":2}', '{"data":{"id":9}}', '{"record":{"data":1}}', '{"":{}}', '" \\\\\\" }"', '"}{]["'),
  fc.integer({ min: 1, max: 3000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
)
const data = fc.tuple(awkward, awkward).map(([one, other]) => `{"id":1,"value":${one}, "more":${other}}`)

type Damage = readonly [at: number, byte: number, how: string]
const damage: fc.Arbitrary<Damage> = fc.tuple(
  fc.nat(),
  fc.constantFrom(...Buffer.from('{}[]",:\\\n0a'), 0, 0x80, 0xc3, 0xff),
  fc.constantFrom('put', 'drop', 'cut'),
)
const damaged = (bytes: Uint8Array, [at, byte, how]: Damage): Uint8Array => {
  const place = at % (bytes.length + 1)
  const tail = bytes.subarray(how === 'drop' ? place + 1 : place)
  return how === 'cut'
    ? bytes.subarray(0, place)
    : Buffer.concat([bytes.subarray(0, place), ...(how === 'put' ? [Buffer.of(byte)] : []), tail])
}

const decodeAll = ({ protocol }: Face, bytes: Uint8Array, size: number) =>
  decodeForDestination(protocol, catalog.right, bytes, size)

const recordsIn = (all: ReadonlyArray<Message>): ReadonlyArray<string> =>
  all.flatMap((message) =>
    message._tag === 'Records' ? message.rows.map(({ json }) => Buffer.from(json).toString()) : [],
  )
const isState = ({ _tag }: Message): boolean => _tag === 'Checkpoint' || _tag === 'SharedCheckpoint'

describe.each(faces)('a destination reading %s', (_, face) => {
  it('passes each record and each state on byte for byte, in whatever pieces the input comes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(data, fc.constantFrom('', ' ', '\t')), { maxLength: 5 }),
        data,
        fc.integer({ min: 1, max: 5000 }),
        async (records, state, size) => {
          const lines = [...face.before, ...records.map(([text, blank]) => face.record(text, blank)), face.state(state)]
          const { messages, refused } = await decodeAll(
            face,
            Buffer.from(lines.map((line) => `${line}\n`).join('')),
            size,
          )
          expect(refused).toBeUndefined()
          expect(recordsIn(messages)).toEqual(records.map(([text]) => text))
          const states = messages.filter(isState).map((message) => printBack(face.protocol, message))
          expect(states).toEqual([expect.stringContaining(state)])
        },
      ),
      draws(300),
    )
  })

  it('skips, refuses or takes a damaged line, reports it without quoting it, and never crashes', async () => {
    const line = fc.oneof(
      { weight: 3, arbitrary: data.map((text) => face.record(text, '')) },
      data.map(face.state),
      fc.constantFrom('null', '[]', '"RECORD"', '', '{"type":"LOG","log":{"level":"INFO","message":"x"}}'),
    )
    const counts = { records: 0, states: 0, warnings: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 4 }), fc.array(damage, { maxLength: 3 }), async (lines, damages) => {
        const bytes = damages.reduce(damaged, Buffer.from(`${[...face.before, ...lines].join('\n')}\n`) as Uint8Array)
        const { messages, refused } = await decodeAll(face, bytes, 1000)
        if (refused !== undefined) {
          counts.refused += 1
          expect(refused._tag).toBe('Config')
          expect(refused.message).toMatch(/\.$/)
        }
        for (const text of recordsIn(messages)) expect(() => JSON.parse(text)).not.toThrow()
        for (const message of messages) {
          if (message._tag === 'Records') {
            counts.records += message.rows.length
            for (const { json } of message.rows) expect(Buffer.from(bytes).includes(Buffer.from(json))).toBe(true)
          }
          if (isState(message)) {
            counts.states += 1
            expect(() => JSON.parse(printBack(face.protocol, message))).not.toThrow()
          }
          if (message._tag === 'Log' && message.level === 'warn') {
            counts.warnings += 1
            expect(message.message).toMatch(/^Line \d+ of the input .{5,60}\.$/)
          }
        }
      }),
      draws(1500),
    )
    expect(counts.records).toBeGreaterThan(300)
    expect(counts.states).toBeGreaterThan(100)
    // Singer's decoder refuses what Airbyte's warns of and passes over.
    expect(counts.warnings + counts.refused).toBeGreaterThan(500)
  })
})
