import * as E from 'fp-ts/Either'
import type * as t from 'io-ts'
import type { Change, Row } from '../cdk/message'
import { toJsonSchema } from '../cdk/schema'
import { toRow } from './review-item'
import type { Source } from './source'

/** A value as a row of its codec: an attribute that breaks it leaves as null with its change, an undeclared one as the config has it. */
export const conforming = (codec: t.Mixed, undeclared: Source['onUnknown']) => {
  const declared = new Set(Object.keys(toJsonSchema(codec).properties as object))
  return (value: Readonly<Record<string, unknown>>): Row => {
    const own = Object.entries(value).filter(([key]) => declared.has(key))
    const others = Object.entries(value).filter(([key]) => !declared.has(key))
    const record = {
      ...Object.fromEntries(own),
      ...(undeclared === 'keep' && others.length > 0 ? { unknown_attributes: Object.fromEntries(others) } : {}),
    }
    const decoded = codec.decode(record)
    if (E.isRight(decoded)) return toRow(record)
    const wrong = [...new Set(decoded.left.flatMap(({ context }) => attributeOf(context, declared)))]
    return {
      ...toRow({ ...record, ...Object.fromEntries(wrong.map((key) => [key, null])) }),
      changes: wrong.map((field): Change => ({ field, change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' })),
    }
  }
}

/** The top-level attribute an error lies in. */
const attributeOf = (context: t.Context, declared: ReadonlySet<string>): ReadonlyArray<string> => {
  const key = context.map((entry) => entry.key).find((name) => declared.has(name))
  return key === undefined ? [] : [key]
}
