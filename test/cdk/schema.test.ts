import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import { DeletedReview, Review } from '../../connector/api/model/review'
import { annotate, toJsonSchema } from '../../connector/cdk/schema'
import { destinationFormat } from '../../connector/cli/feedback-destination'
import { sourceFormat } from '../../connector/config/source'
import { valueFor } from '../support/arbitrary'
import { draws } from '../support/draws'

const validator = (codec: t.Any) => {
  const ajv = new Ajv({ strict: false, allErrors: false })
  addFormats(ajv)
  return ajv.compile(toJsonSchema(codec))
}

/** A member counts as left out: null or an empty text, as in forms, or a group that is turned off. */
const isLeftOut = (member: unknown): boolean =>
  member === '' ||
  member === null ||
  typeof member === 'boolean' ||
  (typeof member === 'object' && member !== null && 'enabled' in member && member.enabled === false)

/** A config without the members that count as left out, whatever these contain. */
const withoutLeftOut = (value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value)
          .filter(([, member]) => !isLeftOut(member))
          .map(([name, member]) => [name, withoutLeftOut(member)]),
      )

describe('toJsonSchema', () => {
  it.each([
    ['string', t.string, { type: 'string' }],
    ['nullable', t.union([t.number, t.null]), { type: ['null', 'number'] }],
    ['list', t.readonlyArray(t.boolean), { type: 'array', items: { type: 'boolean' } }],
    ['words', t.keyof({ a: null, b: null }), { type: 'string', enum: ['a', 'b'] }],
    ['annotated', annotate({ description: 'x' })(t.string), { type: 'string', description: 'x' }],
    [
      'object',
      t.intersection([t.type({ a: t.string }), t.partial({ b: t.number })]),
      {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'number' } },
        required: ['a'],
        additionalProperties: true,
      },
    ],
  ])('describes %s', (_, codec, schema) => {
    expect(toJsonSchema(codec)).toEqual(schema)
  })

  it('throws for a codec that has no schema', () => {
    expect(() => toJsonSchema(new t.Type('Odd', t.string.is, t.string.validate, t.identity))).toThrow('Odd')
    expect(() => toJsonSchema(t.union([t.string, t.number]))).toThrow('union')
  })

  it.each([
    ['Review', Review as t.Mixed],
    ['DeletedReview', DeletedReview as t.Mixed],
  ])('accepts exactly what the codec %s accepts', (_, codec) => {
    const validate = validator(codec)
    let accepted = 0
    fc.assert(
      fc.property(valueFor(toJsonSchema(codec)), (value) => {
        const right = codec.decode(value)._tag === 'Right'
        accepted += right ? 1 : 0
        expect(validate(value), JSON.stringify(validate.errors)).toBe(right)
      }),
      draws(500),
    )
    expect(accepted).toBeGreaterThan(50)
    expect(accepted).toBeLessThan(500)
  })

  it.each([
    ['SourceConfig', sourceFormat.codec as t.Mixed],
    ['DestinationConfig', destinationFormat.codec as t.Mixed],
  ])('accepts whatever the codec %s accepts; forms need no fields of a group that may be left out', (_, codec) => {
    const validate = validator(codec)
    let accepted = 0
    fc.assert(
      fc.property(valueFor(toJsonSchema(codec)), (value) => {
        if (codec.decode(value)._tag === 'Left') return
        accepted += 1
        expect(validate(value) || validate(withoutLeftOut(value)), JSON.stringify(validate.errors)).toBe(true)
      }),
      draws(500),
    )
    expect(accepted).toBeGreaterThan(50)
    expect(accepted).toBeLessThan(500)
  })
})
