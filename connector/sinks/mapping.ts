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
  tombstoneColumnNames,
} from '../cdk'
import { convertBoolean, convertInteger, convertList, convertObject, convertText, type ValueConverter } from './convert'
import type { ColumnMapping, SinkTarget } from './target'

/** The record says that its row was deleted (Airbyte's change data capture or Singer's soft deletes). */
export const isTombstoneRecord = (columns: InputRecord): boolean =>
  tombstoneColumnNames.some((name) => columns[name] !== undefined && columns[name] !== null && columns[name] !== '')

/** How the attributes of an object find their columns. */
type AttributeRules = {
  readonly mapping: ColumnMapping
  /**
   * Sent from columns with their own names even if a mapping omits them, since they identify a record or decide what
   * happens to it.
   */
  readonly essential: ReadonlySet<string>
  /** The same holds for every other attribute. */
  readonly mapByName: boolean
  /** Called once for each optional attribute whose column has another shape. */
  readonly onWrongShape: (attribute: string, problem: string) => void
}

const isMapped = (mapping: ColumnMapping): boolean => Object.values(mapping).some((column) => column != null)

/** The column of an attribute; undefined: it is not sent. If no attribute is mapped, columns are matched by name. */
const columnOf = ({ mapping, essential, mapByName }: AttributeRules, attribute: string): string | undefined => {
  const column = mapping[attribute]
  if (column === null) return undefined
  return column ?? (mapByName || essential.has(attribute) || !isMapped(mapping) ? attribute : undefined)
}

/** One is a list or an object and the other is not, so the value cannot be meant for the attribute. */
const hasOtherShape = (convert: ValueConverter, value: unknown): boolean =>
  (convert === convertList || convert === convertObject) !== (typeof value === 'object' && value !== null) ||
  (convert === convertList) !== Array.isArray(value)

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

/** An attribute and its column in a record. */
type AttributeColumn = {
  readonly attribute: string
  readonly convert: ValueConverter
  readonly valueIn: (columns: InputRecord) => unknown
}

/**
 * The name of a column in this record. Case is ignored if there is no exact match, since databases change the case of
 * names.
 */
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

/** Finds the columns of the attributes, once for all records with the same column names: usually once per stream. */
const createColumnFinder = (
  attributes: ReadonlyArray<readonly [attribute: string, convert: ValueConverter]>,
  rules: AttributeRules,
): ((columns: InputRecord) => ReadonlyArray<AttributeColumn>) => {
  const cache = new Map<string, ReadonlyArray<AttributeColumn>>()
  let lastNames: ReadonlyArray<string> = []
  let lastFound: ReadonlyArray<AttributeColumn> = []

  const findColumns = (columns: InputRecord): ReadonlyArray<AttributeColumn> =>
    attributes.flatMap(([attribute, convert]) => {
      const column = columnOf(rules, attribute)
      if (column === undefined) return []
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

/**
 * Converts columns to a value of `codec`. Omits blank columns, and optional attributes whose column has another shape.
 * The Left names every wrong attribute and its column.
 */
export const createRecordMapper = <A>(
  codec: t.Type<A, unknown>,
  rules: AttributeRules,
  specialConverters: Readonly<Record<string, ValueConverter>> = {},
) => {
  const findColumns = createColumnFinder(listAttributes(codec, specialConverters), rules)
  const { mapping, essential, onWrongShape } = rules
  const toldAttributes = new Set<string>()
  const leaveOut = (attribute: string, problem: string): void => {
    if (toldAttributes.has(attribute)) return
    toldAttributes.add(attribute)
    onWrongShape(attribute, `${attribute}${formatColumn(mapping, attribute)} ${problem}`)
  }
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
      else if (!essential.has(attribute) && hasOtherShape(convert, original)) leaveOut(attribute, converted.left)
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
  return column == null ? '' : ` (column ${column})`
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
    return column == null || known.has(column.toLowerCase()) || known.has(topLevel)
      ? []
      : [`mapping.${object}.${attribute} names the column ${column}`]
  })
  return missing.length === 0
    ? E.right(undefined)
    : E.left(
        configFailure(
          `${missing.join('; ')}, which the stream ${streamName} ` +
            `does not have. It has ${[...columns.value].join(', ')}.`,
        ),
      )
}

/** The rules of a sink for one of its streams. */
export const createAttributeRules = (
  { mapping, mapByName, warn }: Pick<SinkTarget, 'mapping' | 'mapByName' | 'warn'>,
  object: keyof SinkTarget['mapping'],
  streamName: string,
  essential: ReadonlyArray<string>,
): AttributeRules => ({
  mapping: mapping[object],
  essential: new Set(essential),
  mapByName,
  onWrongShape: (attribute, problem) =>
    warn(
      `${streamName}: ${problem}, so ${attribute} is not sent where it is not. ` +
        `Map it to another column, or set mapping.${object}.${attribute} to null.`,
    ),
})

/**
 * At the first record, warns of columns that have the name of an attribute but are not sent; a dry run also lists what
 * is sent from where.
 */
export const createMappingReporter = (
  { dryRun, warn, inform }: Pick<SinkTarget, 'dryRun' | 'warn' | 'inform'>,
  rules: AttributeRules,
  codec: t.Any,
  streamName: string,
): ((columns: InputRecord) => void) => {
  let isTold = false
  return (columns) => {
    if (isTold) return
    isTold = true
    const attributes = listAttributes(codec, {}).map(([attribute]) => attribute)
    const used = attributes.flatMap((attribute) => {
      const column = columnOf(rules, attribute)
      return column === undefined || readColumn(columns, column) === undefined ? [] : [{ attribute, column }]
    })
    const sources = new Set(used.map(({ column }) => column.toLowerCase()))
    const unsent = attributes.filter(
      (attribute) =>
        rules.mapping[attribute] === undefined &&
        columnOf(rules, attribute) === undefined &&
        findColumnName(columns, attribute) !== undefined &&
        !sources.has(attribute.toLowerCase()),
    )
    const names = used.map(({ attribute, column }) =>
      attribute === column ? attribute : `${attribute} (column ${column})`,
    )
    if (dryRun) inform(`${streamName}: sends ${names.join(', ')}.`)
    if (unsent.length > 0)
      warn(
        `${streamName}: the columns ${unsent.join(', ')} have names of attributes and are not ` +
          'sent, since the mapping does not name them. Map them, or set map_by_name to true.',
      )
  }
}
