import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { decodeDestinationCatalog } from '../../../connector/cdk/airbyte/catalog'
import { decodeAirbyte } from '../../../connector/cdk/airbyte/decode'
import { parseExactJson } from '../../../connector/cdk/json/exact'
import { decodeSinger } from '../../../connector/cdk/singer/decode'
import type { InputFeed, InputMessage } from '../../../connector/cdk/write/input'

const seed = 20261121

const catalog = decodeDestinationCatalog({
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
  readonly read: (input: AsyncIterable<Uint8Array>) => InputFeed
  readonly before: ReadonlyArray<string>
  readonly record: (data: string, blank: string) => string
  readonly state: (data: string) => string
}

const faces: ReadonlyArray<readonly [string, Face]> = [
  [
    'Airbyte',
    {
      read: decodeAirbyte(catalog.right, parseExactJson),
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
      read: decodeSinger(parseExactJson),
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

async function* inChunks(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** What arrives, and why the rest was refused, if it was; whatever is thrown is a crash. */
const arrive = async ({ read }: Face, bytes: Uint8Array, size: number) => {
  const all: InputMessage[] = []
  for await (const told of read(inChunks(bytes, size))) {
    if (E.isLeft(told)) return { all, refused: told.left }
    all.push(...told.right)
  }
  return { all, refused: undefined }
}
const recordsIn = (all: ReadonlyArray<InputMessage>): ReadonlyArray<string> =>
  all.flatMap((arrival) => (arrival._tag === 'Record' ? [Buffer.from(arrival.json()).toString()] : []))

describe.each(faces)(`what a destination reads of %s (seed ${seed})`, (_, face) => {
  it('hands each record on byte for byte, and each state, in whatever pieces they come', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(data, fc.constantFrom('', ' ', '\t')), { maxLength: 5 }),
        data,
        fc.integer({ min: 1, max: 5000 }),
        async (records, state, size) => {
          const lines = [...face.before, ...records.map(([text, blank]) => face.record(text, blank)), face.state(state)]
          const { all, refused } = await arrive(face, Buffer.from(lines.map((line) => `${line}\n`).join('')), size)
          expect(refused).toBeUndefined()
          expect(recordsIn(all)).toEqual(records.map(([text]) => text))
          const [answer] = all.flatMap((one) =>
            one._tag === 'State' ? [one.answer({ accepted: 1, rejected: 0 })] : [],
          )
          expect(answer).toContain(state)
        },
      ),
      { seed, numRuns: 300 },
    )
  })

  it('passes over, refuses or takes what is damaged, says so without quoting it, and never crashes', async () => {
    const line = fc.oneof(
      { weight: 3, arbitrary: data.map((text) => face.record(text, '')) },
      data.map(face.state),
      fc.constantFrom('null', '[]', '"RECORD"', '', '{"type":"LOG","log":{"level":"INFO","message":"x"}}'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 4 }), fc.array(damage, { maxLength: 3 }), async (lines, wounds) => {
        const bytes = wounds.reduce(damaged, Buffer.from(`${[...face.before, ...lines].join('\n')}\n`) as Uint8Array)
        const { all, refused } = await arrive(face, bytes, 1000)
        if (refused !== undefined) {
          expect(refused._tag).toBe('Config')
          expect(refused.message).toMatch(/\.$/)
        }
        for (const arrival of all) {
          if (arrival._tag === 'Record') {
            const json = Buffer.from(arrival.json())
            expect(Buffer.from(bytes).includes(json)).toBe(true)
            expect(() => JSON.parse(json.toString())).not.toThrow()
          }
          if (arrival._tag === 'State')
            expect(() => JSON.parse(arrival.answer({ accepted: 1, rejected: 0 }))).not.toThrow()
          if (arrival._tag === 'Skipped') expect(arrival.message).toMatch(/^Line \d+ of the input .{5,60}\.$/)
        }
      }),
      { seed, numRuns: 1500 },
    )
  })
})
