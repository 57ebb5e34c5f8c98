import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { Review } from '../../../connector/api/model/review'
import { type Node, times } from './review-text'

export type Expected = { readonly id: string; readonly data: unknown; readonly nulled: ReadonlyArray<string> }

type Json = { [name: string]: unknown }

/** What is to leave of a record, by what it says and by `Review.decode`; undefined where its key or cursor is broken. */
export const expected = (record: Node): Expected | undefined => {
  if (record.tag !== 'object') return undefined
  const of = (name: string) => record.members.filter(([key]) => key.value === name)
  const [id, ...ids] = of('id')
  const [time, ...cursors] = of('modifiedTime')
  if (id === undefined || time === undefined || ids.length + cursors.length > 0) return undefined
  if (id[1].tag !== 'token' || !/^-?\d+$/.test(id[1].text) || !isInt64(id[1].text)) return undefined
  if (time[1].tag !== 'token' || utc.get(time[1].value) === undefined) return undefined
  const { data, nulled } = accepted(named(said(record) as Json))
  return { id: id[1].text, data: inUtc(restored(data) as Json), nulled }
}

const isInt64 = (digits: string) => BigInt(digits) === BigInt.asIntN(64, BigInt(digits))

const infinite = Symbol('infinite')

const said = (node: Node): unknown => {
  switch (node.tag) {
    case 'token':
      return typeof node.value === 'number' && !Number.isFinite(node.value) ? infinite : node.value
    case 'array':
      return node.items.map(said)
    case 'object':
      return Object.fromEntries(node.members.map(([key, value]) => [key.value, said(value)]))
  }
}

const restored = (value: unknown): unknown => {
  if (value === infinite) return 'infinite'
  if (Array.isArray(value)) return value.map(restored)
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, restored(inner)]))
    : value
}

const declared = new Set(Review.types.flatMap((part) => Object.keys(part.props)))

const named = ({ engagement, ...review }: Json): Json => {
  const all = {
    ...review,
    ...(engagement === undefined || review.engagements != null ? {} : { engagements: engagement }),
  }
  const unknown = Object.entries(all).filter(([key]) => !declared.has(key))
  return {
    ...Object.fromEntries(Object.entries(all).filter(([key]) => declared.has(key))),
    ...(unknown.length === 0 ? {} : { unknown_attributes: Object.fromEntries(unknown) }),
  }
}

/** Nulls the nearest nullable place over each error of the codec. */
const accepted = (review: Json): { readonly data: Json; readonly nulled: ReadonlyArray<string> } => {
  const places = faults(review)
  const nulled = [...new Set(places)].filter((place) => !places.some((other) => place.startsWith(`${other}.`)))
  for (const place of nulled) {
    const path = place.split('.')
    const last = path.pop() ?? ''
    const holder = path.reduce<Json>((value, key) => value[key] as Json, review)
    holder[last] = null
  }
  if (faults(review).length > 0) throw new Error('the codec still refuses it')
  return { data: review, nulled }
}

type Tagged = { readonly _tag?: string; readonly types?: ReadonlyArray<t.Any> }

const faults = (review: Json): ReadonlyArray<string> =>
  E.match(
    (errors: t.Errors) =>
      errors.filter(({ context }) => isFault(context.at(-1))).map(({ context }) => nullablePlace(context)),
    () => [],
  )(Review.decode(review))

// The null branch of a union fails beside the one that tells where; a bigint stands for a long number.
const isFault = (last: t.ContextEntry | undefined): boolean =>
  last !== undefined &&
  last.type !== t.null &&
  !((last.type as Tagged)._tag === 'NumberType' && typeof last.actual === 'bigint')

const nullablePlace = (context: t.Context): string => {
  const path: string[] = []
  let place = ''
  context.forEach(({ key, type }, i) => {
    const tag = (context[i - 1]?.type as Tagged | undefined)?._tag
    if (i > 0 && tag !== 'UnionType' && tag !== 'IntersectionType') path.push(key)
    if ((type as Tagged).types?.includes(t.null) && (type as Tagged)._tag === 'UnionType') place = path.join('.')
  })
  return place
}

const utc = new Map<unknown, string | undefined>(times)

const inUtc = (review: Json): Json => ({
  ...review,
  ...moved(review, 'modifiedTime'),
  ...moved(review, 'mentionTime'),
  ...(Array.isArray(review.engagements)
    ? { engagements: review.engagements.map((one: Json) => ({ ...one, ...moved(one, 'engagementTime') })) }
    : {}),
})

const moved = (holder: Json, name: string): Json =>
  typeof holder[name] === 'string' ? { [name]: utc.get(holder[name]) } : {}
