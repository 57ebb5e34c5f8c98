import { describe, expect, it } from 'vitest'
import { type ColumnType, chooseColumnType } from '../../../connector/snapshot/store/tables'

const cases: ReadonlyArray<readonly [schema: object, type: ColumnType]> = [
  [{ type: ['null', 'integer'] }, 'BIGINT'],
  [{ type: 'number', multipleOf: 0.01 }, 'DOUBLE'],
  [{ type: ['string', 'null'], format: 'date' }, 'DATE'],
  [{ type: 'string', format: 'singer.decimal' }, 'VARCHAR'],
  [{ type: 'object', patternProperties: { '.+': {} } }, 'JSON'],
  [{ type: ['string', 'integer'] }, 'JSON'],
  [{}, 'JSON'],
  [{ enum: ['a', null, 'b'] }, 'VARCHAR'],
]

describe('chooseColumnType', () => {
  it.each(cases)('for %j is %s', (schema, type) => {
    expect(chooseColumnType(schema as never)).toBe(type)
  })
})
