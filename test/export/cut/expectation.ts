import { isDeepStrictEqual } from 'node:util'
import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { Review } from '../../../connector/api/model/review'
import { type JsonNode, times } from '../../support/review-text'

export type ExpectedRecord = {
  readonly id: string
  readonly data: unknown
  readonly nulledPaths: ReadonlyArray<string>
}

type Json = { [name: string]: unknown }

/**
 * What is to leave of a record, by what it says and by `Review.decode`; undefined where its key or cursor is broken.
 */
export const expectRecord = (record: JsonNode): ExpectedRecord | undefined => {
  if (record.tag !== 'object') return undefined
  const of = (name: string) => record.members.filter(([key]) => key.value === name)
  const [id, ...ids] = of('id')
  const [time, ...cursors] = of('modifiedTime')
  if (id === undefined || time === undefined || ids.length + cursors.length > 0) return undefined
  if (id[1].tag !== 'token' || !/^-?\d+$/.test(id[1].text) || !isInt64(id[1].text)) return undefined
  if (time[1].tag !== 'token' || utcByTime.get(time[1].value) === undefined) return undefined
  const { data, nulled } = nullFaults(applyAliases(toValue(record) as Json))
  return { id: id[1].text, data: convertTimes(restoreInfinite(data) as Json), nulledPaths: nulled }
}

const isInt64 = (digits: string) => BigInt(digits) === BigInt.asIntN(64, BigInt(digits))

const infiniteNumber = Symbol('infinite')

const toValue = (node: JsonNode): unknown => {
  switch (node.tag) {
    case 'token':
      return typeof node.value === 'number' && !Number.isFinite(node.value) ? infiniteNumber : node.value
    case 'array':
      return node.items.map(toValue)
    case 'object':
      return Object.fromEntries(node.members.map(([key, value]) => [key.value, toValue(value)]))
  }
}

const restoreInfinite = (value: unknown): unknown => {
  if (value === infiniteNumber) return 'infinite'
  if (Array.isArray(value)) return value.map(restoreInfinite)
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, restoreInfinite(inner)]))
    : value
}

const declaredAttributes = new Set(Review.types.flatMap((part) => Object.keys(part.props)))

const applyAliases = ({ engagement, ...review }: Json): Json => {
  const all = {
    ...review,
    ...(engagement === undefined ? {} : { engagements: joinEngagements(review.engagements ?? null, engagement) }),
  }
  const unknown = Object.entries(all).filter(([key]) => !declaredAttributes.has(key))
  return {
    ...Object.fromEntries(Object.entries(all).filter(([key]) => declaredAttributes.has(key))),
    ...(unknown.length === 0 ? {} : { unknown_attributes: Object.fromEntries(unknown) }),
  }
}

const joinEngagements = (own: unknown, other: unknown): unknown => {
  if (!Array.isArray(own)) return own === null || Array.isArray(other) ? other : own
  if (!Array.isArray(other)) return own
  const isObject = (one: unknown) => typeof one === 'object' && one !== null && !Array.isArray(one)
  return [...own, ...other.filter((one) => isObject(one) && !own.some((known) => isDeepStrictEqual(known, one)))]
}

/** Nulls the nearest nullable place over each error of the codec. */
const nullFaults = (review: Json): { readonly data: Json; readonly nulled: ReadonlyArray<string> } => {
  const places = findFaults(review)
  const nulled = [...new Set(places)].filter((place) => !places.some((other) => place.startsWith(`${other}.`)))
  for (const place of nulled) {
    const path = place.split('.')
    const last = path.pop() ?? ''
    const holder = path.reduce<Json>((value, key) => value[key] as Json, review)
    holder[last] = null
  }
  if (findFaults(review).length > 0) throw new Error('the codec still refuses it')
  return { data: review, nulled }
}

type Tagged = { readonly _tag?: string; readonly types?: ReadonlyArray<t.Any> }

const findFaults = (review: Json): ReadonlyArray<string> =>
  E.match(
    (errors: t.Errors) =>
      errors.filter(({ context }) => isFault(context.at(-1))).map(({ context }) => nullablePlace(context)),
    () => [],
  )(Review.decode(review))

// The null branch of a union fails beside the one that shows where; a bigint stands for a long number.
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

const utcByTime = new Map<unknown, string | undefined>(times)

const convertTimes = (review: Json): Json => ({
  ...review,
  ...convertTime(review, 'modifiedTime'),
  ...convertTime(review, 'mentionTime'),
  ...(Array.isArray(review.engagements)
    ? { engagements: review.engagements.map((one: Json) => ({ ...one, ...convertTime(one, 'engagementTime') })) }
    : {}),
})

const convertTime = (holder: Json, name: string): Json =>
  typeof holder[name] === 'string' ? { [name]: utcByTime.get(holder[name]) } : {}
