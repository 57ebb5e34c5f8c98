import * as fc from 'fast-check'
import { Review } from '../../connector/api/model/review'
import { type JsonSchema, toJsonSchema } from '../../connector/cdk/schema'

/** JSON text with its value, so that the expectation needs no parser. */
export type JsonNode =
  | { readonly tag: 'token'; readonly text: string; readonly value: unknown }
  | { readonly tag: 'array'; readonly items: ReadonlyArray<JsonNode>; readonly gap: string }
  | { readonly tag: 'object'; readonly members: ReadonlyArray<JsonMember>; readonly gap: string }
export type JsonMember = readonly [key: { readonly text: string; readonly value: string }, value: JsonNode]

/** A number unchanged, whatever its length; -0 becomes 0. */
export const toExactNumber = (text: string): number | bigint =>
  /^-?\d+$/.test(text) && !Number.isSafeInteger(Number(text))
    ? BigInt(text)
    : Number(text) === 0 && /^[^e]*[1-9]/i.test(text)
      ? Number.NaN
      : Number(text) + 0

const token = (text: string, value: unknown = JSON.parse(text)): JsonNode => ({ tag: 'token', text, value })

export const printNode = (node: JsonNode): string => {
  switch (node.tag) {
    case 'token':
      return node.text
    case 'array':
      return `[${node.gap}${node.items.map(printNode).join(`${node.gap},${node.gap}`)}${node.gap}]`
    case 'object':
      return `{${node.gap}${node.members
        .map(([key, value]) => `${key.text}${node.gap}:${node.gap}${printNode(value)}`)
        .join(`${node.gap},${node.gap}`)}${node.gap}}`
  }
}

/** Times in input and output form; undefined if the input is no time. */
export const times: ReadonlyArray<readonly [string, string | undefined]> = [
  ['2024-05-01T10:11:12.345Z', '2024-05-01T10:11:12.345Z'],
  ['2024-02-29T23:59:59.999Z', '2024-02-29T23:59:59.999Z'],
  ['2024-05-01T10:11:12Z', '2024-05-01T10:11:12Z'],
  ['2024-05-01T10:11:12.123456Z', '2024-05-01T10:11:12.123456Z'],
  ['2024-05-01T10:11:12.345+02:00', '2024-05-01T08:11:12.345Z'],
  ['2024-05-01T10:11:12.123456-0530', '2024-05-01T15:41:12.123456Z'],
  ['2024-05-01T10:11:12', '2024-05-01T10:11:12.000Z'],
  ['2024-05-01T10:11Z', '2024-05-01T10:11:00.000Z'],
  ['2024-05-01T24:00:00.000Z', '2024-05-02T00:00:00.000Z'],
  ['0099-05-01T10:11:12.345Z', '0099-05-01T10:11:12.345Z'],
  ['2023-02-29T10:11:12.345Z', undefined],
  ['2024-05-01T10:61:12.345Z', undefined],
  ['2024-13-01T10:11:12.345Z', undefined],
  ['2024-05-01', undefined],
  ['yesterday', undefined],
  ['', undefined],
]

const integers: ReadonlyArray<readonly [string, unknown]> = [
  ['0', 0],
  ['-7', -7],
  ['1.0', 1],
  ['12e2', 1200],
  ['9007199254740991', 9007199254740991],
  ['9007199254740993', 9007199254740993n],
  ['9223372036854775807', 9223372036854775807n],
  ['-9223372036854775808', -9223372036854775808n],
  ['9223372036854775808', 9223372036854775808n],
  ['123456789012345678901234567890', 123456789012345678901234567890n],
]

const strings: ReadonlyArray<readonly [string, string]> = [
  ['"\\u0041\\/\\n\\"\\\\"', 'A/\n"\\'],
  ['"\\ud83d\\ude00 \\uD83D\\uDE00"', '😀 😀'],
  ['"cut \\ud83d"', 'cut \ufffd'],
  ['"\\ude00\\ud83d\\ud83d\\ude00"', '\ufffd\ufffd😀'],
  ['"größer als ein Satz 😀 und noch etwas länger"', 'größer als ein Satz 😀 und noch etwas länger'],
  ['"2024-05-01T10:11:12.345+02:00"', '2024-05-01T10:11:12.345+02:00'],
]

const gap = fc.constantFrom('', '', '', '', ' ', '\t ', '\n', '\r\n    ')
const tokenFrom = (list: ReadonlyArray<readonly [string, unknown]>) =>
  fc.constantFrom(...list).map(([text, value]) => token(text, value))
const timeNode = fc.constantFrom(...times).map(([text]) => token(JSON.stringify(text)))
const stringNode = fc.oneof(
  // U+FFFD is used only for half a surrogate pair, so that its paths are known.
  fc.string({ unit: 'grapheme' }).map((value) => token(JSON.stringify(value.replaceAll('\ufffd', 'x')))),
  tokenFrom(strings),
)
const doubleNode = fc.oneof(
  fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map((value) => token(JSON.stringify(value))),
  fc
    .constantFrom('4.5', '-0.0', '1E-7', '0e5', '1e400', '-1e999', '1e-400', '-0e-999')
    .map((value) => token(value, toExactNumber(value))),
)
const scalarNode = fc.oneof(
  stringNode,
  doubleNode,
  timeNode,
  tokenFrom(integers),
  fc.constantFrom('null', 'true', 'false').map((v) => token(v)),
)

const keys = ['mood', 'id', 'name', 'engagement', 'unknown_attributes', '😀', 'rating'] as const
const anyKey = fc.oneof(
  fc.constantFrom(...keys).map((value) => ({ text: JSON.stringify(value), value: value as string })),
  fc.constant({ text: '"m\\u006fod"', value: 'mood' }),
)

const anyNode = fc.letrec<{ node: JsonNode }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    scalarNode,
    fc.record({ tag: fc.constant('array' as const), items: fc.array(tie('node'), { maxLength: 3 }), gap }),
    fc.record({
      tag: fc.constant('object' as const),
      members: fc.array(fc.tuple(anyKey, tie('node')), { maxLength: 4 }),
      gap,
    }),
  ),
})).node

const memberKey = (name: string) => ({ text: JSON.stringify(name), value: name })

/** Values that a schema describes; some have another value, an unknown attribute or a repeated one. */
const nodeFromSchema = (schema: JsonSchema): fc.Arbitrary<JsonNode> => {
  const type = [schema.type].flat().find((one) => one !== 'null')
  switch (type) {
    case 'integer':
      return tokenFrom(integers)
    case 'number':
      return doubleNode
    case 'string':
      return schema.format === 'date-time' ? timeNode : stringNode
    case 'array':
      return fc.record({
        tag: fc.constant('array' as const),
        items: fc.array(nullableNode(schema.items as JsonSchema), { maxLength: 3 }),
        gap,
      })
    case 'object':
      return objectOf((schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>)
    default:
      return anyNode
  }
}

const nullableNode = (schema: JsonSchema): fc.Arbitrary<JsonNode> =>
  fc.oneof(
    { weight: 40, arbitrary: nodeFromSchema(schema) },
    { weight: 1, arbitrary: anyNode },
    { weight: 1, arbitrary: fc.constant(token('null')) },
  )

const objectOf = (properties: Readonly<Record<string, JsonSchema>>): fc.Arbitrary<JsonNode> => {
  const members = Object.entries(properties).map(([name, schema]) =>
    fc.tuple(fc.constant(memberKey(name)), nullableNode(schema)),
  )
  if (members.length === 0) return anyNode
  return fc
    .tuple(
      fc.tuple(...members).chain((all) => fc.oneof(fc.constant(all), fc.shuffledSubarray(all))),
      fc.oneof(
        { weight: 8, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(fc.tuple(anyKey, anyNode), { maxLength: 2 }) },
      ),
      fc.nat(),
      gap,
    )
    .map(([own, extra, at, space]) => {
      const all = [...own]
      all.splice(at % (own.length + 1), 0, ...extra)
      return { tag: 'object' as const, members: all, gap: space }
    })
}

const properties = toJsonSchema(Review).properties as Readonly<Record<string, JsonSchema>>
const { id: _id, modifiedTime: _time, ...others } = properties

/** A review as JSON text, mostly valid, with possible errors anywhere in it. */
export const reviewNode: fc.Arbitrary<JsonNode> = fc
  .tuple(
    objectOf(others),
    fc.oneof({ weight: 50, arbitrary: tokenFrom(integers.slice(4, 8)) }, { weight: 1, arbitrary: anyNode }),
    fc.oneof(
      { weight: 50, arbitrary: fc.constantFrom(...times.slice(0, 10)).map(([t]) => token(JSON.stringify(t))) },
      { weight: 1, arbitrary: anyNode },
    ),
    fc.boolean(),
  )
  .map(([node, id, modified, first]): JsonNode => {
    if (node.tag !== 'object') return node
    const own: ReadonlyArray<JsonMember> = [
      [memberKey('id'), id],
      [memberKey('modifiedTime'), modified],
    ]
    return { ...node, members: first ? [...own, ...node.members] : [...node.members, ...own] }
  })
