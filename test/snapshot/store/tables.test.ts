import { describe, expect, it } from 'vitest'
import { type ColumnType, chooseColumnType } from '../../../connector/snapshot/store/tables'

const root = {
  definitions: {
    time: { type: ['null', 'string'], format: 'date-time' },
    'a/b': { $ref: '#/definitions/time' },
    circle: { $ref: '#/definitions/circle' },
  },
}
const cases: ReadonlyArray<readonly [schema: object, type: ColumnType]> = [
  [{ type: ['null', 'integer'] }, 'BIGINT'],
  [{ type: 'number', multipleOf: 0.01 }, 'DOUBLE'],
  [{ type: 'number', airbyte_type: 'integer' }, 'BIGINT'],
  [{ type: 'number', airbyte_type: 'big_integer' }, 'JSON'],
  [{ type: ['string', 'null'], format: 'date' }, 'DATE'],
  [{ type: 'string', format: 'singer.decimal' }, 'VARCHAR'],
  [{ type: 'object', patternProperties: { '.+': {} } }, 'JSON'],
  [{ type: ['string', 'integer'] }, 'JSON'],
  [{}, 'JSON'],
  [{ anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] }, 'TIMESTAMPTZ'],
  [{ oneOf: [{ type: 'boolean' }, { type: 'null' }] }, 'BOOLEAN'],
  [{ anyOf: [{ type: 'string', format: 'date-time' }, { type: ['null', 'string'] }] }, 'VARCHAR'],
  [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, 'JSON'],
  [{ allOf: [{ type: 'string' }, { format: 'date' }] }, 'DATE'],
  [{ $ref: '#/definitions/time' }, 'TIMESTAMPTZ'],
  [{ $ref: '#/definitions/a~1b' }, 'TIMESTAMPTZ'],
  [{ $ref: '#/definitions/circle' }, 'JSON'],
  [{ $ref: '#/definitions/none' }, 'JSON'],
  [{ $ref: 'https://example.com/schema' }, 'JSON'],
  [{ enum: ['a', null, 'b'] }, 'VARCHAR'],
  [{ const: 5 }, 'BIGINT'],
  [{ enum: [1, 'a'] }, 'JSON'],
]

describe('chooseColumnType', () => {
  it.each(cases)('for %j is %s', (schema, type) => {
    expect(chooseColumnType(schema as never, root)).toBe(type)
  })
})
