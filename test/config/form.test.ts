import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { JsonSchema } from '../../connector/cdk/schema'
import { destinationFormat } from '../../connector/cli/feedback-destination'
import { sourceFormat } from '../../connector/config/source'
import { schemaAlternatives, schemaProperties, walkSchema } from '../support/schema-walk'

// A model of the form that a platform draws from a spec. It opens every group, also those that nobody touches, fills
// constants and defaults into them, and cannot be submitted while a required child of any group has no value.

type Form = Readonly<Record<string, unknown>>
const isForm = (value: unknown): value is Form => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The alternative with the constants that the user has chosen; by default the first. */
const chosenAlternative = (schema: JsonSchema, given: Form): JsonSchema => {
  const alternatives = schemaAlternatives(schema)
  const chosen = alternatives.find((one) =>
    Object.entries(schemaProperties(one)).some(([key, inner]) => 'const' in inner && given[key] === inner.const),
  )
  return chosen ?? alternatives[0] ?? schema
}

/** What the form holds once a person has typed `given`; `empty`: what it puts where nobody typed anything. */
const fillForm = (schema: JsonSchema, given: Form, empty: unknown): Form =>
  Object.fromEntries(
    Object.entries(schemaProperties(chosenAlternative(schema, given))).flatMap(([key, inner]) => {
      if (inner.type === 'object') return [[key, fillForm(inner, isForm(given[key]) ? given[key] : {}, empty)]]
      const value = given[key] ?? inner.const ?? inner.default ?? (inner.type === 'string' ? empty : undefined)
      return value === undefined ? [] : [[key, value]]
    }),
  )

/** The required children without a value, by path, in every group. */
const missingChildren = (schema: JsonSchema, form: Form, path = ''): ReadonlyArray<string> => {
  const group = chosenAlternative(schema, form)
  const required = (group.required ?? []) as ReadonlyArray<string>
  return [
    ...required.filter((key) => [undefined, null, ''].includes(form[key] as never)).map((key) => path + key),
    ...Object.entries(schemaProperties(group)).flatMap(([key, inner]) =>
      isForm(form[key]) ? missingChildren(inner, form[key], `${path}${key}.`) : [],
    ),
  ]
}

const token = { auth_type: 'access_token', access_token: 'a' }
const application = {
  auth_type: 'application',
  application_id: 'a',
  application_secret: 's',
  token_url: 'https://feedback.example.com/token',
}
const address = { base_url: 'https://feedback.example.com' }
const formats = [
  ['source', sourceFormat, { ...address, start_date: '2024-01-01T00:00:00Z' }],
  ['destination', destinationFormat, address],
] as const
const cases = formats.flatMap(([name, format, given]) =>
  [token, application].flatMap((credentials) =>
    [undefined, null, ''].map(
      (empty) => [name, credentials.auth_type, empty, format, { ...given, credentials }] as const,
    ),
  ),
)

describe.each(cases)(
  'the form of the %s with %s, its empty fields as %j',
  (_name, _kind, empty, { spec, decode }, given) => {
    const form = fillForm(spec, given, empty)

    it('can be submitted with only the settings that everyone must give', () => {
      expect(missingChildren(spec, form)).toEqual([])
    })

    it('is read as if the groups that nobody touched were not there', () => {
      const alone: E.Either<unknown, unknown> = decode(given)
      expect(E.isRight(alone)).toBe(true)
      expect(decode(form)).toEqual(alone)
    })
  },
)

describe.each(formats)('the spec of the %s', (_, { spec }) => {
  it('requires nothing and has no default inside a group that may be left out', () => {
    const required = new Set(spec.required as ReadonlyArray<string>)
    const groups = Object.entries(schemaProperties(spec)).flatMap(([key, schema]) => {
      if (schema.type !== 'object') return []
      if (!required.has(key)) return [{ path: key, schema }]
      return walkSchema(schema).flatMap(({ path, schema: inner }) =>
        inner.type === 'object' ? [{ path: key + path, schema: inner }] : [],
      )
    })
    expect(groups.length).toBeGreaterThan(3)
    for (const { path, schema } of groups)
      for (const inner of [{ path: '', schema }, ...walkSchema(schema)])
        expect([path + inner.path, inner.schema.required, inner.schema.default]).toEqual([
          path + inner.path,
          undefined,
          undefined,
        ])
  })
})

describe('a group that may be left out', () => {
  const given = { ...address, credentials: token, start_date: '2024-01-01T00:00:00Z' }
  const decodeWith = (more: object) => sourceFormat.decode({ ...given, ...more })

  it.each([
    { lookups: { sources: { method: 'GET' }, categories: { method: 'GET', records_path: '' } }, partition: {} },
    { lookups: { sources: { path: '', primary_key: null } }, partition: { index: null, count: '' } },
    { lookups: null, partition: null, privacy: null, entities: { from_reviews: null } },
    { lookups: '', privacy: {}, entities: { person_ids: [] } },
    { lookups: { sources: false, locations: { enabled: false, path: '/mine' } } },
    { lookups: { sources: { enabled: false, method: 'POST' }, locations: { method: 'GET', paging: {} } } },
  ])('counts as left out where it holds only defaults and nothing: %j', (more) => {
    expect(decodeWith(more)).toEqual(sourceFormat.decode(given))
  })

  it('takes true for a group that is enabled, and reads the same', () => {
    const bare = decodeWith({ lookups: { sources: true, locations: true } })
    expect(bare).toMatchObject(
      E.right({
        unknownKeys: [],
        config: { lookups: { sources: { method: 'GET', records_path: '' }, locations: { records_path: 'data' } } },
      }),
    )
    expect(decodeWith({ lookups: { sources: { enabled: true }, locations: { enabled: true } } })).toEqual(bare)
    expect(decodeWith({ lookups: '{"sources":true,"locations":"true"}' })).toEqual(bare)
  })

  it.each([
    [{ lookups: { sources: { method: 'POST' } } }, 'lookups.sources.path is missing'],
    [{ lookups: { categories: { path: '/categories' } } }, 'lookups.categories.primary_key is missing'],
    [{ lookups: { categories: { pth: '/categories' } } }, 'lookups.categories.path is missing'],
    [{ lookups: { categories: true } }, 'lookups.categories is a boolean, expected object'],
    [{ lookups: { locations: { method: 'POST' } } }, 'lookups.locations.path is missing'],
    [{ lookups: { locations: { enabled: 'yes' } } }, 'lookups.locations.enabled must be boolean'],
    [
      { lookups: { locations: { enabled: true, paging: { size_param: 'size' } } } },
      'lookups.locations.paging.page_param is missing',
    ],
    [{ partition: { index: 0 } }, 'partition.count is missing'],
    [{ partition: { count: 4 } }, 'partition.index is missing'],
  ])('is refused by the path of the missing key where it holds more: %j', (more, expected) => {
    const result = decodeWith(more)
    expect(E.isLeft(result) && result.left.message).toContain(expected)
  })
})
