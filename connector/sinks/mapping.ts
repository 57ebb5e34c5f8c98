import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import {
  configFailure,
  decodeValue,
  type Failure,
  type InputRecord,
  type InputStream,
  type JsonSchema,
  toJsonSchema,
} from '../cdk'
import { convertBoolean, convertInteger, convertList, convertObject, convertText, type ValueConverter } from './convert'
import type { ColumnMapping } from './target'

const tombstoneColumns = ['_ab_cdc_deleted_at', '_sdc_deleted_at']

/** Whether a record says that its row was deleted (Airbyte's change data capture; Singer's soft deletes). */
export const isTombstoneRecord = (columns: InputRecord): boolean =>
  tombstoneColumns.some((mark) => columns[mark] !== undefined && columns[mark] !== null && columns[mark] !== '')

const convertersByType: Readonly<Record<string, ValueConverter>> = {
  string: convertText,
  integer: convertInteger,
  boolean: convertBoolean,
  array: convertList,
  object: convertObject,
}

/** The attributes of a codec and what each makes of a column's value. */
const listAttributes = (
  codec: t.Any,
  special: Readonly<Record<string, ValueConverter>>,
): ReadonlyArray<readonly [string, ValueConverter]> => {
  const { properties } = toJsonSchema(codec)
  return Object.entries((properties ?? {}) as Readonly<Record<string, JsonSchema>>).map(([attribute, { type }]) => {
    const named = [type].flat().find((name) => name !== 'null')
    return [attribute, special[attribute] ?? convertersByType[String(named)] ?? E.right]
  })
}

const isBlank = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'string' && value.trim() === '')

/** Where a record has what an attribute is made of. */
type AttributeColumn = {
  readonly attribute: string
  readonly convert: ValueConverter
  readonly valueIn: (columns: InputRecord) => unknown
}

/** The name that a column goes by: compared without case where that finds one, since databases fold names. */
const findColumnName = (columns: InputRecord, column: string): string | undefined => {
  if (Object.hasOwn(columns, column)) return column
  const folded = column.toLowerCase()
  return Object.keys(columns).find((key) => key.toLowerCase() === folded)
}

/** The value of a column; a dotted name goes into objects. */
const readColumn = (columns: InputRecord, column: string): unknown => {
  const name = findColumnName(columns, column)
  if (name !== undefined) return columns[name]
  const [head = '', ...rest] = column.split('.')
  const inner = rest.length === 0 ? undefined : readColumn(columns, head)
  return t.UnknownRecord.is(inner) ? readColumn(inner, rest.join('.')) : undefined
}

/** How many forms of record are remembered. */
const maxColumnSets = 1000

const hasSameNames = (names: ReadonlyArray<string>, others: ReadonlyArray<string>): boolean => {
  for (let index = 0; index < names.length; index += 1) if (names[index] !== others[index]) return false
  return names.length === others.length
}

/** Finds where the attributes are, once for all records that have the same columns, as those of one stream mostly do. */
const createColumnFinder = (
  attributes: ReadonlyArray<readonly [attribute: string, convert: ValueConverter]>,
  mapping: ColumnMapping,
): ((columns: InputRecord) => ReadonlyArray<AttributeColumn>) => {
  const forms = new Map<string, ReadonlyArray<AttributeColumn>>()
  let last: ReadonlyArray<string> = []
  let places: ReadonlyArray<AttributeColumn> = []

  const placesIn = (columns: InputRecord): ReadonlyArray<AttributeColumn> =>
    attributes.flatMap(([attribute, convert]) => {
      const column = mapping[attribute] ?? attribute
      const name = findColumnName(columns, column)
      if (name !== undefined) return [{ attribute, convert, valueIn: (record: InputRecord) => record[name] }]
      return column.includes('.')
        ? [{ attribute, convert, valueIn: (record: InputRecord) => readColumn(record, column) }]
        : []
    })
  return (columns) => {
    const names = Object.keys(columns)
    if (hasSameNames(names, last)) return places
    const form = JSON.stringify(names)
    if (forms.size >= maxColumnSets) forms.clear()
    last = names
    places = forms.get(form) ?? placesIn(columns)
    forms.set(form, places)
    return places
  }
}

/** How columns become a value of `codec`: blank ones are left out, all others are made what their attribute is. A Left names every wrong attribute and its column. */
export const createRecordMapper = <A>(
  codec: t.Type<A, unknown>,
  mapping: ColumnMapping,
  special: Readonly<Record<string, ValueConverter>> = {},
) => {
  const find = createColumnFinder(listAttributes(codec, special), mapping)
  return (columns: InputRecord): E.Either<string, A> => {
    const wrong: Array<string> = []
    const value: Record<string, unknown> = {}
    for (const { attribute, convert, valueIn } of find(columns)) {
      const given = valueIn(columns)
      if (isBlank(given)) continue
      if (convert === convertText && typeof given === 'string') {
        value[attribute] = given
        continue
      }
      const converted = convert(given)
      if (E.isRight(converted)) value[attribute] = converted.right
      else wrong.push(`${attribute}${formatColumn(mapping, attribute)} ${converted.left}`)
    }
    // What is right already needs no decoding, which is slower and tells what is wrong.
    if (wrong.length === 0 && codec.is(value)) return E.right(value)
    const decoded = decodeValue(codec, value)
    if (E.isLeft(decoded)) wrong.push(...decoded.left.map(({ path, problem }) => `${path} ${problem}`))
    return wrong.length === 0 && E.isRight(decoded) ? decoded : E.left(wrong.join('; '))
  }
}

const formatColumn = (mapping: ColumnMapping, attribute: string): string => {
  const column = mapping[attribute]
  return column === undefined ? '' : ` (column ${column})`
}

/** Fails where a mapping names a column that the stream does not have. */
export const checkMapping = (
  inlet: InputStream,
  object: string,
  codec: t.Any,
  mapping: ColumnMapping,
): E.Either<Failure, void> => {
  const { columns } = inlet
  if (O.isNone(columns)) return E.right(undefined)
  const known = new Set([...columns.value].map((name) => name.toLowerCase()))
  const missing = listAttributes(codec, {}).flatMap(([attribute]) => {
    const column = mapping[attribute]
    const head = column?.split('.')[0]?.toLowerCase() ?? ''
    return column === undefined || known.has(column.toLowerCase()) || known.has(head)
      ? []
      : [`mapping.${object}.${attribute} names the column ${column}`]
  })
  return missing.length === 0
    ? E.right(undefined)
    : E.left(
        configFailure(
          `${missing.join('; ')}, which the stream ${inlet.name} does not have. It has ${[...columns.value].join(', ')}.`,
        ),
      )
}
