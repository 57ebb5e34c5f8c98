import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../cdk/failure'
import { decode } from '../cdk/json'
import { type JsonSchema, toJsonSchema } from '../cdk/schema'
import type { Columns, Inlet } from '../cdk/sink'
import { type Convert, toBoolean, toInteger, toList, toObject, toText } from './convert'
import type { Mapping } from './target'

const converters: Readonly<Record<string, Convert>> = {
  string: toText,
  integer: toInteger,
  boolean: toBoolean,
  array: toList,
  object: toObject,
}

/** The attributes of a codec and what each makes of a column's value. */
const attributesOf = (
  codec: t.Any,
  special: Readonly<Record<string, Convert>>,
): ReadonlyArray<readonly [string, Convert]> => {
  const { properties } = toJsonSchema(codec)
  return Object.entries((properties ?? {}) as Readonly<Record<string, JsonSchema>>).map(([attribute, { type }]) => {
    const named = [type].flat().find((name) => name !== 'null')
    return [attribute, special[attribute] ?? converters[String(named)] ?? E.right]
  })
}

const isBlank = (value: unknown): boolean =>
  value === null || value === undefined || (typeof value === 'string' && value.trim() === '')

/** Where a record has what an attribute is made of. */
type Place = { readonly attribute: string; readonly convert: Convert; readonly valueIn: (columns: Columns) => unknown }

/** The name that a column goes by: compared without case where that finds one, since databases fold names. */
const nameOf = (columns: Columns, column: string): string | undefined => {
  if (Object.hasOwn(columns, column)) return column
  const folded = column.toLowerCase()
  return Object.keys(columns).find((key) => key.toLowerCase() === folded)
}

/** The value of a column; a dotted name goes into objects. */
const inside = (columns: Columns, column: string): unknown => {
  const name = nameOf(columns, column)
  if (name !== undefined) return columns[name]
  const [head = '', ...rest] = column.split('.')
  const inner = rest.length === 0 ? undefined : inside(columns, head)
  return t.UnknownRecord.is(inner) ? inside(inner, rest.join('.')) : undefined
}

/** How many forms of record are remembered. */
const mostForms = 1000

const isSame = (names: ReadonlyArray<string>, others: ReadonlyArray<string>): boolean => {
  for (let index = 0; index < names.length; index += 1) if (names[index] !== others[index]) return false
  return names.length === others.length
}

/** Finds where the attributes are, once for all records that have the same columns, as those of one stream mostly do. */
const finder = (
  attributes: ReadonlyArray<readonly [attribute: string, convert: Convert]>,
  mapping: Mapping,
): ((columns: Columns) => ReadonlyArray<Place>) => {
  const forms = new Map<string, ReadonlyArray<Place>>()
  let last: ReadonlyArray<string> = []
  let places: ReadonlyArray<Place> = []

  const placesIn = (columns: Columns): ReadonlyArray<Place> =>
    attributes.flatMap(([attribute, convert]) => {
      const column = mapping[attribute] ?? attribute
      const name = nameOf(columns, column)
      if (name !== undefined) return [{ attribute, convert, valueIn: (record: Columns) => record[name] }]
      return column.includes('.') ? [{ attribute, convert, valueIn: (record: Columns) => inside(record, column) }] : []
    })
  return (columns) => {
    const names = Object.keys(columns)
    if (isSame(names, last)) return places
    const form = JSON.stringify(names)
    if (forms.size >= mostForms) forms.clear()
    last = names
    places = forms.get(form) ?? placesIn(columns)
    forms.set(form, places)
    return places
  }
}

/** How columns become a value of `codec`: blank ones are left out, all others are made what their attribute is. A Left names every wrong attribute and its column. */
export const mapper = <A>(
  codec: t.Type<A, unknown>,
  mapping: Mapping,
  special: Readonly<Record<string, Convert>> = {},
) => {
  const find = finder(attributesOf(codec, special), mapping)
  return (columns: Columns): E.Either<string, A> => {
    const wrong: Array<string> = []
    const value: Record<string, unknown> = {}
    for (const { attribute, convert, valueIn } of find(columns)) {
      const given = valueIn(columns)
      if (isBlank(given)) continue
      if (convert === toText && typeof given === 'string') {
        value[attribute] = given
        continue
      }
      const converted = convert(given)
      if (E.isRight(converted)) value[attribute] = converted.right
      else wrong.push(`${attribute}${columnIn(mapping, attribute)} ${converted.left}`)
    }
    // What is right already needs no decoding, which is slower and tells what is wrong.
    if (wrong.length === 0 && codec.is(value)) return E.right(value)
    const decoded = decode(codec, value)
    if (E.isLeft(decoded)) wrong.push(...decoded.left.map(({ path, problem }) => `${path} ${problem}`))
    return wrong.length === 0 && E.isRight(decoded) ? decoded : E.left(wrong.join('; '))
  }
}

const columnIn = (mapping: Mapping, attribute: string): string => {
  const column = mapping[attribute]
  return column === undefined ? '' : ` (column ${column})`
}

/** Fails where a mapping names a column that the stream does not have. */
export const checkMapping = (inlet: Inlet, object: string, codec: t.Any, mapping: Mapping): E.Either<Failure, void> => {
  const { columns } = inlet
  if (O.isNone(columns)) return E.right(undefined)
  const known = new Set([...columns.value].map((name) => name.toLowerCase()))
  const missing = attributesOf(codec, {}).flatMap(([attribute]) => {
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
