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

/** Whether a record says that its row was deleted (Airbyte's change data capture or Singer's soft deletes). */
export const isTombstoneRecord = (columns: InputRecord): boolean =>
  tombstoneColumns.some((name) => columns[name] !== undefined && columns[name] !== null && columns[name] !== '')

const convertersByType: Readonly<Record<string, ValueConverter>> = {
  string: convertText,
  integer: convertInteger,
  boolean: convertBoolean,
  array: convertList,
  object: convertObject,
}

/** The attributes of a codec, each with its converter. */
const listAttributes = (
  codec: t.Any,
  specialConverters: Readonly<Record<string, ValueConverter>>,
): ReadonlyArray<readonly [string, ValueConverter]> => {
  const { properties } = toJsonSchema(codec)
  return Object.entries((properties ?? {}) as Readonly<Record<string, JsonSchema>>).map(([attribute, { type }]) => {
    const typeName = [type].flat().find((name) => name !== 'null')
    return [attribute, specialConverters[attribute] ?? convertersByType[String(typeName)] ?? E.right]
  })
}

const isBlank = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'string' && value.trim() === '')

/** An attribute and where a record has its value. */
type AttributeColumn = {
  readonly attribute: string
  readonly convert: ValueConverter
  readonly valueIn: (columns: InputRecord) => unknown
}

/** The name of a column in this record; compared without case if there is no exact match, since databases change the case of names. */
const findColumnName = (columns: InputRecord, column: string): string | undefined => {
  if (Object.hasOwn(columns, column)) return column
  const lowerCase = column.toLowerCase()
  return Object.keys(columns).find((key) => key.toLowerCase() === lowerCase)
}

/** The value of a column; a dotted name is a path into objects. */
const readColumn = (columns: InputRecord, column: string): unknown => {
  const name = findColumnName(columns, column)
  if (name !== undefined) return columns[name]
  const [head = '', ...rest] = column.split('.')
  const inner = rest.length === 0 ? undefined : readColumn(columns, head)
  return t.UnknownRecord.is(inner) ? readColumn(inner, rest.join('.')) : undefined
}

/** How many sets of column names are cached. */
const maxColumnSets = 1000

const hasSameNames = (names: ReadonlyArray<string>, others: ReadonlyArray<string>): boolean => {
  for (let index = 0; index < names.length; index += 1) if (names[index] !== others[index]) return false
  return names.length === others.length
}

/** Finds the columns of the attributes, once for all records with the same column names: mostly once a stream. */
const createColumnFinder = (
  attributes: ReadonlyArray<readonly [attribute: string, convert: ValueConverter]>,
  mapping: ColumnMapping,
): ((columns: InputRecord) => ReadonlyArray<AttributeColumn>) => {
  const cache = new Map<string, ReadonlyArray<AttributeColumn>>()
  let lastNames: ReadonlyArray<string> = []
  let lastFound: ReadonlyArray<AttributeColumn> = []

  const findColumns = (columns: InputRecord): ReadonlyArray<AttributeColumn> =>
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
    if (hasSameNames(names, lastNames)) return lastFound
    const cacheKey = JSON.stringify(names)
    if (cache.size >= maxColumnSets) cache.clear()
    lastNames = names
    lastFound = cache.get(cacheKey) ?? findColumns(columns)
    cache.set(cacheKey, lastFound)
    return lastFound
  }
}

/** Turns columns into a value of `codec`: leaves blank columns out and converts the others. The Left names every wrong attribute and its column. */
export const createRecordMapper = <A>(
  codec: t.Type<A, unknown>,
  mapping: ColumnMapping,
  specialConverters: Readonly<Record<string, ValueConverter>> = {},
) => {
  const findColumns = createColumnFinder(listAttributes(codec, specialConverters), mapping)
  return (columns: InputRecord): E.Either<string, A> => {
    const problems: Array<string> = []
    const value: Record<string, unknown> = {}
    for (const { attribute, convert, valueIn } of findColumns(columns)) {
      const original = valueIn(columns)
      if (isBlank(original)) continue
      if (convert === convertText && typeof original === 'string') {
        value[attribute] = original
        continue
      }
      const converted = convert(original)
      if (E.isRight(converted)) value[attribute] = converted.right
      else problems.push(`${attribute}${formatColumn(mapping, attribute)} ${converted.left}`)
    }
    // `is` is faster than decoding, which is needed only to say what is wrong.
    if (problems.length === 0 && codec.is(value)) return E.right(value)
    const decoded = decodeValue(codec, value)
    if (E.isLeft(decoded)) problems.push(...decoded.left.map(({ path, problem }) => `${path} ${problem}`))
    return problems.length === 0 && E.isRight(decoded) ? decoded : E.left(problems.join('; '))
  }
}

/** The column of an attribute, for messages. */
export const formatColumn = (mapping: ColumnMapping, attribute: string): string => {
  const column = mapping[attribute]
  return column === undefined ? '' : ` (column ${column})`
}

/** Fails if a mapping names a column that the stream does not have. */
export const checkMapping = (
  { name: streamName, columns }: InputStream,
  object: string,
  codec: t.Any,
  mapping: ColumnMapping,
): E.Either<Failure, void> => {
  if (O.isNone(columns)) return E.right(undefined)
  const known = new Set([...columns.value].map((name) => name.toLowerCase()))
  const missing = listAttributes(codec, {}).flatMap(([attribute]) => {
    const column = mapping[attribute]
    const topLevel = column?.split('.')[0]?.toLowerCase() ?? ''
    return column === undefined || known.has(column.toLowerCase()) || known.has(topLevel)
      ? []
      : [`mapping.${object}.${attribute} names the column ${column}`]
  })
  return missing.length === 0
    ? E.right(undefined)
    : E.left(
        configFailure(
          `${missing.join('; ')}, which the stream ${streamName} does not have. It has ${[...columns.value].join(', ')}.`,
        ),
      )
}
