import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { createExtractor, fieldText, hasField, rawFieldText } from '../../../connector/export/cut/extract'
import { createOffsetReader, type FieldOffset } from '../../../connector/export/cut/offsets'
import { type CutOptions, createCutter } from '../../../connector/export/cut/page'
import type { CutRecord } from '../../../connector/export/cut/record'
import type { FieldSpec, FieldTree } from '../../../connector/export/cut/shape'
import { byteMutation, mutateBytes } from '../../support/byte-mutation'
import { draws } from '../../support/draws'
import { expectCut, reviewJson, reviewOptions, reviewPage } from '../../support/review-page'
import { printNode, reviewNode } from '../../support/review-text'

const fields = {
  modifiedTime: 'value',
  mentionTime: 'value',
  location: { id: 'value', name: 'value', mood: 'value' },
  provider: { name: 'value', npi: 'value' },
  contents: [{ id: 'value', mood: 'value', response: 'value', sentiments: [{ id: 'value', score: 'value' }] }],
  brand: [{ name: 'value' }],
  engagements: [{ engagement: 'value', engagementTime: 'value' }],
} as const

const readOffsets = createOffsetReader(fields)

const createFieldCutter = (options: Partial<CutOptions> = {}) => createCutter({ ...reviewOptions, ...options, fields })
const cutWithOffsets = createFieldCutter()

const cutOne = (members: string): CutRecord => {
  const [row] = expectCut(cutWithOffsets(reviewPage(reviewJson(members)))).rows
  if (row === undefined) throw new Error('no row')
  return row
}

const extractObject = createExtractor()

const extractContents = (row: CutRecord): ReadonlyArray<string> =>
  (readOffsets(row).contents?.elements ?? []).map((element) =>
    Buffer.from(
      extractObject(row.json, element, [element.members.sentiments, element.members.id], '"a":1').json,
    ).toString(),
  )

type Parsed = Readonly<Record<string, unknown>> | null

/** What a parser expects of an extracted element. */
const withoutExcluded = (element: Parsed): unknown => {
  const { id: _, sentiments: __, ...rest } = element ?? {}
  return { ...rest, a: 1 }
}

type AnyOffset = FieldOffset & {
  readonly members?: Readonly<Record<string, AnyOffset | undefined>>
  readonly elements?: ReadonlyArray<AnyOffset>
}

const parseAt = (json: Buffer, { from, to }: FieldOffset): unknown => JSON.parse(json.toString('utf8', from, to))

/** Expects exactly the offsets of the fields that a value has. */
const expectOffsets = (json: Buffer, found: AnyOffset['members'], wanted: FieldTree, value: unknown): void => {
  const holder = (value ?? {}) as Readonly<Record<string, unknown>>
  for (const [name, want] of Object.entries(wanted)) {
    const place = found?.[name]
    expect([name, place !== undefined]).toEqual([name, Object.hasOwn(holder, name)])
    if (place === undefined) continue
    expect(JSON.parse(`{${json.toString('utf8', place.key, place.to)}}`)).toEqual({ [name]: holder[name] })
    expectOffset(json, place, want, holder[name])
  }
}

const expectOffset = (json: Buffer, place: AnyOffset, want: FieldSpec, value: unknown): void => {
  expect(parseAt(json, place)).toEqual(value)
  if (want === 'value') return
  if (!Array.isArray(want)) {
    expectOffsets(json, place.members, want as FieldTree, value)
    return
  }
  const elements = place.elements ?? []
  const texts = elements.map(({ from, to }) => json.toString('utf8', from, to))
  expect(JSON.parse(`[${texts.join(',')}]`)).toEqual(Array.isArray(value) ? value : [])
  elements.forEach((element, i) => {
    expect(element.key).toBe(element.from)
    expectOffsets(json, element.members, want[0] as FieldTree, (value as ReadonlyArray<unknown>)[i])
  })
}

const expectRecordOffsets = (row: CutRecord): void => {
  const json = Buffer.from(row.json)
  expectOffsets(json, readOffsets(row) as unknown as AnyOffset['members'], fields, JSON.parse(json.toString()))
}

describe('createOffsetReader', () => {
  it('finds members wherever they stand, and reads null as an empty object', () => {
    const row = cutOne(
      '"x":{"id":"}"}, "location" : {"name":"a\\"ü", "id":9007199254740993} ,"contents":null,"rating":1',
    )
    const { location, contents, mentionTime } = readOffsets(row)
    expect(hasField(row.json, mentionTime)).toBe(false)
    expect(hasField(row.json, contents)).toBe(false)
    expect(contents?.elements).toEqual([])
    expect(location === undefined ? '' : rawFieldText(row.json, location)).toBe(
      Buffer.from('{"name":"a\\"ü", "id":9007199254740993}').toString('latin1'),
    )
    const { id, name } = location?.members ?? {}
    expect([id, name].map((at) => at && fieldText(row.json, at))).toEqual(['9007199254740993', 'a"ü'])
  })

  it('forgets what it found in a list that leaves as null', () => {
    const { contents } = readOffsets(cutOne('"contents":[{"id":5,"sentiments":[]},null,{}]'))
    expect(contents?.elements).toEqual([])
  })

  it('refuses a record whose cutter noted no offsets', () => {
    const [row] = expectCut(createCutter(reviewOptions)(reviewPage(reviewJson()))).rows
    expect(() => row && readOffsets(row)).toThrow('noted')
  })

  it.each([
    ['a renamed attribute', '"engagement":[{"engagement":"a"}],"brand":[{"name":"b"}]'],
    ['undeclared ones', '"x":[1,{}],"location":{"mood":1,"id":2},"y":2,"contents":[{"mood":1}]'],
    [
      'a wrong value',
      '"location":{"id":{"a":[1]},"name":"n"},"contents":[{"id":"x","sentiments":[1,{"id":2}]},{"id":3}]',
    ],
    ['half a surrogate pair', '"location":{"name":"\\ud83d\\ud83d","id":1},"brand":[{"name":"\\ude00"}]'],
    ['a number in another form', '"contents":[{"id":1.0,"sentiments":[{"id":12e2,"score":1}]},{"id":4}]'],
    ['a time of another zone', '"engagements":[{"engagementTime":"2024-05-01T10:11:12+02:00","engagement":"e"}]'],
    ['a repeated key', '"location":{"id":1,"id":2,"name":"n"},"contents":[{"id":1},{"id":2}]'],
    ['lines', '\n "location":\n{"id" :1,\r\n\t"x":[1,\n2]},\n"contents":[ {"id":1}\n,\n{"id":2} ]\n'],
  ])('counts from the first byte of what leaves, with %s', (_, members) => {
    expectRecordOffsets(cutOne(members))
  })

  it('grows with the page', () => {
    const contents = Array.from({ length: 500 }, (_, id) => `{"id":${id}}`).join(',')
    const { rows } = expectCut(
      cutWithOffsets(reviewPage(...Array.from({ length: 20 }, () => reviewJson(`"contents":[${contents}]`)))),
    )
    expect(rows).toHaveLength(20)
    rows.forEach(expectRecordOffsets)
  })

  it('agrees with a parser on every review that was cut, whatever was done to it', () => {
    const hidden = {
      'contents.response': () => '"hid\u00e4d"',
      'location.name': 'drop',
      brand: () => 'hidden',
    } as const
    const cutters = [
      cutWithOffsets,
      createFieldCutter({ undeclared: 'drop' }),
      createFieldCutter({ actions: { ...hidden, 'contents.sentiments': 'drop' } }),
      createFieldCutter({ actions: { ...hidden, provider: 'drop', location: () => 'hidden' }, undeclared: 'drop' }),
    ]
    let recordCount = 0
    fc.assert(
      fc.property(
        fc.array(reviewNode, { maxLength: 3 }),
        fc.array(byteMutation, { maxLength: 1 }),
        fc.constantFrom(...cutters),
        (records, mutations, cut) => {
          const answer = cut(mutations.reduce(mutateBytes, reviewPage(...records.map(printNode))))
          if (E.isLeft(answer)) return
          answer.right.rows.forEach(expectRecordOffsets)
          recordCount += answer.right.rows.length
        },
      ),
      draws(1000),
    )
    expect(recordCount).toBeGreaterThan(500)
  })
})

describe('an extracted object', () => {
  it.each([
    ['{"id":1,"response":"x"}', '{"response":"x","a":1}'],
    ['{"response":"x","id":1}', '{"response":"x","a":1}'],
    ['{"response":"x" , "id":1 }', '{"response":"x" ,"a":1}'],
    ['{ "id":1 }', '{"a":1}'],
    [
      '{"sentiments":[{"id":"}"}],"big":9223372036854775807,"id":1,"n":1.50}',
      '{"big":9223372036854775807,"n":1.50,"a":1}',
    ],
    ['{}', '{"a":1}'],
  ])('%s', (element, expected) => {
    expect(extractContents(cutOne(`"contents":[${element}]`))).toEqual([expected])
  })

  it('may be of any length', () => {
    const response = 'x'.repeat(100_000)
    expect(extractContents(cutOne(`"contents":[{"id":1,"response":"${response}"},{"id":2}]`))).toEqual([
      `{"response":"${response}","a":1}`,
      '{"a":1}',
    ])
  })

  it('agrees with a parser on every review that was cut', () => {
    let elementCount = 0
    fc.assert(
      fc.property(fc.array(reviewNode, { maxLength: 3 }), (records) => {
        const answer = cutWithOffsets(reviewPage(...records.map(printNode)))
        if (E.isLeft(answer)) return
        for (const row of answer.right.rows) {
          const { contents } = JSON.parse(Buffer.from(row.json).toString()) as { contents?: Parsed[] | null }
          elementCount += contents?.length ?? 0
          expect(extractContents(row).map((text) => JSON.parse(text))).toEqual((contents ?? []).map(withoutExcluded))
        }
      }),
      draws(500),
    )
    expect(elementCount).toBeGreaterThan(300)
  })
})
