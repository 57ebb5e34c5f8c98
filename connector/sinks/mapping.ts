import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { parseJson } from '../api/json-text'
import { configFailure, type Failure } from '../cdk/failure'
import { decode } from '../cdk/json'
import { type JsonSchema, toJsonSchema } from '../cdk/schema'
import type { Inlet } from '../cdk/sink'
import { type Convert, toBoolean, toInteger, toList, toObject, toText } from './convert'
import type { Mapping } from './target'

/** A record that came in. */
export type Columns = Readonly<Record<string, unknown>>

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

/** Finds the values of columns in a record. */
type Find = (columns: Columns) => (column: string) => unknown

/**
 * Names are compared without case where that finds one, since databases fold them; a dotted name goes into objects. What was
 * found is remembered while records have the same columns, as those of one stream mostly do.
 */
const finder = (): Find => {
  let shape = ''
  let found = new Map<string, string | undefined>()
  const nameOf = (columns: Columns, column: string): string | undefined => {
    if (Object.hasOwn(columns, column)) return column
    const folded = column.toLowerCase()
    return Object.keys(columns).find((key) => key.toLowerCase() === folded)
  }
  const inside = (columns: Columns, column: string): unknown => {
    const [head = '', ...rest] = column.split('.')
    const name = rest.length === 0 ? undefined : nameOf(columns, head)
    const inner = name === undefined ? undefined : columns[name]
    return t.UnknownRecord.is(inner) ? finder()(inner)(rest.join('.')) : undefined
  }
  return (columns) => {
    const now = Object.keys(columns).join('\0')
    if (now !== shape) {
      shape = now
      found = new Map()
    }
    return (column) => {
      if (!found.has(column)) found.set(column, nameOf(columns, column))
      const name = found.get(column)
      return name === undefined ? inside(columns, column) : columns[name]
    }
  }
}

/** A record's text as its columns. */
export const readColumns = (json: Uint8Array): E.Either<string, Columns> =>
  E.tryCatch(
    () => parseJson(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8')) as Columns,
    () => 'it is not JSON',
  )

/** How columns become a value of `codec`: blank ones are left out, all others are made what their attribute is. A Left names every wrong attribute and its column. */
export const mapper = <A>(
  codec: t.Type<A, unknown>,
  mapping: Mapping,
  special: Readonly<Record<string, Convert>> = {},
) => {
  const attributes = attributesOf(codec, special)
  const find = finder()
  return (columns: Columns): E.Either<string, A> => {
    const valueOf = find(columns)
    const wrong: Array<string> = []
    const value: Record<string, unknown> = {}
    for (const [attribute, convert] of attributes) {
      const column = mapping[attribute]
      const given = valueOf(column ?? attribute)
      if (isBlank(given)) continue
      const converted = convert(given)
      if (E.isRight(converted)) value[attribute] = converted.right
      else wrong.push(`${attribute}${column === undefined ? '' : ` (column ${column})`} ${converted.left}`)
    }
    const decoded = decode(codec, value)
    if (E.isLeft(decoded)) wrong.push(...decoded.left.map(({ path, problem }) => `${path} ${problem}`))
    return wrong.length === 0 && E.isRight(decoded) ? decoded : E.left(wrong.join('; '))
  }
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
